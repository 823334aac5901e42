"""Models that this machine builds once and keeps in the cache: built-in models, and those of GGUF files.

`BUILTIN_MODELS` lists those that need no hub and no file of the user. To add one, write a module with a function that
fills a folder, and name it in the table.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from filelock import FileLock

from peekbench import DataError
from peekbench.cache import describe_file, is_unchanged, read_cached, write_cached
from peekbench.formatting import duration
from peekbench_lm.extras import check_extra
from peekbench_lm.options import Kind

BUILTIN_PREFIX = "builtin:"
SECONDS_BETWEEN_LINES = 30.0  # about the progress of a training
DESCRIPTION = "description.json"  # name of the file that describes a built-in model
FILES = "files.json"  # name of the file that describes the other files, to notice changes


@dataclass(frozen=True, slots=True)
class BuiltinModel:
    """How to build a built-in model."""

    build: str
    """Function as ``package.module:function``, because its module imports torch. It takes the name of the model, an
    empty folder to fill, and the folder of the source model or None; it returns a description of the model in JSON
    values."""
    recipe: tuple[str, ...]
    """Files of this package that determine the model. A change of one gives a new model."""
    source: str = ""
    """Built-in model from which this model is made."""
    kind: Kind | None = None
    """Training objective; None for a model without a language-model head, which only embeds texts."""
    extra: str = ""
    """Extra that installs what the model is made from, a key of `extras.LIBRARIES`; empty if every model needs it."""


NANO = partial(BuiltinModel, "peekbench_lm.nano:train_nano_model", ("nano.py", "corpus.py"))
BUILTIN_MODELS = {
    "bert-nano": NANO(kind="masked"),
    "gpt2-nano": NANO(kind="causal"),
    "gpt2-nano-512": NANO(kind="causal"),
    "minilm": BuiltinModel("peekbench_lm.minilm:unpack_minilm", ("minilm.py",)),
    "minilm-mlm": BuiltinModel(
        "peekbench_lm.minilm:train_minilm_mlm",
        ("minilm.py", "corpus.py"),
        source="minilm",
        kind="masked",
    ),
    "gemma-270m": BuiltinModel(
        "peekbench_lm.gemma:join_gemma",
        ("gemma.py", "gguf_files.py"),
        kind="causal",
        extra="gemma",
    ),
}
"""Built-in models by name, without the prefix ``builtin:``."""


def build_model(name: str, cache: Path) -> Path:
    """Return the folder of a built-in model. The first call builds it, which may take minutes.

    Parameters
    ----------
    name
        Name of the model, without the prefix ``builtin:``.
    cache
        Cache folder.

    Raises
    ------
    PeekbenchError
        If a distribution that the model needs is not installed.
    DataError
        If there is no built-in model of this name, its source is damaged, or the cache cannot be written.
    """
    entry = find_builtin(name)
    folder = cache / "models" / f"{name}-{_recipe_hash(name)[:16]}"
    if _is_complete(folder):
        return folder
    source = build_model(entry.source, cache) if entry.source else None
    return build_once(folder, BUILTIN_PREFIX + name, lambda new: resolve_name(entry.build)(name, new, source))


def build_once(folder: Path, model: str, build: Callable[[Path], dict[str, Any]]) -> Path:
    """Return the folder of a model, which the first call fills. Other processes wait for it.

    Parameters
    ----------
    folder
        Folder of the model. It appears only once it is complete, and is built again if one of its files has changed.
    model
        Name of the model in the spec, for messages.
    build
        Fills an empty folder, and returns a description of the model in JSON values.

    Raises
    ------
    DataError
        If the cache cannot be written.
    """
    if _is_complete(folder):
        return folder
    started = time.monotonic()
    work = folder.with_name(f"{folder.name}.unfinished")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if _is_complete(folder):
                return folder
            shutil.rmtree(work, ignore_errors=True)  # a process that was killed left it
            show_stage(model, "preparing the model, once for this machine")
            try:
                _build(folder, work, build)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    except OSError as error:
        raise DataError(
            f"model {model}: {error.filename or folder}: {error.strerror or error}; models are saved in the cache; "
            "make it writable, or set PEEKBENCH_CACHE to another folder"
        ) from error
    show_stage(model, f"prepared in {duration(time.monotonic() - started)}, kept in {folder}")
    return folder


def show_stage(model: str, stage: str) -> None:
    """Print on the standard error what goes on.

    Parameters
    ----------
    model
        Name of the model in the spec.
    stage
        What goes on.
    """
    print(f"{model}: {stage}", file=sys.stderr, flush=True)


class TrainingLines:
    """Prints every half minute how far the training of a model is.

    Parameters
    ----------
    model
        Name of the model in the spec.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._started = self._last = time.monotonic()

    def __call__(self, share: float) -> None:
        """Print a line if the last one is old.

        Parameters
        ----------
        share
            Share of the training that is done, above 0.
        """
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            seconds = now - self._started
            left = seconds / share - seconds
            show_stage(self._model, f"training, {share:.0%} after {duration(seconds)}, about {duration(left)} left")


def find_builtin(name: str) -> BuiltinModel:
    """Return how to build a built-in model, if what it is made from is installed.

    Parameters
    ----------
    name
        Name of the model, without the prefix ``builtin:``.

    Raises
    ------
    PeekbenchError
        If it is not, with the command that installs it.
    DataError
        If there is no built-in model of this name.
    """
    if name not in BUILTIN_MODELS:
        known = ", ".join(BUILTIN_PREFIX + model for model in BUILTIN_MODELS)
        raise DataError(f"model {BUILTIN_PREFIX}{name}: no such built-in model; choose one of {known}")
    model = BUILTIN_MODELS[name]
    if model.extra:
        check_extra(model.extra, f"the files of {BUILTIN_PREFIX}{name}")
    return model


def builtin_kind(name: str) -> Kind:
    """Return the training objective of a built-in model.

    Parameters
    ----------
    name
        Name of the model, without the prefix ``builtin:``.

    Raises
    ------
    DataError
        If there is no built-in model of this name, or if it has no language-model head.
    """
    kind = find_builtin(name).kind
    if kind is None:
        choices = [BUILTIN_PREFIX + other for other, entry in BUILTIN_MODELS.items() if entry.kind]
        raise DataError(
            f"model {BUILTIN_PREFIX}{name}: it embeds texts and has no language-model head, which this method needs; "
            f"choose one of {', '.join(choices)}"
        )
    return kind


def _is_complete(folder: Path) -> bool:
    """Return whether the folder has all files of a model as they were written."""
    files = read_cached(folder / FILES)
    return files is not None and all(is_unchanged(folder / name, state) for name, state in files.items())


def _recipe_hash(name: str) -> str:
    """Return a hash of all that determines a model: code, training texts, and the model from which it is made."""
    model = BUILTIN_MODELS[name]
    parts = [(Path(__file__).parent / file).read_text(encoding="utf-8") for file in model.recipe]
    if "corpus.py" in model.recipe:
        from peekbench_lm import corpus  # noqa: PLC0415 - imports numpy, and `validate` only looks up names

        parts.append(corpus.fingerprint())
    if model.source:
        parts.append(_recipe_hash(model.source))
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _build(folder: Path, work: Path, build: Callable[[Path], dict[str, Any]]) -> None:
    """Build a model in the folder `work`, and move it to its own folder once it is complete."""
    unfinished = work / "model"
    unfinished.mkdir(parents=True)
    description = build(unfinished)
    (unfinished / DESCRIPTION).write_text(json.dumps(description, indent=1), encoding="utf-8")
    paths = sorted(path for path in unfinished.rglob("*") if path.is_file())
    files = {path.relative_to(unfinished).as_posix(): describe_file(path) for path in paths}
    write_cached(unfinished / FILES, files)
    if folder.exists():  # a file has changed or is missing
        folder.rename(work / "changed")
    unfinished.rename(folder)
