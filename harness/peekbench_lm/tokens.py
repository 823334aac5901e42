"""Texts to token ids, cut at a model's context."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peekbench import DataError, Inputs
from peekbench_lm.folder import read_config

POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length")


def load_tokenizer(folder: Path) -> Any:
    """A model's tokenizer.

    Raises
    ------
    DataError
        Where it cannot be loaded.
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads do not survive in processes of a worker
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder}: its tokenizer cannot be loaded: {error}; give one that transformers knows"
        ) from error


def encode(tokenizer: Any, texts: Inputs, limit: int) -> list[list[int]]:
    """Token ids of each text, with the tokenizer's special tokens, at most `limit`.

    A text of which nothing is left, such as one of spaces, becomes the one token that ends texts.
    """
    encoded = tokenizer(list(texts), truncation=True, max_length=limit, return_attention_mask=False)["input_ids"]
    if all(encoded):
        return list(encoded)
    filler = next((token for token in (tokenizer.eos_token_id, tokenizer.sep_token_id) if token is not None), 0)
    return [ids or [filler] for ids in encoded]


def count(tokenizer: Any, texts: Sequence[str]) -> list[int]:
    """Tokens of each text before any are cut off."""
    encoded = tokenizer(list(texts), truncation=False, return_attention_mask=False, verbose=False)["input_ids"]
    return [len(ids) for ids in encoded]


def context_limit(tokenizer: Any, folder: Path, wanted: int, first_position: int = 0) -> int:
    """Tokens that are read: as many as wanted, or as tokenizer and model are made for."""
    config = read_config(folder)
    positions = next((config[name] for name in POSITIONS if config.get(name)), wanted)
    return min(wanted, int(positions) - first_position, int(tokenizer.model_max_length))
