"""The record of all looks at the results of a run.

Whoever extends a run after a look at its results tests repeatedly. The store therefore records each look that could
have influenced how many trials the run has: the looks that a design plans, and every report of other states of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench.records.runs import Looks, Size
from peekbench.results.columns import TRIAL
from peekbench.spec.design import Design, designs_by_task
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
    design = Design.model_validate(spec["design"])
    trials, planned = count_trials(results), _count_planned(spec)
    share = _reached_share(design, stopped_at, sum(trials.values()) / sum(planned.values()))
    maximum = first_maximum(recorded, design)
    fraction = share * design.largest / maximum
    look: dict[str, Any] = {
        "method": "" if design.stop is None else design.stop.method,
        "fraction": fraction,
        "maximum": maximum,
        "trials": _as_list(trials),
        "planned": _as_list(planned),
    }
    if not any(look.items() <= each.items() for each in recorded):
        Store.append_look(path, look)
    return describe_looks(design, recorded, fraction, trials)


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


def first_maximum(recorded: Sequence[Mapping[str, Any]], design: Design) -> int:
    """Return the maximum number of subsamples that the design had at the first look.

    The levels of an open-ended confidence sequence depend on it, so it must not change when subsamples are added.
    """
    return int(recorded[0]["maximum"]) if recorded else design.largest


def fractions_until(recorded: Sequence[Mapping[str, Any]], fraction: float) -> tuple[float, ...]:
    """Return the fractions of all recorded looks before the present one, and its own."""
    return (*sorted({look["fraction"] for look in recorded if look["fraction"] < fraction - 1e-9}), fraction)


def _reached_share(design: Design, stopped_at: int | None, share_done: float) -> float:
    """Return the share of the subsamples that a run has, which a planned look knows without rounding."""
    number = design.look_number(stopped_at)
    return share_done if number is None else design.look_fractions()[number - 1]


def count_trials(results: pd.DataFrame) -> dict[Size, int]:
    """Count the trials of each configuration."""
    trials = results.drop_duplicates(list(TRIAL))
    counts = trials.groupby(list(CONFIGURATION)).size().reset_index(name="count")
    return {
        (str(method), int(num_train), int(num_test)): int(count)
        for method, num_train, num_test, count in counts.itertuples(index=False)
    }


def _count_planned(spec: Mapping[str, Any]) -> dict[Size, int]:
    """Count the trials that a stored spec plans for each configuration."""
    counts: dict[Size, int] = {}
    for of_task in designs_by_task(spec).values():
        for num_train, num_test in of_task.points():
            for method in spec["methods"]:
                key = (method["name"], num_train, num_test)
                counts[key] = counts.get(key, 0) + of_task.repeats(num_test)
    return counts


def _as_list(counts: Mapping[Size, int]) -> list[list[Any]]:
    return [[*key, count] for key, count in sorted(counts.items())]


def _as_dict(counts: Iterable[Sequence[Any]]) -> dict[Size, int]:
    return {(method, num_train, num_test): count for method, num_train, num_test, count in counts}


def _find_extended(recorded: Sequence[Mapping[str, Any]], trials: Mapping[Size, int]) -> dict[Size, tuple[int, ...]]:
    """Return the trials at earlier looks that no design planned, by configuration.

    A look at an unfinished run does not count if the run then has the trials that were already planned at the look.
    """
    earlier: dict[Size, set[int]] = {}
    for look in recorded:
        if look["is_planned"] or look["method"]:
            continue
        planned = _as_dict(look["planned"])
        for key, before in _as_dict(look["trials"]).items():
            if before < trials.get(key, 0) != planned.get(key):
                earlier.setdefault(key, set()).add(before)
    return {key: tuple(sorted(counts)) for key, counts in earlier.items()}
