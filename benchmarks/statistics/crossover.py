"""Measure how much more precise crossover scoring is than scoring one set, on the same fits. Print a table.

A trial of K sets contains trials of two sets with crossover scoring, and trials of two fits that score one set. The
table shows the variances of their biases within tasks:

- ratio: the variance with one scored set over that with two, with the same fits;
- per fit: the same ratio for K sets, times 2 / K, because K sets need K fits instead of 2.

Intervals are bootstraps over subsamples. Runs are kept in FOLDER and resumed.

    python benchmarks/statistics/crossover.py FOLDER [--tasks docstrings.all] [--sets 5] [--subsamples 12]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from peekbench.execution.runner import run
from peekbench.records import FloatArray
from peekbench.records.answers import find_answers, join_predicted
from peekbench.records.trials import Draw, Trial
from peekbench.spec.experiment import make_spec
from peekbench.store.reader import Store

NUM_RESAMPLES = 1000
NUM_TRAIN, NUM_TEST = 50, 200
METHODS: dict[str, Any] = {
    "lsa-10": {"use": "classic.lsa", "options": {"num_components": 10}},
    "lsa-50": {"use": "classic.lsa", "options": {"num_components": 50}},
    "self_training": {"use": "classic.self_training"},
    "word2vec": {"use": "classic.word2vec"},
    "batch_statistics": {"use": "transductive.batch_statistics"},
    "class_priors": {"use": "transductive.class_priors"},
    "label_spreading": {"use": "transductive.label_spreading"},
    "centroids": {"use": "transductive.centroids"},
    "bm25": {"use": "transductive.bm25"},
    "entropy_minimization": {"use": "transductive.entropy_minimization"},
}
"""The ten methods whose median counts."""


def fit_scores(
    folder: Path, method: str, tasks: Sequence[str], subsamples: int, sets: int, workers: int = 1
) -> FloatArray:
    """Run a method, or resume its run in a folder, and return the score of each fit of a trial on each set.

    A run that has more subsamples already is completed with them, and the first ones are returned.

    Returns
    -------
    numpy.ndarray
        Accuracies of shape (n_tasks, n_subsamples, n_fits, n_sets). Fit k adapted to set k.
    """
    path = folder / f"{method}-{sets}.sqlite"
    stored = 0
    if path.exists():
        with Store.open(path) as store:
            stored = int(store.spec()["design"]["num_subsamples"])
    design = {"num_train": NUM_TRAIN, "num_test": NUM_TEST, "num_subsamples": max(stored, subsamples)}
    raw = {
        "name": f"crossover-{method}", "seed": 0, "tasks": list(tasks),
        "methods": [{"name": method, **METHODS[method]}], "design": {**design, "crossover": sets},
        "arms": ["extra", "test"], "executor": {"use": "local", "options": {"workers": workers}},
    }  # fmt: skip
    spec = make_spec(raw, folder=Path())
    folder.mkdir(parents=True, exist_ok=True)
    scores = np.empty((len(spec.tasks), subsamples, sets, sets))
    own = np.arange(sets)
    with Store.open(run(spec, store=path).store) as store:
        for place, task in enumerate(spec.tasks):
            for subsample in range(subsamples):
                draw = Draw(task.name, NUM_TRAIN, NUM_TEST, subsample)
                labels, _ = store.test_rows(draw)
                predictions = store.predictions(Trial(draw, method))
                both = find_answers(join_predicted([predictions["test"], predictions["extra"]]), labels)
                correct = both.reshape(sets, sets, -1) == labels.reshape(sets, -1)
                for shift, by_set in enumerate(correct.mean(axis=2)):
                    scores[place, subsample, (own + shift) % sets, own] = by_set
    return scores


def crossover_biases(scores: FloatArray) -> FloatArray:
    """Return the bias of each trial by crossover scoring of all sets, from `fit_scores`, shape (n_tasks, n_subsamples).

    Examples
    --------
    >>> crossover_biases(np.array([[[[0.7, 0.6], [0.5, 0.9]]]]))
    array([[0.25]])
    """
    sets = scores.shape[-1]
    test = np.trace(scores, axis1=-2, axis2=-1) / sets
    extra = (scores.sum(axis=(-2, -1)) - test * sets) / (sets * (sets - 1))
    biases: FloatArray = test - extra
    return biases


def contained_biases(scores: FloatArray, sets: int) -> FloatArray:
    """Return the biases of the trials of fewer sets that each trial contains.

    Parameters
    ----------
    scores
        From `fit_scores`.
    sets
        Sets with crossover scoring; 1 for a trial of two fits that scores one set.

    Returns
    -------
    numpy.ndarray
        Shape (n_tasks, n_subsamples, n_contained).
    """
    fits = range(scores.shape[-1])
    if sets == 1:
        pairs = list(permutations(fits, 2))
        return np.stack([scores[..., own, own] - scores[..., other, own] for own, other in pairs], axis=-1)
    chosen = sorted({tuple(sorted(each)) for each in permutations(fits, sets)})
    return np.stack([crossover_biases(scores[..., each, :][..., each]) for each in map(list, chosen)], axis=-1)


def variances(scores: FloatArray, sets: int) -> FloatArray:
    """Return the variance of the bias within each task, as the mean over all trials of these sets in `fit_scores`."""
    by_task: FloatArray = contained_biases(scores, sets).var(axis=1, ddof=1).mean(axis=1)
    return by_task


def interval(
    scores: FloatArray, compute: Callable[[FloatArray], FloatArray], rng: np.random.Generator
) -> list[tuple[float, float, float]]:
    """Return figures of scores, each with a bootstrap interval."""
    size = scores.shape[1]
    draws = (rng.integers(size, size=size) for _ in range(NUM_RESAMPLES))
    limits = np.quantile([compute(scores[:, draw]) for draw in draws], [0.025, 0.975], axis=0)
    return [(float(value), float(low), float(high)) for value, low, high in zip(compute(scores), *limits, strict=True)]


def compare(scores: FloatArray) -> FloatArray:
    """Return the ratio of variances of one and two sets, and the information per fit of all sets."""
    sets = scores.shape[-1]
    one, two, every = (variances(scores, number).mean() for number in (1, 2, sets))
    return np.array([one / two, one / every * 2 / sets])


def print_precision(by_method: dict[str, FloatArray], sets: int, rng: np.random.Generator) -> None:
    """Print standard deviations, in points, and ratios of variances."""
    print(f"| method | sd of the bias: one set | two sets | {sets} sets | ratio | per fit, {sets} sets |")
    print("|---|---|---|---|---|---|")
    found = []
    for method, scores in by_method.items():
        deviations = [100 * float(np.sqrt(variances(scores, number).mean())) for number in (1, 2, sets)]
        figures = interval(scores, compare, rng)
        found.append([value for value, _, _ in figures])
        cells = [f"{each:.2f}" for each in deviations]
        cells += [f"{value:.1f} ({low:.1f}-{high:.1f})" for value, low, high in figures]
        print(f"| {method} | " + " | ".join(cells) + " |", flush=True)
    medians = [f"{value:.1f}" for value in np.median(found, axis=0)]
    print(f"| median of {len(found)} | | | | " + " | ".join(medians) + " |")


def main() -> None:
    """Run the methods and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tasks", nargs="+", default=["docstrings.all"])
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--subsamples", type=int, default=12)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap")
    arguments = parser.parse_args()
    design = arguments.subsamples, arguments.sets, arguments.workers
    by_method = {method: fit_scores(arguments.folder, method, arguments.tasks, *design) for method in arguments.methods}
    print_precision(by_method, arguments.sets, np.random.default_rng(arguments.seed))


if __name__ == "__main__":
    main()
