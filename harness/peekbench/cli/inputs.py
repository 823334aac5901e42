"""Finds what an argument of a command means: a spec, a run by its name, its spec or its store, or a table of scores.

A message about a file of another kind names the kind, and the command that takes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal, TypeAlias

from peekbench.cli.output import warn
from peekbench.errors import PeekbenchError, SpecError
from peekbench.plugins.local_code import Code
from peekbench.plugins.similar_names import find_nearest_file
from peekbench.spec.analysis_only import EXPERIMENT_KEYS
from peekbench.spec.design import NAME
from peekbench.spec.experiment import ExperimentSpec, canonical, load_spec, make_spec
from peekbench.spec.yaml_loader import read_limited, read_yaml
from peekbench.store.files import RUNS, crate_store, is_store

Role: TypeAlias = Literal["store", "spec", "analysis spec", "scores", "yaml", "folder", "stream", "other"]
"""What commands can do with a file."""

STORE_SUFFIX = ".sqlite"
SAFE_NAME = re.compile(NAME)
IRRELEVANT = ("executor", "audits", "observers")  # settings that change neither a run nor its report
SCORES = (".csv", ".tsv", ".parquet", ".pq", ".json", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is."""

    role: Role
    words: str
    """Kind of the file with its article, such as 'a CSV file'."""
    name: str = ""
    """Name of the run that a spec names."""
    remedy: str = ""
    """What to do instead; empty if the kind does not tell."""


def identify(path: Path) -> FileKind:
    """Return what an existing file or folder is. Pipes and devices, which can be read only once, are not read."""
    if path.is_dir():
        if (path / "report.json").is_file():
            return FileKind("folder", "the folder of a report", remedy="give the name or the store of its run")
        stores = sorted(file.name for file in path.glob("*.sqlite"))[:5]
        if stores:
            return FileKind("folder", "a folder", remedy=f"give one of its stores: {', '.join(stores)}")
        return FileKind("folder", "a folder")
    if not path.is_file():
        return FileKind("stream", "neither a file nor a folder")
    if is_store(path):
        return FileKind("store", "a store")
    if not path.stat().st_size:
        role: Role = "store" if path.suffix == STORE_SUFFIX else "other"
        return FileKind(role, "an empty file")
    if path.suffix.lower() in SCORES:
        return FileKind("scores", "a table of scores", remedy=f"`peekbench analyze {quote(str(path))}` analyzes it")
    if path.suffix.lower() not in (".yaml", ".yml"):
        return FileKind("other", "a file of another kind")
    try:  # reading a spec reports another encoding
        raw = read_yaml(read_limited(path).decode("latin-1"), str(path))
    except SpecError:
        return FileKind("spec", "a YAML file with an error")
    name = str(raw.get("name", "")) if isinstance(raw, Mapping) else ""
    if isinstance(raw, Mapping) and "analyses" in raw and not any(key in raw for key in EXPERIMENT_KEYS):
        remedy = f"`peekbench analyze FILE --spec {quote(str(path))}` analyzes scores with it"
        return FileKind("analysis spec", "a spec that only analyzes existing scores", name, remedy)
    if isinstance(raw, Mapping) and any(key in raw for key in EXPERIMENT_KEYS):
        return FileKind("spec", "the spec of an experiment", name)
    return FileKind("yaml", "a YAML file")


def find_store(argument: str) -> Path:
    """Return the store of a run that is given by its name in the folder `runs`, its spec or its store."""
    path, kind = _find(argument)
    if kind.role in ("store", "spec"):
        return _store_of(path, kind)
    raise _refuse(path, kind, "a run; give the name, the spec or the store of a run")


def find_code(argument: str) -> tuple[Code, ...]:
    """Return the code that the caller gave for a run: that of the spec, if the run is given by its spec."""
    path, kind = _find(argument)
    try:
        if kind.role == "spec":
            return load_spec(path).code
    except SpecError:  # the spec need not be valid any more
        pass
    return ()


def find_scores(argument: str) -> Path:
    """Return the store of a run, as `find_store` does, or the path of a file or folder of scores."""
    path, kind = _find(argument)
    if kind.role in ("store", "spec"):
        return _store_of(path, kind)
    if kind.role in ("scores", "other") or (kind.role == "folder" and not kind.remedy):  # the reader says what is wrong
        return path
    raise _refuse(path, kind, "scores; give a run, a CSV or Parquet file, or a folder of files")


def check_new_store(path: Path) -> None:
    """Refuse a file of another kind where a run should be stored."""
    if not path.is_file():
        return
    kind = identify(path)
    if kind.role != "store" and kind.words != "an empty file":
        raise PeekbenchError(
            f"--store {path} is {kind.words}, not a store; give the path of a store, or of a file that does not exist"
        )


def find_spec(argument: Path) -> Path:
    """Return the path of a spec of an experiment."""
    path, kind = _find(str(argument), wanted="spec")
    if kind.role in ("spec", "yaml", "stream"):  # reading it tells what it lacks
        return path
    if kind.role == "store":
        raise SpecError(
            f"{path} is the store of a run, not a spec; give the spec. `peekbench report {quote(str(argument))}` "
            "writes the report of the run"
        )
    raise _refuse(path, kind, "the spec of an experiment; give a YAML file with tasks, methods and design")


def find_analysis_spec(argument: Path) -> Path:
    """Return the path of a spec that only analyzes scores."""
    path, kind = _find(str(argument), wanted="spec")
    if kind.role == "analysis spec" or kind.words == "a YAML file with an error":
        return path
    if kind.role == "spec":
        raise SpecError(
            f"--spec {path} is the spec of an experiment; give a spec with `name` and `analyses` only. "
            f"`peekbench analyze {quote(str(path))}` analyzes its run"
        )
    raise _refuse(path, kind, "a spec of analyses; give a YAML file with name and analyses")


def load(path: Path, workers: int | None = None) -> ExperimentSpec:
    """Load a spec, with another number of workers if one is given."""
    return _set_workers(load_spec(find_spec(path)), workers)


def load_experiment(argument: Path, workers: int | None = None) -> ExperimentSpec:
    """Load a spec as `load` does, or the one in the store of a run that is given by its name or its store."""
    from peekbench.store.reader import Store  # noqa: PLC0415 - so that `peekbench validate` does not import numpy

    path, kind = _find(str(argument), wanted="spec")
    if kind.role != "store":
        return load(argument, workers)
    with Store.open(path) as store:
        raw, folder = store.spec(), store.folder()
    return _set_workers(make_spec(raw, folder=folder, origin=f"the spec in {path}", given=()), workers)


def _set_workers(spec: ExperimentSpec, workers: int | None) -> ExperimentSpec:
    if workers is None:
        return spec
    return spec.with_executor_options(workers=workers)


def _find(argument: str, wanted: str = "run") -> tuple[Path, FileKind]:
    """Return the path that an argument means and the kind of the file; a run's name precedes a folder's."""
    path = Path(argument)
    by_name = RUNS / f"{argument}{STORE_SUFFIX}"
    try:
        if not path.is_file() and argument and os.sep not in argument and by_name.is_file():
            path = by_name
        if (store := crate_store(path)) is not None:
            path = store
        if path.exists():
            return path, identify(path)
    except (OSError, ValueError) as error:  # ValueError: a null character
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise PeekbenchError(f"cannot read {argument}: {reason}; give another path") from error
    runs = sorted(store.stem for store in RUNS.glob(f"*{STORE_SUFFIX}"))
    if wanted == "run" and not path.suffix and os.sep not in argument:
        near = find_nearest_file(argument, runs)
        remedy = f"the runs are: {', '.join(runs) or 'none'}"
        if near:
            remedy = f"did you mean {near}?"
        raise PeekbenchError(f"{argument}: no run of this name, as {by_name} does not exist; {remedy}")
    near = find_nearest_file(path.name, [file.name for file in path.parent.glob("*.*")])
    remedy = "`peekbench run SPEC` creates a run from a YAML file"
    if near:
        remedy = f"did you mean {path.parent / near}?"
    raise SpecError(f"{argument}: no such file or folder; {remedy}")


def _store_of(path: Path, kind: FileKind) -> Path:
    """Return the store itself, or the store of a spec, which need not be valid any more."""
    if kind.role == "store":
        return path
    name = kind.name if SAFE_NAME.fullmatch(kind.name) else load_spec(path).name
    store = RUNS / f"{name}{STORE_SUFFIX}"
    if store.exists():
        _warn_of_changes(path, store)
        return store
    raise PeekbenchError(
        f"{path}: its run has no store yet, because {store} does not exist; `peekbench run {quote(str(path))}` creates "
        "it. If it was created with --store, give that file"
    )


def _warn_of_changes(path: Path, store: Path) -> None:
    """Warn if a spec is not the one that was run: what is shown is the run."""
    from peekbench.store.reader import Store  # noqa: PLC0415 - so that `peekbench validate` does not import numpy

    try:
        with Store.open(store, verified=False) as opened:
            stored = opened.spec()
        written = canonical(load_spec(path))
    except PeekbenchError:  # the command reports an error of the store, and the spec may name lost plugins
        return
    changed = [key for key in written if key not in IRRELEVANT and written[key] != stored.get(key)]
    if changed:
        warn(
            f"{path} has changes since its run ({', '.join(changed)}), which this command does not show; it uses the "
            f"spec that is stored in {store}. `peekbench run {quote(str(path))}` applies them, or refuses them"
        )


def _refuse(path: Path, kind: FileKind, wanted: str) -> PeekbenchError:
    wanted, _, advice = wanted.partition("; ")
    return PeekbenchError(f"{path} is {kind.words}, not {wanted}; {kind.remedy or advice}")
