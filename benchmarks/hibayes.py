"""Compare the coverage of binomial models like those of HiBayES with that of `calibrated`. Assert nothing.

HiBayES (https://arxiv.org/abs/2505.05602) fits hierarchical binomial models to the numbers of right answers of each
group and task. Its formulas are fitted here by nested Laplace (`peekbench_bayes.slices`), not by its own program, with
the arms as groups and the priors of the presets:

- task effects: right ~ binomial; log-odds = arm + model + (1 | task)
- task and interaction effects: the same + (1 | task:arm)

Right answers are summed over the subsamples of a task, because the formulas have no effect of a subsample or a fit.
Data: the published accuracies at m=100 (FOLDER/few_shot), in which test and extra are swapped at random within each
model, task and subsample, so that there is no bias. `calibrated` is fitted to the same data sets, with one chain of
200 draws each.

    python benchmarks/hibayes.py FOLDER [--repeats 400] [--seed 0]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from calibration import published_arms, swap_arms

from peekbench.records import FloatArray
from peekbench_bayes.arrays import PairedArms
from peekbench_bayes.gaussian import summarize_cells
from peekbench_bayes.options import CountPriors, DifferencePriors, Preset
from peekbench_bayes.slices import draw_averages, fit_count_slices
from peekbench_bayes.summaries import interval_ends

LEVEL = 0.89
BATCH_SIZE = 50
DRAWS = 200


def sum_subsamples(arms: PairedArms, control: FloatArray, treatment: FloatArray) -> PairedArms:
    """Return the right answers of all subsamples of a task together, as the accuracy of one large subsample."""
    assert arms.num_scored is not None
    means = (scores.mean(axis=2, keepdims=True) for scores in (control, treatment))
    control_mean, treatment_mean = means
    return replace(arms, num_scored=arms.num_scored * control.shape[2], control=control_mean, treatment=treatment_mean)


def covers(low: FloatArray, high: FloatArray) -> float:
    """Return the share of intervals that contain zero."""
    return float(((low <= 0) & (high >= 0)).mean())


def main() -> None:
    """Print a row for each test size and set of models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    error = 100 * (LEVEL * (1 - LEVEL) / arguments.repeats) ** 0.5
    print(f"{arguments.repeats} data sets per row; standard error {error:.1f} points at {LEVEL:.0%}.\n")
    print("| configuration | task effects | task and interaction effects | `calibrated` |")
    print("|---|---|---|---|")
    formulas: tuple[Preset, ...] = ("paper", "random_slopes")
    for number, (name, arms) in enumerate(published_arms(arguments.folder)):
        rng = np.random.default_rng([arguments.seed, number])
        control, treatment = swap_arms(arms, arguments.repeats, rng)
        data_sets = [sum_subsamples(arms, *pair) for pair in zip(control, treatment, strict=True)]
        shares = []
        for formula in formulas:
            effects = fit_count_slices(data_sets, formula, CountPriors(), LEVEL)
            shares.append(covers(effects.low, effects.high))
        ends = []
        for start in range(0, arguments.repeats, BATCH_SIZE):
            part = slice(start, start + BATCH_SIZE)
            cells = summarize_cells(treatment[part] - control[part])
            ends.append(np.quantile(draw_averages(cells, DifferencePriors(), DRAWS, rng), interval_ends(LEVEL), axis=0))
        shares.append(covers(*np.concatenate(ends, axis=1)))
        print(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares)} |", flush=True)


if __name__ == "__main__":
    main()
