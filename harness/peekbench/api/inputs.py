"""Finds what an argument of a command or a function means: a spec, a run, or a table of scores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from peekbench.errors import PeekbenchError, SpecError, warn_of_run
from peekbench.plugins.names import Code, find_nearest_file
from peekbench.plugins.validation import DATA_SUFFIXES
from peekbench.spec.experiment import ExperimentSpec, canonical, load_spec, make_spec
from peekbench.store.files import RUNS, is_store

STORE_SUFFIX = ".sqlite"
IRRELEVANT = ("executor", "observers")  # settings that change neither a run nor its report
SPECS = (".yaml", ".yml")


def find_run(argument: str | Path) -> tuple[Path, tuple[Code, ...]]:
    """Find the store of a run that is given by its name in the folder `runs`, its spec or its store.

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
    path = _find(argument)
    if is_store(path):
        return path, ()
    if path.suffix in SPECS:
        return _find_run_of_spec(path)
    raise PeekbenchError(
        f"{path} is not a run; give the name, the spec or the store of a run. `peekbench analyze {quote(str(path))}` "
        "analyzes a table of scores"
    )


def find_scores(argument: str | Path) -> Path:
    """Find the store of a run, as `find_run` does, or a file or folder of scores."""
    path = _find(argument)
    if is_store(path) or path.suffix in SPECS:
        return find_run(argument)[0]
    return path  # the reader says what is wrong


def check_new_store(path: Path) -> None:
    """Refuse a file of another kind where a run should be stored."""
    if path.is_file() and path.stat().st_size and not is_store(path):
        raise PeekbenchError(f"--store {path} is not a store; give the path of a store, or of a new file")


def find_spec(argument: str | Path) -> Path:
    """Find the spec of an experiment."""
    path = _find(argument, wanted="spec")
    if is_store(path):
        raise SpecError(
            f"{argument} is a run, not a spec; give its spec. `peekbench report {quote(str(argument))}` writes its "
            f"report, and in Python `peekbench.load_run({str(argument)!r})` loads it"
        )
    return path


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


def _find(argument: str | Path, wanted: str = "run") -> Path:
    """Find the file that an argument means; a run's name precedes a folder's."""
    path, written = Path(argument), str(argument)
    by_name = RUNS / f"{written}{STORE_SUFFIX}"
    try:
        if not path.is_file() and written and os.sep not in written and by_name.is_file():
            path = by_name
        if path.exists():
            return path
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
    if written.lower().endswith(DATA_SUFFIXES):
        remedy = "check the path"
    if near := find_nearest_file(path.name, [file.name for file in path.parent.glob("*.*")]):
        remedy = f"did you mean {path.parent / near}?"
    raise SpecError(f"{written}: no such file or folder; {remedy}")


def _find_run_of_spec(path: Path) -> tuple[Path, tuple[Code, ...]]:
    spec = load_spec(path)
    store = RUNS / f"{spec.name}{STORE_SUFFIX}"
    if not store.exists():
        raise PeekbenchError(
            f"{path}: its run has no store yet, because {store} does not exist; `peekbench run "
            f"{quote(str(path))}` creates it. If it was created with --store, give that file"
        )
    _warn_of_changes(spec, path, store)
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
    old_stop, new_stop = stored["design"].get("stop"), written["design"].get("stop")
    if old_stop and new_stop and isinstance(old_stop["looks"], list) and isinstance(new_stop["looks"], int):
        new_stop["looks"] = old_stop["looks"]  # an extended run keeps the looks of its first maximum
    changed = [key for key in written if key not in IRRELEVANT and written[key] != stored.get(key)]
    if changed:
        warn_of_run(
            f"{path} has changes since its run ({', '.join(changed)}), which are not shown; the spec that is stored in "
            f"{store} is used. `peekbench run {quote(str(path))}` applies them, or refuses them"
        )
