"""The positive control: a model that has seen the task before and knows some of the labels."""

from __future__ import annotations

from collections import Counter

import numpy as np

from peekbench import Context, Dataset, Inputs, Labeled, Predictor, Task, load_dataset
from peekbench.records import FloatArray, SourceRef
from peekbench_controls import Leak
from peekbench_controls.null import classify


def leak(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Leak, context: Context) -> Predictor:
    """Look up the labels of a share of the unlabeled texts, and predict them if these texts are classified.

    Otherwise it is the same as `controls.null`. If the unlabeled texts are the test texts, its accuracy is
    share x (1 - accuracy) higher; otherwise it is unchanged. The method does not know which arm it is in.

    The metric `planted_gain` is the fraction of the unlabeled texts that are right only because their labels are known:
    in the arm test, exactly the planted bias. The method knows no label of a text that occurs with several labels.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; None in the base arm.
    train
        Labeled texts.
    task
        The task; its source gives the labels.
    options
        Share of known labels.
    context
        Seed of the choice of known texts.

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
    labels = _labels_by_text(task.source)
    texts = {str(unlabeled[position]) for position in chosen.tolist()}
    known = {text: labels[text] for text in texts if text in labels}

    def predict(inputs: Inputs) -> FloatArray:
        probabilities = plain.predict(inputs)
        for row, text in enumerate(inputs):
            if text in known:
                probabilities[row] = 0
                probabilities[row, known[text]] = 1
        return probabilities

    gained = [
        text for text, answer in zip(unlabeled, plain.predict(unlabeled).argmax(axis=1), strict=True)
        if text in known and known[text] != answer
    ]  # fmt: skip
    return Predictor(predict, {"planted_gain": len(gained) / len(unlabeled)})


def _labels_by_text(source: SourceRef) -> dict[str, int]:
    """Return the label of each text, without texts that occur with several labels."""
    dataset = load_dataset(source)
    if id(dataset) not in _lookups:
        pairs = {(str(text), int(label)) for text, label in zip(dataset.inputs, dataset.labels, strict=True)}
        num_labels = Counter(text for text, _ in pairs)
        # Keep the data set together with its lookup, so that no other data set gets the same id.
        _lookups[id(dataset)] = dataset, {text: label for text, label in pairs if num_labels[text] == 1}
    return _lookups[id(dataset)][1]


_lookups: dict[int, tuple[Dataset, dict[str, int]]] = {}
