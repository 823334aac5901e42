"""Measure letters and boosts of methods that are all tested on the same texts. Print a table, assert nothing.

All methods are equally good on the population of texts, but not on the texts of a test set. A text has a difficulty
that methods share, and one of its own for each method; each subsample (a division into folds, or a training seed) adds
noise to all answers of a fit and to each of them. Wrong letters: the share of test sets in which methods have different
letters. Coverage: that of the 95% interval of the boost. Both are compared with those of the subsamples alone, which
hold only for the given texts. Power: the share of test sets in which the first method, better by three points, has
another letter than the second one.

Another table is about the inflation of the best of several equally good methods, chosen by half of the texts in one
subsample: the mean over test sets, its true value, the estimate of the subsamples alone, which choose by all texts, and
the coverage of the 95% interval. Standard errors of shares are in parentheses.

    python benchmarks/statistics/same_texts.py [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from simulated_trials import ALPHA, share

from peekbench.records import Answers, FloatArray
from peekbench.results import Configuration
from peekbench_summary.estimates import estimate_effect
from peekbench_summary.leaderboard import find_differences
from peekbench_summary.selection import ChoicesByTexts, Comparison

ACCURACY, GAIN, BOOST = 0.8, 0.03, 0.05
OF_SUBSAMPLE = 0.03
"""Standard deviation of the quality of a fit; difficulties have a standard deviation of one."""
DESIGNS = tuple(itertools.product((2, 5), (200, 1000), (6, 10, 20), (0.2, 0.6)))
"""Methods, texts, subsamples, and standard deviation of the noise of single answers."""
SELECTIONS = ((5, 200, 10, 0.6), (26, 1000, 5, 0.6))
"""The same for the selection of the best method."""
SHARED = 0.7
"""Share of the variance of difficulties that methods have in common."""
TASK, LEVEL = "task", 1 - ALPHA


@dataclass(frozen=True)
class Simulated:
    """Answers of methods to the same texts in all subsamples: `peekbench.records.Predictions`."""

    scores: Sequence[dict[str, FloatArray]]
    """Scores of each method by arm: (n_subsamples, n_texts)."""

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers:
        """Return the answers of the method with this number."""
        scores = self.scores[int(method)]
        subsamples, texts = scores["extra"].shape
        rows = np.tile(np.arange(texts), (subsamples, 1))
        return Answers(np.arange(subsamples), rows, {arm: scores[arm] for arm in arms})

    def configurations(self) -> list[Configuration]:
        """Return the methods as configurations that know the answers to their texts."""
        found = []
        for number, scores in enumerate(self.scores):
            name = str(number)
            averages = {arm: {TASK: values.mean(axis=1).tolist()} for arm, values in scores.items()}
            averages["boost"] = {TASK: (scores["extra"] - scores["base"]).mean(axis=1).tolist()}
            subsamples, texts = scores["extra"].shape
            key = (name, "", None, texts)
            found.append(
                Configuration(name, (name,), averages, {TASK: range(subsamples)}, key, step=1 / texts, fixed_texts=self)
            )
        return found


def simulate(gains: Sequence[float], texts: int, subsamples: int, noise: float, rng: np.random.Generator) -> Simulated:
    """Draw texts and answers; `gains` are what each method is better by than `ACCURACY`."""
    spread = np.sqrt(1 + OF_SUBSAMPLE**2 + noise**2)
    common = rng.normal(0, np.sqrt(SHARED), texts)
    methods = []
    for gain in gains:
        difficulty = common + rng.normal(0, np.sqrt(1 - SHARED), texts)
        of_fits = difficulty + rng.normal(0, OF_SUBSAMPLE, (subsamples, 1))
        levels = {"extra": ACCURACY + gain, "base": ACCURACY + gain - BOOST}
        methods.append(
            {
                arm: (of_fits + rng.normal(0, noise, of_fits.shape) < spread * ndtri(level)).astype(float)
                for arm, level in levels.items()
            }
        )
    return Simulated(methods)


def are_told_apart(configurations: Sequence[Configuration]) -> bool:
    """Return whether any two methods have no letter in common."""
    return bool(find_differences(configurations, LEVEL).pairs)


def measure_selection(repeats: int, seed: int) -> None:
    """Print a row for each design of the selection of the best method."""
    print("| methods | texts | subsamples | noise | inflation | true | subsamples alone | coverage |")
    print("|---|---|---|---|---|---|---|---|")
    for number, (methods, texts, subsamples, noise) in enumerate(SELECTIONS):
        rng = np.random.default_rng([seed, 1000 + number])
        numbers, units = list(range(subsamples)), np.arange(texts)
        found, alone, true = [], [], []
        for _ in range(repeats):
            drawn = simulate([0.0] * methods, texts, subsamples, noise, rng)
            scores = np.stack([of_method["extra"] for of_method in drawn.scores], axis=1)
            choices = ChoicesByTexts.of([(of_one, units) for of_one in scores], numbers, are_same=True)
            comparison = Comparison((), methods, {TASK: choices.samples}, texts // 2, "", {}, {TASK: choices.left_out})
            found.append(comparison.estimate(methods, LEVEL))
            true.append(scores[:, :, : texts // 2].mean(axis=2).max(axis=1).mean() - ACCURACY)
            means = scores.mean(axis=2)
            others = (means.sum(axis=0) - means) / (subsamples - 1)
            best = means.argmax(axis=1)
            alone.append((means - others)[numbers, best].mean())
        truth = float(np.mean(true))
        covered = share([estimate.low <= truth <= estimate.high for estimate in found])
        values = (np.mean([estimate.mean for estimate in found]), truth, np.mean(alone))
        cells = " | ".join(f"{100 * value:+.2f}" for value in values)
        print(f"| {methods} | {texts} | {subsamples} | {noise:g} | {cells} | {covered} |", flush=True)


def main() -> None:
    """Print a row for each design."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    measure_selection(arguments.repeats // 3, arguments.seed)
    print("| methods | texts | subsamples | noise | wrong letters | these texts | coverage | these texts | power |")
    print("|---|---|---|---|---|---|---|---|---|")
    for number, (methods, texts, subsamples, noise) in enumerate(DESIGNS):
        rng = np.random.default_rng([arguments.seed, number])
        flags: list[list[bool]] = [[], [], [], [], []]
        for _ in range(arguments.repeats):
            equal = simulate([0.0] * methods, texts, subsamples, noise, rng).configurations()
            given = [replace(configuration, fixed_texts=None) for configuration in equal]
            better = simulate([GAIN, 0.0], texts, subsamples, noise, rng).configurations()
            found = [are_told_apart(equal), are_told_apart(given)]
            for configuration in (equal[0], given[0]):
                interval = estimate_effect(configuration, "boost", LEVEL)
                found.append(interval.low <= BOOST <= interval.high)
            found.append(are_told_apart(better))
            for row, flag in zip(flags, found, strict=True):
                row.append(flag)
        cells = " | ".join(share(row) for row in flags)
        print(f"| {methods} | {texts} | {subsamples} | {noise:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
