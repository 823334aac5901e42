"""Compare the power that `plan --power` and the analysis `power` state with simulations. Assert nothing.

The first table: for designs with 6 to 60 trials, alone and in a family of five, the bias that a first report of a run
should detect with 80% power, in standard errors, as stated by a t test at the same level, by `plan --power`, and by the
analysis `power` of a store whose measured noise is the true one; and the share of simulated reports whose verdict on
this bias is 'biased'. The last column is the share of reports without a bias that are 'equivalent', where the stated
probability is 80%. Noise is normal; in parentheses are Monte Carlo standard errors.

With a folder, the second table is about designs that are planned for a power of 80% from pilots of 5 tasks and 3
subsamples, which are drawn from the accuracies of arXiv 2410.00179 in it.

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
from simulated_trials import REGION, UNPLANNED, share

from peekbench import Table, load_results
from peekbench.records import DesignPoint, FloatArray, Looks, PlannedDesign
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
from peekbench_summary.power.noise import Noise, Precision
from peekbench_summary.power.simulation import variance_shares

FEW_TRIALS = ((1, 6), (1, 8), (1, 12), (1, 20), (1, 49), (2, 5), (2, 10), (5, 2), (5, 4), (5, 6), (5, 9), (5, 12))
"""Tasks and subsamples of designs with few trials."""
NUM_TEST = 200
ALPHA = 0.05
PILOT_SIZE, PILOT_BIAS = 200, 0.01  # num_test and target bias of the designs planned from pilots


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
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    compare_with_verdicts(arguments.repeats, np.random.default_rng(arguments.seed))
    if arguments.folder is None:
        return
    results = load_results(arguments.folder / "few_shot", independent_tasks=True)
    arms = results[results["num_test"] == PILOT_SIZE].pivot(
        index=["model", "task"], columns=["arm", "subsample"], values="score"
    )
    rng = np.random.default_rng(arguments.seed)
    print("| model | confidence | mean power | 10% of pilots below | share above 0.8 |\n|---|---|---|---|---|")
    for model, scores in arms.groupby(level="model"):
        differences = (scores["test"] - scores["extra"]).to_numpy()
        for confidence in (0.5, 0.8):
            powers = np.array([plan_from_pilot(differences, confidence, rng) for _ in range(arguments.repeats)])
            cells = f"{powers.mean():.3f} | {np.quantile(powers, 0.1):.3f} | {(powers >= 0.8).mean():.3f}"
            print(f"| {model} | {confidence} | {cells} |", flush=True)


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
