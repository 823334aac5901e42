"""The leaderboard, its ties, and what two runs differ by."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

from peekbench import Analysis, Table
from peekbench.errors import SpecError
from peekbench.results.table import tidy
from peekbench_summary import Summary
from peekbench_summary.changes import contrast
from peekbench_summary.estimates import of_change
from peekbench_summary.leaderboard import rank, tie_letters
from peekbench_summary.summary import summarize


def rows(table: Table) -> list[dict[str, Any]]:
    return [dict(zip((column.name for column in table.columns), row, strict=True)) for row in table.rows]


def scores(gains: Mapping[str, float], *, shared: float = 0.05, own: float = 0.005, subsamples: int = 20) -> Any:
    """Methods whose accuracy is 0.6 and a gain; draws differ by `shared` alike for all, and by `own` for each."""
    rng = np.random.default_rng(1)
    made = []
    for task in ("a", "b", "c"):
        luck = rng.normal(0, shared, subsamples)
        for method, gain in gains.items():
            for subsample in range(subsamples):
                extra, test = 0.6 + gain + luck[subsample] + rng.normal(0, own, 2)
                for arm, score in (("base", extra - 0.1), ("extra", extra), ("test", test)):
                    made.append((task, method, subsample, arm, 1000, np.round(score * 1000) / 1000))
    return tidy(pd.DataFrame(made, columns=["task", "method", "subsample", "arm", "num_test", "score"]), "made")


def ask(results: Any) -> Analysis:
    return rank(results, options=Summary())


def test_methods_stand_in_the_order_of_their_honest_score() -> None:
    (table,) = ask(scores({"low": 0.0, "high": 0.1, "middle": 0.05})).tables
    found = rows(table)
    assert [row["method"] for row in found] == ["high", "middle", "low"]
    assert [row["tie"] for row in found] == ["a", "b", "c"]
    assert [row["extra"] for row in found] == pytest.approx([0.7, 0.65, 0.6], abs=0.02)
    for row in found:
        assert row["boost, low"] <= row["boost"] <= row["boost, high"]
        assert row["boost"] == pytest.approx(0.1)
        assert row["bias, low"] < 0 < row["bias, high"]
    assert "3 tasks and 60 trials" in table.note


def test_tasks_by_methods() -> None:
    results = scores({"one": 0.0, "two": 0.1})
    (table,) = [table for table in summarize(results, options=Summary()).tables if "tasks by methods" in table.title]
    by_task = results[results["method"] == "two"].pivot(index=["task", "subsample"], columns="arm", values="score")
    means = (by_task["test"] - by_task["extra"]).groupby("task").mean()
    assert [column.name for column in table.columns] == ["task", "one", "two"]
    assert [row["two"] for row in rows(table)] == pytest.approx(means.tolist())
    alone = summarize(results[results["method"] == "one"], options=Summary())
    assert not any("tasks by methods" in table.title for table in alone.tables)


def test_ties_are_paired_over_draws() -> None:
    """A gain of a point is lost in draws that differ by 5, unless they are the same draws."""
    results = scores({"one": 0.0, "two": 0.01, "also two": 0.01})
    ties = {row["method"]: row["tie"] for row in rows(ask(results).tables[0])}
    assert ties["two"] == ties["also two"] == "a"
    assert ties["one"] == "b"
    apart = results.assign(subsample=results["subsample"] + 100 * results["method"].factorize()[0])
    assert {row["tie"] for row in rows(ask(apart).tables[0])} == {"a"}


def test_equal_methods_are_seldom_told_apart() -> None:
    """All pairs together at the level: the intervals are widened for their number."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(40):
        results = scores({f"m{number}": 0.0 for number in range(6)}, subsamples=8)
        shuffled = results["score"].to_numpy().copy()
        is_extra = (results["arm"] == "extra").to_numpy()
        shuffled[is_extra] += rng.normal(0, 0.02, is_extra.sum())
        found = rows(ask(results.assign(score=shuffled)).tables[0])
        alarms += len({row["tie"] for row in found}) > 1
    assert alarms <= 5


def test_sizes_are_ranked_apart() -> None:
    small = scores({"low": 0.0, "high": 0.1})
    both = pd.concat([small.assign(num_train=50), small.assign(num_train=100)], ignore_index=True)
    found = rows(ask(both).tables[0])
    assert [(row["num_train"], row["method"]) for row in found] == [
        (50, "high"), (50, "low"), (100, "high"), (100, "low"),
    ]  # fmt: skip
    assert [row["tie"] for row in found] == ["a", "b", "a", "b"]


def test_two_share_a_letter_if_and_only_if_they_are_not_told_apart() -> None:
    draw = random.Random(3)
    for _ in range(200):
        count = draw.randint(1, 7)
        apart = {pair for pair in combinations(range(count), 2) if draw.random() < 0.5}
        letters = tie_letters(count, apart)
        assert all(letters)
        for first, second in combinations(range(count), 2):
            assert bool(set(letters[first]) & set(letters[second])) == ((first, second) not in apart)
        members = {letter: {place for place, own in enumerate(letters) if letter in own} for letter in "".join(letters)}
        assert not any(one < other for one in members.values() for other in members.values()), "no letter is idle"
        assert letters[0].startswith("a")


def test_changes_of_independent_sets_are_welchs() -> None:
    from scipy.stats import ttest_ind

    rng = np.random.default_rng(2)
    before, after = rng.normal(0, 1, 12), rng.normal(0.5, 3, 7)
    found = of_change([before.tolist()], [after.tolist()], 0.9)
    expected = ttest_ind(after, before, equal_var=False).confidence_interval(0.9)
    assert found.mean == pytest.approx(after.mean() - before.mean())
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def changes(before: Any, after: Any) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    joined = pd.concat([before.assign(run="old"), after.assign(run="new")], ignore_index=True)
    verdicts, numbers = contrast(joined, options=Summary()).tables
    return rows(verdicts), rows(numbers)


def test_changes_are_paired_over_shared_draws() -> None:
    before = scores({"m": 0.0, "gone": 0.0})
    more = scores({"m": 0.0, "fresh": 0.0}, subsamples=30)
    lifted = before["arm"] == "test"
    after = before.assign(score=before["score"] + 0.03 * lifted)
    after = pd.concat([after[after["method"] == "m"], more[more["method"] == "fresh"]], ignore_index=True)
    verdicts, numbers = changes(before, after)
    by_what = {row["what"]: row for row in numbers}
    assert set(by_what) == {"extra", "boost", "bias"}
    bias = by_what["bias"]
    assert bias["change"] == pytest.approx(0.03)
    assert bias["after"] - bias["before"] == pytest.approx(0.03)
    assert bias["change, high"] - bias["change, low"] == pytest.approx(0, abs=1e-9), "the same draws, each 3 points up"
    assert bias["paired"] == 60
    told = {row["method"]: (row["before"], row["after"], row["changed"]) for row in verdicts}
    assert told["m"] == ("equivalent", "biased up", "yes")
    assert told["gone"][1:] == ("-", "only before")
    assert (told["fresh"][0], told["fresh"][2]) == ("-", "only after")


def test_other_draws_are_compared_as_independent_sets() -> None:
    before = scores({"m": 0.0})
    _, numbers = changes(before, before.assign(subsample=before["subsample"] + 1000))
    assert all(row["paired"] == 0 and row["change"] == pytest.approx(0) for row in numbers)
    extra = next(row for row in numbers if row["what"] == "extra")
    assert extra["change, high"] - extra["change, low"] > 0.01


def test_changes_need_two_runs() -> None:
    with pytest.raises(SpecError, match="peekbench compare"):
        contrast(scores({"m": 0.0}), options=Summary())
    regression = tidy(pd.DataFrame({"task": "a", "extra": [0.5, 0.2], "test": [0.5, -0.1]}), "r2")
    with pytest.raises(SpecError, match="only one of old and new"):
        changes(scores({"m": 0.0}), regression)
