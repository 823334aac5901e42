"""Where a model's files are: in a folder, on the Hub at one commit, or made on this machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peekbench import DataError, Folders
from peekbench_hub.client import FULL_SHA, NotFoundError, download, list_files, resolve
from peekbench_lm.builtin import BUILTIN, build_model
from peekbench_lm.names import Kind

NEEDED = (".json", ".txt", ".model", ".safetensors")  # weights in other formats may hold code, and are left alone
SECOND_COPY = "consolidated"  # begins the names of files with the same weights in their makers' own layout


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's files, as transformers saves them."""

    path: Path
    state: str
    """Differs where the files may differ."""


def find_model(model: str, revision: str, folders: Folders) -> ModelFolder:
    """A model's files, made or downloaded if they are not here yet.

    Parameters
    ----------
    model
        `builtin:` and a name, a path that begins with `.`, `/` or `~`, or a model's id on the Hub.
    revision
        Commit or branch on the Hub; empty for the branch `main`.

    Raises
    ------
    DataError
        Where there is no such model, or it cannot be had.
    """
    if model.startswith(BUILTIN):
        path = build_model(model.removeprefix(BUILTIN), folders.cache)
    elif _is_path(model):
        path = folders.spec / Path(model).expanduser()
        if not path.is_dir():
            raise DataError(f"model {model}: there is no folder {path}; a model's id on the Hub has no `./` in front")
    else:
        path = _download(model, _commit(model, revision, folders.cache), folders.cache)
    if not (path / "config.json").is_file():
        raise DataError(f"model {model}: {path} has no config.json; give a folder as transformers saves a model")
    files = sorted(file for file in path.iterdir() if file.is_file())
    return ModelFolder(path, repr([(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]))


def pin_model(model: str, revision: str, folders: Folders) -> dict[str, Any]:
    """The option that ties a model to the version in use; errors as `find_model`."""
    if model.startswith(BUILTIN) or _is_path(model) or FULL_SHA.fullmatch(revision):
        return {}
    return {"revision": _commit(model, revision, folders.cache)}


def describe_model(model: str, revision: str, folders: Folders) -> dict[str, Any]:
    """What a reader of a run should know of a model's weights; downloads or makes it. Errors as `find_model`."""
    found = find_model(model, revision, folders)
    digests = {}
    for file in sorted(found.path.glob("*.safetensors")):
        with file.open("rb") as stream:
            digests[file.name] = hashlib.file_digest(stream, "sha256").hexdigest()
    about: dict[str, Any] = {"model": model, "sha256": digests}
    if model.startswith(BUILTIN):
        about |= json.loads((found.path / "made.json").read_text(encoding="utf-8"))
    elif not _is_path(model):
        about["commit"] = _commit(model, revision, folders.cache)
    return about


def model_kind(folder: Path) -> Kind:
    """Whether a model was trained to fill in masked tokens or to go on with a text.

    Raises
    ------
    DataError
        Where it is neither.
    """
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    config = read_config(folder)
    architecture = str((config.get("architectures") or [""])[0])
    if architecture.endswith(("ForMaskedLM", "ForPreTraining")):
        return "masked"
    if architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    kind = config.get("model_type")
    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return "masked"
    if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "causal"
    raise DataError(
        f"{folder}: {architecture or kind} is neither a masked nor a causal language model; choose a model such as "
        "bert-base-uncased or gpt2"
    )


def read_config(folder: Path) -> Mapping[str, Any]:
    """A model's configuration.

    Raises
    ------
    DataError
        Where it cannot be read.
    """
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / 'config.json'}: {error}; give a folder as transformers saves a model") from error
    return config


def _is_path(model: str) -> bool:
    return model.startswith((".", "/", "~"))


def _commit(model: str, revision: str, cache: Path) -> str:
    if FULL_SHA.fullmatch(revision):
        return revision
    try:
        return resolve("model", model, revision or "main", cache, f"the model {model}")
    except NotFoundError as error:
        raise _no_such_model(model, error) from error


def _download(model: str, sha: str, cache: Path) -> Path:
    sought = f"the model {model}, commit {sha}"
    try:
        listed = list_files("model", model, sha, cache, sought)
        files = [file for file in listed if "/" not in file and not file.startswith(SECOND_COPY)]
        if not any(file.endswith(".safetensors") for file in files):
            raise DataError(
                f"{sought}: it has no weights in safetensors, and other formats may hold code, which is never run; "
                "choose another model, or convert it and give the folder"
            )
        paths = download("model", model, sha, [file for file in files if file.endswith(NEEDED)], sought)
    except NotFoundError as error:
        raise _no_such_model(model, error) from error
    return paths[0].parent


def _no_such_model(model: str, error: NotFoundError) -> DataError:
    return DataError(f"{error}; correct the model's id, or write ./{model} for a folder beside the spec")
