"""Language models of a few thousand weights, random ones, with a tokenizer of their own: what transformers can save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from peekbench_lm.builtin import train_tokenizer
from peekbench_lm.names import Kind
from peekbench_lm.tokens import encode

if TYPE_CHECKING:
    from peekbench_lm.model import LanguageModel

SENTENCES = tuple(
    f"{who} {does} {what} {where}."
    for who in ("The engine", "A rabbit", "The minister", "Her orchestra")
    for does in ("follows", "repairs", "questions", "plays")
    for what in ("the long melody", "an old law", "the broken pump", "a field of clover")
    for where in ("in spring", "before the vote", "at full pressure", "for two violins")
)
KINDS: dict[str, Kind] = {
    "bert": "masked",
    "roberta": "masked",
    "electra": "masked",
    "distilbert": "masked",
    "deberta-v2": "masked",
    "gpt2": "causal",
    "gpt_neox": "causal",
    "llama": "causal",
    "mistral": "causal",
    "codegen": "causal",  # its configuration has no token for padding
}
PACKED = set(KINDS) - {"deberta-v2"}  # it computes attention in a way of its own


def save_model(name: str, folder: Path, *, dropout: float = 0.1, width: int = 32, positions: int = 64) -> Path:
    """Write a model of a type into a folder, as transformers does; the folder."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

    tokenizer = train_tokenizer(KINDS[name], list(SENTENCES), 400)
    tokenizer.model_max_length = max(positions, tokenizer.model_max_length)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    config = AutoConfig.for_model(name, vocab_size=len(tokenizer), **_sizes(name, dropout, width, positions))
    if hasattr(config, "pad_token_id"):
        config.pad_token_id = tokenizer.pad_token_id if KINDS[name] == "masked" else None
    loader: Any = AutoModelForMaskedLM if KINDS[name] == "masked" else AutoModelForCausalLM
    loader.from_config(config).save_pretrained(folder)
    return folder


def _sizes(name: str, dropout: float, width: int, positions: int) -> dict[str, Any]:
    if name == "codegen":
        return {**_sizes("gpt2", dropout, width, positions), "rotary_dim": 4}
    if name == "gpt2":
        return {
            "n_embd": width, "n_layer": 2, "n_head": 4, "n_positions": positions, "resid_pdrop": dropout,
            "embd_pdrop": dropout, "attn_pdrop": dropout, "bos_token_id": 0, "eos_token_id": 0,
        }  # fmt: skip
    if name == "distilbert":
        return {
            "dim": width, "n_layers": 2, "n_heads": 4, "hidden_dim": 2 * width, "max_position_embeddings": positions,
            "dropout": dropout, "attention_dropout": dropout,
        }  # fmt: skip
    common = {
        "hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 2 * width,
        "max_position_embeddings": positions, "hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout,
        "attention_dropout": dropout, "hidden_dropout": dropout, "bos_token_id": 0, "eos_token_id": 0,
    }  # fmt: skip
    return {**common, "num_key_value_heads": 2, "embedding_size": width}


def some_texts(model: LanguageModel, number: int = 24, seed: int = 0) -> list[list[int]]:
    """Token ids of sentences, one to three to a text."""
    generator = np.random.default_rng(seed)
    texts = [" ".join(generator.choice(SENTENCES, size=generator.integers(1, 4))) for _ in range(number)]
    return encode(model.tokenizer, texts, model.limit(60))


def weights(model: LanguageModel) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in model.network.named_parameters()}


def farthest(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)
