"""Compare the theorem of membership with a simulation. Print a table, assert nothing.

The theorem (docs/explanation/bias.md): the expected bias is the effect of a text's own membership in the unlabeled set.
So `leave-one-out` is expected to score as `extra` with one text fewer, and `swap-in` as `test`.

The simulation draws two classes of normal features, keeps the two principal components of the unlabeled rows, and
chooses the nearer class mean of 20 train rows, as latent semantic analysis does with texts. The theorem holds for
scores that are means over texts. A second simulation shows this: a method calls the third of the unlabeled texts with
the highest scores positive, and later texts above the same threshold. Under the rule cross-5, its macro-F1 is still
biased. Differences are in points, with 95% intervals.

    python benchmarks/statistics/membership.py [--draws 20000] [--seed 0]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from peekbench.records import FloatArray, IntArray
from peekbench_summary.estimates import estimate_these_tasks

NUM_TRAIN, NUM_FEATURES, NUM_COMPONENTS, SHIFT = 20, 10, 2, 0.6
SIZES = (5, 10, 20, 50)
BATCH_SIZE, FOLDS, POSITIVE, SEPARATION = 50, 5, 1 / 3, 1.0
BATCH = 1000


def simulate(size: int, draws: int, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return the accuracy of each draw under each rule, shape (n_draws,)."""
    parts: dict[str, list[FloatArray]] = {}
    for _ in range(math.ceil(draws / BATCH)):
        train = _features(rng, np.broadcast_to(np.arange(NUM_TRAIN) % 2, (BATCH, NUM_TRAIN)))
        labels = rng.integers(2, size=(2, BATCH, size))
        test, extra = (_features(rng, of_set) for of_set in labels)
        of_test, of_extra = (rows[..., None] * rows[..., None, :] for rows in (test, extra))  # (draw, row, f, f)
        moments = {
            "test": of_test.sum(axis=1, keepdims=True),
            "extra": of_extra.sum(axis=1, keepdims=True),
            "extra, n - 1": of_extra[:, 1:].sum(axis=1, keepdims=True),
            "leave-one-out": of_test.sum(axis=1, keepdims=True) - of_test,
            "swap-in": of_extra.sum(axis=1, keepdims=True) - of_extra + of_test,
        }
        for rule, moment in moments.items():
            parts.setdefault(rule, []).append(_accuracy(test, labels[0], train, moment))
    return {rule: np.concatenate(found) for rule, found in parts.items()}


def _features(rng: np.random.Generator, labels: IntArray) -> FloatArray:
    """Return rows of two classes that differ in all features, shape (n_draws, n_rows, n_features)."""
    centers = SHIFT * (2.0 * labels[..., None] - 1)
    rows: FloatArray = centers + rng.standard_normal((*labels.shape, NUM_FEATURES))
    return rows


def _accuracy(rows: FloatArray, labels: IntArray, train: FloatArray, moments: FloatArray) -> FloatArray:
    """Return the share of rows nearer to the mean of their class in the space of components, shape (n_draws,).

    The moments have shape (n_draws, n_rows, n_features, n_features), with n_rows = 1 if all rows share them.
    """
    components = np.linalg.eigh(moments)[1][..., -NUM_COMPONENTS:]
    distances = []
    for label in (0, 1):
        difference = rows - train[:, label::2].mean(axis=1, keepdims=True)
        distances.append(((difference[..., None, :] @ components) ** 2).sum(axis=(2, 3)))
    share: FloatArray = ((distances[1] < distances[0]) == labels).mean(axis=1)
    return share


def print_simulation(draws: int, seed: int) -> None:
    """Print the differences of the rules by the number of unlabeled rows."""
    rng = np.random.default_rng(seed)
    pairs = (("test", "extra"), ("leave-one-out", "extra"), ("leave-one-out", "extra, n - 1"), ("swap-in", "test"))
    print(f"| n | {' | '.join(f'{one} - ({other})' for one, other in pairs)} |\n|{'---|' * 5}")
    for size in SIZES:
        scores = simulate(size, draws, rng)
        cells = (_interval([(scores[one] - scores[other]).tolist()]) for one, other in pairs)
        print(f"| {size} | {' | '.join(cells)} |", flush=True)


def simulate_threshold(draws: int, rng: np.random.Generator) -> dict[str, dict[str, FloatArray]]:
    """Return accuracy and macro-F1 of each draw under the rules test, extra and cross, shape (n_draws,)."""
    labels = (rng.random((2, draws, BATCH_SIZE)) < POSITIVE).astype(int)
    test, extra = rng.standard_normal(labels.shape) + SEPARATION * labels
    folds = np.arange(BATCH_SIZE) % FOLDS
    others = np.stack([_threshold(test[:, folds != fold]) for fold in range(FOLDS)], axis=1)
    thresholds = {"test": _threshold(test)[:, None], "extra": _threshold(extra)[:, None], "cross": others[:, folds]}
    scores: dict[str, dict[str, FloatArray]] = {"accuracy": {}, "macro-F1": {}}
    for rule, threshold in thresholds.items():
        answers = (test > threshold).astype(int)
        scores["accuracy"][rule] = (answers == labels[0]).mean(axis=1)
        scores["macro-F1"][rule] = _macro_f1(answers, labels[0])
    return scores


def _threshold(scores: FloatArray) -> FloatArray:
    threshold: FloatArray = np.quantile(scores, 1 - POSITIVE, axis=1)
    return threshold


def _macro_f1(answers: IntArray, labels: IntArray) -> FloatArray:
    """Return the mean of F1 over both classes, shape (n_draws,)."""
    of_classes = []
    for label in (0, 1):
        hits = ((answers == label) & (labels == label)).sum(axis=1)
        of_classes.append(2 * hits / np.maximum((answers == label).sum(axis=1) + (labels == label).sum(axis=1), 1))
    scores: FloatArray = np.mean(of_classes, axis=0)
    return scores


def print_threshold(draws: int, seed: int) -> None:
    """Print the differences of the rules by score."""
    pairs = (("test", "extra"), ("cross", "extra"))
    print(f"\n| score | {' | '.join(f'{one} - {other}' for one, other in pairs)} |\n|{'---|' * 3}")
    for score, of_rules in simulate_threshold(draws, np.random.default_rng(seed)).items():
        cells = (_interval([(of_rules[one] - of_rules[other]).tolist()]) for one, other in pairs)
        print(f"| {score} | {' | '.join(cells)} |")


def _interval(tasks: Sequence[Sequence[float]]) -> str:
    estimate = estimate_these_tasks(tasks, 0.95)
    return f"{100 * estimate.mean:+.2f} [{100 * estimate.low:+.2f}, {100 * estimate.high:+.2f}]"


def main() -> None:
    """Print the tables of the simulations, or that of a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print_simulation(arguments.draws, arguments.seed)
    print_threshold(10 * arguments.draws, arguments.seed)


if __name__ == "__main__":
    main()
