"""What folders of models lack, and how to repair it. Nothing here imports torch or transformers."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from peekbench import DataError

ADAPTER = "adapter_config.json"
INDEX = "model.safetensors.index.json"
LFS_POINTER = b"version https://git-lfs"
EMITTED = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id", "mask_token_id", "unk_token_id")
"""Attributes of a tokenizer with the special tokens that it adds to texts."""
GGUF_MAGIC = b"GGUF"
GGUF_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
MAX_HEADER = 100 * 2**20  # bytes, as in the format of safetensors
MERGE = (
    "from peft import AutoPeftModelForCausalLM as M; from transformers import AutoTokenizer as T; "
    "M.from_pretrained({folder}).merge_and_unload().save_pretrained({target}); "
    "T.from_pretrained({base}).save_pretrained({target})"
)
CONVERT = "from transformers import {architecture} as M; M.from_pretrained({folder}).save_pretrained({folder})"
TRANSFORMERS = "give a folder in the format that `save_pretrained` of transformers writes"


def check_config(model: str, folder: Path) -> None:
    """Refuse a folder without the configuration of a model, or with that of an adapter."""
    if (folder / ADAPTER).is_file():
        raise DataError(f"model {model}: {folder} holds an adapter of PEFT, not a model; {_merge(folder)}")
    if (folder / "config.json").is_file():
        return
    place = f"model {model}: {folder} has no config.json"
    if parts := sorted(path.parent.name for path in folder.glob("*/config.json")):
        raise DataError(f"{place}; give one of its folders, such as {model.rstrip('/')}/{parts[-1]}")
    if files := sorted(folder.glob("*.gguf")):
        raise DataError(f"{place}, but a model in GGUF format; give this file, {model.rstrip('/')}/{files[0].name}")
    raise DataError(f"{place}; {TRANSFORMERS}")


def check_gguf(model: str, file: Path) -> None:
    """Refuse a file that is missing, not in GGUF format, or a part of a model."""
    if not file.is_file():
        raise DataError(f"model {model}: there is no file {file}; correct the path")
    with file.open("rb") as stream:
        if stream.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise DataError(f"model {model}: {file} is not in GGUF format; copy or download it again")
    if GGUF_PART.search(file.name):
        raise DataError(
            f"model {model}: {file} is one of several parts; join them with `llama-gguf-split --merge` of llama.cpp, "
            "and give the joined file"
        )


def _merge(folder: Path) -> str:
    """Return how to merge an adapter into its base model."""
    adapter = read_json(folder / ADAPTER)
    base, target = adapter.get("base_model_name_or_path"), f"./{folder.resolve().name}-merged"
    if not base or adapter.get("task_type") != "CAUSAL_LM":
        return f"merge it into its base model, {base or 'which it does not name'}, with `merge_and_unload` of PEFT"
    code = MERGE.format(folder=_quote(folder), target=json.dumps(target), base=json.dumps(base))
    return f"merge it into its base model {base} with `python -c {quote(code)}`, and write `model: {target}`"


def _quote(folder: Path) -> str:
    """Return the path of a folder as text in Python code."""
    return json.dumps(str(folder.resolve()), ensure_ascii=False)


def check_weights(folder: Path) -> None:
    """Refuse a folder without complete weights in safetensors."""
    if (folder / INDEX).is_file():
        names = sorted(set(map(str, read_json(folder / INDEX).get("weight_map", {}).values())))
        if missing := [name for name in names if not (folder / name).is_file()]:
            raise DataError(f"{folder}: {missing[0]} is missing, which {INDEX} names; copy or download this file")
    files = sorted(folder.glob("*.safetensors"))
    if not files and (pickles := sorted(folder.glob("pytorch_model*.bin"))):
        architecture = next(iter(read_json(folder / "config.json").get("architectures") or []), "AutoModel")
        code = CONVERT.format(architecture=architecture, folder=_quote(folder))
        raise DataError(
            f"{folder}: {pickles[0].name} may contain code, and peekbench loads only weights in safetensors; if you "
            f"trust this file, convert it with `python -c {quote(code)}`"
        )
    if not files:
        raise DataError(f"{folder}: there are no weights in safetensors, such as model.safetensors; {TRANSFORMERS}")
    for file in files:
        if problem := _find_damage(file):
            raise DataError(f"{file}: {problem}")


def _find_damage(file: Path) -> str:
    """Describe why a file is not complete, according to its own header; empty if it is."""
    with file.open("rb") as stream:
        start = stream.read(len(LFS_POINTER))
        if start == LFS_POINTER:
            return f"this is only the pointer of Git LFS to the weights; run `git lfs pull` in {file.parent}"
        size = int.from_bytes(start[:8], "little")
        stream.seek(8)
        try:
            header = json.loads(stream.read(size)) if size <= MAX_HEADER else {}
            end = max(value["data_offsets"][1] for name, value in header.items() if name != "__metadata__")
        except (ValueError, TypeError, LookupError, AttributeError):
            return "this is no file in safetensors format; copy or download it again"
    expected, actual = 8 + size + end, file.stat().st_size
    if actual == expected:
        return ""
    return f"the file has {actual:,} bytes instead of {expected:,}; copy or download it again"


def check_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Refuse a tokenizer with more tokens than the model has embeddings, or without a vocabulary.

    Special tokens that texts do not get may have no embedding, such as that for padding.
    """
    config = read_json(folder / "config.json")
    size = config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")
    special = {number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    ordinary = set(tokenizer.get_vocab().values()) - special
    if not ordinary:
        raise DataError(
            f"{folder}: the tokenizer has no vocabulary, as if tokenizer.json were missing; copy the files of the "
            "model's tokenizer into the folder"
        )
    last = max(ordinary.union(getattr(tokenizer, name) or 0 for name in EMITTED))
    if size and last >= size:
        raise DataError(
            f"{folder}: the tokenizer has {last + 1:,} tokens, but the model only {size:,} embeddings; copy the "
            "files of the tokenizer with which the model was trained into the folder, or call "
            "`resize_token_embeddings` of transformers and save the model again"
        )


def check_architecture(folder: Path, known: Container[str]) -> None:
    """Refuse a model that transformers cannot load, or only with code of the model."""
    config = read_json(folder / "config.json")
    kind = config.get("model_type")
    if kind in known:
        return
    if "auto_map" in config:
        raise explain_code(folder, "config.json")
    if kind is None:
        raise DataError(f"{folder / 'config.json'}: it has no `model_type`; {TRANSFORMERS}")
    raise DataError(
        f"{folder / 'config.json'}: the installed transformers does not know the model type {kind!r}; upgrade it with "
        "`pip install --upgrade transformers`, or choose another model"
    )


def explain_code(folder: Path, file: str) -> DataError:
    """Return the error for a model with code of its own."""
    return DataError(
        f"{folder}: the model has code of its own (`auto_map` in {file}), and peekbench never runs code of models; "
        "choose a model that transformers supports without it, such as gpt2 or bert-base-uncased"
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
