"""Checks of the files of models. Nothing here imports torch or transformers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peekbench import DataError

EMITTED = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "mask_token_id", "unk_token_id")
"""Attributes of a tokenizer with the special tokens that it adds to texts."""
TRANSFORMERS = "give a folder in the format that `save_pretrained` of transformers writes"


def check_config(model: str, folder: Path) -> None:
    """Refuse a folder without the configuration of a model, such as one with an adapter or checkpoints."""
    if not (folder / "config.json").is_file():
        raise DataError(f"model {model}: {folder} has no config.json; {TRANSFORMERS}, with adapters merged")


def check_gguf(model: str, file: Path) -> None:
    """Refuse a file that is missing or not in GGUF format."""
    if not file.is_file():
        raise DataError(f"model {model}: there is no file {file}; correct the path")
    with file.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise DataError(f"model {model}: {file} is not in GGUF format; copy or download it again")


def check_weights(folder: Path) -> None:
    """Refuse a folder without weights in safetensors."""
    if not any(folder.glob("*.safetensors")):
        raise DataError(
            f"{folder}: there are no weights in safetensors, and peekbench does not load other formats, which may "
            f"contain code; {TRANSFORMERS}"
        )


def check_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Refuse a tokenizer with more tokens than the model has embeddings.

    Special tokens that texts do not get may have no embedding, such as that for padding.
    """
    config = read_json(folder / "config.json")
    size = config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    ordinary = set(tokenizer.get_vocab().values()) - special
    last = max(ordinary.union(getattr(tokenizer, name) or 0 for name in EMITTED))
    if not ordinary or (size and last >= size):
        raise DataError(
            f"{folder}: the tokenizer has {len(ordinary):,} tokens up to number {last:,}, and the model {size:,} "
            "embeddings; copy the files of the tokenizer with which the model was trained into the folder"
        )


def check_code(folder: Path) -> None:
    """Refuse a model with code of its own."""
    for name in ("config.json", "tokenizer_config.json"):
        if (folder / name).is_file() and "auto_map" in read_json(folder / name):
            raise DataError(
                f"{folder}: the model has code of its own (`auto_map` in {name}), and peekbench never runs code of "
                "models; choose a model that transformers supports without it, such as gpt2 or bert-base-uncased"
            )


def read_json(file: Path) -> Mapping[str, Any]:
    """Return the content of a file of a model, which has one JSON object."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: {error}; {TRANSFORMERS}") from error
    if not isinstance(content, dict):
        raise DataError(f"{file}: it holds no JSON object; {TRANSFORMERS}")
    return content
