"""The record of all looks at the results of a run.

Extending a run after a look at its results is repeated testing. The store therefore records each look that could
have influenced how many trials the run has: the looks that a design plans, every report of other states of the run, and
every time that the number of subsamples is lowered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.data import TableOptions
from peekbench.records.runs import Looks, Size
from peekbench.results.columns import CONFIGURATION, SIZES, TRIAL, short
from peekbench.spec.design import Design, describe_look, first_maximum
from peekbench.store.reader import Store

SIZE = ("method", *SIZES)
"""Columns of a `Size`, the key of recorded trials."""
CELL = re.compile(
    r"(?P<table>table; )?"
    r"((?P<method>group_sequential|confidence_sequence) (?P<shares>[\d.e -]+) of (?P<maximum>\d+); )?"
    r"(after (?P<earlier>\d+( \d+)*); )?at (?P<now>[1-9]\d*)"
)
"""Looks at the run of a configuration in a results table, such as 'group_sequential 0.25 0.5 of 100; at 40': planned
looks as shares of a maximum number of subsamples, trials at other looks, and trials of the configuration. 'table; after
20; at 48' are looks at a table of scores that no run computed."""


def look_at(store: Store, results: pd.DataFrame) -> tuple[Looks, dict[str, Any] | None]:
    """Return the looks at a run, of which the present one is the last, and its record if the store does not have it.

    Reports of the same trials are one look. `append_look` stores the record after the store is closed: a writer that
    closes before a reader leaves the write-ahead log beside the file. Looks at a store that cannot be written are not
    recorded; no run can extend it either.

    Parameters
    ----------
    store
        Store of the run.
    results
        Complete trials that are looked at.
    """
    look, looks = _look(store, count_trials(results))
    if any(look.items() <= recorded.items() for recorded in store.looks()):
        return looks, None
    return looks, look


def _look(store: Store, trials: Mapping[Size, int]) -> tuple[dict[str, Any], Looks]:
    """Describe a look at these trials for a store, and all looks with this one."""
    recorded, spec = store.looks(), store.spec()
    look = describe_look(spec, recorded, trials, store.stopped_at())
    return look, describe_looks(Design.model_validate(spec["design"]), recorded, look["fraction"], trials)


def write_looks(store: Store, results: pd.DataFrame) -> pd.Series[str]:
    """Return the column `looks` of the results of a run, so that a table keeps what its verdicts must account for."""
    if results.empty:
        return pd.Series(index=results.index, dtype="str")
    trials = count_trials(results)
    _, looks = _look(store, trials)
    cells = {size: _as_cell(looks, size, number) for size, number in trials.items()}
    sizes = zip(*(results[name] for name in SIZE), strict=True)
    return pd.Series([cells[size] for size in sizes], index=results.index, dtype="str")


def _as_cell(looks: Looks, size: Size, num_trials: int) -> str:
    parts = [f"at {num_trials}"]
    if earlier := looks.earlier_of(*size):
        parts.insert(0, f"after {' '.join(map(str, earlier))}")
    if looks.method:
        parts.insert(0, f"{looks.method} {' '.join(map(repr, looks.fractions))} of {looks.maximum}")
    return "; ".join(parts)


def state_earlier(results: pd.DataFrame, earlier: Sequence[int], origin: str) -> pd.DataFrame:
    """Return the results table with a column `looks` that states earlier analyses of a table of another tool.

    Parameters
    ----------
    results
        Results table.
    earlier
        Subsamples per task, on average, at each earlier analysis. A configuration with no more than these was not
        extended since.
    origin
        Name of the table for messages.

    Raises
    ------
    ResultsError
        If no configuration has more subsamples, or the table has looks of its own.
    """
    if not earlier:
        return results
    stated = TableOptions(earlier=earlier).argument
    numbers = sorted(set(earlier))
    if results["looks"].any():
        raise ResultsError(stated, f": the column 'looks' of {origin} already states earlier analyses; drop the option")
    most = max(now / num_blocks for num_blocks, now in map(_count, _split(results)))
    if not 0 < numbers[0] <= numbers[-1] < most:
        raise ResultsError(
            stated,
            f": {origin} has {most:g} subsamples per task, and an earlier analysis at least 1 and fewer than now; add "
            "them to the table, or remove the option; if tasks were added, divide the trials analyzed before by the "
            "number of all tasks",
        )
    looks = results["looks"].copy()
    for rows in _split(results):
        num_blocks, now = _count(rows)
        if before := [str(number * num_blocks) for number in numbers if number * num_blocks < now]:
            looks[rows.index] = f"table; after {' '.join(before)}; at {now}"
    return results.assign(looks=looks)


def next_earlier(results: pd.DataFrame, earlier: Sequence[int]) -> tuple[int, ...]:
    """Add this analysis to the earlier ones, for when the table is extended; empty if its column `looks` tells them.

    That is the smallest mean number of subsamples of a configuration, so that any of them can be extended.
    """
    if results.empty or (results["looks"].any() and not earlier):
        return ()
    last = max(earlier, default=0)
    means = (now // num_blocks for num_blocks, now in map(_count, _split(results)))
    return (*earlier, min((mean for mean in means if mean > last), default=last + 1))


def _split(results: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for _, rows in results.groupby(list(SIZE), dropna=False, sort=False):
        yield rows


def _count(results: pd.DataFrame) -> tuple[int, int]:
    """Return the number of tasks, each counted once for every model, and that of their trials."""
    trials = results.drop_duplicates(list(TRIAL))
    return len(trials.drop_duplicates([*CONFIGURATION, "task"])), len(trials)


def read_looks(results: pd.DataFrame) -> Looks:
    """Return the looks of a results table, by method if methods are from different runs.

    If the table has only a part of the trials of a configuration, earlier looks had the same part of theirs. If it has
    more, rows were added after the last look.

    Parameters
    ----------
    results
        The results table of a run, of several runs, or one that was exported from them.

    Returns
    -------
    Looks
        Those of each method, if they differ.

    Raises
    ------
    ResultsError
        If a cell of the column `looks` is no record of looks, or contradicts another one.

    Examples
    --------
    >>> table = {"method": "lsa", "num_train": 50, "num_test": 200, "task": "news", "subsample": range(40)}
    >>> results = pd.DataFrame({**table, "model": "", "looks": "after 10 20; at 40"})
    >>> read_looks(results).earlier_of("lsa", 50, 200), read_looks(results.head(20)).earlier_of("lsa", 50, 200)
    ((10, 20), (5, 10))
    """
    of_methods: dict[str, Looks] = {}
    trials = results.drop_duplicates(list(TRIAL))
    trials = trials.assign(**{size: trials[size].fillna(0) for size in SIZES})
    size: Any
    for size, rows in trials.groupby(list(SIZE), sort=False):
        method, cells = str(size[0]), rows["looks"].unique()
        if len(cells) > 1:
            raise ResultsError(
                f"method {method} has different looks ({', '.join(cell or 'none' for cell in cells)}); "
                "analyze the table of each run on its own, or, if you added rows to one, repeat the cell of the others"
            )
        looks, before, last = _read_cell(str(cells[0]))
        if last and len(rows) > last:
            before = (*before, last)
        known = of_methods.setdefault(method, looks)
        if replace(known, earlier={}) != looks:
            raise ResultsError(f"method {method} has looks of several runs; analyze the table of each run on its own")
        if before:
            part = min(1.0, len(rows) / last) / rows["model"].nunique()  # of one configuration
            earlier = tuple(max(1, round(count * part)) for count in before)
            of_methods[method] = replace(known, earlier={**known.earlier, size: earlier})
    plans = [replace(looks, earlier={}) for looks in of_methods.values()]
    if any(plan != plans[0] for plan in plans):
        return Looks(of_methods=of_methods)
    of_sizes = {size: counts for looks in of_methods.values() for size, counts in looks.earlier.items()}
    return replace(plans[0], earlier=of_sizes)


def _read_cell(cell: str) -> tuple[Looks, tuple[int, ...], int]:
    """Return the planned looks of a cell of the column `looks`, trials at other looks, and trials at the last one."""
    if not cell:
        return Looks(), (), 0
    found = CELL.fullmatch(cell)
    if found is None:
        raise ResultsError(
            f"the column 'looks' has {short(cell)!r}, which is no record of looks, such as 'after 10; at 40'; copy the "
            "column from the exported table, or rename it if it has something else"
        )
    fractions = tuple(map(float, (found["shares"] or "").split()))
    method: Any = found["method"] or ""
    looks = Looks(not found["table"], method, fractions, int(found["maximum"] or 0))
    return looks, tuple(map(int, (found["earlier"] or "").split())), int(found["now"])


def describe_looks(
    design: Design, recorded: Sequence[Mapping[str, Any]], fraction: float, trials: Mapping[Size, int]
) -> Looks:
    """Return the looks at a run for an analysis.

    `recorded` has the looks before the present one, as stored, and `fraction` is the share of the maximum number of
    subsamples at the present one.
    """
    earlier = _find_extended(recorded, trials)
    if design.stop is None:
        return Looks(True, earlier=earlier)
    before = sorted({look["fraction"] for look in recorded if look["fraction"] < fraction - 1e-9})
    return Looks(True, design.stop.method, (*before, fraction), first_maximum(recorded, design), earlier)


def count_trials(results: pd.DataFrame) -> dict[Size, int]:
    """Count the trials of each configuration."""
    trials = results.drop_duplicates(list(TRIAL))
    counts = trials.groupby(list(SIZE)).size().reset_index(name="count")
    return _as_dict(counts.itertuples(index=False, name=None))


def _as_dict(counts: Iterable[Sequence[Any]]) -> dict[Size, int]:
    return {(str(method), int(num_train), int(num_test)): int(count) for method, num_train, num_test, count in counts}


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
