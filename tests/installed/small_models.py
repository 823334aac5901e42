"""Language models of a few thousand weights, random ones, with a tokenizer of their own: what transformers can save."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from peekbench_lm.builtin import train_tokenizer
from peekbench_lm.names import Kind

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
}
PACKED = set(KINDS) - {"deberta-v2"}  # it computes attention in a way of its own


def save_model(name: str, folder: Path, *, dropout: float = 0.1, width: int = 32, positions: int = 64) -> Path:
    """Write a model of a type into a folder, as transformers does; the folder."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

    tokenizer = train_tokenizer(KINDS[name], list(SENTENCES), 400)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    config = AutoConfig.for_model(name, vocab_size=len(tokenizer), **_sizes(name, dropout, width, positions))
    config.pad_token_id = tokenizer.pad_token_id if KINDS[name] == "masked" else None
    loader: Any = AutoModelForMaskedLM if KINDS[name] == "masked" else AutoModelForCausalLM
    loader.from_config(config).save_pretrained(folder)
    return folder


def _sizes(name: str, dropout: float, width: int, positions: int) -> dict[str, Any]:
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
