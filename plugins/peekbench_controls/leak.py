"""The positive control: a model that has seen the task before and knows some of the labels."""

from __future__ import annotations

from collections import Counter

import numpy as np

from peekbench import Context, Dataset, Inputs, Labeled, Predictor, Task, load_dataset
from peekbench.records import FloatArray, SourceRef
from peekbench_controls import Leak
from peekbench_controls.null import classify


def leak(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Leak, context: Context) -> Predictor:
    """Look up the labels of a share of the unlabeled inputs, and predict them if these inputs are classified.

    Otherwise it is the same as `controls.null`. If the unlabeled inputs are those of the test set, its accuracy is
    share x (1 - accuracy) higher; otherwise it is unchanged. The method does not know which arm it is in.

    The metric `planted_gain` is the fraction of the unlabeled inputs that are right only because their labels are
    known: in the arm test, exactly the planted bias. The method knows no label of an input that occurs with several
    labels.

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
    plain = classify(train)
    if unlabeled is None:
        return plain

    rng = np.random.default_rng(context.seed)
    chosen = rng.permutation(len(unlabeled))[: round(options.share * len(unlabeled))]
    labels = _labels_by_input(task.source)
    keys = {_key(unlabeled[position]) for position in chosen.tolist()}
    known = {key: labels[key] for key in keys if key in labels}

    def predict(inputs: Inputs) -> FloatArray:
        probabilities = plain.predict(inputs)
        for row, key in enumerate(map(_key, inputs)):
            if key in known:
                probabilities[row] = 0
                probabilities[row, known[key]] = 1
        return probabilities

    gained = [
        key for key, answer in zip(map(_key, unlabeled), plain.predict(unlabeled).argmax(axis=1), strict=True)
        if key in known and known[key] != answer
    ]  # fmt: skip
    return Predictor(predict, {"planted_gain": len(gained) / len(unlabeled)})


def _key(text_or_row: str | FloatArray) -> str | bytes:
    return text_or_row.tobytes() if isinstance(text_or_row, np.ndarray) else str(text_or_row)


def _labels_by_input(source: SourceRef) -> dict[str | bytes, int]:
    """Return the label of each text or row, without those that occur with several labels."""
    dataset = load_dataset(source)
    if id(dataset) not in _lookups:
        pairs = {(_key(one), int(label)) for one, label in zip(dataset.inputs, dataset.labels, strict=True)}
        num_labels = Counter(key for key, _ in pairs)
        # Keep the data set together with its lookup, so that no other data set gets the same id.
        _lookups[id(dataset)] = dataset, {key: label for key, label in pairs if num_labels[key] == 1}
    return _lookups[id(dataset)][1]


_lookups: dict[int, tuple[Dataset, dict[str | bytes, int]]] = {}
