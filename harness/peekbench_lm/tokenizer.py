"""Tokenizers, token ids of texts, and what the files of a model say: its training objective and its context limit."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peekbench import DataError, Inputs
from peekbench.formatting import shorten
from peekbench_lm.defects import check_code, check_tokenizer, read_json
from peekbench_lm.extras import check_extra
from peekbench_lm.options import Kind


def model_kind(folder: Path) -> Kind:
    """Return whether a model predicts masked tokens or the next token."""
    config = read_json(folder / "config.json")
    architecture = str((config.get("architectures") or [""])[0])
    if architecture.endswith(("ForMaskedLM", "ForPreTraining")):
        return "masked"
    if architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    check_extra("lm", "language models")
    from transformers.models.auto import modeling_auto  # noqa: PLC0415 - imports torch, which most models do not need

    model_type = config.get("model_type")
    if model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return "masked"
    if model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "causal"
    raise DataError(
        f"{folder}: {architecture or model_type} is neither a masked nor a causal language model; choose a model such "
        "as bert-base-uncased or gpt2"
    )


PARALLELISM = "TOKENIZERS_PARALLELISM"
"""Environment variable that tokenizers read at each call."""
POSITION_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length")
"""Keys of the number of positions in the configurations of different models."""
MAX_SHOWN = 60  # characters of a text in messages


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a model."""
    from transformers import AutoTokenizer  # noqa: PLC0415 - modules that count tokens stay light

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        check_code(folder)
        raise DataError(
            f"{folder}: transformers cannot load the tokenizer: {error}; give a model that the installed version "
            "supports, or upgrade it"
        ) from error
    check_tokenizer(tokenizer, folder)
    return tokenizer


def encode(tokenizer: Any, texts: Inputs, limit: int) -> list[list[int]]:
    """Return the token ids of texts with special tokens, at most `limit` of each.

    A text without tokens, such as a space, becomes a single end-of-text token.
    """
    with one_thread():
        encoded = tokenizer(list(texts), truncation=True, max_length=limit, return_attention_mask=False)["input_ids"]
    if all(encoded):
        return list(encoded)
    filler = next((token for token in (tokenizer.eos_token_id, tokenizer.sep_token_id) if token is not None), 0)
    return [ids or [filler] for ids in encoded]


def special_prefix(tokenizer: Any) -> list[int]:
    """Return the special tokens that a tokenizer puts before a text."""
    bare, full = (tokenizer("a", add_special_tokens=special)["input_ids"] for special in (False, True))
    starts = (start for start in range(len(full)) if full[start : start + len(bare)] == bare)
    return list(full[: next(starts, 0)])


def encode_whole(tokenizer: Any, texts: Inputs) -> list[list[int]]:
    """Return the token ids of whole texts, each followed by the end-of-text token and without other special tokens.

    Different texts have different ids, none of which are the first ids of another text. The probabilities that a model
    assigns to the ids of all texts therefore sum to at most 1.
    """
    end = tokenizer.eos_token_id
    if end is None:
        raise DataError(
            f"{tokenizer.name_or_path}: the tokenizer has no end-of-text token, so the model gives no probability of a "
            "whole text; choose a model with one, such as gpt2"
        )
    texts = list(texts)
    with one_thread():
        encoded = tokenizer(
            texts, add_special_tokens=False, split_special_tokens=True, return_attention_mask=False, verbose=False
        )["input_ids"]
        decoded = tokenizer.batch_decode(encoded, clean_up_tokenization_spaces=False)
    for text, ids, restored in zip(texts, encoded, decoded, strict=True):
        if restored != text or end in ids:
            raise DataError(
                f"{tokenizer.name_or_path}: the tokenizer turns the text {_quote(text)} into {_quote(restored)}, so "
                "the model gives no probability of the text itself; choose a model with a tokenizer that keeps every "
                "byte, such as gpt2"
            )
    return [[*ids, end] for ids in encoded]


def _quote(text: str) -> str:
    return shorten(ascii(text), MAX_SHOWN)


def context_limit(tokenizer: Any, folder: Path, requested: int, first_position: int = 0) -> int:
    """Return the number of tokens that a model reads of each text: as requested, or fewer if it supports fewer.

    The position of the first token is greater than 0 in models such as RoBERTa.
    """
    config = read_json(folder / "config.json")
    num_positions = next((config[key] for key in POSITION_KEYS if config.get(key)), requested)
    return min(requested, int(num_positions) - first_position, int(tokenizer.model_max_length))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep tokenizers from starting threads, which do not survive a fork, unless the user wants threads."""
    if PARALLELISM in os.environ:
        yield
        return
    os.environ[PARALLELISM] = "false"
    try:
        yield
    finally:
        del os.environ[PARALLELISM]
