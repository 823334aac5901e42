"""Runs with crossover scoring of several sets, for `crossover.py`.

One run of K sets contains trials of all smaller designs: K fits, each of which predicts K sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from peekbench.execution.runner import run
from peekbench.records import FloatArray
from peekbench.records.answers import find_answers, join_predicted
from peekbench.records.trials import Draw, Trial
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench.store.reader import Store

NUM_TRAIN = 50
CLASSIC: dict[str, Any] = {
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
LANGUAGE_MODELS: dict[str, Any] = {
    "tapt-minilm": {  # a stress test
        "use": "finetune.tapt",
        "options": {
            "model": "builtin:minilm-mlm",
            "precision": "bf16",
            "pretraining": {"epochs": 5, "batch_size": 32, "learning_rate": 3e-4},
            "classification": {"epochs": 10, "batch_size": 16, "learning_rate": 5e-4, "pooling": "mean"},
        },
    },
    "tapt-nano": {  # as in specs/quickstart_lm.yaml, with fewer epochs and shorter texts
        "use": "finetune.tapt",
        "options": {
            "model": "builtin:bert-nano",
            "precision": "fp32",
            "context_length": 32,
            "pretraining": {"epochs": 2, "batch_size": 32, "learning_rate": 2e-3},
            "classification": {"epochs": 5, "learning_rate": 2e-3, "pooling": "mean"},
        },
    },
    "tapt-model": {  # the model of --model, such as a small one in a folder
        "use": "finetune.tapt",
        "options": {
            "precision": "fp32",
            "context_length": 48,
            "pretraining": {"epochs": 3, "batch_size": 16, "learning_rate": 1e-3},
            "classification": {"epochs": 6, "batch_size": 16, "learning_rate": 2e-3, "pooling": "mean"},
        },
    },
}
"""Methods that train a language model."""
METHODS = {**CLASSIC, **LANGUAGE_MODELS}


def use_model(model: str) -> None:
    """Let the method tapt-model use a model."""
    METHODS["tapt-model"]["options"]["model"] = model


def num_test(method: str) -> int:
    """Return the number of texts of each set."""
    return 100 if method in LANGUAGE_MODELS else 200


def crossover_spec(
    methods: Sequence[str],
    tasks: Sequence[str],
    subsamples: int,
    crossover: int | bool,
    *,
    workers: int = 1,
    arms: Sequence[str] = ("base", "extra", "test"),
) -> ExperimentSpec:
    """Return the spec of a run of methods with equal `num_test`."""
    design = {"num_train": NUM_TRAIN, "num_test": num_test(methods[0]), "num_subsamples": subsamples}
    spec = {
        "name": f"crossover-{methods[0]}",
        "seed": 0,
        "tasks": list(tasks),
        "methods": [{"name": method, **METHODS[method]} for method in methods],
        "design": {**design, "crossover": crossover},
        "arms": list(arms),
        "executor": {"use": "local", "options": {"workers": workers}},
    }
    return make_spec(spec, folder=Path())


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
    spec = crossover_spec([method], tasks, max(stored, subsamples), sets, workers=workers, arms=("extra", "test"))
    folder.mkdir(parents=True, exist_ok=True)
    scores = np.empty((len(spec.tasks), subsamples, sets, sets))
    own = np.arange(sets)
    with Store.open(run(spec, store=path).store) as store:
        for place, task in enumerate(spec.tasks):
            for subsample in range(subsamples):
                draw = Draw(task.name, NUM_TRAIN, num_test(method), subsample)
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
