"""Finds what is missing from a design, and drops incomplete trials: an analysis refuses them, or says so."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import Any

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.formatting import pluralize
from peekbench.records.trials import Trial
from peekbench.records.verdicts import Key
from peekbench.results.columns import TRIAL, quoted
from peekbench.results.paired_effects import plain_cell
from peekbench.results.user_columns import ALLOW_INCOMPLETE

MAX_LISTED = 5  # gaps listed in a message


def join_sizes(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results without num_test if each task has a number of test texts of its own, or each fold.

    Different numbers of the same task are different configurations. Numbers that only tell tasks apart are not, or
    folds, whose numbers differ by one: a configuration then has all tasks, and its number of test texts is missing.
    Accuracies are still known as such, because `num_correct` is not missing.

    Parameters
    ----------
    results
        The results table of a table of scores. The tasks of a run have the sizes of its design.
    """
    sizes = results.groupby("task")["num_test"].agg(["min", "max", "count", "size"])
    is_of_task = (sizes["max"] - sizes["min"] <= 1) & (sizes["count"] == sizes["size"])
    is_of_draw = results.groupby(["task", "subsample"])["num_test"].nunique() <= 1
    if not is_of_task.all() or not is_of_draw.all() or results["num_test"].nunique() < 2:
        return results
    return results.assign(num_test=pd.Series(pd.NA, index=results.index, dtype="Int64"))


def only_complete(
    results: pd.DataFrame,
    planned: Sequence[Trial] = (),
    *,
    allow_incomplete: bool = False,
    has_texts_as_draws: bool = False,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the trials that have every arm, and a warning if trials are missing.

    In a table of scores, `join_sizes` makes one configuration of tasks with different numbers of test texts.

    Parameters
    ----------
    results
        The results table.
    planned
        Trials that the table should contain, if known.
    allow_incomplete
        Drop incomplete trials instead of raising an error.
    has_texts_as_draws
        Whether subsamples are single texts, of which each task can have its own number.

    Raises
    ------
    ResultsError
        If trials are missing and `allow_incomplete` is not set, or no trial is complete.
    """
    if not planned:
        results = join_sizes(results)
    gaps = find_gaps(results, planned, has_texts_as_draws=has_texts_as_draws)
    if not gaps:
        return results, ()
    lines = "\n  ".join(gaps[:MAX_LISTED])
    if len(gaps) > MAX_LISTED:
        lines += f"\n  ... and {len(gaps) - MAX_LISTED} more"
    complete = drop_incomplete(results)
    add_rows, pair_rows = "Add the missing rows", "give the rows of a draw the same number in all arms"
    if planned:
        add_rows, pair_rows = "Finish the run", "finish the run"
    if complete.empty:
        raise ResultsError(f"no subsample has all arms ({quoted(results['arm'].unique())}); {pair_rows}:\n  {lines}")
    if not allow_incomplete:
        problem, effect = f"the design has missing trials:\n  {lines}\n{add_rows}; ", " analyzes the complete trials"
        raise ResultsError(problem, ALLOW_INCOMPLETE, f"{effect} and says so in the report")
    return complete, (f"The design has missing trials, and only complete trials were analyzed:\n  {lines}",)


def lack_only_failed(results: pd.DataFrame, planned: Sequence[Trial], failed: Collection[str]) -> bool:
    """Return whether only methods with a failed trial, of which there are some, lack trials: no run can add these."""
    expected = Counter(trial.method for trial in planned if trial.method not in failed)
    finished = results.drop_duplicates(list(TRIAL))["method"].value_counts()
    return bool(failed) and all(finished.get(method, 0) >= number for method, number in expected.items())


def find_gaps(results: pd.DataFrame, planned: Sequence[Trial] = (), *, has_texts_as_draws: bool = False) -> list[str]:
    """Describe what is missing from a balanced design.

    Every trial should have the same arms. Every planned trial should be present. If the planned trials are unknown,
    every configuration (method, model, num_train, num_test) should have every task of the table with the same
    subsamples; if these are single texts, with the same texts of each task.

    Returns
    -------
    list of str
        One line for each affected task and configuration.
    """
    return [
        f"{_describe_place(configuration, task)}: {_count_missing(missing, numbers)}"
        for configuration, task, numbers, complete in _compare(results, planned, has_texts_as_draws=has_texts_as_draws)
        if (missing := numbers - complete)
    ]


def _compare(
    results: pd.DataFrame, planned: Sequence[Trial], *, has_texts_as_draws: bool
) -> Iterator[tuple[tuple[Key, ...], str, set[int], set[int]]]:
    """Yield each configuration and task of a design with the subsamples that it should have, and those complete."""
    arms = results.groupby(list(TRIAL), dropna=False, sort=False)["arm"].nunique().reset_index(name="count")
    is_complete = (arms["count"] == results["arm"].nunique()).tolist()
    seen: defaultdict[tuple[Any, ...], set[int]] = defaultdict(set)
    complete: defaultdict[tuple[Any, ...], set[int]] = defaultdict(set)
    for (*sizes, task, subsample), is_whole in zip(arms[list(TRIAL)].itertuples(index=False), is_complete, strict=True):
        place = tuple(map(plain_cell, sizes)), task
        seen[place].add(subsample)
        if is_whole:
            complete[place].add(subsample)
    if planned:
        models = {configuration[0]: configuration[1] for configuration, _ in seen}
        expected: defaultdict[tuple[Any, ...], set[int]] = defaultdict(set)
        for trial in planned:
            draw = trial.draw
            configuration = (trial.method, models.get(trial.method, ""), draw.num_train, draw.num_test)
            expected[configuration, draw.task].add(draw.subsample)
        for (configuration, task), numbers in expected.items():
            yield configuration, task, numbers, complete.get((configuration, task), set())
        return
    unit = int(has_texts_as_draws)  # tasks have texts of their own; otherwise, all tasks have the same subsamples
    of_units: defaultdict[Any, set[int]] = defaultdict(set)
    for place, numbers in seen.items():
        of_units[place[unit]] |= numbers
    configurations, tasks = (dict.fromkeys(names) for names in zip(*seen, strict=True))
    for place in product(configurations, tasks):
        yield *place, of_units[place[unit]], complete.get(place, set())


def drop_incomplete(results: pd.DataFrame) -> pd.DataFrame:
    """Return the trials that have every arm of the table."""
    num_arms = results["arm"].nunique()
    is_complete = results.groupby(list(TRIAL), dropna=False, sort=False)["arm"].transform("nunique") == num_arms
    return results[is_complete].reset_index(drop=True)


def _describe_place(configuration: Sequence[Key], task: str) -> str:
    names = zip(("method", "model", "num_train", "num_test"), configuration, strict=True)
    return ", ".join([f"task {task}", *(f"{name} {value}" for name, value in names if value not in ("", None))])


def _count_missing(missing: set[int], expected: set[int]) -> str:
    first = ", ".join(map(str, sorted(missing)[:MAX_LISTED]))
    if len(missing) > MAX_LISTED:
        first += ", ..."
    return f"{len(missing)} of {pluralize(len(expected), 'subsample')} missing or incomplete ({first})"
