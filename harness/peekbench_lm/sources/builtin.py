"""Built-in models: small language models that need no download, because this machine trains each of them once."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from pathlib import Path

from filelock import FileLock

from peekbench import DataError
from peekbench.cache import describe_file, is_unchanged, read_cached, write_cached
from peekbench_lm.sources import corpus

BUILTIN_PREFIX = "builtin:"
BUILTIN_MODELS = ("bert-nano", "gpt2-nano", "gpt2-nano-512")
DESCRIPTION = "description.json"  # name of the file that describes a built-in model
FILES = "files.json"  # name of the file that describes the other files, to notice changes
RECIPE_FILES = ("builtin_training.py", "corpus.py", "tokenizer_training.py")


def build_model(name: str, cache: Path) -> Path:
    """Return the folder of a built-in model. Training it takes a few minutes the first time.

    Parameters
    ----------
    name
        Name of the model, without the prefix ``builtin:``.
    cache
        Cache folder.

    Raises
    ------
    DataError
        If there is no built-in model of this name, or the cache cannot be written.
    """
    if name not in BUILTIN_MODELS:
        known = ", ".join(BUILTIN_PREFIX + model for model in BUILTIN_MODELS)
        raise DataError(f"model {BUILTIN_PREFIX}{name}: no such built-in model; choose one of {known}")
    folder = cache / "models" / f"{name}-{_recipe_hash()[:16]}"
    if _is_complete(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not _is_complete(folder):
                _train(name, folder)
    except OSError as error:
        raise DataError(
            f"model {BUILTIN_PREFIX}{name}: {error.filename or folder}: {error.strerror or error}; models are saved in "
            "the cache; make it writable, or set PEEKBENCH_CACHE to another folder"
        ) from error
    return folder


def _is_complete(folder: Path) -> bool:
    """Return whether the folder has all files of a model as they were written."""
    files = read_cached(folder / FILES)
    return files is not None and all(is_unchanged(folder / name, state) for name, state in files.items())


def _recipe_hash() -> str:
    """Return a hash of the training code and of the training texts. A change of either gives a new model."""
    sources = [(Path(__file__).parent / file).read_text(encoding="utf-8") for file in RECIPE_FILES]
    return hashlib.sha256(repr([*sources, corpus.fingerprint()]).encode()).hexdigest()


def _train(name: str, folder: Path) -> None:
    """Train a model and save it in a folder, which appears only once it is complete."""
    from peekbench_lm.sources.builtin_training import train_builtin_model  # noqa: PLC0415 - imports torch

    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        unfinished = Path(temporary) / name
        description = train_builtin_model(name, unfinished)
        (unfinished / DESCRIPTION).write_text(json.dumps(description, indent=1), encoding="utf-8")
        files = {path.name: describe_file(path) for path in sorted(unfinished.iterdir())}
        write_cached(unfinished / FILES, files)
        if folder.exists():  # a file has changed or is missing
            shutil.move(folder, Path(temporary) / "changed")
        unfinished.rename(folder)
