"""Tables of other tools that are extended after their analysis state their earlier numbers of subsamples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import run_command

import peekbench as pb
from peekbench.errors import ResultsError
from peekbench.execution.runner import run
from peekbench.formatting import format_range
from peekbench.records import Looks
from peekbench.records.data import TableOptions
from peekbench.report import report_of_comparison
from peekbench.report.render.sentences import state, state_briefly
from peekbench.results.recorded_looks import next_earlier, read_looks
from peekbench.results.tidying import tidy_table
from peekbench_stats import level_at

SEED = 2  # undecided with 20 subsamples


def scores(number: int, models: tuple[str, ...] = ("",), tasks: tuple[str, ...] = ("a", "b")) -> pd.DataFrame:
    """Return a table whose first rows do not depend on its length."""
    rows = []
    for model in models:
        for task in tasks:
            rng = np.random.default_rng(SEED)
            for subsample, difference in enumerate(rng.normal(0.003, 0.015, number).round(4)):
                rows.append((task, model, subsample, 0.7, 0.7 + difference))
    table = pd.DataFrame(rows, columns=["task", "model", "subsample", "extra", "test"])
    return table if models != ("",) else table.drop(columns="model")


def earlier_of(table: pd.DataFrame, *earlier: int) -> tuple[int, ...]:
    results = tidy_table(table, "here", TableOptions(earlier=earlier)).results
    return read_looks(results).earlier_of("method", None, None)


def test_a_first_analysis_of_a_table_has_the_level_of_a_first_report_of_a_run() -> None:
    (verdict,) = pb.analyze(scores(20), ["summary"]).verdicts
    assert verdict.estimate.level == pytest.approx(0.96)
    assert level_at(Looks())(0.05) == level_at(Looks(is_run=True))(0.05) == pytest.approx(0.04)


@pytest.mark.simulation
def test_a_table_that_follows_its_advice_has_the_level_of_an_extended_run() -> None:
    scores(20).to_csv("scores.csv", index=False)
    printed = run_command("analyze", "scores.csv").stdout
    (command,) = re.findall(r"^ +(peekbench analyze .*)$", printed, re.MULTILINE)
    assert command == "peekbench analyze scores.csv --earlier 20"
    (advised,) = re.findall(r"^What next\? +Add subsamples\. (\d+) more ", printed, re.MULTILINE)
    number = 20 + int(advised)
    scores(number).to_csv("scores.csv", index=False)
    verdict, *_ = json.loads(run_command(*command.split()[1:], "--json").stdout)["verdicts"]
    assert "This table was analyzed before at 20 subsamples per task; the interval" in verdict["sentence"]

    in_python = pb.analyze(scores(number), ["summary"], earlier=20)
    assert in_python.verdicts[0].estimate.low == verdict["estimate"]["low"]
    wider = pb.analyze(scores(number), ["summary"]).verdicts[0].estimate
    assert in_python.verdicts[0].estimate.low < wider.low
    limits = format_range(wider.low, wider.high, "change")
    shown = f"Without the earlier analyses, the interval would be narrower: {limits}."
    assert shown in state_briefly(in_python.verdicts[0]) and shown in verdict["sentence"]
    assert in_python.verdicts[0].estimate.mean == wider.mean
    again = pb.analyze("scores.csv", ["summary"], earlier=[20])
    assert again.verdicts[0].estimate.low == verdict["estimate"]["low"]


def test_a_leaderboard_accounts_for_earlier_analyses_like_an_analysis() -> None:
    scores(48).to_csv("scores.csv", index=False)
    options = TableOptions(earlier=(20,))
    ranking = report_of_comparison([Path("scores.csv")], table=options)
    (verdict,) = pb.analyze("scores.csv", ["summary"], earlier=[20]).verdicts
    assert ranking.verdicts[0].estimate == verdict.estimate
    assert ranking.extension.command == "peekbench compare scores.csv --earlier 20 --earlier 48"


def test_numbers_of_subsamples_become_trials_of_each_configuration() -> None:
    assert earlier_of(scores(48), 20) == (40,)
    assert earlier_of(scores(60), 20, 48) == (40, 96)
    assert earlier_of(scores(48, models=("bert", "gpt2")), 20) == (40,), "a model is a configuration of its own"
    grown = pd.concat([scores(48, tasks=("a",)), scores(10, tasks=("b",))])
    assert earlier_of(grown, 20) == (40,), "the mean of unequal tasks"
    mixed = pd.concat([scores(48).assign(method="grown"), scores(20).assign(method="new")])
    looks = read_looks(tidy_table(mixed, "here", TableOptions(earlier=20)).results)
    assert looks.earlier_of("grown", None, None) == (40,)
    assert looks.earlier_of("new", None, None) == ()


def test_the_advised_command_works_whatever_part_of_a_table_grows() -> None:
    def of_sizes(first: int, second: int, method: str = "method") -> pd.DataFrame:
        parts = (scores(number, tasks=(task,)) for number, task in ((first, "a"), (second, "b")))
        return pd.concat(parts).assign(method=method)

    def advise(table: pd.DataFrame, *earlier: int) -> tuple[int, ...]:
        return pb.analyze(table, ["summary"], earlier=earlier, allow_incomplete=True).document.extension.earlier

    unequal = advise(of_sizes(10, 31))
    assert unequal == (20,)
    for number in (11, 31):
        assert earlier_of(of_sizes(number, 31), *unequal) == (40,)
    assert advise(of_sizes(31, 31), *unequal) == (20, 31)
    (verdict,) = pb.analyze(of_sizes(31, 31), ["summary"], earlier=unequal).verdicts
    assert "analyzed before at 20 subsamples per task" in state(verdict)
    methods = of_sizes(40, 40, "large")
    small = advise(pd.concat([methods, of_sizes(20, 20, "small")]))
    assert advise(pd.concat([methods, of_sizes(30, 30, "small")]), *small) == (20, 30)


def test_an_exported_table_keeps_what_was_stated() -> None:
    options = TableOptions(earlier=(20,))
    results = tidy_table(scores(48), "here", options).results
    assert set(results["looks"]) == {"table; after 40; at 96"}
    verdicts = [pb.analyze(table, ["summary"]).verdicts[0] for table in (results, results.astype(object))]
    assert verdicts == list(pb.analyze(scores(48), ["summary"], earlier=20).verdicts) * 2
    assert "This table was analyzed before at 20 subsamples" in state(verdicts[0])
    assert not read_looks(results).is_run, "its scores may be rounded"
    assert next_earlier(results, ()) == (), "the column tells it"
    assert next_earlier(results, (20,)) == (20, 48)
    assert next_earlier(tidy_table(scores(20), "here", TableOptions()).results, ()) == (20,)


@pytest.mark.parametrize(
    ("earlier", "message"),
    [
        ((48,), "--earlier 48: here has 48 subsamples per task, and an earlier analysis .* fewer than now"),
        ((0,), "at least 1"),
    ],
)
def test_impossible_numbers_are_refused(earlier: tuple[int, ...], message: str) -> None:
    with pytest.raises(ResultsError, match=message):
        tidy_table(scores(48), "here", TableOptions(earlier=earlier))
    with pytest.raises(ResultsError, match=r"^earlier=\["):
        pb.analyze(scores(48), earlier=earlier)


def test_a_source_that_knows_its_looks_refuses_others(make_spec: Callable[..., Any]) -> None:
    store = run(make_spec()).store
    with pytest.raises(ResultsError, match=r"is the store of a run, whose columns are known; remove earlier=\[2\]"):
        pb.load_results(store, earlier=[2])
    with pytest.raises(ResultsError, match="remove earlier="):
        pb.analyze(store, earlier=[2])
    stated = tidy_table(scores(48), "here", TableOptions(earlier=(20,))).results
    with pytest.raises(ResultsError, match=r"'looks' of the data frame already states earlier"):
        pb.analyze(stated, ["summary"], earlier=[20])
    assert pb.analyze(stated, ["summary"], earlier=[20], ignore=["looks"]).verdicts
