"""Measure what reports of official test sets state about other texts, with known truths. Print tables, assert nothing.

A benchmark has one train set and many official test sets of the same kind; each test set is divided into folds again
and again and judged as `summary` does. Two simulations:

- A classifier of Gaussian rows by the nearer centroid, which trains itself on the pseudo-labels of unlabeled rows. The
  accuracy of a fit on new rows is known exactly. Columns: the error of the score to publish, compared with the mean
  accuracy on new rows of fits to new rows (the error of the fit without unlabeled rows is a control variate); how often
  its interval covers the accuracy on new rows of its own fits, and that of fits to new rows.
- Texts of `folds.py`, whose own membership has different effects, with a known average: zero, or just outside the
  region. Columns: verdicts on these texts and for other texts that are wrong for other texts.

    python benchmarks/statistics/official.py [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from folds import NUM_TEXTS_OF_TRUTH, Texts
from scipy.optimize import brentq
from scipy.stats import norm
from simulated_trials import share

from peekbench import Column
from peekbench.records import POINTS, Answers, FixedTexts, FloatArray, TrialEvidence, Verdict
from peekbench.results import Configuration, Configurations
from peekbench.spec.arms import split
from peekbench_summary import Summary
from peekbench_summary.families import judge_all
from peekbench_summary.text_noise import with_fixed_texts

DESIGNS = ((200, 2, 10), (200, 5, 10), (400, 5, 10), (400, 5, 30), (1000, 5, 10))
"""Test texts, folds and divisions."""
DIMENSIONS, DISTANCE, NUM_TRAIN, WEIGHT = 20, 0.7, 20, 1.0
"""Of the Gaussian rows: columns, half the distance of the classes, train rows, weight of the unlabeled rows."""
NUM_TRAIN_SETS, FITS_OF_TRUTH = 10, 4000
MEMBERSHIP_SD = 0.5
"""Of the effect of a text's own membership, on the scale of its difficulty."""
OPTIONS = Summary()
REGION = 0.005
BIASES = (0.0, REGION + 1e-4)


@dataclass(frozen=True, slots=True)
class SameTexts:
    """Answers to the texts of a test set in each division."""

    scores: dict[str, FloatArray]

    def answers(self, *_: object) -> Answers:
        """Return the answers."""
        divisions, number = self.scores["extra"].shape
        return Answers(np.arange(divisions), np.tile(np.arange(number), (divisions, 1)), self.scores)


def judge(extra: FloatArray, test: FloatArray, folds: int) -> tuple[Verdict, FixedTexts]:
    """Judge the mean scores of each text in each division: (n_divisions, n_texts)."""
    divisions, number = extra.shape
    of_arms = {"extra": extra.mean(axis=1), "test": test.mean(axis=1)}
    of_arms["bias"] = of_arms["test"] - of_arms["extra"]
    configuration = Configuration(
        "method",
        ("method",),
        {name: {"task": values.tolist()} for name, values in of_arms.items()},
        {"task": range(divisions)},
        ("method", "", NUM_TRAIN, number),
        step=1 / (number * (folds - 1)),
        num_texts=number,
        has_folds=True,
    )
    results = Configurations((Column("method"),), "", ("extra", "test"), ("bias",), True, POINTS, (configuration,))
    results = with_fixed_texts(results, SameTexts({"extra": extra, "test": test}))
    (verdict,) = judge_all(results, OPTIONS, {})
    assert isinstance(verdict.evidence, TrialEvidence)
    assert verdict.evidence.fixed_texts is not None
    return verdict, verdict.evidence.fixed_texts


def divide(number: int, folds: int, rng: np.random.Generator) -> FloatArray:
    """Return which texts each fold of a division contains: (n_folds, n_texts)."""
    order, left_out = rng.permutation(number), np.zeros((folds, number))
    for fold, (start, stop) in enumerate(split(number, folds)):
        left_out[fold, order[start:stop]] = 1
    return left_out


class SelfTraining:
    """Nearest centroid after training on the pseudo-labels of unlabeled rows."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.center = np.zeros(DIMENSIONS)
        self.center[0] = DISTANCE
        self.supervised = self.draw(NUM_TRAIN, rng).mean(axis=0)

    def draw(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draw rows, multiplied by their labels, 1 or -1: those with a positive score are classified correctly."""
        return self.center + rng.standard_normal((number, DIMENSIONS))

    def adapt(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the normal vectors of fits to weighted rows: (n_fits, n_columns)."""
        pseudo_labeled = rows * np.sign(rows @ self.supervised)[:, None]
        normals: FloatArray = self.supervised + WEIGHT * (weights @ pseudo_labeled) / weights.sum(1, keepdims=True)
        return normals

    def accuracy(self, normals: FloatArray) -> FloatArray:
        """Return the accuracy on new rows: (n_fits,)."""
        accuracy: FloatArray = norm.cdf(normals @ self.center / np.linalg.norm(normals, axis=-1))
        return accuracy

    def truth(self, number: int, rng: np.random.Generator) -> float:
        """Return the mean accuracy on new rows of fits to new rows."""
        fits = [self.adapt(self.draw(number, rng), np.ones((1, number))) for _ in range(FITS_OF_TRUTH)]
        return float(self.accuracy(np.concatenate(fits)).mean())

    def score(
        self, rows: FloatArray, folds: int, divisions: int, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return the scores of extra and of test of each row in each division, and the accuracy on new rows."""
        extra, test = np.empty((2, divisions, len(rows)))
        accuracies = np.empty((divisions, folds))
        for division in range(divisions):
            left_out = divide(len(rows), folds, rng)
            normals = self.adapt(rows, 1 - left_out)
            is_right = rows @ normals.T > 0
            extra[division] = (is_right * left_out.T).sum(axis=1)
            test[division] = (is_right * (1 - left_out.T)).sum(axis=1) / (folds - 1)
            accuracies[division] = self.accuracy(normals)
        return extra, test, float(accuracies.mean())


def measure_scores(design: tuple[int, int, int], repeats: int, rng: np.random.Generator) -> str:
    """Return the cells of a row on the scores to publish."""
    number, folds, divisions = design
    errors, covered, halves, biases = [], [], [], []
    for _ in range(NUM_TRAIN_SETS):
        method = SelfTraining(rng)
        truth = method.truth(number - number // folds, rng)
        supervised = float(method.accuracy(method.supervised[None])[0])
        for _ in range(repeats // NUM_TRAIN_SETS):
            rows = method.draw(number, rng)
            extra, test, of_fits = method.score(rows, folds, divisions, rng)
            verdict, fixed = judge(extra, test, folds)
            luck = float((rows @ method.supervised > 0).mean()) - supervised
            errors.append(fixed.extra.mean - truth - luck)
            covered.append([fixed.extra.low <= accuracy <= fixed.extra.high for accuracy in (of_fits, truth)])
            halves.append((fixed.extra.high - fixed.extra.low) / 2)
            biases.append(verdict.estimate.mean)
    error = f"{100 * np.mean(errors):+.2f} ({100 * np.std(errors) / np.sqrt(len(errors)):.2f})"
    own, others = (share(hits) for hits in zip(*covered, strict=True))
    return f"{100 * np.mean(biases):+.2f} | {error} | {own} | {others} | {100 * np.mean(halves):.2f}"


@cache
def find_mean(bias: float) -> float:
    """Return the mean effect of membership on the difficulty for which the average bias is as stated."""
    many = Texts.draw(NUM_TEXTS_OF_TRUTH, 0.0, MEMBERSHIP_SD, 0.0, np.random.default_rng(0))
    mean = brentq(lambda mean: many._replace(membership=many.membership + mean).bias() - bias, -0.5, 0.5, xtol=1e-5)
    return float(mean)


def measure_verdicts(design: tuple[int, int, int], bias: float, repeats: int, rng: np.random.Generator) -> str:
    """Return the cells of a row on the verdicts about texts with a bias."""
    number, folds, divisions = design
    wrong: list[Sequence[bool]] = []
    for _ in range(repeats):
        texts = Texts.draw(number, find_mean(bias), MEMBERSHIP_SD, 0.0, rng)
        _, differences = texts.differences(folds, divisions, rng)
        verdict, fixed = judge(np.zeros_like(differences), differences, folds)
        false = ("biased up", "biased down") if bias == 0 else ("biased down", "equivalent")
        wrong.append((verdict.decision in false, fixed.decision in false))
    these, others = zip(*wrong, strict=True)
    return f"{share(these)} | {share(others)}"


def main() -> None:
    """Print a table on scores to publish, and one on verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print("| texts | folds | divisions | bias | error (standard error) | covered: own fits | new fits | half-width |")
    print("|---|---|---|---|---|---|---|---|")
    for place, design in enumerate(DESIGNS):
        rng = np.random.default_rng([arguments.seed, 0, place])
        cells = measure_scores(design, arguments.repeats, rng)
        print(f"| {' | '.join(map(str, design))} | {cells} |", flush=True)
    print("\n| texts | folds | divisions | bias | wrong on these texts | wrong for other texts |")
    print("|---|---|---|---|---|---|")
    for place, (design, bias) in enumerate(itertools.product(DESIGNS, BIASES)):
        rng = np.random.default_rng([arguments.seed, 1, place])
        cells = measure_verdicts(design, bias, arguments.repeats, rng)
        print(f"| {' | '.join(map(str, design))} | {100 * bias:+.2f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
