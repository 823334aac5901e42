"""The positive control: a model that has seen the task before and knows some of the answers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from peekbench import Context, Dataset, Inputs, Labeled, Predictor, Task, load_dataset
from peekbench.records import FloatArray, SourceRef
from peekbench_controls.null import classify

if TYPE_CHECKING:
    from peekbench_controls import Leak


def leak(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Leak, context: Context) -> Predictor:
    """Look up the labels of a share of the unlabeled texts, and answer those right when they turn up at prediction.

    In every other respect it is `controls.null`. Where the unlabeled texts are the test set's, it gets
    share x (1 - accuracy) more of them right; elsewhere none. It does not know which arm it is in.

    The metric `planted_gain` is the fraction of the unlabeled texts that it would get wrong but for knowing the answer:
    in the arm test, exactly the bias that is planted. A text that the task has under several labels is none of those
    that it knows.
    """
    import numpy as np

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

    wrong = [
        text for text, answer in zip(unlabeled, plain.predict(unlabeled).argmax(axis=1), strict=True)
        if text in known and known[text] != answer
    ]  # fmt: skip
    return Predictor(predict, {"planted_gain": len(wrong) / len(unlabeled)})


def _labels_by_text(source: SourceRef) -> dict[str, int]:
    """Label of each text, but for those that stand under several: these do not tell which answer is right."""
    dataset = load_dataset(source)
    if id(dataset) not in _lookups:
        pairs = {(str(text), int(label)) for text, label in zip(dataset.inputs, dataset.labels, strict=True)}
        num_labels = Counter(text for text, _ in pairs)
        # The data set is kept beside its lookup, so that its identity stays its own.
        _lookups[id(dataset)] = dataset, {text: label for text, label in pairs if num_labels[text] == 1}
    return _lookups[id(dataset)][1]


_lookups: dict[int, tuple[Dataset, dict[str, int]]] = {}
