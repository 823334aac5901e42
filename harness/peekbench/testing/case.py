"""A method with data to check it on: synthetic rows, or given ones, drawn as in a run."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path

import numpy as np

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
MAX_TRAIN, MIN_TEST, MAX_TEST = 60, 30, 60  # rows: enough to reveal errors, few enough to be quick


@dataclass(frozen=True, slots=True)
class Case:
    """A method with data to check it on, as `make_case` creates it.

    Examples
    --------
    >>> from pathlib import Path
    >>> import peekbench
    >>> entry = peekbench.MethodEntry(name="lsa", method="my_package.lsa:fit", summary="LSA")
    >>> make_case("mine.lsa", entry, peekbench.Options(), Path()).task.num_classes
    3
    """

    use: str
    """Name of the method in specs."""
    entry: MethodEntry
    """Entry of the method."""
    options: Options
    """Options to fit the method with."""
    task: Task
    """Facts about the task."""
    train: Labeled
    """Labeled train set."""
    unlabeled: Inputs
    """Unlabeled inputs."""
    other: Inputs
    """Unlabeled inputs of another draw."""
    test: Inputs
    """Test inputs."""
    folders: Folders
    """Folders for the method."""

    def fit(self, unlabeled: Inputs | None, *, seed: int = 1, options: Options | None = None) -> Predictor:
        """Fit the method.

        Parameters
        ----------
        unlabeled
            Unlabeled inputs, or None for the base arm.
        seed
            Seed of the fit.
        options
            Options; by default those of the case.

        Raises
        ------
        ContractError
            If the method returns something else than a `Predictor`.
        """
        context = Context(seed, 1, self.folders)
        predictor = self.entry.method(
            unlabeled, self.train, self.task, options=options or self.options, context=context
        )
        if not isinstance(predictor, Predictor):
            raise ContractError(f"it returned a {type(predictor).__name__}; return peekbench.Predictor(predict)")
        return predictor

    def predict(self, unlabeled: Inputs | None, *, seed: int = 1, options: Options | None = None) -> FloatArray:
        """Fit the method and predict the test inputs.

        Parameters
        ----------
        unlabeled
            Unlabeled inputs, or None for the base arm.
        seed
            Seed of the fit.
        options
            Options; by default those of the case.

        Returns
        -------
        numpy.ndarray
            float64 predictions, (n_test, n_classes) or (n_test,).

        Raises
        ------
        ContractError
            If the predictions have a wrong type, shape or value.
        """
        predictions = self.fit(unlabeled, seed=seed, options=options).predict(self.test)
        check_predictions(predictions, len(self.test), self.task)
        return np.array(predictions, dtype=np.float64)


def sample_texts(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Make synthetic texts of three classes that some of their words distinguish.

    Parameters
    ----------
    num_rows
        Number of texts.
    seed
        Seed of the words.

    Returns
    -------
    Dataset
        Texts with labels 0, 1 and 2, which alternate.

    Examples
    --------
    >>> data = sample_texts(30)
    >>> data.class_names, len(data.inputs)
    (('first', 'second', 'third'), 30)
    """
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
    instruction = "The text is made of synthetic words. Answer with its class."
    return Dataset(texts, labels, ("first", "second", "third"), instruction=instruction)


def sample_numbers(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Make a synthetic linear regression task with four features.

    Parameters
    ----------
    num_rows
        Number of rows.
    seed
        Seed of the features and of the noise.

    Returns
    -------
    Dataset
        Inputs of shape (num_rows, 4) and targets of shape (num_rows,).

    Examples
    --------
    >>> sample_numbers(30).inputs.shape
    (30, 4)
    """
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_rows, 4))
    return Dataset(features, features @ np.arange(1.0, 5.0) + rng.normal(size=num_rows), kind="regression")


def make_case(use: str, entry: MethodEntry, options: Options, folder: Path, dataset: Dataset | None = None) -> Case:
    """Draw a train set, a test set and two sets of unlabeled inputs, as in a run.

    Parameters
    ----------
    use
        Name of the method in specs.
    entry
        Entry of the method.
    options
        Options to fit the method with.
    folder
        Folder for the method's files.
    dataset
        Rows to draw from; by default synthetic ones.

    Returns
    -------
    Case
        The method with the drawn data.

    Raises
    ------
    DataError
        If the dataset has too few rows, or is malformed.

    Examples
    --------
    >>> from pathlib import Path
    >>> import peekbench
    >>> entry = peekbench.MethodEntry(name="lsa", method="my_package.lsa:fit", summary="LSA")
    >>> case = make_case("mine.lsa", entry, peekbench.Options(), Path())
    >>> len(case.train.inputs), len(case.unlabeled), len(case.test)
    (60, 60, 60)
    """
    if dataset is None:
        dataset = sample_numbers() if "regression" in entry.task_kinds else sample_texts()
    data.check_dataset(dataset, "the dataset to check on")
    num_train = _num_train(dataset)
    num_test = min(MAX_TEST, (len(dataset.labels) - num_train) // 2)
    if num_test < MIN_TEST:
        raise DataError(
            f"cannot check a method on {pluralize(len(dataset.labels), 'row')}, {num_train} of them for training; "
            f"give at least {num_train + 2 * MIN_TEST}"
        )
    design = Design(num_train=(num_train,), num_test=(num_test,), num_subsamples=2)
    sampler = Sampler(dataset, design, seed=0, task="sample")
    first, second = (sampler.draw(Draw("sample", num_train, num_test, subsample)) for subsample in (0, 1))
    source = SourceRef(SOURCE, {"rows": data.fingerprint(dataset)}, folder)
    data.remember(source, dataset)
    train_labels = sampler.labels[first.train]
    train_labels.flags.writeable = False
    return Case(
        use=use,
        entry=entry,
        options=options,
        task=Task("sample", dataset.kind, tuple(dataset.class_names), dataset.instruction, source),
        train=Labeled(take(dataset.inputs, first.train), train_labels),
        unlabeled=take(dataset.inputs, first.extra),
        other=take(dataset.inputs, second.extra),
        test=take(dataset.inputs, first.test),
        folders=Folders(spec=folder, cache=folder),
    )


def _num_train(dataset: Dataset) -> int:
    """Return the size of the train set: two rows or more of each class, and at most half of the smallest class."""
    if dataset.kind == "regression":
        return MAX_TRAIN
    num_classes = len(dataset.class_names)
    counts = data.class_counts(dataset)
    smallest = min(counts.get(label, 0) for label in range(num_classes))
    return num_classes * max(1, min(max(2, MAX_TRAIN // num_classes), smallest // 2))


def in_both_arms(check: Callable[[Case, Inputs | None], None]) -> Callable[[Case], None]:
    """Make a check of both arms from a check of one arm; its errors name the arm."""

    @wraps(check)
    def check_both(case: Case) -> None:
        for arm, unlabeled in (("with", case.unlabeled), ("without", None)):
            try:
                check(case, unlabeled)
            except ContractError as error:
                raise ContractError(f"{arm} unlabeled inputs: {error}") from error

    return check_both
