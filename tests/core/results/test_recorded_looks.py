"""Looks at a run: planned ones, at which it stops, and reports after which it was extended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import peekbench as pb
from peekbench import ExperimentSpec, PeekbenchError
from peekbench.execution.observers import Observers
from peekbench.execution.runner import run
from peekbench.records import Looks, LooksTaken, TrialEvidence, Verdict
from peekbench.records.runs import TrialFinished
from peekbench.report import report_of_comparison, report_of_run, state, write_report
from peekbench.results import load_results
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.results.recorded_looks import look_at, read_looks
from peekbench.store.reader import Store
from peekbench.store.writer import append_look
from peekbench_stats import confidence_sequence_level, level_at

MakeSpec: TypeAlias = Callable[..., ExperimentSpec]


def look(path: Path, results: pd.DataFrame) -> Looks:
    """Look at results of a run, and record this."""
    with Store.open(path) as opened:
        looks, record = look_at(opened, results)
    if record is not None:
        append_look(path, record)
    return looks


def looks_of(verdict: Verdict) -> LooksTaken:
    assert isinstance(verdict.evidence, TrialEvidence)
    assert verdict.evidence.looks is not None
    return replace(verdict.evidence.looks, unadjusted=None)


def sequential(make_spec: MakeSpec, *, maximum: int = 12, methods: Any = ("toy.constant",), **stop: Any) -> Any:
    """Return a spec with planned looks; `toy.constant` is inert at the second, `toy.vote` undecided."""
    design = {"num_train": 12, "num_test": 30, "num_subsamples": maximum, "stop": {"looks": 4, **stop}}
    analyses = [{"use": "summary", "options": {"region": 0.01}}]
    return make_spec(design=design, methods=methods, analyses=analyses)


def design_of(num_subsamples: int) -> dict[str, Any]:
    return {"design": {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples}}


@pytest.mark.slow
def test_a_run_stops_when_all_verdicts_are_settled_and_is_then_complete(make_spec: MakeSpec) -> None:
    spec = sequential(make_spec)
    summary = run(spec)
    assert summary.look is not None
    assert (summary.is_settled, summary.finished, summary.planned) == (True, 12, 24)
    assert (summary.look.subsamples, summary.look.maximum, summary.look.decisions) == (6, 12, {"toy.constant": "inert"})
    report = report_of_run(summary.store)
    assert (
        "12 of 12 trials done. Stopped at look 2 of 4 (planned analyses), at 6 of at most 12 subsamples"
        in report.headline
    )
    assert looks_of(report.verdicts[0]) == LooksTaken(is_run=True, number=2, share=0.5, maximum=12)
    averages = next(table for table in report.tables if table.title.startswith("Boost and bias over these tasks"))
    assert "adjusted for earlier and later analyses; those of others are not" in averages.note
    ranking = report_of_comparison([summary.store])
    assert not any("missing" in warning for warning in ranking.warnings)
    assert looks_of(ranking.verdicts[0]) == looks_of(report.verdicts[0])
    assert analyze(summary.store, AnalysisOptions(spec.analyses)).analyses[0].verdicts == report.verdicts[:1]
    assert run(spec).finished == 0

    more = run(sequential(make_spec, methods=("toy.constant", "toy.vote")))
    assert more.finished == 36  # 12 of the first method and 24 of the second, which nothing settles
    assert not more.is_settled
    with Store.open(summary.store) as store:
        assert [look.subsamples for look in store.planned_looks()] == [3, 6, 6, 9]
        assert store.stopped_at() is None


class InterruptAfter:
    def __init__(self, trials: int) -> None:
        self.left = trials

    def trial_finished(self, event: TrialFinished) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_looks_do_not_depend_on_interruptions(make_spec: MakeSpec) -> None:
    spec = sequential(make_spec, methods=("toy.constant", "toy.vote"))
    whole = run(spec, store="whole.sqlite")
    with pytest.raises(KeyboardInterrupt):
        run(spec, store="parts.sqlite", observers=Observers(InterruptAfter(15)))  # in the second stage
    parts = run(spec, store="parts.sqlite")
    assert 0 < parts.resumed < 48
    with Store.open(whole.store) as first, Store.open(parts.store) as second:
        assert first.done() == second.done()
        assert first.planned_looks() == second.planned_looks()
    reports = [report_of_run(stored.store) for stored in (whole, parts)]
    assert reports[0].verdicts == reports[1].verdicts
    assert looks_of(reports[0].verdicts[0]).number == 4


def test_no_look_is_taken_while_trials_are_missing(make_spec: MakeSpec) -> None:
    faulty = {"use": "toy.faulty", "options": {"error": "raise"}}
    summary = run(sequential(make_spec, methods=("toy.constant", faulty)))
    assert summary.failed >= 10, "ten failures stop a method, and trials in progress end"
    assert summary.look is None


def test_a_run_that_is_extended_keeps_its_looks_and_has_one_more(make_spec: MakeSpec) -> None:
    for maximum, planned in ((12, [3, 6, 9]), (40, [3, 6, 9, 12])):
        store = run(sequential(make_spec, maximum=maximum, methods=("toy.vote",), at=["equivalent"])).store
        with Store.open(store) as opened:
            assert [look.subsamples for look in opened.planned_looks()] == planned
        looks = look(store, load_results(store))
    assert looks == Looks(True, "group_sequential", (0.25, 0.5, 0.75, 1.0, 40 / 12), maximum=12)
    with pytest.raises(PeekbenchError, match=r"num_test 30: 40 before, 8 now"):
        run(sequential(make_spec, maximum=8, methods=("toy.vote",), at=["equivalent"]))
    for maximum in (40, 60):
        with pytest.raises(PeekbenchError, match=r"stop.looks has changed.* set it to "):
            run(sequential(make_spec, maximum=maximum, looks=3, methods=("toy.vote",), at=["equivalent"]))


def test_open_ended_looks_account_for_later_ones(make_spec: MakeSpec) -> None:
    open_ended = {"methods": ["toy.vote"], "method": "confidence_sequence", "at": ["equivalent"]}
    for maximum in (4, 8):
        store = run(sequential(make_spec, maximum=maximum, looks=2, **open_ended), store="open.sqlite").store
        looks = look(store, load_results(store))
    assert looks == Looks(True, "confidence_sequence", (0.5, 1.0, 2.0), maximum=4)
    report = report_of_run(store)
    assert "This is planned analysis 3, at 200% of the 4 subsamples planned first" in state(report.verdicts[0])
    copy = Path(shutil.copy(store, "copy.sqlite"))
    joint = report_of_comparison([store, copy])
    assert [looks_of(verdict) for verdict in joint.verdicts] == [looks_of(report.verdicts[0])] * 2


def test_a_run_that_was_extended_after_a_report_says_so(make_spec: MakeSpec) -> None:
    store = run(make_spec(**design_of(4))).store
    before = report_of_run(store).verdicts[0]
    assert report_of_run(store).verdicts[0] == before
    assert "analys" not in state(before)
    assert before.estimate.level == pytest.approx(0.98)  # 1 - 0.8 * 0.05 / 2 methods
    analyze(store)
    with Store.open(store) as opened:
        assert len(opened.looks()) == 1
    run(make_spec(**design_of(6)))
    (summary,) = analyze(store, AnalysisOptions(["summary"])).analyses
    verdict = summary.verdicts[0]
    assert "changed to 12 trials after analyses at 8; the interval accounts for them" in state(verdict)
    assert verdict.estimate.level == pytest.approx(1 - level_at(Looks(), 12, [8])(0.05 / 2))
    other = run(make_spec(name="other", tasks=[{"use": "toy.words", "name": "a"}], **design_of(4))).store
    joint = {verdict.method: verdict for verdict in report_of_comparison([store, other]).verdicts}
    earlier = {method: looks_of(verdict).earlier for method, verdict in joint.items()}
    name = store.stem
    assert earlier[f"{name}: {verdict.method}"] == (4,), "of one task instead of two"
    assert earlier[f"other: {verdict.method}"] == ()
    assert joint[f"{name}: {verdict.method}"].estimate.level > 0.997
    with pytest.raises(PeekbenchError, match="design.stop: null before"):  # looks cannot be planned after a report
        run(sequential(make_spec, maximum=8, methods=("toy.vote", "toy.constant")), store=store)


def test_an_exported_table_keeps_the_looks_at_its_run(make_spec: MakeSpec) -> None:
    run(make_spec(**design_of(4)))
    report_of_run(Path("runs/small.sqlite"))
    extended = run(make_spec(**design_of(6))).store
    planned = run(sequential(make_spec, methods=("toy.vote",), looks=2), store="planned.sqlite").store
    cases: list[tuple[Path, dict[str, Any]]] = [(extended, {}), (planned, {"region": 0.01})]
    for store, region in cases:
        report = report_of_run(store)
        write_report(report, store.stem, ["exports.csv"])
        folder = Path(store.stem, "exports.csv")
        expected = {verdict.method: verdict for verdict in report.verdicts if verdict.analysis == "summary"}
        for source in (folder / "scores.csv", load_results(store)):
            verdicts = pb.analyze(source, ["summary"], **region).verdicts
            assert len(verdicts) == len(expected)
            for verdict in verdicts:
                same = expected[verdict.method]
                assert (verdict.decision, verdict.estimate, looks_of(verdict)) == (
                    same.decision, same.estimate, looks_of(same),
                )  # fmt: skip
        wide = pb.analyze(folder / "effects.csv", ["summary"], ignore=["boost", "bias"], **region).verdicts[0]
        assert looks_of(wide) == looks_of(expected[wide.method])

    table = load_results(extended)
    assert read_looks(table).earlier_of("toy.vote", 12, 30) == (8,)
    assert read_looks(table[table["task"] == "a"]).earlier_of("toy.vote", 12, 30) == (4,)
    more = pd.concat([table, table.assign(subsample=table["subsample"] + 6)])
    assert read_looks(more).earlier_of("toy.vote", 12, 30) == (8, 12), "rows were added after the last look"
    plain = table.assign(looks="")
    for mixture, message in (
        (pd.concat([table, plain.assign(subsample=plain["subsample"] + 6)]), "toy.vote has different looks"),
        (pd.concat([table, load_results(planned).assign(num_test=60)]), "toy.vote has looks of several runs"),
        (table.assign(looks="twice"), "'twice', which is no record of looks"),
    ):
        with pytest.raises(PeekbenchError, match=message):
            pb.analyze(mixture, ["summary"])
    beside = read_looks(pd.concat([table, plain.assign(method="mine")]))
    assert (beside.of("toy.vote").is_run, beside.of("mine").is_run) == (True, False)


def test_a_look_at_an_unfinished_run_does_not_count_if_the_run_goes_on_as_planned(make_spec: MakeSpec) -> None:
    store = run(make_spec(**design_of(4))).store
    results = load_results(store)
    look(store, results[results["subsample"] < 2])
    assert look(store, results) == Looks(is_run=True)
    run(make_spec(**design_of(5)))
    assert look(store, load_results(store)).earlier_of("toy.vote", 12, 30) == (4, 8)


def test_a_run_whose_analyses_ignore_looks_does_not_stop(make_spec: MakeSpec) -> None:
    design = {**design_of(4)["design"], "stop": {"looks": 2}}
    assert run(make_spec(design=design, methods=["toy.constant"], analyses=["permutation"])).finished == 8


def test_verdicts_of_analyses_that_ignore_looks_are_warned_of(simulate: Callable[..., Any]) -> None:
    pytest.importorskip("arviz_stats")
    results = simulate(0.01, tasks=3, subsamples=8)
    looked = results.assign(looks="after 12; at 24")
    analyses = analyze(looked, AnalysisOptions(["summary", "bayes.hierarchical"])).analyses
    warned = ["do not account for the earlier looks" in " ".join(analysis.warnings) for analysis in analyses]
    assert warned == [False, True]
    assert not any(
        "looks" in text for text in analyze(results, AnalysisOptions(["bayes.hierarchical"])).analyses[0].warnings
    )


def test_extensions_that_nobody_planned_keep_the_error_rate() -> None:
    """A run of one configuration is extended whenever its verdict is open, up to 16 times its first size."""
    rng = np.random.default_rng(0)
    wrong = 0
    for walk in rng.normal(size=(2000, 320)).cumsum(axis=1):
        for number in (20, 40, 80, 160, 320):
            earlier = [look for look in (20, 40, 80, 160) if look < number]
            level = level_at(Looks(), number, earlier)(0.05)
            if abs(walk[number - 1]) / number**0.5 > norm.isf(level / 2):
                wrong += 1
                break
    assert 0.03 < wrong / 2000 < 0.05
    first = level_at(Looks())(0.05)
    assert first == pytest.approx(0.04)
    assert level_at(Looks(True, "group_sequential", (0.5, 1.0), 40))(0.05) < first
    assert level_at(Looks(True, "group_sequential", (0.5, 1.0, 2.0), 40))(0.05) < 0.006, "beyond the planned maximum"
    assert level_at(Looks(True, "confidence_sequence", (1.0,), 40))(0.05) == confidence_sequence_level(1.0, 0.05)
