"""A method with data to check it on: synthetic rows, or given ones, drawn as in a run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from peekbench.data import loading as data
from peekbench.data.sampling import Sampler
from peekbench.errors import ContractError, DataError, PluginError
from peekbench.execution.arms import SUM_TOLERANCE, check_predictions, read_only, take
from peekbench.formatting import pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.protocols import Options
from peekbench.records.data import (
    Dataset,
    FloatArray,
    Folders,
    Inputs,
    IntArray,
    Labeled,
    SourceRef,
    Task,
)
from peekbench.records.trials import Context, Draw, Predictor
from peekbench.spec.design import Design
from peekbench.testing.attempt import Attempt
from peekbench.testing.samples import sample_features, sample_numbers, sample_texts, sample_unlabeled_texts

SAMPLE = "peekbench.testing.sample"
"""Name of the data source of rows that come from no data source."""
MAX_TRAIN, MIN_TEST, MAX_TEST = 60, 30, 60  # rows: enough to reveal errors, few enough to be quick
EXACT_SUM_TOLERANCE = 1e-5
"""Largest difference between 1 and a sum of probabilities in single or double precision. Runs tolerate more."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that a case draws from."""

    dataset: Dataset
    """All rows."""
    labeled: IntArray
    """Numbers of the rows that are in a train set of the case."""
    unseen: IntArray
    """Numbers of the rows that are not in the train set, those of the test set first."""


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
    test: Inputs
    """Test inputs."""
    other: Inputs
    """Unlabeled inputs of another draw."""
    other_train: Labeled
    """Labeled train set of another draw."""
    rows: Rows
    """All rows, and those that were drawn."""
    folders: Folders
    """Folders for the method."""
    shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Results that several checks use."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the case for another process, without what that process can find by its name."""
        values = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "shared"}
        with suppress(PluginError):
            if registry.find(self.use, MethodEntry) is self.entry:
                values["entry"] = None
        if self.task.source.use != SAMPLE:
            values["rows"] = replace(self.rows, dataset=None)  # type: ignore[arg-type]
        return _restore, (values,)

    def share(self, name: str, compute: Callable[[], T]) -> T:
        """Return a result that several checks use. It is computed once; an exception is raised at each call.

        Parameters
        ----------
        name
            Name of the result.
        compute
            Function that computes it.
        """
        if name not in self.shared:
            self.shared[name] = Attempt(compute)
        value: T = self.shared[name].result()
        return value

    def fit(
        self,
        unlabeled: Inputs | None,
        *,
        seed: int = 1,
        options: Options | None = None,
        train: Labeled | None = None,
    ) -> Predictor:
        """Fit the method.

        Parameters
        ----------
        unlabeled
            Unlabeled inputs, or None for the base arm.
        seed
            Seed of the fit.
        options
            Options; by default those of the case.
        train
            Labeled train set; by default that of the case.

        Raises
        ------
        ContractError
            If the method returns something else than a `Predictor`.
        """
        context = Context(seed, 1, self.folders)
        predictor = self.entry.method(
            unlabeled, train or self.train, self.task, options=options or self.options, context=context
        )
        if not isinstance(predictor, Predictor):
            raise ContractError(f"it returned a {type(predictor).__name__}; return peekbench.Predictor(predict)")
        return predictor

    def predict(
        self,
        unlabeled: Inputs | None,
        *,
        seed: int = 1,
        options: Options | None = None,
        train: Labeled | None = None,
    ) -> FloatArray:
        """Fit the method and predict the test inputs.

        Parameters
        ----------
        unlabeled
            Unlabeled inputs, or None for the base arm.
        seed
            Seed of the fit.
        options
            Options; by default those of the case.
        train
            Labeled train set; by default that of the case.

        Returns
        -------
        numpy.ndarray
            float64 predictions, (n_test, n_classes) or (n_test,).

        Raises
        ------
        ContractError
            If the predictions have a wrong type, shape or value.
        """
        predictor = self.fit(unlabeled, seed=seed, options=options, train=train)
        return self.apply(predictor, self.test)

    def apply(self, predictor: Predictor, inputs: Inputs) -> FloatArray:
        """Predict inputs with a fitted method.

        Parameters
        ----------
        predictor
            Result of `fit`.
        inputs
            Inputs to predict.

        Returns
        -------
        numpy.ndarray
            float64 predictions, (n_inputs, n_classes) or (n_inputs,).

        Raises
        ------
        ContractError
            If the predictions have a wrong type, shape or value.
        """
        predictions = predictor.predict(inputs)
        tolerance = SUM_TOLERANCE if np.asarray(predictions).dtype == np.float16 else EXACT_SUM_TOLERANCE
        check_predictions(predictions, len(inputs), self.task, sum_tolerance=tolerance)
        return np.array(predictions, dtype=np.float64)


def _restore(values: dict[str, Any]) -> Case:
    """Make a case from what `Case.__reduce__` pickled."""
    if values["entry"] is None:
        values["entry"] = registry.find(values["use"], MethodEntry)
    source = values["task"].source
    if source.use == SAMPLE:
        data.remember(source, values["rows"].dataset)
    else:
        values["rows"] = replace(values["rows"], dataset=data.load_dataset(source))
    return Case(**values)


def make_case(
    use: str,
    entry: MethodEntry,
    options: Options,
    folder: Path,
    dataset: Dataset | None = None,
    source: SourceRef | None = None,
) -> Case:
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
    source
        Data source of the rows; by default the rows come from none.

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
        dataset = _sample_rows(entry)
    data.check_dataset(dataset, "the dataset to check on")
    num_train = _num_train(dataset)
    num_test = min(MAX_TEST, (len(dataset.labels) - num_train) // 2)
    if num_test < MIN_TEST:
        raise DataError(
            f"cannot check a method on {pluralize(len(dataset.labels), 'row')}, {num_train} of them for training; "
            f"give at least {num_train + 2 * MIN_TEST}"
        )
    if source is None:
        source = SourceRef(SAMPLE, {"rows": data.fingerprint(dataset)}, folder)
        data.remember(source, dataset)
    task = Task("sample", dataset.kind, tuple(dataset.class_names), dataset.instruction, source)
    drawn = draw_rows(dataset, num_train, num_test)
    return Case(use=use, entry=entry, options=options, task=task, folders=Folders(spec=folder, cache=folder), **drawn)


def draw_rows(dataset: Dataset, num_train: int, num_test: int) -> dict[str, Any]:
    """Draw the inputs of a case, by the names of its fields."""
    design = Design(num_train=(num_train,), num_test=(num_test,), num_subsamples=2)
    sampler = Sampler(dataset, design, seed=0, task="sample")
    first, second = (sampler.draw(Draw("sample", num_train, num_test, subsample)) for subsample in (0, 1))
    draw_inputs = partial(take, dataset.inputs)
    rest = np.setdiff1d(np.arange(len(dataset.labels)), np.concatenate([first.train, first.test]))
    return {
        "train": Labeled(draw_inputs(first.train), read_only(sampler.labels[first.train])),
        "unlabeled": draw_inputs(first.extra),
        "test": draw_inputs(first.test),
        "other": draw_inputs(second.extra),
        "other_train": Labeled(draw_inputs(second.train), read_only(sampler.labels[second.train])),
        "rows": Rows(dataset, np.union1d(first.train, second.train), np.concatenate([first.test, rest])),
    }


def _sample_rows(entry: MethodEntry) -> Dataset:
    """Return synthetic rows of a kind of task that a method supports."""
    if "regression" in entry.task_kinds:
        return sample_numbers()
    if "classification" in entry.task_kinds:
        return sample_texts()
    return sample_features() if "tabular_classification" in entry.task_kinds else sample_unlabeled_texts()


def _num_train(dataset: Dataset) -> int:
    """Return the size of the train set: two rows or more of each class, and at most half of the smallest class."""
    if dataset.kind != "classification":
        return MAX_TRAIN
    num_classes = len(dataset.class_names)
    counts = data.class_counts(dataset)
    smallest = min(counts.get(label, 0) for label in range(num_classes))
    return num_classes * max(1, min(max(2, MAX_TRAIN // num_classes), smallest // 2))


def in_both_arms(check: Callable[[Case, Inputs | None], str | None]) -> Callable[[Case], str | None]:
    """Make a check of both arms from a check of one arm; its errors and its warning name the arm."""

    @wraps(check)
    def check_both(case: Case) -> str | None:
        found = ""
        for arm, unlabeled in (("with", case.unlabeled), ("without", None)):
            try:
                warning = check(case, unlabeled)
            except ContractError as error:
                raise ContractError(f"{arm} unlabeled inputs: {error}") from error
            if warning and not found:
                found = f"{arm} unlabeled inputs: {warning}"
        return found or None

    return check_both
