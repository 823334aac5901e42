"""A method with data to check it on: synthetic rows, or given ones, drawn as in a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from peekbench.cache import cache_folder
from peekbench.data import loading as data
from peekbench.data.dataset_checks import check_dataset, class_counts
from peekbench.data.sampling import Sampler
from peekbench.errors import ContractError, DataError
from peekbench.execution.determinism import TorchWatch, seed_generators
from peekbench.execution.prediction_checks import MAX_CHANGED, as_answer, check_predictions, read_only, take
from peekbench.formatting import pluralize
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.graders import find_grader
from peekbench.plugins.predictors import as_predictor
from peekbench.plugins.protocols import Options
from peekbench.records.answers import Predicted
from peekbench.records.data import Dataset, FloatArray, Folders, Inputs, IntArray, Labeled, SourceRef, Task
from peekbench.records.runs import Resources
from peekbench.records.trials import Context, Draw, Predictor
from peekbench.spec.components import MethodSpec
from peekbench.spec.design import Design
from peekbench_testing.runner import Memo
from peekbench_testing.samples import sample_rows

SAMPLE = "peekbench_testing.sample"
"""Name of the data source of rows that come from no data source."""
MAX_TRAIN, MIN_TEST, MAX_TEST = 60, 30, 60  # rows: enough to reveal errors, few enough to be quick
SEED = 1  # of the fits


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
    dataset: Dataset
    """The rows that were drawn from."""
    labeled: IntArray
    """Numbers of the rows that are in a train set of the case."""
    unseen: IntArray
    """Numbers of the rows that are not in the train set, those of the test set first."""
    folders: Folders
    """Folders for the method."""
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    """Results that several checks use."""

    @property
    def unlabeled_of(self) -> Mapping[str, Inputs | None]:
        """Unlabeled inputs by arm."""
        return {"base": None, "extra": self.unlabeled, "test": self.test}

    def fit(
        self,
        unlabeled: Inputs | None,
        *,
        seed: int = SEED,
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
        train = train or self.train
        watch = TorchWatch()
        seed_generators(seed)  # as in a run
        predictor = self.entry.method(
            unlabeled, train, self.task, options=options or self.options, context=Context(seed, 1, self.folders)
        )
        if watch.was_used_unseeded():
            return self.fit(unlabeled, seed=seed, options=options, train=train)
        if not isinstance(predictor, Predictor):
            raise ContractError(f"it returned a {type(predictor).__name__}; return peekbench.Predictor(predict)")
        ordered: Predictor = as_predictor(predictor, self.task, train.labels)
        return replace(ordered, predict=lambda inputs: _without_default_labels(ordered.predict(inputs)))

    def predict(
        self,
        unlabeled: Inputs | None,
        *,
        seed: int = SEED,
        options: Options | None = None,
        train: Labeled | None = None,
    ) -> FloatArray:
        """Fit the method and predict the test inputs; see `fit` and `apply`."""
        return self.apply(self.fit(unlabeled, seed=seed, options=options, train=train), self.test)

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
            float64 predictions, (n_inputs, n_classes) or (n_inputs,), or in generation the answers, (n_inputs,).

        Raises
        ------
        ContractError
            If the predictions have a wrong type, shape or value.
        """
        predicted = predictor.predict(inputs)
        check_predictions(predicted, len(inputs), self.task)
        if self.task.kind == "generation":
            return np.fromiter(map(as_answer, predicted), dtype=object)
        return np.array(getattr(predicted, "numbers", predicted), dtype=np.float64)

    def observe(self, unlabeled: Inputs | None) -> FloatArray:
        """Return the predictions of a fit with the usual seed, train set and options, which are computed once."""
        number = next(number for number, given in enumerate(self.unlabeled_of.values()) if given is unlabeled)
        return self.memo.share(f"predictions {number}", partial(self.predict, unlabeled))


def _without_default_labels(predicted: Any) -> Any:
    """Return the numbers alone of predictions whose labels are those of the numbers, as most methods return them."""
    if isinstance(predicted, Predicted) and predicted.labels is None:
        return predicted.numbers
    return predicted


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
        dataset = sample_rows(entry.task_kinds)
    check_dataset(dataset, "the dataset to check on")
    num_train = _num_train(dataset)
    num_test = min(MAX_TEST, (len(dataset.labels) - num_train) // 2)
    if num_test < MIN_TEST:
        raise DataError(
            f"cannot check a method on {pluralize(len(dataset.labels), 'row')}, {num_train} of them for training; "
            f"give at least {num_train + 2 * MIN_TEST}"
        )
    folders = Folders(folder, folder)
    if source is None:
        source = SourceRef(SAMPLE, {"rows": data.fingerprint(dataset)}, folders.spec)
        data.remember(source, dataset)
    grader = None
    if dataset.kind == "generation":
        grader = find_grader(dataset.grader, folders.spec)
    design = Design(num_train=(num_train,), num_test=(num_test,), num_subsamples=2)
    sampler = Sampler(dataset, design, seed=0, task="sample")
    first, second = (sampler.draw(Draw("sample", num_train, num_test, subsample)) for subsample in (0, 1))
    draw_inputs = partial(take, dataset.inputs)
    rest = np.setdiff1d(np.arange(len(dataset.labels)), np.concatenate([first.train, first.test]))
    return Case(
        use=use,
        entry=entry,
        options=options,
        task=Task("sample", dataset.kind, tuple(dataset.class_names), dataset.instruction, source, grader),
        train=Labeled(draw_inputs(first.train), read_only(sampler.labels[first.train])),
        unlabeled=draw_inputs(first.extra),
        test=draw_inputs(first.test),
        other=draw_inputs(second.extra),
        other_train=Labeled(draw_inputs(second.train), read_only(sampler.labels[second.train])),
        dataset=dataset,
        labeled=np.union1d(first.train, second.train),
        unseen=np.concatenate([first.test, rest]),
        folders=folders,
    )


def _num_train(dataset: Dataset) -> int:
    """Return the size of the train set: two rows or more of each class, and at most half of the smallest class."""
    if dataset.kind != "classification":
        return MAX_TRAIN
    num_classes = len(dataset.class_names)
    counts = class_counts(dataset)
    smallest = min(counts.get(label, 0) for label in range(num_classes))
    return num_classes * max(1, min(max(2, MAX_TRAIN // num_classes), smallest // 2))


def prepare(spec: MethodSpec, folder: Path) -> None:
    """Check the options against the files on this machine, then download or build all that the method needs."""
    folders = Folders(spec=folder, cache=cache_folder())
    for name, function in (("check", spec.entry.preparation.check), ("prefetch", spec.entry.preparation.prefetch)):
        if function is not None:
            Foreign(f"{spec.use}: `{name}`", spec.use, spec.options).call(
                function, options=spec.options, folders=folders
            )
    if spec.entry.preparation.resources is not None:
        caller = Foreign(f"{spec.use}: `resources`", spec.use, spec.options)
        caller.call(spec.entry.preparation.resources, returns=Resources, options=spec.options, folders=folders)


def are_equal(first: FloatArray, second: FloatArray, tolerance: float = 0.0) -> bool:
    """Return whether two arrays differ by at most `tolerance` times their largest number, or times 1.

    With a tolerance, a quarter of generated answers may differ, because rounding can change all tokens that follow.
    """
    if first.dtype == object:
        return first.shape == second.shape and float(np.mean(first != second)) <= (MAX_CHANGED if tolerance else 0)
    scale = max(1.0, float(np.abs(first[np.isfinite(first)]).max(initial=0)))
    return first.shape == second.shape and np.allclose(first, second, rtol=0, atol=tolerance * scale, equal_nan=True)


Check: TypeAlias = Callable[[Case], str | None]
CheckOfArm: TypeAlias = Callable[[Case, Inputs | None], None]


def in_arms(*arms: str) -> Callable[[CheckOfArm], Check]:
    """Make a check of arms from a check of one; errors name the arm."""

    def decorate(check: CheckOfArm) -> Check:
        @wraps(check)
        def check_all(case: Case) -> None:
            for arm in arms:
                try:
                    check(case, case.unlabeled_of[arm])
                except ContractError as error:
                    place = "without unlabeled inputs" if arm == "base" else "with unlabeled inputs"
                    raise ContractError(f"{place}: {error}") from error

        return check_all

    return decorate
