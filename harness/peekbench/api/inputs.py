"""Finds what an argument of a command or a function means: a spec, a run by name, spec or store, or a table of scores.

A message about a file of another kind names the kind, and the command that takes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypeAlias

from peekbench.errors import PeekbenchError, SpecError, warn_of_run
from peekbench.plugins.names import Code, find_nearest_file
from peekbench.spec.design import NAME
from peekbench.spec.experiment import ExperimentSpec, canonical, load_spec, make_spec
from peekbench.store.files import RUNS, is_store
from peekbench.yaml_loader import read_limited, read_yaml

Role: TypeAlias = Literal["store", "spec", "scores", "yaml", "folder", "stream", "other"]
"""What commands can do with a file."""

STORE_SUFFIX = ".sqlite"
SPEC_KEYS = ("tasks", "methods", "design")
IRRELEVANT = ("executor", "observers")  # settings that change neither a run nor its report
SCORES = (".csv", ".tsv", ".parquet", ".pq", ".json", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Source:
    """A file or a folder, and what it is."""

    path: Path
    role: Role
    words: str
    """Kind of the file with its article, such as 'a CSV file'."""
    name: str = ""
    """Name of the run that a spec names."""
    remedy: str = ""
    """What to do instead; empty if the kind does not tell."""


def identify(path: Path) -> Source:
    """Identify an existing file or folder. Pipes and devices, which can be read only once, are not read."""
    if path.is_dir():
        if (path / "report.json").is_file():
            return Source(path, "folder", "the folder of a report", remedy="give the name or the store of its run")
        stores = sorted(file.name for file in path.glob("*.sqlite"))[:5]
        if stores:
            return Source(path, "folder", "a folder", remedy=f"give one of its stores: {', '.join(stores)}")
        return Source(path, "folder", "a folder")
    if not path.is_file():
        return Source(path, "stream", "neither a file nor a folder")
    if is_store(path):
        return Source(path, "store", "a store")
    if not path.stat().st_size:
        role: Role = "store" if path.suffix == STORE_SUFFIX else "other"
        return Source(path, role, "an empty file")
    if path.suffix.lower() in SCORES:
        return Source(path, "scores", "a table of scores", remedy=f"`peekbench analyze {quote(str(path))}` analyzes it")
    if path.suffix.lower() not in (".yaml", ".yml"):
        return Source(path, "other", "a file of another kind")
    try:  # reading a spec reports another encoding
        raw = read_yaml(read_limited(path).decode("latin-1"), str(path))
    except SpecError:
        return Source(path, "spec", "a YAML file with an error")
    if not isinstance(raw, Mapping):
        return Source(path, "yaml", "a YAML file")
    name = str(raw.get("name", ""))
    if any(key in raw for key in SPEC_KEYS):
        return Source(path, "spec", "the spec of an experiment", name)
    return Source(path, "yaml", "a YAML file")


def find_run(argument: str | Path) -> tuple[Path, tuple[Code, ...]]:
    """Return the store of a run that is given by its name in the folder `runs`, its spec or its store.

    Returns
    -------
    tuple
        The store, and the code that the caller gave: that of the spec, if the run is given by its spec. A spec that has
        changed since its run causes a `RunWarning`.

    Raises
    ------
    PeekbenchError
        If it is no run, or the run of a spec has no store.
    """
    source = _find(argument)
    if source.role == "store":
        return source.path, ()
    if source.role == "spec":
        return _find_run_of_spec(source)
    raise _refuse(source, "a run; give the name, the spec or the store of a run")


def find_scores(argument: str | Path) -> Path:
    """Return the store of a run, as `find_run` does, or the path of a file or folder of scores."""
    source = _find(argument)
    if source.role in ("store", "spec"):
        return find_run(argument)[0]
    if source.role in ("scores", "other"):  # the reader says what is wrong
        return source.path
    if source.role == "folder" and not source.remedy:
        return source.path
    raise _refuse(source, "scores; give a run, a CSV or Parquet file, or a folder of files")


def check_new_store(path: Path) -> None:
    """Refuse a file of another kind where a run should be stored."""
    if not path.is_file():
        return
    source = identify(path)
    if source.role != "store" and source.words != "an empty file":
        raise PeekbenchError(
            f"--store {path} is {source.words}, not a store; give the path of a store, or of a file that does not exist"
        )


def find_spec(argument: str | Path) -> Path:
    """Return the path of a spec of an experiment."""
    source = _find(argument, wanted="spec")
    if source.role in ("spec", "yaml", "stream"):  # reading it tells what it lacks
        return source.path
    if source.role == "store":
        raise SpecError(
            f"{argument} is a run, not a spec; give its spec. `peekbench report {quote(str(argument))}` writes its "
            f"report, and in Python `peekbench.load_run({str(argument)!r})` loads it"
        )
    raise _refuse(source, "the spec of an experiment; give a YAML file with tasks, methods and design")


def load(spec: ExperimentSpec | Mapping[str, Any] | str | Path, workers: int | None = None) -> ExperimentSpec:
    """Return the experiment of a path, a dictionary or a spec, with another number of workers if one is given.

    Raises
    ------
    SpecError
        If it is none of them, or invalid.
    """
    if isinstance(spec, Mapping):
        spec = make_spec(spec, folder=Path.cwd())
    elif isinstance(spec, str | Path):
        spec = load_spec(find_spec(spec))
    elif not isinstance(spec, ExperimentSpec):
        raise SpecError(
            f"a spec is the path of a YAML file, a dictionary, or an ExperimentSpec, not a {type(spec).__name__}"
        )
    return spec if workers is None else spec.with_executor_options(workers=workers)


def _find(argument: str | Path, wanted: str = "run") -> Source:
    """Return the file that an argument means; a run's name precedes a folder's."""
    path, written = Path(argument), str(argument)
    by_name = RUNS / f"{written}{STORE_SUFFIX}"
    try:
        if not path.is_file() and written and os.sep not in written and by_name.is_file():
            path = by_name
        if path.exists():
            return identify(path)
    except (OSError, ValueError) as error:  # ValueError: a null character
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise PeekbenchError(f"cannot read {written}: {reason}; give another path") from error
    if "\n" in written:
        raise SpecError("this is the text of a spec; give the path of a YAML file, or `yaml.safe_load(text)` in Python")
    if wanted == "run" and not path.suffix and os.sep not in written:
        runs = sorted(store.stem for store in RUNS.glob(f"*{STORE_SUFFIX}"))
        remedy = f"the runs are: {', '.join(runs) or 'none'}"
        if near := find_nearest_file(written, runs):
            remedy = f"did you mean {near}?"
        raise PeekbenchError(f"{written}: no run of this name, as {by_name} does not exist; {remedy}")
    remedy = "`peekbench run SPEC` creates a run from a YAML file"
    if near := find_nearest_file(path.name, [file.name for file in path.parent.glob("*.*")]):
        remedy = f"did you mean {path.parent / near}?"
    raise SpecError(f"{written}: no such file or folder; {remedy}")


def _find_run_of_spec(source: Source) -> tuple[Path, tuple[Code, ...]]:
    """Return the store and the code of a spec, which need not be valid any more."""
    spec, name = None, source.name
    try:
        spec = load_spec(source.path)
        name = spec.name
    except PeekbenchError:
        if not re.fullmatch(NAME, name):
            raise
    store = RUNS / f"{name}{STORE_SUFFIX}"
    if not store.exists():
        raise PeekbenchError(
            f"{source.path}: its run has no store yet, because {store} does not exist; `peekbench run "
            f"{quote(str(source.path))}` creates it. If it was created with --store, give that file"
        )
    if spec is None:
        return store, ()
    _warn_of_changes(spec, source.path, store)
    return store, spec.code


def _warn_of_changes(spec: ExperimentSpec, path: Path, store: Path) -> None:
    """Warn if a spec is not the one that was run: what is shown is the run."""
    from peekbench.store.reader import Store  # noqa: PLC0415 - so that `peekbench validate` does not import numpy

    try:
        with Store.open(store, verified=False) as opened:
            stored = opened.spec()
    except PeekbenchError:  # the caller reports an error of the store
        return
    written = canonical(spec)
    for size in ("num_train", "num_test"):
        if written["design"][size] == "all":  # rows of official splits, whose number the store has
            for task, kept in zip(written["tasks"], stored["tasks"], strict=False):
                task[size] = kept[size]
    changed = [key for key in written if key not in IRRELEVANT and written[key] != stored.get(key)]
    if changed:
        warn_of_run(
            f"{path} has changes since its run ({', '.join(changed)}), which are not shown; the spec that is stored in "
            f"{store} is used. `peekbench run {quote(str(path))}` applies them, or refuses them"
        )


def _refuse(source: Source, wanted: str) -> PeekbenchError:
    wanted, _, advice = wanted.partition("; ")
    return PeekbenchError(f"{source.path} is {source.words}, not {wanted}; {source.remedy or advice}")
