"""Verdicts of the analysis `summary`, their sentences, and the tests over tasks beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
from analysis_tables import find_rows, judge, run_analysis
from scipy.stats import ttest_1samp

import peekbench as pb
from peekbench import PeekbenchError
from peekbench.execution.runner import run
from peekbench.formatting import format_size
from peekbench.records import TrialEvidence, Unit
from peekbench.report import report_of_comparison, report_of_run, state
from peekbench.report.render import sentences
from peekbench.report.render.content import explain_decisions
from peekbench.results import decide, paired_scores
from peekbench_summary.biased_rule import Bias, Evidence, Region
from peekbench_summary.families import count_biased_tasks, judge_family
from peekbench_summary.forecast import settle

Simulate: TypeAlias = Callable[..., pd.DataFrame]

summarize = partial(run_analysis, "summary")
OTHER_TASKS = "Would other tasks like these also show a bias?"


@pytest.mark.parametrize(("bias", "decision"), [(0.03, "biased up"), (-0.03, "biased down"), (0.0, "equivalent")])
def test_verdicts_find_planted_biases(bias: float, decision: str, simulate: Simulate) -> None:
    (verdict,) = summarize(simulate(bias, subsamples=150, num_test=2000)).verdicts
    assert verdict.decision == decision
    assert verdict.estimate.low <= bias <= verdict.estimate.high
    assert f"{verdict.estimate.low * 100:+.2f} to {verdict.estimate.high * 100:+.2f}" in state(verdict)


def test_fits_that_fail_cancel_with_folds(simulate: Simulate) -> None:
    """An interval that leaves no room for failures is then 'equivalent', and skewed differences do not bend it."""
    results = simulate(0.0, tasks=1, subsamples=10, num_test=2000, noise=0.004, seed=1)
    in_folds = pd.concat([results, results[results["arm"] == "test"].assign(arm="all")], ignore_index=True)
    (draws,), (folds,) = (summarize(table).verdicts for table in (results, in_folds))
    assert (draws.decision, folds.decision) == ("inconclusive", "equivalent")
    assert "Failures" not in state(folds)
    below, above = (folds.estimate.mean - folds.estimate.low, folds.estimate.high - folds.estimate.mean)
    assert above == pytest.approx(below)
    assert draws.estimate.high - draws.estimate.mean != pytest.approx(draws.estimate.mean - draws.estimate.low)
    (stated,) = summarize(in_folds, failure_loss=0.1).verdicts
    assert stated.decision == "inconclusive"


def test_a_small_significant_bias_is_equivalent_and_not_zero(simulate: Simulate) -> None:
    results = simulate(0.003, subsamples=400, num_test=4000, noise=0.005)
    (verdict,) = summarize(results).verdicts
    assert verdict.decision == "equivalent"
    assert "although the bias is not zero" in state(verdict)
    (strict,) = summarize(results, region=0.001).verdicts
    assert strict.decision == "biased up"


def test_biased_tasks_are_counted_at_a_false_discovery_rate(simulate: Simulate) -> None:
    (none,) = summarize(simulate(0.0, tasks=8)).verdicts
    assert "differs from zero in none of 8 tasks" in state(none)
    (all_of_them,) = summarize(simulate(-0.05, tasks=8, subsamples=100)).verdicts
    assert "differs from zero in 8 of 8 tasks (8 down)." in state(all_of_them)
    tasks = np.random.default_rng(0).integers(-9, 10, size=(1000, 50)) / 100
    region = Region(0.005)
    assert sum(*count_biased_tasks([Bias(tasks.tolist(), region)], 0.05)) < 5  # unadjusted, about 50 would be
    equal, changed = [[0.1] * 8] * 3, [[0.1] * 8, [0.0] * 8, [-0.1] * 8]
    assert count_biased_tasks([Bias(changed, region), Bias(equal, region)], 0.05) == [(1, 1), (3, 0)]
    few = [[0.1] * 2, [-0.1] * 3, [0.1] * 5]
    assert count_biased_tasks([Bias(few, region)], 0.05) == [(0, 0)], "no test of five subsamples has p <= 0.05"


def test_one_subsample_is_inconclusive_without_interval(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.2, subsamples=1))
    (verdict,) = analysis.verdicts
    assert verdict.decision == "inconclusive"
    assert not verdict.estimate.has_interval
    assert "draw more subsamples" in state(verdict)
    assert analysis.figures == ()


@pytest.mark.parametrize("count", [2, 5])
def test_no_verdict_without_a_test_that_could_support_it(count: int) -> None:
    for value in (0.02, 0.0, 0.0001):
        verdict = judge([[value] * count], step=0.0001)
        assert verdict.decision == "inconclusive"
        assert verdict.estimate.low <= 0 <= verdict.estimate.high
        assert verdict.estimate.low < verdict.estimate.high
        reason = f"{count} trials cannot support a verdict at this level" if value else "too few to exclude a bias"
        assert reason in state(verdict)
        assert "draw at least 20 more subsamples per task" in state(verdict) or not value
        assert ("so the interval is extended to 0" in state(verdict)) == (verdict.estimate.low == 0)


def test_sign_flips_can_stand_against_a_bias() -> None:
    """Six differences are zero: flipping the signs of the others leaves p at 0.125, although t excludes zero."""
    tasks = [[0.0] * 6 + [0.01, 0.011, 0.012, 0.0105]]
    verdict = judge(tasks, step=0.0001, region=0.0001)
    assert verdict.decision == "inconclusive"
    assert verdict.estimate.low == 0
    assert "does not exclude it (p = 0.125)" in state(verdict)


def test_equal_answers_bound_what_was_not_seen() -> None:
    """Of M equal trials, up to about 3 / M of further ones may fail (rule of three), and lose all of their score."""
    verdict = judge([[0.0] * 50] * 4, step=1 / 200)
    assert verdict.decision == "inconclusive"
    assert (verdict.estimate.low, verdict.estimate.high) == pytest.approx((-3 / 200, 3 / 200), rel=0.01)
    assert "up to 1.5% of trials may have one (95% interval)" in state(verdict)
    equal = judge([[0.0] * 200] * 4, step=1 / 200)
    assert equal.decision == "equivalent"
    assert (equal.family.level, equal.estimate.level) == pytest.approx((0.95, 0.95)), "a bound is one-sided"


def test_verdicts_of_a_family_are_adjusted(simulate: Simulate) -> None:
    """One method of ten is biased. Its interval has the level of one rejection: 1 - 0.05 / 10."""
    biases = dict.fromkeys(map(str, range(10)), 0.0) | {"3": 0.01}
    frames = [
        simulate(bias, method=name, seed=number, num_test=1000, subsamples=20)
        for number, (name, bias) in enumerate(biases.items())
    ]
    results = pd.concat(frames, ignore_index=True)
    together, apart = (summarize(results, family=choice, region=0.001) for choice in ("all", "none"))
    for adjusted, alone in zip(together.verdicts, apart.verdicts, strict=True):
        assert (adjusted.family.size, alone.family.size) == (10, 1)
        assert (adjusted.family.unadjusted, alone.family.unadjusted) == (alone.decision, None)
        assert (adjusted.estimate.level, alone.estimate.level) == pytest.approx((1 - 0.04 / 10, 0.96))
    biased = [verdict.decision for verdict in together.verdicts if verdict.decision != "inconclusive"]
    assert biased == ["biased up"]
    (alone,) = summarize(frames[3], level=1 - 0.05 / 10, region=0.001).verdicts
    assert together.verdicts[3].estimate.limits == pytest.approx(alone.estimate.limits)
    (rank,) = find_rows(together, "Leaderboard")[:1]
    assert "verdict" in rank and "unadjusted verdict" not in rank
    by_method = summarize(results, family="method", region=0.001).verdicts
    assert [verdict.estimate.low for verdict in by_method] == [verdict.estimate.low for verdict in apart.verdicts]


def test_a_family_changes_its_intervals_with_its_verdicts() -> None:
    """Intervals of biased and of equivalent verdicts have levels of their own, and agree with the verdicts."""
    rng = np.random.default_rng(1)
    means = [0.0] * 12 + [0.02] * 6 + [0.003, 0.005]
    family = [Bias(rng.normal(mean, 0.016, size=(5, 20)).tolist(), Region(0.005)) for mean in means]
    judged = [verdict for verdict, _ in judge_family(family, 0.95)]
    assert {verdict.decision for verdict in judged} == {"equivalent", "biased up", "inconclusive"}
    for verdict in judged:
        assert decide(verdict.estimate.low, verdict.estimate.high, 0.005) == verdict.decision
        assert verdict.decision != "inconclusive" or min(-verdict.estimate.low, verdict.estimate.high) < 0.005
        sizes = {
            "equivalent": "",
            "biased up": "beyond" if verdict.estimate.low > 0.005 else "open",
            "inconclusive": "not above" if verdict.estimate.high < 0.005 else "not below",
        }
        assert verdict.size == sizes[verdict.decision]


def test_the_interval_of_an_equivalent_bias_has_the_level_of_two_one_sided_tests() -> None:
    rng = np.random.default_rng(2)
    family = [Bias(rng.normal(mean, 0.01, size=(5, 40)).tolist(), Region(0.005)) for mean in (0.0, 0.0, 0.02)]
    (first, conclusion), _, (biased, other) = judge_family(family, 0.95)
    assert (first.decision, biased.decision) == ("equivalent", "biased up")
    assert (first.family.level, biased.family.level) == (0.9, 0.95)
    assert (first.estimate.level, biased.estimate.level) == pytest.approx((1 - 2 * conclusion.alpha, 1 - other.alpha))
    assert "(90% interval, adjusted for 3 methods: " in state(first)
    sized = replace(first, parts=(("method", "lsa"), ("num_train", 5)))
    for verdict, noun in ((first, "methods"), (sized, "configurations")):
        shown = explain_decisions([verdict, biased])
        assert shown.startswith(f"95% intervals, 90% where equivalent. Intervals of biases are adjusted for 3 {noun}")
    assert explain_decisions([first]).startswith("90% intervals. ")
    with pytest.raises(PeekbenchError, match="level: Input should be greater than 0.5: 0.5"):  # twice 1 - 0.5 is all
        summarize(pd.DataFrame(), level=0.5)


def test_a_family_does_not_make_a_biased_member_equivalent() -> None:
    """The last interval is inside the region at the level of ten rejections, but not at that of one."""
    pattern = np.tile([-0.02, 0.02], 50)
    family = [Bias([(pattern + mean).tolist()], Region(0.01)) for mean in [0.05] * 9 + [0.006]]
    *_, (verdict, conclusion) = judge_family(family, 0.95)
    assert (verdict.decision, verdict.family.unadjusted) == ("biased up", "equivalent")
    assert conclusion.alpha == pytest.approx(0.05 / 10)
    assert 0 < verdict.estimate.low < 0.01 < verdict.estimate.high


@pytest.mark.parametrize(
    ("score", "sign", "region", "unit"),
    [("macro_f1", 1, 0.005, "difference"), ("log_loss", -1, 0.01, "change"), ("brier", -1, 0.005, "change")],
)
def test_verdicts_on_other_scores(score: str, sign: int, region: float, unit: Unit, simulate: Simulate) -> None:
    results = simulate(0.0, subsamples=20)
    is_test = results["arm"] == "test"
    noise = np.random.default_rng(0).normal(0, 0.005, len(results))
    results = results.assign(**{score: 0.5 + noise + 0.03 * is_test})
    analysis = summarize(results, score=score)
    (verdict,) = analysis.verdicts
    assert verdict.decision == ("biased up" if sign > 0 else "biased down")
    assert verdict.estimate.mean == pytest.approx(sign * 0.03, abs=0.002)
    assert (verdict.region, verdict.unit) == (region, unit)
    title = {"macro_f1": "macro-F1", "log_loss": "log-likelihood", "brier": "negative Brier score"}[score]
    assert f"the {title} by {format_size(abs(verdict.estimate.mean), unit)}" in state(verdict)
    assert analysis.tables[0].title == f"Leaderboard, by {title} of extra"
    scores = results.loc[results["arm"] == "extra", score]
    assert isinstance(verdict.evidence, TrialEvidence)
    assert verdict.evidence.extra == pytest.approx(sign * scores.mean())
    results.loc[3, score] = None
    with pytest.raises(PeekbenchError, match=f"option score: {score} is missing in 1 of 300 rows.*: score"):
        summarize(results, score=score)


def test_disagreement_between_verdict_and_tests_over_tasks_is_in_the_table(simulate: Simulate) -> None:
    bias = {"task0": 0.10, "task1": 0.0, "task2": 0.0, "task3": 0.0, "task4": 0.0}
    (row,) = find_rows(summarize(simulate(bias, subsamples=100, num_test=2000)), OTHER_TASKS)
    assert (row["verdict on these tasks"], row["bias in other tasks?"]) == ("biased up", "not established")
    assert row["p, paired t test"] > 0.05
    assert row["p, sign flips"] > 0.05
    (row,) = find_rows(summarize(simulate(0.03, tasks=8, num_test=2000)), OTHER_TASKS)
    assert row["bias in other tasks?"] == "yes"
    wide = paired_scores(simulate(0.03, tasks=8, num_test=2000))
    assert row["p, paired t test"] == pytest.approx(ttest_1samp(wide.groupby("task")["bias"].mean(), 0).pvalue)
    assert row["p, sign flips"] == pytest.approx(2 / 2**8)


def test_rare_failures_do_not_make_a_bias() -> None:
    """In 29 trials, the bias is near 0.6 points. A failure shows that rare ones may outweigh it."""
    rng = np.random.default_rng(4)
    differences = rng.normal(0.006, 0.008, 29).tolist()
    assert judge([differences], step=1e-4).decision == "biased up"
    skewed = judge([[*differences, -0.05]], step=1e-4)
    assert skewed.decision == "inconclusive"


NOISE = '''
import random

def fit(unlabeled, train):
    """Guess; the guesses depend on the unlabeled texts."""
    seed = len("".join(unlabeled)) if unlabeled is not None else 0
    number = max(train.labels) + 1
    def guess(text):
        weights = [1 + random.Random(f"{seed} {text} {label}").random() / 50 for label in range(number)]
        return [weight / sum(weights) for weight in weights]
    return lambda texts: [guess(text) for text in texts]
'''


@pytest.mark.slow
@pytest.mark.parametrize(("source", "decision"), [(NOISE, "no signal"), (NOISE.replace("{seed} ", ""), "inert")])
def test_methods_that_cannot_show_a_bias_are_not_equivalent(
    source: str, decision: str, make_spec: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("guess.py").write_text(source)
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 30}
    analyses = [{"use": "summary", "options": {"region": 0.19}}]
    store = run(make_spec(design=design, methods=["guess.py:fit"], analyses=analyses)).store
    (verdict,) = report_of_run(store).verdicts
    assert verdict.decision == decision
    assert report_of_comparison([store]).verdicts[0].decision in (decision, "inconclusive")  # another region
    shown = {"inert": "do not depend on the unlabeled texts", "no signal": "at chance"}
    assert shown[decision] in sentences.state_briefly(verdict)


@pytest.mark.parametrize(("num_test", "decision"), [(5, "inconclusive"), (20, "no signal")])
def test_a_few_wrong_answers_do_not_mean_that_a_bias_cannot_be_seen(num_test: int, decision: str) -> None:
    trials = {"task": "a", "subsample": range(6), "num_test": num_test, "num_scored": num_test}
    scores = pd.DataFrame(trials).merge(pd.DataFrame({"arm": ["extra", "test"], "num_correct": 0}), how="cross")
    assert pb.analyze(scores, ["summary"]).verdicts[0].decision == decision


def test_failures_of_other_configurations_are_expected_of_all() -> None:
    """A configuration that happens to lack the failures of the others looks biased by Student's t alone."""
    rng = np.random.default_rng(3)
    failing = [rng.normal(0.005, 0.02, (2, 20)) - 0.1 * (rng.random((2, 20)) < 0.05) for _ in range(19)]
    lucky = rng.normal(0, 0.02, (2, 20))
    lucky += 0.0135 - lucky.mean()
    alone, *_ = Evidence.of_family([Bias(lucky.tolist(), Region(0.005))], 0.05)
    biases = [Bias(tasks.tolist(), Region(0.005)) for tasks in (lucky, *failing)]
    together = Evidence.of_family(biases, 0.05)[0]
    assert together.p_zero > 2 * alone.p_zero


def test_a_stated_loss_of_failures_decides_about_trials_that_miss_them() -> None:
    """Twenty trials can miss failures of 14% of all trials; 400 can miss those of less than 1%."""
    for value, stated in ((0.0, "equivalent"), (0.02, "biased up")):
        for number, loss, decision in ((20, None, stated), (20, 0.3, "inconclusive"), (400, 0.3, stated)):
            trials = [value + 0.0005 * (-1) ** trial for trial in range(number)]
            ((verdict, _),) = judge_family([Bias([trials], Region(0.005, failure_loss=loss))], 0.95)
            assert verdict.decision == decision, (value, number, loss)
            evidence = verdict.evidence
            assert isinstance(evidence, TrialEvidence)
            assert evidence.unseen_share == pytest.approx(1 - 0.05 ** (1 / number))
            if decision == "equivalent":
                edge = max(-verdict.estimate.low, verdict.estimate.high)
                assert evidence.tolerated_loss == pytest.approx((0.005 - edge) / evidence.unseen_share)
                assert "the verdict holds if each costs at most" in state(verdict)
    few = Bias([[0.0001, -0.0001, 0.0002, -0.0002]], Region(0.005))
    ((verdict, _),) = judge_family([few], 0.95)
    assert "do not settle; 4 trials cannot support" in state(verdict) and "Failures" not in state(verdict)
    half = [0.0046 + 0.0005 * (-1) ** trial for trial in range(20)]
    ((verdict, _),) = judge_family([Bias([half], Region(0.005))], 0.95)
    assert verdict.decision == "inconclusive" and verdict.estimate.high < 0.005
    assert "but a verdict must hold for 0.50 points" in state(verdict)


def test_equal_trials_are_told_how_many_more_bound_their_differences() -> None:
    equal = Bias([[0.0] * 20], Region(0.005), step=0.01)
    for number, is_known in ((2, False), (50, True)):
        assert (settle(Bias([[0.0] * number], Region(0.001), step=0.01), 0.05) is not None) == is_known
    settling = settle(equal, 0.05)
    assert settling is not None and settling.advice is not None and settling.advice.probability is None
    ((verdict, _),) = judge_family([equal], 0.95)
    assert "settle this if no further trial has a bias either" in state(verdict)
    later = Bias([[0.0] * (20 + settling.advice.subsamples)], Region(0.005), step=0.01)
    ((verdict, _),) = judge_family([later], 0.95)
    assert verdict.decision == "equivalent"
