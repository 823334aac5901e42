"""A method with data to try it on: invented rows, or somebody's own, drawn as a run would draw them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

from peekbench.data import loading as data
from peekbench.data.sampling import Sampler
from peekbench.errors import ContractError, DataError
from peekbench.execution.arms import take
from peekbench.execution.scoring import check_predictions
from peekbench.formatting import pluralize
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.protocols import Options
from peekbench.records.data import Dataset, FloatArray, Folders, Inputs, Labeled, SourceRef, Task
from peekbench.records.trials import Context, Draw, Predictor
from peekbench.spec.design import Design

SOURCE = "peekbench.testing.sample"
MOST_TRAIN, LEAST_TEST, MOST_TEST = 60, 30, 60  # rows: enough for a fault to show, few enough to be quick


@dataclass(frozen=True, slots=True)
class Case:
    """A method with data to try it on."""

    use: str
    entry: MethodEntry
    options: Options
    task: Task
    train: Labeled
    unlabeled: Inputs
    other: Inputs
    """Unlabeled inputs of another draw."""
    test: Inputs
    folders: Folders

    def fit(self, unlabeled: Inputs | None, *, seed: int = 1, options: Options | None = None) -> Predictor:
        context = Context(seed, 1, self.folders)
        predictor = self.entry.method(
            unlabeled, self.train, self.task, options=options or self.options, context=context
        )
        if not isinstance(predictor, Predictor):
            raise ContractError(f"it returned a {type(predictor).__name__}; return peekbench.Predictor(predict)")
        return predictor

    def predict(self, unlabeled: Inputs | None, *, seed: int = 1, options: Options | None = None) -> FloatArray:
        """Fit and predict the test inputs: float64, (n_test, n_classes) or (n_test,), held to their contract."""
        import numpy as np

        predictions = self.fit(unlabeled, seed=seed, options=options).predict(self.test)
        check_predictions(predictions, len(self.test), self.task)
        return np.array(predictions, dtype=np.float64)


def sample_texts(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Made-up texts of three classes, told apart by some of their words, for checks without any data at hand."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    labels = [row % 3 for row in range(num_rows)]
    texts = [
        " ".join(
            f"common{rng.randrange(80)}" if rng.random() < 0.6 else f"{'abc'[label]}word{rng.randrange(25)}"
            for _ in range(rng.randrange(6, 16))
        )
        + f" number{row}"
        for row, label in enumerate(labels)
    ]
    instruction = "The text is made of invented words. Answer with its class."
    return Dataset(texts, labels, ("first", "second", "third"), instruction=instruction)


def sample_numbers(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """A made-up linear regression on four features."""
    import numpy as np

    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_rows, 4))
    return Dataset(features, features @ np.arange(1.0, 5.0) + rng.normal(size=num_rows), kind="regression")


def make_case(use: str, entry: MethodEntry, options: Options, folder: Path, dataset: Dataset | None = None) -> Case:
    """Draw train, test and two sets of unlabeled inputs: as many of each class in train, as in a run.

    Raises
    ------
    DataError
        Where the data set has too few rows, or is malformed.
    """
    if dataset is None:
        # What takes a regression takes rows of numbers.
        dataset = sample_numbers() if "regression" in entry.task_kinds else sample_texts()
    data.check_dataset(dataset, "the data set to check on")
    num_train = _num_train(dataset)
    num_test = min(MOST_TEST, (len(dataset.labels) - num_train) // 2)
    if num_test < LEAST_TEST:
        raise DataError(
            f"a method cannot be checked on {pluralize(len(dataset.labels), 'row')}, of which {num_train} are for "
            f"training; give at least {num_train + 2 * LEAST_TEST}"
        )
    design = Design(num_train=(num_train,), num_test=(num_test,), num_subsamples=2)
    sampler = Sampler(dataset, design, seed=0, task="sample")
    one, other = (sampler.draw(Draw("sample", num_train, num_test, subsample)) for subsample in (0, 1))
    source = SourceRef(SOURCE, {"rows": data.fingerprint(dataset)}, folder)
    data.remember(source, dataset)
    train_labels = sampler.labels[one.train]
    train_labels.flags.writeable = False
    return Case(
        use=use,
        entry=entry,
        options=options,
        task=Task("sample", dataset.kind, tuple(dataset.class_names), dataset.instruction, source),
        train=Labeled(take(dataset.inputs, one.train), train_labels),
        unlabeled=take(dataset.inputs, one.extra),
        other=take(dataset.inputs, other.extra),
        test=take(dataset.inputs, one.test),
        folders=Folders(spec=folder, cache=folder),
    )


def _num_train(dataset: Dataset) -> int:
    """Rows to train on: two or more of a class where it has them, and at most half of the smallest class."""
    if dataset.kind == "regression":
        return MOST_TRAIN
    num_classes = len(dataset.class_names)
    counts = data.class_counts(dataset)
    smallest = min(counts.get(label, 0) for label in range(num_classes))
    return num_classes * max(1, min(max(2, MOST_TRAIN // num_classes), smallest // 2))


def in_both_arms(check: Callable[[Case, Inputs | None], None]) -> Callable[[Case], None]:
    """Make a check of one arm a check of both, which says in which of them it found a fault."""

    @wraps(check)
    def check_both(case: Case) -> None:
        for arm, unlabeled in (("with", case.unlabeled), ("without", None)):
            try:
                check(case, unlabeled)
            except ContractError as error:
                raise ContractError(f"{arm} unlabeled inputs: {error}") from error

    return check_both
