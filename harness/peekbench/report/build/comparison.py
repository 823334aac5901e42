"""What changed between two runs, and how the methods of several runs compare, as reports."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.errors import ResultsError
from peekbench.formatting import pluralize
from peekbench.records.analysis import Analysis, Column, Table
from peekbench.report.build.run_report import MethodFacts, Report
from peekbench.report.build.side_by_side import RUN, Run, open_runs, side_by_side
from peekbench.results.analyze import ask, find_analysis, without_controls
from peekbench.spec.compatibility import differences

if TYPE_CHECKING:
    import pandas as pd


def report_of_comparison(before: Path, after: Path, *, allow_incomplete: bool = False, analysis: str = "") -> Report:
    """How settings, data, versions, scores and verdicts of two runs differ.

    Raises
    ------
    ResultsError
        Where one has missing trials and `allow_incomplete` is not set.
    """
    old, new = open_runs([before, after], allow_incomplete=allow_incomplete)
    found = ask(analysis or find_analysis("comparison"), side_by_side([old, new]))
    changed = {
        "settings": differences("", _by_name(old.spec), _by_name(new.spec)),
        "data": differences("", _fingerprints(old), _fingerprints(new)),
        "versions": differences("", _circumstances(old), _circumstances(new)),
    }
    counts = ", ".join(f"{len(rows):,} in {kind}" for kind, rows in changed.items())
    columns = (Column("what"), Column("before"), Column("after"))
    tables = [
        Table(f"What differs in {kind}", columns, tuple(rows), topic="data") for kind, rows in changed.items() if rows
    ]
    return Report(
        name=f"{old.name} to {new.name}",
        headline=f"From {old.path} to {new.path}: differences: {counts}",
        verdicts=found.verdicts,
        warnings=_warnings(found, [old, new]),
        figures=found.figures,
        tables=(*found.tables, *tables),
        failures=(),
        provenance={"before": str(old.path), "after": str(new.path)},
        record={"runs": [str(old.path), str(new.path)]},
        command=shlex.join(["peekbench", "compare", str(before), str(after)]),
    )


def report_of_ranking(paths: Sequence[Path], *, allow_incomplete: bool = False, analysis: str = "") -> Report:
    """A leaderboard of the methods of one run or several, on the tasks and arms that all runs have.

    Raises
    ------
    ResultsError
        Where a run has missing trials and `allow_incomplete` is not set, or the runs have no task in common.
    """
    runs = open_runs(paths, allow_incomplete=allow_incomplete)
    joined = without_controls(side_by_side(runs))
    if joined.empty:
        raise ResultsError("there are controls alone, which are not ranked; name a run of other methods")
    shared, left_out = _shared(joined)
    if len(runs) > 1:
        shared = shared.assign(method=shared[RUN] + ": " + shared["method"])
    found = ask(analysis or find_analysis("ranking"), shared.drop(columns=RUN))
    tasks = shared["task"].nunique()
    return Report(
        name="leaderboard of " + ", ".join(run.name for run in runs),
        headline=f"{pluralize(shared['method'].nunique(), 'method')} on {pluralize(tasks, 'task')}, from "
        + ", ".join(str(run.path) for run in runs),
        verdicts=found.verdicts,
        warnings=(*_warnings(found, runs), *left_out),
        figures=found.figures,
        tables=found.tables,
        failures=(),
        provenance={run.name: str(run.path) for run in runs},
        record={"runs": [str(run.path) for run in runs]},
        methods=tuple(MethodFacts(str(name)) for name in shared["method"].unique()),
        command=shlex.join(["peekbench", "leaderboard", *map(str, paths)]),
    )


def _warnings(found: Analysis, runs: Sequence[Run]) -> tuple[str, ...]:
    return (*found.warnings, *(f"{run.name}: {warning}" for run in runs for warning in run.warnings))


def _shared(joined: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Rows of the tasks and arms that every run has, and what was left out."""
    num_runs = joined[RUN].nunique()
    warnings = []
    for column in ("task", "arm"):
        runs = joined.groupby(column, sort=False)[RUN].nunique()
        missing = [str(name) for name in runs.index[runs < num_runs]]
        if len(missing) == len(runs):
            raise ResultsError(f"the runs have no {column} in common; compare runs on the same {column}s")
        if missing:
            warnings.append(f"Left out, because not every run has it: {column} {', '.join(missing)}")
        joined = joined[~joined[column].isin(missing)]
    return joined, tuple(warnings)


def _by_name(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec whose tasks and methods are told apart by name, not by place."""
    groups = {group: {thing["name"]: thing for thing in spec.get(group, ())} for group in ("tasks", "methods")}
    return {**{key: value for key, value in spec.items() if key != "report"}, **groups}


def _fingerprints(run: Run) -> dict[str, Any]:
    return {name: {key: data[key] for key in ("fingerprint", "rows")} for name, data in run.tasks.items()}


def _circumstances(run: Run) -> dict[str, Any]:
    names = ("peekbench", "python", "packages", "git", "machine", "methods", "code")
    return {name: run.session[name] for name in names if name in run.session}
