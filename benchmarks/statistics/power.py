"""Compare the power that `plan --power` and the analysis `power` state with simulations. Assert nothing.

The first table: for designs with 6 to 60 trials, alone and in a family of five, the bias that a first report of a run
should detect with 80% power, in standard errors, as stated by a t test at the same level, by `plan --power`, and by the
analysis `power` of a store whose measured noise is the true one; and the share of simulated reports whose verdict on
this bias is 'biased'. The last column is the share of reports without a bias that are 'equivalent', where the stated
probability is 80%. Noise is normal; in parentheses are Monte Carlo standard errors.

With a folder, compare with the accuracies of arXiv 2410.00179 too. In every cell (num_test, model, and the average of
both models), swap the arms test and extra at random within each trial, so that there is no bias, and plant a bias in
test. Print the predicted power, and how often a t test over these tasks and sign flips of all trials detected the bias.

    python benchmarks/statistics/power.py [ACCURACIES] [--repeats 1000]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm, t
from simulated_trials import REGION, UNPLANNED, share

from peekbench import Table, load_results
from peekbench.records import DesignPoint, FloatArray, IntArray, Looks, PlannedDesign
from peekbench.results import tidy
from peekbench_stats import level_after, level_at, levels_at, welch_satterthwaite
from peekbench_summary.biased_rule import Bias, Evidence, Levels, LookLevels, Region, conclude
from peekbench_summary.power import Power
from peekbench_summary.power.analysis import analyze_power
from peekbench_summary.power.detection import (
    Criterion,
    compute_power,
    equivalence_probability,
    minimum_detectable,
    pilot_inflation,
    plan_subsamples,
)
from peekbench_summary.power.forecast import TYPICAL, forecast
from peekbench_summary.power.noise import ALL_MODELS, Noise, Precision, measure_noise, pair_trials
from peekbench_summary.power.simulation import variance_shares

FEW_TRIALS = (
    (1, 6),
    (1, 8),
    (1, 12),
    (1, 20),
    (1, 30),
    (1, 49),
    (2, 5),
    (2, 10),
    (5, 2),
    (5, 4),
    (5, 6),
    (5, 9),
    (5, 12),
)
"""Tasks and subsamples of designs with few trials."""
NUM_TEST = 200
BIASES = (0.0, 0.005, 0.01, 0.02)
ALPHA = 0.05
PILOT_SIZE, PILOT_BIAS = 200, 0.01  # num_test and target bias of the designs planned from pilots


def arm_counts(results: pd.DataFrame, num_test: int, model: str, arm: str) -> IntArray:
    """Return numbers of correct answers, shape (tasks, subsamples)."""
    selected = (results["num_test"] == num_test) & (results["model"] == model) & (results["arm"] == arm)
    wide = results[selected].pivot(index="task", columns="subsample", values="num_correct")
    return wide.to_numpy(dtype="int64")


def plant_bias(counts: IntArray, num_test: int, bias: float, rng: np.random.Generator) -> FloatArray:
    """Swap arms at random, add a bias rounded at random to whole texts, and return differences of accuracies.

    Parameters
    ----------
    counts
        Numbers of correct answers of extra and test, shape (2, ...).
    num_test
        Number of test texts of a subsample.
    bias
        Planted bias, a fraction.
    rng
        Source of randomness.

    Returns
    -------
    array of shape (...)
    """
    swap = rng.random(counts.shape[1:]) < 0.5
    extra, test = np.where(swap, counts[::-1], counts)
    more = np.floor(bias * num_test + rng.random(test.shape))
    differences: FloatArray = (np.clip(test + more, 0, num_test) - extra) / num_test
    return differences


def reject_zero(differences: FloatArray) -> tuple[bool, bool]:
    """Test for a zero mean by Welch's t test over these tasks, and by sign flips of all trials.

    Parameters
    ----------
    differences
        Paired differences, shape (tasks, subsamples).
    """
    num_tasks, num_subsamples = differences.shape
    squared_errors = differences.var(axis=1, ddof=1) / num_subsamples
    degrees = welch_satterthwaite(squared_errors, np.full(num_tasks, num_subsamples - 1.0))
    statistic = differences.mean() / np.sqrt(squared_errors.sum()) * num_tasks
    flips = differences.sum() / np.sqrt((differences**2).sum())  # nearly normal under random signs of many trials
    return abs(statistic) > t.ppf(1 - ALPHA / 2, degrees), abs(flips) > norm.ppf(1 - ALPHA / 2)


def compare_with_verdicts(repeats: int, rng: np.random.Generator) -> None:
    """Print a row for each design with few trials and each size of family."""
    print("| tasks x subsamples | configurations | t test: bias | found | plan: bias | found | power: bias | found |"
          " equivalent |\n|" + "---|" * 9)  # fmt: skip
    for num_tasks, subsamples in FEW_TRIALS:
        for family in (1, 5):
            noise = replace(TYPICAL[1], label="typical")
            precision = noise.precision(num_tasks, subsamples, NUM_TEST)
            criterion = Criterion(0.8, float(levels_at(Looks(), ALPHA / family)[0]))
            stated = [
                minimum_detectable(precision.error, precision.degrees, criterion),
                state_by_plan(num_tasks, subsamples, family),
                state_by_analysis(precision, family, rng),
            ]
            cells = [f"{num_tasks} x {subsamples}", f"{family}"]
            for bias in stated:
                if bias is None:
                    cells += ["none", "-"]
                    continue
                decisions = [report(bias, precision, family, REGION, rng) for _ in range(repeats)]
                cells += [f"{bias / precision.error:.2f}", share([each == "biased up" for each in decisions])]
            region = smallest_region(precision, criterion)
            if region is None:
                cells.append("-")
            else:
                decisions = [report(0.0, precision, family, Region(region), rng) for _ in range(repeats)]
                cells.append(share([each == "equivalent" for each in decisions]))
            print(f"| {' | '.join(cells)} |", flush=True)
    print()


def state_by_plan(num_tasks: int, subsamples: int, family: int) -> float | None:
    """Return the bias that `plan --power` states, with the noise of GPT-2."""
    tasks = tuple(f"task{number}" for number in range(num_tasks))
    methods = tuple(f"method{number}" for number in range(family))
    design = PlannedDesign(methods, (DesignPoint(50, NUM_TEST, subsamples, tasks),))
    return read_bias(forecast(design, options=Power()).tables[0])


def state_by_analysis(precision: Precision, family: int, rng: np.random.Generator) -> float | None:
    """Return the bias that the analysis `power` states for a store with exactly this noise."""
    trials = draw_trials(precision, rng)
    spreads = spread_of_tasks(precision)
    trials = (trials - trials.mean(axis=1, keepdims=True)) / trials.std(axis=1, ddof=1, keepdims=True) * spreads
    cells = [
        {"method": f"method{method}", "task": f"task{task}", "subsample": number, "extra": 0.5, "test": 0.5 + value,
         "looks": f"at {trials.size}"}
        for method in range(family) for (task, number), value in np.ndenumerate(trials)
    ]  # fmt: skip
    analysis = analyze_power(tidy(pd.DataFrame(cells), "simulated"), options=Power(subsamples=(100,)))
    return read_bias(analysis.tables[1])


def read_bias(table: Table) -> float | None:
    """Return the minimum detectable bias in the last row of a table."""
    bias: Any = table.rows[-1][[column.name for column in table.columns].index("these tasks")]
    return None if bias is None else float(bias)


def spread_of_tasks(precision: Precision) -> FloatArray:
    """Return the standard deviations of the tasks, shape (n_tasks, 1); one task is noisier than the others."""
    shares = variance_shares(precision.num_tasks, precision.evenness)[:, None]
    spreads: FloatArray = np.sqrt(shares * precision.subsamples) * precision.num_tasks * precision.error
    return spreads


def draw_trials(precision: Precision, rng: np.random.Generator) -> FloatArray:
    """Draw the differences of one method without a bias, shape (n_tasks, n_subsamples)."""
    size = precision.num_tasks, round(precision.subsamples)
    trials: FloatArray = rng.normal(size=size) * spread_of_tasks(precision)
    return trials


def report(bias: float, precision: Precision, family: int, region: Region, rng: np.random.Generator) -> str:
    """Return the verdict of a first report on the first method of a family whose others get another verdict."""
    open_bias = 0.0 if bias else 2 * region.half_width
    biases = [bias, *[open_bias] * (family - 1)]
    looks = LookLevels(level_at(UNPLANNED), lambda ratio: level_after(UNPLANNED, ratio, 1))
    tasks = [(draw_trials(precision, rng) + each).tolist() for each in biases]
    evidence = Evidence.of_family([Bias(each, region, levels=looks) for each in tasks], ALPHA)
    return conclude(evidence[0], Levels.of_family(evidence, ALPHA)).decision


def smallest_region(precision: Precision, criterion: Criterion) -> float | None:
    """Return the half-width of the region for which 'equivalent' is stated to have 80% power; None if there is none."""

    def excess(ratio: float) -> float:
        region = ratio * precision.error
        return equivalence_probability(precision, replace(criterion, region=region)) - criterion.power

    return brentq(excess, 0.1, 100, xtol=0.01) * precision.error if excess(100) > 0 else None


def main() -> None:
    """Print a line for each cell and bias."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    compare_with_verdicts(arguments.repeats, np.random.default_rng(arguments.seed))
    if arguments.folder is None:
        return
    results = load_results(arguments.folder / "few_shot", independent_tasks=True)
    cells = {
        (method.label, size.num_test): size
        for method in measure_noise(pair_trials(results), is_accuracy=True)
        for size in method.measurements
    }
    rng = np.random.default_rng(arguments.seed)
    largest = 0.0
    print(f"{'cell':>24} {'bias':>6} {'predicted':>9} {'t test':>7} {'flips':>7}")
    for (label, num_test), size in cells.items():
        assert num_test is not None
        models = [name for name in results["model"].unique() if label in (name, ALL_MODELS)]
        counts = np.stack(
            [[arm_counts(results, num_test, model, arm) for model in models] for arm in ("extra", "test")]
        )
        for bias in BIASES:
            rejections = [
                reject_zero(plant_bias(counts, num_test, bias, rng).mean(axis=0)) for _ in range(arguments.repeats)
            ]
            by_t, by_flips = np.mean(rejections, axis=0)
            predicted = compute_power(bias, np.sqrt(size.squared_error), size.degrees, ALPHA) if bias else ALPHA
            largest = max(largest, abs(by_t - predicted))
            name = f"{label}, n={num_test}"
            print(f"{name:>24} {bias:6.3f} {predicted:9.3f} {by_t:7.3f} {by_flips:7.3f}", flush=True)
    print(f"largest difference between the t test and the prediction: {largest:.3f}\n")
    print("power of designs planned for 0.8 from pilots of 5 tasks and 3 subsamples")
    print(f"{'cell':>24} {'confidence':>10} {'mean':>6} {'10% of pilots below':>20} {'share above 0.8':>16}")
    for model in results["model"].unique():
        counts = np.stack([arm_counts(results, PILOT_SIZE, model, arm) for arm in ("extra", "test")])
        differences = (counts[1] - counts[0]) / PILOT_SIZE
        for confidence in (0.5, 0.8):
            powers = [plan_from_pilot(differences, confidence, rng) for _ in range(arguments.repeats)]
            quantile, share = np.quantile(powers, 0.1), np.mean(np.array(powers) >= 0.8)
            print(f"{model:>24} {confidence:10} {np.mean(powers):6.3f} {quantile:20.3f} {share:16.3f}", flush=True)


def plan_from_pilot(differences: FloatArray, confidence: float, rng: np.random.Generator) -> float:
    """Return the power for `PILOT_BIAS` of a design planned from 3 subsamples of 5 tasks, on the same tasks."""
    num_tasks, num_subsamples = differences.shape
    tasks = differences[rng.choice(num_tasks, 5, replace=False)]
    pilot = tasks[np.arange(5)[:, None], rng.integers(0, num_subsamples, size=(5, 3))] * rng.choice([-1, 1], (5, 3))
    variances = pilot.var(axis=1, ddof=1)
    degrees = float(welch_satterthwaite(variances, np.full(5, 2.0)))
    evenness = float(variances.sum() ** 2 / (5 * (variances**2).sum()))
    noise = Noise("pilot", float(variances.mean()), sampling=0.0, between=0.0, evenness=evenness)
    planned = noise.inflated(pilot_inflation(degrees, confidence))
    plan = plan_subsamples(planned, 5, None, PILOT_BIAS, Criterion(power=0.8, alpha=ALPHA))
    assert plan is not None
    squared_errors = (tasks**2).mean(axis=1) / plan.subsamples
    true_degrees = welch_satterthwaite(squared_errors, np.full(5, plan.subsamples - 1.0))
    return compute_power(PILOT_BIAS, float(np.sqrt(squared_errors.sum())) / 5, float(true_degrees), ALPHA)


if __name__ == "__main__":
    main()
