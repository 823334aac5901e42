"""Separates the trials of a run by the version of the code that made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from peekbench.execution.code import DIGITS, CodeVersion, describe_code_change
from peekbench.execution.provenance import describe_version_changes
from peekbench.formatting import pluralize
from peekbench.records.analysis import Cell, Column, Table
from peekbench.results.paired_effects import paired_scores

TITLE = "Results by version of the code"
TRIAL = ["task", "method", "num_train", "num_test", "subsample"]
CELL = ["task", "num_train", "num_test"]


def warn_of_code_changes(versions: Mapping[str, Sequence[CodeVersion]]) -> Iterator[str]:
    """Yield a warning for each method plugin whose code changed between trials.

    Parameters
    ----------
    versions
        Versions of the code by plugin, as `peekbench.execution.code.find_versions` returns them.
    """
    for plugin, of_plugin in versions.items():
        if len(of_plugin) > 1:
            sizes = [pluralize(len(version.trials), "trial") for version in of_plugin]
            changes = [describe_code_change(old.code, new.code) for old, new in pairwise(of_plugin)]
            later = ", then ".join(f"{size} ({change})" for size, change in zip(sizes[1:], changes, strict=True))
            yield (
                f"The code of the plugin {plugin} changed during this run, so its results mix {len(of_plugin)} "
                f"versions of the code: {sizes[0]}, then {later}. The table {TITLE!r} separates them. To measure the "
                "present code alone, run the spec under another name"
            )


def warn_of_other_versions(sessions: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> Iterator[str]:
    """Yield a warning if sessions that finished trials differ in versions on which results depend.

    Parameters
    ----------
    sessions
        Sessions of the run, oldest first.
    sizes
        Number of trials that each session finished.
    """
    made = [session for session, size in zip(sessions, sizes, strict=True) if size]
    if changes := describe_version_changes(made):
        yield (
            f"Trials of this run were made with different versions, on which results can depend: {changes}. To measure "
            "with one version alone, run the spec under another name"
        )


def code_tables(versions: Mapping[str, Sequence[CodeVersion]], results: pd.DataFrame) -> list[Table]:
    """Return a table of the effects by method and version of its code; no table if no code changed.

    Parameters
    ----------
    versions
        Versions of the code by plugin.
    results
        Results table of the run.
    """
    changed = [version for of_plugin in versions.values() if len(of_plugin) > 1 for version in of_plugin]
    if not changed:
        return []
    effects = _effects_by_version(changed, results)
    names = [name for name in ("boost", "bias") if name in effects]
    rows = tuple(
        row for method in effects["method"].unique() for row in _rows(effects[effects["method"] == method], names)
    )
    columns = (
        Column("method"),
        Column("code"),
        Column("since"),
        Column("trials", "count"),
        *(Column(name, "difference") for name in names),
        *(Column(f"change of {name}", "difference") for name in names),
    )
    note = (
        "Means over the trials that each version of a plugin's code made. A change is the difference from the first "
        "version of the method's code: the mean difference over the tasks and sizes that both versions have, which "
        "includes the differences between their subsamples. Base arms that methods share may have been computed by an "
        "earlier version. To test for a change, run the spec under another name and use `peekbench compare`."
    )
    return [Table(TITLE, columns, rows, note)]


def _effects_by_version(versions: Sequence[CodeVersion], results: pd.DataFrame) -> pd.DataFrame:
    """Return the effects of all trials of some versions, with the columns `code` and `since`, oldest version first."""
    trials = pd.DataFrame(
        [
            (draw.task, trial.method, draw.num_train, draw.num_test, draw.subsample, position)
            for position, version in enumerate(versions)
            for trial in version.trials
            for draw in (trial.draw,)
        ],
        columns=[*TRIAL, "version"],
    )
    effects = paired_scores(results[results["method"].isin(set(trials["method"]))]).merge(trials, on=TRIAL)
    effects["code"] = effects["version"].map(lambda position: versions[position].code["sha256"][:DIGITS])
    effects["since"] = effects["version"].map(lambda position: versions[position].started)
    return effects.sort_values("version", kind="stable")


def _rows(effects: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each version of one method."""
    first: pd.DataFrame | None = None
    for _, rows in effects.groupby("version"):
        cells = rows.groupby(CELL)[list(names)].mean()
        changes = None if first is None else (cells - first).mean()
        first = cells if first is None else first
        yield (
            *(str(rows[name].iloc[0]) for name in ("method", "code", "since")),
            len(rows),
            *(_cell(rows[name].mean()) for name in names),
            *(None if changes is None else _cell(changes[name]) for name in names),
        )


def _cell(value: float) -> float | None:
    return None if value != value else float(value)
