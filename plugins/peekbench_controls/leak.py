"""The positive control: a model that has seen the task before and knows some of the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Context, Dataset, FloatArray, Inputs, Labeled, Predictor, SourceRef, Task, load_dataset
from peekbench_controls.null import classify

if TYPE_CHECKING:
    from peekbench_controls import Leak


def leak(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Leak, context: Context) -> Predictor:
    """Look up the labels of a share of the unlabeled texts, and answer those right when they turn up at prediction.

    In every other respect it is `controls.null`. Where the unlabeled texts are the test set's, it gets
    share x (1 - accuracy) more of them right; elsewhere none. It does not know which arm it is in.

    The metric `planted_gain` is the fraction of the unlabeled texts that it would get wrong but for knowing the answer:
    in the arm test, exactly the bias that is planted.
    """
    import numpy as np

    plain = classify(train)
    if unlabeled is None:
        return plain

    rng = np.random.default_rng(context.seed)
    chosen = rng.permutation(len(unlabeled))[: round(options.share * len(unlabeled))]
    labels = _labels_by_text(task.source)
    known = {str(unlabeled[position]): labels[str(unlabeled[position])] for position in chosen.tolist()}

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
    """Label of each text; where a text stands twice, its first."""
    dataset = load_dataset(source)
    if id(dataset) not in _lookups:
        pairs = zip(dataset.inputs, dataset.labels, strict=True)
        # The data set is kept beside its lookup, so that its identity stays its own.
        _lookups[id(dataset)] = dataset, {str(text): int(label) for text, label in reversed(list(pairs))}
    return _lookups[id(dataset)][1]


_lookups: dict[int, tuple[Dataset, dict[str, int]]] = {}
