"""The positive control: a model that has seen the task before and knows some of the labels."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

import numpy as np

from peekbench import Context, Dataset, Inputs, Labeled, Predictor, Task, load_dataset
from peekbench.records import FloatArray, SourceRef
from peekbench_controls import Leak
from peekbench_controls.null import first_text, fit_plain

Label: TypeAlias = int | tuple[int, ...] | str | tuple[str, ...]
THRESHOLD = 0.5  # of the probability of a label that a text is given


def leak(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Leak, context: Context) -> Predictor:
    """Look up the labels of a share of the unlabeled inputs, and predict them if these inputs are classified.

    Otherwise it is the same as `controls.null`. If the unlabeled inputs are those of the test set, its accuracy is
    share x (1 - accuracy) higher; otherwise it is unchanged. The method does not know which arm it is in.

    The metric `planted_gain` is the fraction of the unlabeled inputs that are right only because their labels are
    known, or in generation the sum of the gained grades by the number of inputs: in the arm test, exactly the planted
    bias. The method knows no label of an input that occurs with several labels.

    Parameters
    ----------
    unlabeled
        Unlabeled texts or features; None in the base arm.
    train
        Labeled texts or features.
    task
        The task; its source gives the labels.
    options
        Share of known labels.
    context
        Seed of the choice of known inputs.

    Returns
    -------
    Predictor
        The classifier, with the metric `planted_gain` except in the base arm.

    Raises
    ------
    DataError
        If the train texts have no words.
    """
    plain = fit_plain(train, task)
    if unlabeled is None:
        return plain

    rng = np.random.default_rng(context.seed)
    chosen = rng.permutation(len(unlabeled))[: round(options.share * len(unlabeled))]
    labels = _labels_by_input(task.source)
    unlabeled_keys = _keys(unlabeled)
    keys = {unlabeled_keys[position] for position in chosen.tolist()}
    known = {key: labels[key] for key in keys if key in labels}

    def predict(inputs: Inputs) -> Any:
        predicted: Any = plain.predict(inputs)
        for row, key in enumerate(_keys(inputs)):
            if key in known:
                predicted[row] = _certain(known[key], task)
        return predicted

    gains = [
        _grade(_certain(known[key], task), known[key], task) - _grade(answer, known[key], task)
        for key, answer in zip(unlabeled_keys, plain.predict(unlabeled), strict=True)
        if key in known
    ]
    return Predictor(predict, {"planted_gain": sum(gains) / len(unlabeled)})


def _keys(inputs: Any) -> list[str | bytes]:
    """Return a key for each text, row of an array, or row of a data frame."""
    rows = inputs
    if hasattr(inputs, "itertuples"):
        rows = inputs.itertuples(index=False, name=None)
    return [row.tobytes() if isinstance(row, np.ndarray) else str(row) for row in rows]


def _grade(predicted: Any, label: Any, task: Task) -> float:
    """Return the grade of an answer, or whether the answer of probabilities is the label."""
    if task.kind == "generation":
        return task.grade(predicted, label)
    if task.kind == "multilabel":
        return float(tuple((predicted > THRESHOLD).astype(int).tolist()) == label)
    return float(predicted.argmax() == label)


def _certain(label: Any, task: Task) -> Any:
    """Return the probabilities of classes or labels, or the answer, if the label is known."""
    if task.kind == "generation":
        return first_text(label)
    if isinstance(label, tuple):
        return np.array(label, dtype=float)
    probabilities: FloatArray = np.eye(task.num_classes)[label]
    return probabilities


def _labels_by_input(source: SourceRef) -> dict[str | bytes, Label]:
    """Return the label of each text or row, without those that occur with several labels."""
    dataset = load_dataset(source)
    if id(dataset) not in _lookups:
        labels: list[Any] = list(dataset.labels)
        if dataset.kind != "generation":
            labels = np.asarray(dataset.labels).tolist()
        if dataset.kind == "multilabel":
            labels = list(map(tuple, labels))
        pairs = set(zip(_keys(dataset.inputs), labels, strict=True))
        num_labels = Counter(key for key, _ in pairs)
        # Keep the data set together with its lookup, so that no other data set gets the same id.
        _lookups[id(dataset)] = dataset, {key: label for key, label in pairs if num_labels[key] == 1}
    return _lookups[id(dataset)][1]


_lookups: dict[int, tuple[Dataset, dict[str | bytes, Label]]] = {}
