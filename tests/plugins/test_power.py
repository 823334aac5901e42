"""Power: the bias that a design detects, and the subsamples after which verdicts are settled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from analysis_tables import run_analysis, simulate_brier, table_rows
from scipy.stats import t

from peekbench.errors import SpecError
from peekbench.records import Analysis, DesignPoint, Looks, PlannedDesign
from peekbench.results import default_region, load_results, tidy
from peekbench_stats import level_at, levels_at
from peekbench_summary.biased_rule import ONE_LOOK, Bias, Evidence, Levels, LookLevels, Region, conclude
from peekbench_summary.forecast import TYPICAL, Noise, Walk, forecast, minimum_detectable
from peekbench_summary.power import Power
from peekbench_testing import check_entry

POINTS = (DesignPoint(50, 100, 100, tuple("abcde")),)
FIFTHS = Looks(True, "group_sequential", (0.2, 0.4, 0.6, 0.8, 1.0), 100)
foresee: Callable[..., Analysis] = partial(forecast, options=Power())


def make_design(looks: Looks = FIFTHS, **parts: Any) -> PlannedDesign:
    return PlannedDesign(("mine",), POINTS, looks, stops_at=("biased", "equivalent"), **parts)


def simulate_table(spread: float, bias: float = 0.0, *, tasks: int = 5, subsamples: int = 20) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = tasks * subsamples
    extra = 0.7 + rng.normal(0, 0.02, size)
    frame = pd.DataFrame({"task": np.repeat([f"task{task}" for task in range(tasks)], subsamples), "extra": extra})
    frame = frame.assign(test=extra + rng.normal(bias, spread, size), num_train=50, num_test=100_000, method="mine")
    return tidy(frame.round(5), "simulated", independent_tasks=True)


def test_detectable_effects_are_detected_with_the_stated_power() -> None:
    detected = minimum_detectable(1 / np.sqrt(12), 11, 0.05)
    assert detected is not None
    samples = np.random.default_rng(1).normal(detected, 1, size=(20_000, 12))
    statistic = samples.mean(axis=1) / samples.std(axis=1, ddof=1) * np.sqrt(12)
    assert (np.abs(statistic) > t.ppf(0.975, 11)).mean() == pytest.approx(0.8, abs=0.01)
    assert minimum_detectable(1, 0, 0.05) is None


@pytest.mark.simulation
@pytest.mark.parametrize("bias", [0.0, 0.0025, 0.02])
def test_expectations_are_those_of_the_rule_for_verdicts(bias: float) -> None:
    """200 runs of two tasks look at up to 100 subsamples five times."""
    looks, levels = FIFTHS, levels_at(FIFTHS, 0.05)
    walk, noise = Walk((20, 40, 60, 80, 100), levels, 0.005), Noise("", 0.015**2 / 2, 2, 2)
    rng, sizes, settled = np.random.default_rng(3), [], []
    for trials in rng.normal(bias, 0.015, size=(200, 2, 100)):
        for number, size in enumerate(walk.sizes, start=1):
            so_far = Looks(True, looks.method, looks.fractions[:number], 100)
            of_look = LookLevels(level_at(so_far), ONE_LOOK.later)
            (evidence,) = Evidence.of_family([Bias(trials[:, :size].tolist(), Region(0.005), levels=of_look)], 0.05)
            decision = conclude(evidence, Levels(0.05, 0.05)).decision
            if decision != "inconclusive" or size == 100:
                break
        sizes.append(size)
        settled.append(decision != "inconclusive")
    expected = walk.expect(noise, bias)
    assert expected.settled == pytest.approx(np.mean(settled), abs=0.08)
    assert expected.subsamples == pytest.approx(np.mean(sizes), abs=5)


def test_forecast_before_anything_is_run() -> None:
    (table,) = foresee(make_design()).tables
    unstable, stable = table_rows(table)
    assert (unstable["noise of"], stable["noise of"]) == ("BERT", "GPT-2")
    assert unstable["detectable"] > 2 * stable["detectable"]
    assert unstable["zero: settled"] < 0.1 < 0.5 < stable["zero: settled"]
    assert stable["zero: mean"] < stable["half: mean"] <= 100
    assert "With num_train 50, num_test 100 and num_subsamples 100" in table.note
    assert "The noise was not measured" in table.note
    at_once = table_rows(foresee(make_design(Looks(True))).tables[0])
    assert [row["zero: mean"] for row in at_once] == [100, 100]
    assert at_once[0]["detectable"] < unstable["detectable"], "five looks widen the last interval"


def test_forecast_of_a_run_has_the_noise_and_the_bias_of_its_trials() -> None:
    results = simulate_table(0.03, bias=0.02)
    points = (DesignPoint(50, 100_000, 100, tuple("abcde")),)
    (table,) = foresee(replace(make_design(results=results), points=points)).tables
    (row,) = table_rows(table)
    (verdict,) = run_analysis("summary", results).verdicts
    error = verdict.estimate.standard_error / np.sqrt(5)
    assert row["detectable"] == pytest.approx(2.99 * error, rel=0.02)
    assert row["now: settled"] > 0.99 and row["now: mean"] < 50
    (now,) = table_rows(run_analysis("power", results).tables[0])
    assert now["detectable"] == pytest.approx(2.9 * verdict.estimate.standard_error, rel=0.02)


def test_forecast_of_folds_is_that_of_the_answers_of_a_pilot() -> None:
    points, key = (DesignPoint(500, 800, 10, ("news",)),), ("mine", 500, 800)
    design = PlannedDesign(("mine", "other"), points, variances={key: 10 * 0.0013**2, ("null", 500, 800): 0.0})
    (row,) = table_rows(forecast(design, options=Power(level=0.9)).tables[0])
    expected = minimum_detectable(0.0013, 9, 0.1 * 0.8 / 2)  # of two methods, at a first look
    assert row["detectable"] == pytest.approx(expected)


@pytest.mark.parametrize("method", ["group_sequential", "confidence_sequence"])
def test_forecast_of_planned_looks(method: Any) -> None:
    looks = Looks(True, method, tuple(number / 20 for number in range(1, 21)), maximum=100)
    levels = levels_at(looks, 0.05)
    unstable = Noise("BERT", (TYPICAL["BERT"][0] + TYPICAL["BERT"][1] / 100) / 5, 3, 5)
    walk = Walk([max(2, 5 * number) for number in range(1, 21)], levels, 0.005)
    detectable = minimum_detectable(np.sqrt(unstable.variance / 100), 297, 0.05)
    assert detectable is not None
    # benchmarks/statistics/sequential.py finds 43 to 44% in real data, with the same levels.
    expected = pytest.approx(44, abs=2) if method == "group_sequential" else pytest.approx(38, abs=2)
    assert walk.expect(unstable, 2 * detectable).subsamples == expected
    assert walk.expect(unstable, 0.0).subsamples == pytest.approx(100, abs=2)


def test_designs_with_too_few_trials_for_any_verdict_detect_nothing() -> None:
    walk, noise = Walk((5,), np.array([0.04]), 1.0), Noise("made", 0.0004, 1, 1)
    assert walk.detectable(noise) is None
    assert walk.expect(noise, 1.0).settled == 0


def test_unknown_noise_is_a_warning() -> None:
    for design in (PlannedDesign(("mine",), ()), PlannedDesign((), POINTS)):
        assert foresee(design).warnings
    assert forecast(make_design(), options=Power(score="brier")).warnings
    assert "draw more subsamples" in run_analysis("power", simulate_table(0.1, subsamples=1)).warnings[0]


@pytest.mark.slow
def test_typical_noise_is_that_of_the_published_accuracies(published: Path) -> None:
    """The variance of the mean bias over 25 tasks, which `summary` estimates with 100 subsamples."""
    for model, (training, sampling) in zip(("bert", "gpt2"), TYPICAL.values(), strict=True):
        for num_test in (50, 500):
            folder = published / "few_shot" / "m100" / f"n{num_test}" / model
            (verdict,) = run_analysis("summary", load_results(folder, independent_tasks=True)).verdicts
            number = verdict.evidence.num_trials  # type: ignore[union-attr]
            expected = np.sqrt((training + sampling / num_test) / number)
            assert verdict.estimate.standard_error == pytest.approx(expected, rel=0.25)


@pytest.mark.slow
def test_contract() -> None:
    assert [outcome for outcome in check_entry("power") if not outcome.passed] == []


def test_other_scores_have_their_own_noise_and_region() -> None:
    results = simulate_brier(0.5)
    accuracy, brier = (run_analysis("power", results, score=score).tables[0] for score in ("score", "brier"))
    assert table_rows(brier)[0]["detectable"] == pytest.approx(table_rows(accuracy)[0]["detectable"] / 4, rel=0.1)
    assert "a region of ±0.5 points" in accuracy.note
    assert f"a region of ±{default_region('brier'):g}" in brier.note
    with pytest.raises(SpecError, match="option score: log_loss is missing in .* rows"):
        run_analysis("power", results, score="log_loss")
