"""Runs side by side: one results table of several, in which the same draws have the same number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.errors import ResultsError
from peekbench.results.analyze import only_complete, planned_trials
from peekbench.results.table import load_results
from peekbench.store.schema import is_store
from peekbench.store.writer import Store

if TYPE_CHECKING:
    import pandas as pd

RUN = "run"  # the column that tells them apart


@dataclass(frozen=True, slots=True)
class Run:
    """A run's complete trials, and what they came from; of a table of scores there is nothing but these."""

    name: str
    path: Path
    results: pd.DataFrame
    warnings: tuple[str, ...]
    spec: Mapping[str, Any] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)
    """The last one."""

    def draws_of(self, task: str) -> object:
        """What the draws from a task follow from: runs in which it is equal have the same ones, number by number."""
        if task not in self.tasks:
            return self.path  # nobody knows what was drawn
        design = self.spec["design"]
        return (self.spec["seed"], self.tasks[task]["fingerprint"], max(design["num_train"]))


def open_runs(paths: Sequence[Path], *, allow_incomplete: bool = False) -> list[Run]:
    """Stores, or whatever else `load_results` reads; where two have the same name, it is their path.

    Raises
    ------
    ResultsError
        Where one has missing trials and `allow_incomplete` is not set, or is named twice.
    """
    if len({path.absolute() for path in paths}) < len(paths):
        raise ResultsError(f"{', '.join(map(str, paths))}: one run stands twice; name two different ones")
    runs = [_open(path, allow_incomplete) for path in paths]
    names = [run.name for run in runs]
    return [replace(run, name=str(run.path)) if names.count(run.name) > 1 else run for run in runs]


def _open(path: Path, allow_incomplete: bool) -> Run:
    results = load_results(path)
    if results.empty:
        raise ResultsError(f"{path}: no trial is finished; run its spec first")
    complete, warnings = only_complete(results, planned_trials(path), allow_incomplete=allow_incomplete)
    if not is_store(path):
        return Run(path.stem, path, complete, warnings)
    with Store.open(path) as store:
        spec = store.spec()
        return Run(spec["name"], path, complete, warnings, spec, store.tasks(), store.sessions()[-1])


def side_by_side(runs: Sequence[Run]) -> pd.DataFrame:
    """One table of all, with a column `run`; subsample numbers are equal where, and only where, the draws are."""
    import pandas as pd

    step = 1 + max(int(run.results["subsample"].max()) for run in runs)
    kinds: dict[str, list[object]] = {}
    parts = []
    for run in runs:
        shifts = {}
        for task in run.results["task"].unique():
            known, own = kinds.setdefault(task, []), run.draws_of(task)
            if own not in known:
                known.append(own)
            shifts[task] = step * known.index(own)
        shifted = run.results["subsample"] + run.results["task"].map(shifts).astype("Int64")
        parts.append(run.results.assign(subsample=shifted, **{RUN: run.name}))
    return pd.concat(parts, ignore_index=True)
