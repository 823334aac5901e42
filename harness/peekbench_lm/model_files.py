"""Files of models: in a folder, in a GGUF file, on the Hub at one commit, or built in."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from peekbench import DataError, Folders
from peekbench_hub.downloads import FULL_SHA, NotFoundError, download, find_commit
from peekbench_lm.builtin_models import BUILTIN_PREFIX, DESCRIPTION, FILES, build_model, build_once
from peekbench_lm.defects import check_config, check_gguf
from peekbench_lm.extras import check_extra
from peekbench_lm.options import ModelFolder

DOWNLOADED_SUFFIXES = (".json", ".txt", ".model", ".safetensors")  # other weight formats may contain code
DUPLICATE_PREFIX = "consolidated"  # of files that repeat the weights in the format of their authors
MODULE_FOLDER = re.compile(r"\d+_\w+")  # of a module of sentence-transformers, such as 1_Pooling


def find_model(model: str, revision: str, folders: Folders) -> ModelFolder:
    """Return the files of a model. Download, build or convert it if it is not on this machine yet.

    Parameters
    ----------
    model
        ``builtin:`` and a name; the path of a folder, which begins with ``.``, ``/`` or ``~``, or of a file, which ends
        with ``.gguf``; or the id of a model on the Hub.
    revision
        Commit or branch on the Hub; empty for the branch ``main``.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the model does not exist or is unavailable.
    """
    if model.startswith(BUILTIN_PREFIX):
        path = build_model(model.removeprefix(BUILTIN_PREFIX), folders.cache)
    elif is_path(model):
        path = folders.spec / Path(model).expanduser()
        if is_gguf(model) and not path.is_dir():
            path = _convert(model, path, folders.cache)
        elif path.is_file():
            raise DataError(f"model {model}: {path} is a file; give its folder, {path.parent}")
        if not path.is_dir():
            raise DataError(
                f"model {model}: there is no folder {path}; correct the path, or remove `./` from the id of a model "
                "on the Hub"
            )
    else:
        path = _download(model, _find_commit(model, revision, folders.cache), folders.cache)
    check_config(model, path)
    states = ((name, file.stat()) for name, file in _files_in(path))
    return ModelFolder(path, repr([(name, state.st_size, state.st_mtime_ns) for name, state in states]))


def pin_model(model: str, revision: str, folders: Folders) -> dict[str, Any]:
    """Return the option that fixes a model on the Hub to its current commit; empty for other models."""
    if model.startswith(BUILTIN_PREFIX) or is_path(model) or FULL_SHA.fullmatch(revision):
        return {}
    return {"revision": _find_commit(model, revision, folders.cache)}


def describe_model(model: str, revision: str, folders: Folders) -> dict[str, Any]:
    """Return the provenance of a model: digests of its files, and its commit or how it was built.

    Download or build the model if it is not on this machine yet.
    """
    folder = find_model(model, revision, folders)
    digests = {}
    for name, file in _files_in(folder.path):
        if file.suffix in DOWNLOADED_SUFFIXES and name not in (DESCRIPTION, FILES):
            digests[name] = _hash_file(file, file.stat().st_size, file.stat().st_mtime_ns)
    description: dict[str, Any] = {"model": model, "sha256": digests}
    if model.startswith(BUILTIN_PREFIX) or is_gguf(model):
        description |= json.loads((folder.path / DESCRIPTION).read_text(encoding="utf-8"))
    elif not is_path(model):
        description["commit"] = _find_commit(model, revision, folders.cache)
    return description


def _files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a model with their names relative to the folder; those of modules after the others."""
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path.is_file():
            yield path.name, path
        elif MODULE_FOLDER.fullmatch(path.name):
            yield from ((f"{path.name}/{file.name}", file) for file in sorted(path.iterdir()) if file.is_file())


@cache  # weights have gigabytes, and each method and set of options asks for them
def _hash_file(path: Path, size: int, modified: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_pooler(folder: Path) -> tuple[Any, Any]:
    """Return weight and bias of the pooler of BERT, which transformers leaves out of a masked language model.

    Parameters
    ----------
    folder
        Folder of the model.

    Returns
    -------
    tuple of torch.Tensor
        Weight of shape (hidden_size, hidden_size), and bias of shape (hidden_size,).

    Raises
    ------
    DataError
        If the files contain no pooler.
    """
    from safetensors import safe_open  # noqa: PLC0415 - only the extra `lm` installs it

    found: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as weights:
            names = [name for name in weights.keys() if ".pooler.dense." in f".{name}"]  # noqa: SIM118 - no dictionary
            found |= {name.rpartition(".")[2]: weights.get_tensor(name).float() for name in names}
    if found.keys() != {"weight", "bias"}:
        raise DataError(
            f"{folder}: the checkpoint has no pooler, with which the head `bert` begins; choose a checkpoint of BERT "
            "such as bert-base-uncased, or write `head: linear`"
        )
    return found["weight"], found["bias"]


def is_path(model: str) -> bool:
    """Return whether the name of a model is that of a folder or a file; the Hub has no models of the format GGUF."""
    return model.startswith((".", "/", "~")) or is_gguf(model)


def is_gguf(model: str) -> bool:
    """Return whether the name of a model is that of a GGUF file."""
    return model.lower().endswith(".gguf")


def _convert(model: str, file: Path, cache: Path) -> Path:
    """Return the folder with a model of a GGUF file in the format of transformers. The first call converts it."""
    check_gguf(model, file)
    state = file.stat()
    digest = _hash_file(file, state.st_size, state.st_mtime_ns)
    code = Path(__file__).with_name("gguf_files.py").read_bytes()
    version = hashlib.sha256(digest.encode() + code).hexdigest()[:16]

    def build(folder: Path) -> dict[str, Any]:
        check_extra("gguf", f"GGUF files such as {model}")
        from peekbench_lm.gguf_files import convert  # noqa: PLC0415 - needs torch, and a converted file does not

        return {"gguf_sha256": digest, **convert(model, file, folder)}

    return build_once(cache / "models" / f"{file.stem}-{version}", model, build)


def _find_commit(model: str, revision: str, cache: Path) -> str:
    """Return the full SHA of a revision on the Hub."""
    if FULL_SHA.fullmatch(revision):
        return revision
    try:
        return find_commit("model", model, revision or "main", cache).sha
    except NotFoundError as error:
        raise _unknown_model_error(model, error) from error


def _download(model: str, sha: str, cache: Path) -> Path:
    """Download the configuration, the tokenizer and the safetensors weights of a model; return their folder."""
    try:
        commit = find_commit("model", model, sha, cache)
        available = commit.files
        files = [file for file in available if "/" not in file and not file.startswith(DUPLICATE_PREFIX)]
        modules = [file for file in available if file.count("/") == 1 and MODULE_FOLDER.fullmatch(file.split("/")[0])]
        if not any(file.endswith(".safetensors") for file in files):
            raise DataError(
                f"{commit}: it has no weights in safetensors, and peekbench does not load other formats, which "
                "may contain code; choose another model, or convert it and give the folder"
            )
        selected = [file for file in [*files, *modules] if file.endswith(DOWNLOADED_SUFFIXES)]
        paths = download(commit, selected, cache)
    except NotFoundError as error:
        raise _unknown_model_error(model, error) from error
    return paths[0].parent


def _unknown_model_error(model: str, error: NotFoundError) -> DataError:
    return DataError(f"{error}; correct the model's id, or write ./{model} for a folder next to the spec")
