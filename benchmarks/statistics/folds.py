"""Measure how often intervals of a design with folds cover the bias, with known biases. Print a table, assert nothing.

One task whose test texts are divided into folds again and again. Each fit adapts to all folds but one and answers every
text. A text has a difficulty, an effect of its own membership, and a sensitivity to the quality of a fit; all answers
of a fit share its quality, and some fits fail. Two biases are known: the average over these texts, for other divisions
and fits, and the average over other texts of the same kind. The first is compared with Student's t interval of the
divisions, which is that of `summary`, the second with the interval of `summary.texts`.

    python benchmarks/statistics/folds.py [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import itertools
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student_t

from peekbench.records import FloatArray
from peekbench.spec.arms import split
from peekbench_stats import cross_interval, cross_texts

LEVEL = 0.95
DESIGNS = ((200, 10), (1000, 2), (1000, 10), (5000, 10))
"""Test texts and folds."""
DIVISIONS = (4, 5, 10, 20)
EFFECTS = ((0.0, 0.0, 0.0), (0.06, 0.0, 0.05), (0.06, 0.3, 0.0))
"""Mean and standard deviation of the effect of membership, on the scale of the difficulty; share of fits that fail."""
LOSS = 1.0
"""What a text loses in a fit that fails, on the same scale: 38 points of accuracy."""
NOISE, QUALITY = 0.5, 0.2
"""Standard deviations of single answers and of the quality of a fit."""
NUM_TEXTS_OF_TRUTH = 10**6


class Texts(NamedTuple):
    """What is known of each text."""

    difficulty: FloatArray
    membership: FloatArray
    sensitivity: FloatArray
    failures: float
    """Share of fits that fail."""

    @classmethod
    def draw(cls, number: int, mean: float, sd: float, failures: float, rng: np.random.Generator) -> Texts:
        """Draw texts."""
        known = rng.normal(0.5, 1.0, number), rng.normal(mean, sd, number), rng.normal(1.0, 1.0, number)
        return cls(*known, failures)

    def bias(self) -> float:
        """Return the average effect of membership on the accuracy, over divisions and fits."""
        sd = np.sqrt(NOISE**2 + (QUALITY * self.sensitivity) ** 2)
        bias = 0.0
        for share, loss in ((1 - self.failures, 0.0), (self.failures, LOSS)):
            base = self.difficulty - loss
            bias += share * float((norm.cdf((base + self.membership) / sd) - norm.cdf(base / sd)).mean())
        return bias

    def differences(self, folds: int, divisions: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return own - other by division, as the accuracy of all texts, and of each text: (n_divisions, n_texts)."""
        number = len(self.difficulty)
        found = np.empty((divisions, number))
        for division in range(divisions):
            left_out = np.empty((folds, number), dtype=bool)
            order = rng.permutation(number)
            for fold, (start, stop) in enumerate(split(number, folds)):
                left_out[fold] = False
                left_out[fold, order[start:stop]] = True
            latent = NOISE * rng.standard_normal((folds, number), dtype=np.float32)
            latent += self.difficulty - LOSS * (rng.random((folds, 1)) < self.failures)
            latent += rng.normal(0, QUALITY, (folds, 1)) * self.sensitivity
            answers = latent + self.membership * ~left_out > 0
            own = np.where(left_out, 0, answers).sum(axis=0) / (folds - 1)
            found[division] = own - np.where(left_out, answers, 0).sum(axis=0)
        return found.mean(axis=1), found


def main() -> None:
    """Print a row for each design, number of divisions and effect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| texts | folds | divisions | effect, sd, failures | bias | these texts | other texts | mean half-widths |")
    by_divisions: dict[int, list[FloatArray]] = {}
    print("|---|---|---|---|---|---|---|---|")
    for number, ((size, folds), divisions, effect) in enumerate(itertools.product(DESIGNS, DIVISIONS, EFFECTS)):
        rng = np.random.default_rng([arguments.seed, number])
        truth = Texts.draw(NUM_TEXTS_OF_TRUTH, *effect, rng).bias()
        covered, halves = [], []
        for _ in range(arguments.repeats):
            texts = Texts.draw(size, *effect, rng)
            means, differences = texts.differences(folds, divisions, rng)
            half = student_t.ppf((1 + LEVEL) / 2, divisions - 1) * means.std(ddof=1) / np.sqrt(divisions)
            interval = cross_interval([cross_texts(differences, np.tile(np.arange(size), (divisions, 1)))], LEVEL)
            assert interval is not None
            covered.append((abs(means.mean() - texts.bias()) <= half, interval.low <= truth <= interval.high))
            halves.append((half, (interval.high - interval.low) / 2))
        by_divisions.setdefault(divisions, []).append(np.mean(covered, axis=0))
        shares = " | ".join(f"{share:.1%}" for share in by_divisions[divisions][-1])
        widths = "/".join(f"{100 * half:.2f}" for half in np.mean(halves, axis=0))
        listed = ", ".join(f"{part:g}" for part in effect)
        print(
            f"| {size:,} | {folds} | {divisions} | {listed} | {100 * truth:+.2f} | {shares} | {widths} |",
            flush=True,
        )
    for divisions, coverages in by_divisions.items():
        these, others = np.mean(coverages, axis=0)
        print(f"Mean with {divisions} divisions: {these:.1%} of these texts, {others:.1%} of other texts")


if __name__ == "__main__":
    main()
