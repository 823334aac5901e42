"""Contract check on a larger task, because some errors occur only with many inputs or with two classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from peekbench.data import loading as data
from peekbench.errors import ContractError, DataError, SpecError
from peekbench.records.data import Dataset, Inputs, SourceRef, Task
from peekbench.testing.case import SAMPLE, Case, draw_rows, in_both_arms
from peekbench.testing.prediction_checks import (
    DEPENDS_ON_BATCH,
    TOLERANCE,
    are_equal,
    observe,
    predict_halves,
)
from peekbench.testing.random_state import SEEDS, call_with_seed
from peekbench.testing.samples import sample_features, sample_numbers, sample_texts, sample_unlabeled_texts

NUM_TRAIN, NUM_UNLABELED, NUM_CLASSES = 96, 128, 2
NUM_ROWS = 600  # of the three classes of `sample_texts`


def check_larger_task(case: Case) -> str | None:
    """Check that predictions are valid and independent on a larger task, also if all unlabeled inputs are predicted.

    Returns
    -------
    str or None
        A warning if the method refuses the task, for example because its options name the classes of another one.
    """
    larger = make_larger_case(case)
    size = f"{NUM_TRAIN} train and {NUM_UNLABELED} unlabeled inputs"
    size = f"{NUM_CLASSES} classes, {size}" if case.task.kind == "classification" else size
    try:
        _check_larger_case(larger)
    except ContractError as error:
        raise ContractError(f"with {size}, {error}") from error
    except (DataError, SpecError) as error:
        return f"warning: it refuses a synthetic task with {size}: {error}"
    return None


def make_larger_case(case: Case) -> Case:
    """Make a case of the same method whose test inputs are the unlabeled ones.

    Parameters
    ----------
    case
        Its task determines the kind of the synthetic rows.
    """
    dataset = _sample_larger(case)
    source = SourceRef(SAMPLE, {"rows": data.fingerprint(dataset)}, case.folders.spec)
    data.remember(source, dataset)
    task = Task("larger", dataset.kind, tuple(dataset.class_names), dataset.instruction, source)
    larger = replace(case, task=task, shared={}, **draw_rows(dataset, NUM_TRAIN, NUM_UNLABELED))
    return replace(larger, test=larger.unlabeled)


def _sample_larger(case: Case) -> Dataset:
    makers: dict[str, Callable[..., Dataset]] = {
        "regression": sample_numbers,
        "language_modeling": sample_unlabeled_texts,
        "classification": sample_features if isinstance(case.test, np.ndarray) else sample_texts,
    }
    dataset = makers[case.task.kind](NUM_ROWS, seed=1)
    if len(dataset.class_names) <= NUM_CLASSES:
        return dataset
    rows = [row for row, label in enumerate(dataset.labels) if label < NUM_CLASSES]
    return replace(
        dataset,
        inputs=[dataset.inputs[row] for row in rows],
        labels=[dataset.labels[row] for row in rows],
        class_names=dataset.class_names[:NUM_CLASSES],
    )


@in_both_arms
def _check_larger_case(case: Case, unlabeled: Inputs | None) -> None:
    """Compare two fits, of which one predicts halves of the batch in another state of the global generators."""
    expected = observe(case, unlabeled).predictions
    if are_equal(expected, call_with_seed(SEEDS[0], partial(predict_halves, case, unlabeled)), TOLERANCE):
        return
    if are_equal(expected, case.predict(unlabeled), TOLERANCE):
        raise ContractError(DEPENDS_ON_BATCH)
    raise ContractError("two fits with the same seed give different predictions; use context.seed only")
