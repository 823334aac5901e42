"""Analyses of results tables, and the check for missing trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from peekbench.data.preflight import describe_tasks
from peekbench.errors import ContractError, PluginError, ResultsError, SpecError
from peekbench.execution.runner import run
from peekbench.records.data import TableOptions
from peekbench.results import load_results
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.results.missing_trials import find_gaps
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.store.writer import StoreWriter

if TYPE_CHECKING:
    Simulate = Callable[..., pd.DataFrame]


def test_default_analyses_on_a_complete_table(simulate: Simulate) -> None:
    analyses = analyze(simulate(0.02)).analyses
    assert [analysis.name for analysis in analyses] == ["summary", "permutation"]
    assert all(analysis.warnings == () for analysis in analyses)


def test_analyses_are_chosen_by_name_or_component(simulate: Simulate) -> None:
    (count,) = analyze(simulate(0.02), AnalysisOptions(["toy.count"])).analyses
    assert count.tables[0].rows == ((600,),)
    (named,) = analyze(
        simulate(0.02), AnalysisOptions([make_component(AnalysisSpec, "toy.count", {"heading": "number"})])
    ).analyses
    assert named.tables[0].columns[0].name == "number"


def test_controls_are_passed_only_to_analyses_that_request_them(simulate: Simulate) -> None:
    table = pd.concat([simulate(0.02), simulate(0.1, method="leak").assign(control="positive")], ignore_index=True)
    (count,) = analyze(table, AnalysisOptions(["toy.count"])).analyses
    assert count.tables[0].rows == ((600,),), "the 600 rows of the control are dropped"
    (summary,) = analyze(table, AnalysisOptions(["summary"])).analyses
    assert [verdict.method for verdict in summary.verdicts] == ["method", "leak"]
    (count,) = analyze(table.assign(control="positive"), AnalysisOptions(["toy.count"])).analyses
    assert count.tables == ()
    assert count.warnings == ("toy.count did not run: all methods are controls",)


def test_a_table_of_another_tool_is_tidied_first(simulate: Simulate) -> None:
    table = simulate(0.02, tasks=2, subsamples=5)
    other = table[["task", "subsample", "arm", "score"]].rename(columns={"subsample": "draw no"})
    (expected,) = analyze(
        table.assign(num_test=None, num_scored=None, num_correct=None, num_train=None), AnalysisOptions(["summary"])
    ).analyses
    meaning: dict[str, Any] = {"columns": {"draw no": "subsample"}, "independent_tasks": True}
    (summary,) = analyze(
        other.sample(frac=1, random_state=1), AnalysisOptions(["summary"], TableOptions(**meaning))
    ).analyses
    assert summary.verdicts == expected.verdicts
    with pytest.raises(ResultsError, match="the data frame: 5 rows have the same(?s:.*)--map 'draw no=subsample'"):
        analyze(other)
    with pytest.raises(TypeError, match="map"):
        analyze(other, AnalysisOptions(table=TableOptions(map={})))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("remove", "message"),
    [
        (lambda t: (t["task"] == "task1") & (t["subsample"] == 3), "task task1, method method, num_train 50"),
        (
            lambda t: (t["task"] == "task1") & (t["subsample"] == 3) & (t["arm"] == "test"),
            r"1 of 40 subsamples missing or incomplete \(3\)",
        ),
        (
            lambda t: (t["task"] == "task1") & (t["subsample"] > 9),
            r"30 of 40 subsamples missing or incomplete \(10, 11, 12, 13, 14, \.\.\.\)",
        ),
    ],
)
def test_a_design_with_missing_trials_is_refused(remove: Any, message: str, simulate: Simulate) -> None:
    table = simulate(0.02)
    incomplete = table[~remove(table)]
    with pytest.raises(ResultsError, match=message):
        analyze(incomplete)
    for analysis in analyze(incomplete, AnalysisOptions(allow_incomplete=True)).analyses:
        assert "only complete trials were analyzed" in analysis.warnings[0]


@pytest.mark.slow
def test_tasks_with_sizes_of_their_own_are_one_configuration(simulate: Simulate) -> None:
    pytest.importorskip("arviz_stats")
    table = simulate(0.02, tasks=2, subsamples=8).astype({"num_test": "Int64"})
    other = table.copy()
    other.loc[other["task"] == "task1", ["num_test", "num_correct"]] *= 2
    names = ["summary", "permutation", "bayes.hierarchical", "power", "consistency"]
    for same, joined in zip(
        analyze(table, AnalysisOptions(names)).analyses, analyze(other, AnalysisOptions(names)).analyses, strict=True
    ):
        verdicts = [(verdict.estimate, verdict.unit) for verdict in same.verdicts]
        assert [(verdict.estimate, verdict.unit) for verdict in joined.verdicts] == verdicts
        assert joined.warnings == same.warnings
    other.loc[(other["task"] == "task1") & (other["subsample"] > 3), ["num_test", "num_correct"]] //= 2
    with pytest.raises(ResultsError, match="the design has missing trials"):  # a task with two sizes
        analyze(other)


def test_sizes_may_have_different_numbers_of_subsamples(simulate: Simulate) -> None:
    table = pd.concat([simulate(0, num_test=50, subsamples=30), simulate(0, num_test=500, subsamples=10)])
    assert find_gaps(table) == []


def test_a_table_without_complete_trials_is_refused_even_if_incomplete_ones_are_allowed(simulate: Simulate) -> None:
    table = simulate(0.0, tasks=1, subsamples=2)
    is_dropped = ((table["subsample"] == 0) & (table["arm"] == "test")) | (
        (table["subsample"] == 1) & (table["arm"] == "base")
    )
    with pytest.raises(ResultsError, match=r"no subsample has all arms \(.*; give the rows of a draw the same number"):
        analyze(table[~is_dropped])  # --allow-incomplete is not advised: it would fail, too


def test_missing_planned_trials_are_gaps(make_spec: Callable[..., Any]) -> None:
    results = load_results(run(make_spec()).store)
    larger = make_spec(design={"num_train": 12, "num_test": 30, "num_subsamples": 5})
    assert find_gaps(results, list(make_spec().trials())) == []
    gaps = find_gaps(results, list(larger.trials()))
    assert len(gaps) == 4
    assert gaps[0].endswith("num_train 12, num_test 30: 2 of 5 subsamples missing or incomplete (3, 4)")


def test_the_planned_trials_of_a_store_are_known(make_spec: Callable[..., Any]) -> None:
    """Otherwise trials missing from all tasks and methods would not be noticed."""
    path = run(make_spec()).store
    assert [analysis.name for analysis in analyze(path).analyses] == ["summary", "permutation"]
    larger = make_spec(design={"num_train": 12, "num_test": 30, "num_subsamples": 4})
    StoreWriter.for_run(path, larger, describe_tasks(larger)).close()
    with pytest.raises(ResultsError, match=r"1 of 4 subsamples missing or incomplete \(3\)"):
        analyze(path)
    assert analyze(load_results(path)).analyses  # the planned trials of a table are unknown


def test_errors_of_an_analyzer_name_it(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(results: Any, *, options: Any) -> Any:
        raise TypeError

    def return_dict(results: Any, *, options: Any) -> Any:
        return {"rows": 3}

    spec = make_component(AnalysisSpec, "toy.count")
    entry, wrong = spec.entry, "analysis toy.count returned a dict; return peekbench.Analysis"
    for call, message in ((fail, r"analysis toy.count: TypeError \(.*, in fail\)"), (return_dict, wrong)):
        monkeypatch.setattr(AnalysisSpec, "entry", replace(entry, analyze=call))
        with pytest.raises((PluginError, ContractError), match=message):
            analyze(simulate(0.02), AnalysisOptions([spec]))


@pytest.mark.slow
def test_published_accuracies_are_complete(published: Any) -> None:
    assert find_gaps(load_results(published / "few_shot")) == []


def test_a_score_that_is_not_defined_is_refused_before_any_trial(make_spec: Callable[..., Any]) -> None:
    r2 = {"use": "summary", "options": {"score": "r2"}}
    with pytest.raises(SpecError, match=r"analyses\[1\]: score 'r2' is not defined for .* of task a"):
        run(make_spec(analyses=["permutation", r2]))
    assert not Path("runs").exists()
