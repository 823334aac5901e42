"""Tests of `consistency`: errors planted in clean results are found, and clean results have no findings."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from analysis_tables import table_rows

from peekbench.records.report import Analysis
from peekbench.report.facts.run_facts import check_results
from peekbench.results import load_results, tidy
from peekbench.results.analyze import find_analysis
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench_testing import check_entry

if TYPE_CHECKING:
    Simulate = Callable[..., pd.DataFrame]

MAJORITY = "accuracy not above the majority class"
DIFFERENT_DRAWS = "rows with the same subsample number are different draws"


def check(results: pd.DataFrame, **options: Any) -> Analysis:
    spec = make_component(AnalysisSpec, "consistency", options)
    return spec.entry.analyze(results, options=spec.options)


def findings(results: pd.DataFrame, **options: Any) -> list[dict[str, Any]]:
    table = check(results, **options).tables[0]
    if table.columns[0].name == "looked for":
        return []
    return table_rows(table)


def clean(
    seed: int = 0, tasks: int = 4, sizes: tuple[int, ...] = (50, 200), models: tuple[str, ...] = ("bert", "gpt2")
) -> pd.DataFrame:
    """Simulate scores without errors: some runs fail, and methods share their texts and base arms."""
    rng = np.random.default_rng(seed)
    rows = []
    for task in range(tasks):
        for size in sizes:
            for subsample in range(20):
                ease = rng.normal(0, 0.03)
                majority = rng.binomial(size, 0.3) / size
                for model in models:
                    skills = 0.45 + 0.1 * (task % 5) + ease + rng.normal(0, 0.02, 3) - 0.25 * (rng.random(3) < 0.08)
                    counts = rng.binomial(size, np.clip(skills - (0.05, 0, 0), 0.01, 0.99))
                    rows.append((f"task{task}", model, 100, size, subsample, *(counts / size), majority))
    columns = ["task", "model", "num_train", "num_test", "subsample", "base", "extra", "test", "majority"]
    return pd.DataFrame(rows, columns=columns)


def select(table: pd.DataFrame, **cells: Any) -> Any:
    chosen = np.ones(len(table), dtype=bool)
    for name, value in cells.items():
        chosen &= (table[name] == value).to_numpy()
    return chosen


def only_finding(table: pd.DataFrame, **options: Any) -> dict[str, Any]:
    """Return the only finding, except those that question the accuracies rather than the table."""
    found = findings(tidy(table, "made"), **options)
    (finding,) = [row for row in found if row["severity"] != "info" and row["finding"] != MAJORITY]
    return finding


@pytest.mark.slow
def test_published_base_arms_that_depend_on_n_are_located(published: Path) -> None:
    all_findings = findings(load_results(published / "few_shot", independent_tasks=True))
    base = [finding for finding in all_findings if finding["finding"] == "the base arm depends on num_test"]
    assert [finding["location"] for finding in base] == [
        "bert, num_test=200",
        "gpt2, num_test=200",
        "gpt2, num_test=500",
    ]
    assert [finding["severity"] for finding in base] == ["error"] * 3
    assert "+4.32 points" in base[0]["evidence"]
    assert "craigslist_bargains +25" in base[0]["evidence"]
    assert "ag_news -16" in base[0]["evidence"]
    # The published files also have rows of different draws, accuracies below the majority class, and infos.
    others = [finding for finding in all_findings if finding not in base and finding["severity"] != "info"]
    assert {finding["finding"] for finding in others} == {DIFFERENT_DRAWS, MAJORITY}


def test_clean_table_lists_the_checks() -> None:
    analysis = check(tidy(clean(), "clean"))
    assert analysis.tables[0].title == "No inconsistencies were found"
    assert ("equal arms",) in analysis.tables[0].rows
    assert [column.name for column in analysis.tables[0].columns] == ["looked for"]
    assert analysis.warnings == ()


def few(*counts: int) -> pd.DataFrame:
    """Return a table with these numbers of subsamples of each task."""
    rows = [(f"task{task}", number) for task, count in enumerate(counts) for number in range(count)]
    table = pd.DataFrame(rows, columns=["task", "subsample"])
    correct = np.random.default_rng(0).integers(140, 160, size=(2, len(table)))
    return table.assign(num_test=200, extra=correct[0] / 200, test=correct[1] / 200)


@pytest.mark.parametrize(
    ("counts", "independent_tasks", "evidence", "needed"),
    [
        ((3,), False, "3 subsamples of task0", 6),
        ((1, 1, 1), True, "1 subsample of task0, 1 subsample of task1, 1 subsample of task2", 2),
        ((2, 2), True, "2 subsamples of task0, 2 subsamples of task1", 3),
        ((8, 1), False, "1 subsample of task1", 2),
        ((3, 3, 3), False, "3 subsamples of task0, 3 subsamples of task1, 3 subsamples of task2", 6),
    ],
)
def test_too_few_subsamples_for_a_verdict_are_a_warning_of_every_report(
    counts: tuple[int, ...], independent_tasks: bool, evidence: str, needed: int
) -> None:
    tidied = partial(tidy, origin="few", independent_tasks=independent_tasks)
    (quick,) = check_results(tidied(few(*counts)))
    (warning,) = quick.warnings
    assert warning.startswith("Too few subsamples for a verdict")
    assert f"{evidence}; add subsamples: each of these tasks needs at least {needed}" in warning
    enough = tidied(few(*(max(count, needed) for count in counts)))
    assert [analysis.warnings for analysis in check_results(enough)] == [()]


@pytest.mark.simulation
def test_false_positive_rate_is_at_most_the_level() -> None:
    """30 clean tables at a level of 0.2, which allows 6 false positives, and 10 at the default level."""

    def false_positives(seeds: range, **options: Any) -> int:
        tables = (tidy(clean(seed, tasks=3, sizes=(20, 50)), "clean") for seed in seeds)
        return sum(any(finding["severity"] != "info" for finding in findings(table, **options)) for table in tables)

    assert false_positives(range(30), level=0.2) <= 6 + 2.5 * np.sqrt(30 * 0.2 * 0.8)
    assert false_positives(range(30, 40)) <= 1


def test_base_arm_that_depends_on_n_is_located_with_its_task() -> None:
    table = clean(1)
    cell = select(table, model="gpt2", num_test=200, task="task1")
    table.loc[cell, "base"] = (table.loc[cell, "base"] - 0.2).round(3).clip(0)
    finding = only_finding(table)
    assert (finding["severity"], finding["finding"], finding["location"]) == (
        "error",
        "the base arm depends on num_test",
        "gpt2, num_test=200",
    )
    assert "1 of 4 tasks differ individually: task1 -" in finding["evidence"]


def test_rows_of_one_task_under_another() -> None:
    table = clean(4, sizes=(50,))
    arms = ["base", "extra", "test"]
    table.loc[select(table, model="bert", task="task2"), arms] = table.loc[
        select(table, model="bert", task="task0"), arms
    ].to_numpy()
    finding = only_finding(table)
    assert (finding["severity"], finding["finding"]) == ("error", "rows of one block appear in another")
    assert finding["location"] == "bert, task0 = bert, task2"


def test_shifted_draws_are_found_by_the_majority_class() -> None:
    table = clean(8, sizes=(50,))
    cell = select(table, model="gpt2", task="task3")
    table.loc[cell, "majority"] = np.roll(table.loc[cell, "majority"].to_numpy(), 4)
    finding = only_finding(table)
    assert (finding["finding"], finding["location"]) == (DIFFERENT_DRAWS, "gpt2 compared with bert")
    assert finding["evidence"].endswith("differs: task3")


def test_equal_arms_in_one_task_are_an_error() -> None:
    table = clean(13)
    cell = select(table, model="bert", num_test=200, task="task1")
    table.loc[cell, "test"] = table.loc[cell, "extra"]
    finding = only_finding(table)
    assert (finding["severity"], finding["finding"]) == ("error", "extra and test are identical in one task")
    assert finding["location"] == "bert, num_test=200, task1"


def test_arms_that_may_be_equal_by_chance_or_by_method_are_no_error() -> None:
    table = clean(13, sizes=(50,), models=("bert",))
    few = table[table["subsample"] < 2].assign(base=table["test"])
    few["extra"] = few["test"].where(few["subsample"] < 1, few["test"] + 0.02)
    assert len(few) == 8
    assert findings(tidy(few, "made", independent_tasks=True)) == []
    constant = select(table, task="task1")
    for arm in ("base", "test"):
        table.loc[constant, arm] = table.loc[constant, "extra"]
    assert findings(tidy(table, "made")) == [], "the method may always predict one class in this task"


@pytest.mark.parametrize(
    ("same", "severity", "title"),
    [
        (["test"], "warning", "extra and test are identical"),
        (["base"], "warning", "base and extra are identical"),
        (["base", "test"], "info", "all arms are identical"),
    ],
)
def test_arms_that_never_differ(same: list[str], severity: str, title: str) -> None:
    table = clean(14, sizes=(50,), models=("bert",))
    for arm in same:
        table[arm] = table["extra"]
    (finding,) = findings(tidy(table, "made"))
    assert (finding["severity"], finding["finding"]) == (severity, title)


def test_controls_are_not_blamed_for_arms_that_are_equal_by_design() -> None:
    table = clean(19, sizes=(50,), models=("bert",)).assign(method="leak", control="positive")
    table["test"] = table["extra"] + 0.02
    table["base"] = table["extra"]
    assert findings(tidy(table, "made")) == []
    null = table.assign(method="null", control="negative", test=table["extra"])
    assert findings(tidy(pd.concat([table, null]), "made")) == []
    (finding,) = findings(tidy(table.assign(control=""), "made"))
    assert finding["finding"] == "base and extra are identical"


def test_every_report_has_one_warning_for_each_kind_of_finding() -> None:
    table = clean(18)
    table.loc[select(table, task="task0"), "majority"] = 0.9
    spec = make_component(AnalysisSpec, find_analysis("check"))
    analysis = spec.entry.analyze(tidy(table, "made"), options=spec.options)
    (warning,) = analysis.warnings
    assert warning.startswith("Accuracy not above the majority class (bert, num_test=50 and 3 more): 1 of 4 tasks: ")
    assert analysis.tables == ()


def test_an_arm_that_is_not_drawn_again_is_a_warning() -> None:
    table = clean(15, sizes=(300,), models=("bert",))
    once = table["task"] == table["task"].iloc[0]
    table.loc[once, "test"] = table["test"].iloc[0]
    finding = only_finding(table)
    assert (finding["severity"], finding["finding"]) == ("warning", "the score of test never changes")
    assert "not independent" in finding["evidence"]
    perfect = table.assign(test=table["test"].where(~once, 1.0))
    control = table.assign(control="positive")
    with_folds = table.assign(all=0.9)  # deterministic fits to other folds of the same texts may predict alike
    for other in (perfect, control, with_folds):
        assert not [row for row in findings(tidy(other, "made")) if "never changes" in row["finding"]]


def test_tasks_not_above_the_majority_class_are_a_warning() -> None:
    table = clean(18, sizes=(50,), models=("bert",))
    table.loc[select(table, task="task0"), "majority"] = table.loc[select(table, task="task0"), "base"].mean()
    (finding,) = findings(tidy(table, "made"))
    assert (finding["severity"], finding["finding"]) == ("warning", MAJORITY)
    assert re.match(r"1 of 4 tasks: task0 base (\d+\.\d)% of \1%", finding["evidence"])
    assert findings(tidy(table.assign(control="negative", test=table["extra"]), "made")) == []
    assert findings(tidy(table.drop(columns="majority"), "made")) == []


@pytest.mark.slow
def test_analysis_passes_the_contract_checks() -> None:
    assert [outcome for outcome in check_entry("consistency") if not outcome.passed] == []
