"""The record of all looks at the results of a run.

Whoever extends a run after a look at its results tests repeatedly. The store therefore records each look that could
have influenced how many trials the run has: the looks that a design plans, every report of other states of the run, and
every time that the number of subsamples is lowered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench.records.runs import Looks, Size
from peekbench.results.columns import TRIAL
from peekbench.spec.design import Design, describe_look, first_maximum
from peekbench.store.files import is_store
from peekbench.store.writer import Store

CONFIGURATION = ("method", "num_train", "num_test")


def look_at(path: Path, results: pd.DataFrame) -> Looks:
    """Return the looks at a run, of which the present one is the last, and record the present one.

    Reports of the same trials are one look. Looks at a store that cannot be written are not recorded; no run can extend
    it either.

    Parameters
    ----------
    path
        Store of a run, or another source of results, whose looks are unknown.
    results
        Its results.
    """
    if not is_store(path) or results.empty:
        return Looks()
    with Store.open(path, verified=False) as store:
        recorded, spec, stopped_at = store.looks(), store.spec(), store.stopped_at()
    trials = count_trials(results)
    look = describe_look(spec, recorded, trials, stopped_at)
    if not any(look.items() <= each.items() for each in recorded):
        Store.append_look(path, look)
    return describe_looks(Design.model_validate(spec["design"]), recorded, look["fraction"], trials)


def describe_looks(
    design: Design, recorded: Sequence[Mapping[str, Any]], fraction: float, trials: Mapping[Size, int]
) -> Looks:
    """Return the looks at a run for an analysis.

    Parameters
    ----------
    design
        The present design.
    recorded
        Looks before the present one, as stored.
    fraction
        Share of the maximum number of subsamples at the present look.
    trials
        Trials of each configuration at the present look.
    """
    earlier = _find_extended(recorded, trials)
    if design.stop is None:
        return Looks(True, earlier=earlier)
    fractions = fractions_until(recorded, fraction)
    return Looks(True, design.stop.method, fractions, first_maximum(recorded, design), earlier)


def fractions_until(recorded: Sequence[Mapping[str, Any]], fraction: float) -> tuple[float, ...]:
    """Return the fractions of all recorded looks before the present one, and its own."""
    return (*sorted({look["fraction"] for look in recorded if look["fraction"] < fraction - 1e-9}), fraction)


def count_trials(results: pd.DataFrame) -> dict[Size, int]:
    """Count the trials of each configuration."""
    trials = results.drop_duplicates(list(TRIAL))
    counts = trials.groupby(list(CONFIGURATION)).size().reset_index(name="count")
    return {
        (str(method), int(num_train), int(num_test)): int(count)
        for method, num_train, num_test, count in counts.itertuples(index=False)
    }


def _as_dict(counts: Iterable[Sequence[Any]]) -> dict[Size, int]:
    return {(method, num_train, num_test): count for method, num_train, num_test, count in counts}


def _find_extended(recorded: Sequence[Mapping[str, Any]], trials: Mapping[Size, int]) -> dict[Size, tuple[int, ...]]:
    """Return the trials at earlier looks that no design planned, by configuration.

    A report of an unfinished run does not count if the run then has the trials that were already planned at the report.
    """
    earlier: dict[Size, set[int]] = {}
    for look in recorded:
        if look["is_planned"] or look["method"]:
            continue
        planned = _as_dict(look["planned"])
        for key, before in _as_dict(look["trials"]).items():
            if look.get("is_lowering") or before < trials.get(key, 0) != planned.get(key):
                earlier.setdefault(key, set()).add(before)
    return {key: tuple(sorted(counts)) for key, counts in earlier.items()}
