"""A method with data to check it on: synthetic rows, or given ones, drawn as in a run.

A case of synthetic rows has a *variant*, whose rows differ in what may reveal other errors: there are more train rows,
another number of classes, and long texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from peekbench.cache import cache_folder
from peekbench.data import loading as data
from peekbench.data.dataset_checks import check_dataset, class_counts
from peekbench.data.sampling import Sampler
from peekbench.errors import ContractError, DataError, PeekbenchError
from peekbench.execution.prediction_checks import (
    MAX_CHANGED,
    SUM_TOLERANCE,
    as_answer,
    check_predictions,
    read_only,
    score_texts,
    take,
)
from peekbench.formatting import pluralize
from peekbench.plugins.boundary import Foreign, describe_exception
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
from peekbench_testing.conditions import time_limit
from peekbench_testing.runner import HERE, Attempt, Memo
from peekbench_testing.samples import sample_kind, sample_long_texts, sample_texts

SAMPLE = "peekbench_testing.sample"
"""Name of the data source of rows that come from no data source."""
MAX_TRAIN, MIN_TEST, MAX_TEST = 60, 30, 60  # rows: enough to reveal errors, few enough to be quick
VARIANT_TRAIN, VARIANT_TEST = 132, 30  # rows: more than most minibatches have
TIMEOUT = 300.0  # seconds that a fit or a prediction may take by default
EXACT_SUM_TOLERANCE = 1e-5
"""Largest difference between 1 and a sum of probabilities in single or double precision. Runs tolerate more."""


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
    timeout: float = TIMEOUT
    """Seconds that a fit or a prediction may take."""
    name: str = ""
    """What distinguishes the rows of a variant, in words; otherwise empty."""
    variant: Case | None = None
    """The method with rows that may reveal other errors; None for given rows."""
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    """Results that several checks use."""

    @property
    def unlabeled_of(self) -> Mapping[str, Inputs | None]:
        """Unlabeled inputs by arm."""
        return {"base": None, "extra": self.unlabeled, "test": self.test}

    def change(self, **values: Any) -> Case:
        """Return the case and its variant with other values of fields, and without results."""
        variant = self.variant and self.variant.change(**values)
        return replace(self, **{"variant": variant, "memo": Memo(), **values})

    def describe(self, unlabeled: Inputs | None) -> str:
        """Describe the unlabeled inputs of a fit, and the rows of a variant."""
        if unlabeled is None:
            described = "without unlabeled inputs"
        elif unlabeled is self.test:
            described = "with the test inputs as unlabeled inputs"
        else:
            described = "with unlabeled inputs"
        return f"{described} ({self.name})" if self.name else described

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
            If the method returns something else than a `Predictor`, or takes longer than the time limit.
        """
        context = Context(seed, 1, self.folders)
        train = train or self.train
        num_unlabeled = 0 if unlabeled is None else len(unlabeled)
        doing = (
            f"a fit to {pluralize(len(train.inputs), 'train row')} and {pluralize(num_unlabeled, 'unlabeled input')}"
        )
        with time_limit(self.timeout, doing):
            predictor = self.entry.method(unlabeled, train, self.task, options=options or self.options, context=context)
        if not isinstance(predictor, Predictor):
            raise ContractError(f"it returned a {type(predictor).__name__}; return peekbench.Predictor(predict)")
        ordered: Predictor = as_predictor(predictor, self.task, train.labels)
        return replace(ordered, predict=lambda inputs: _without_default_labels(ordered.predict(inputs)))

    def predict(
        self,
        unlabeled: Inputs | None,
        *,
        seed: int = 1,
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
            If the predictions have a wrong type, shape or value, or take longer than the time limit.
        """
        with self.time_limit(inputs):
            predicted = predictor.predict(inputs)
        numbers = getattr(predicted, "numbers", predicted)
        tolerance = SUM_TOLERANCE if np.asarray(numbers).dtype == np.float16 else EXACT_SUM_TOLERANCE
        check_predictions(predicted, len(inputs), self.task, sum_tolerance=tolerance)
        if self.task.kind == "generation":
            return np.fromiter(map(as_answer, predicted), dtype=object)
        return np.array(numbers, dtype=np.float64)

    def time_limit(self, inputs: Inputs) -> AbstractContextManager[None]:
        """Limit the time of a prediction."""
        return time_limit(self.timeout, f"a prediction of {pluralize(len(inputs), 'input')}")


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
    folders, variant = Folders(folder, folder), None
    if dataset is None:
        order = (
            "classification", "regression", "tabular_classification", "text_regression", "language_modeling",
            "multilabel", "tabular_multilabel", "generation",
        )  # fmt: skip
        kind = next(kind for kind in order if kind in entry.task_kinds)
        dataset = sample_kind(kind, sample_texts(), 2)
        other_rows = sample_kind(kind, sample_long_texts(VARIANT_TRAIN + 2 * VARIANT_TEST), 4)
        variant = _draw(use, entry, options, folders, other_rows, None, (VARIANT_TRAIN, VARIANT_TEST))
        variant = replace(variant, name=_describe_rows(variant))
    check_dataset(dataset, "the dataset to check on")
    num_train = _num_train(dataset)
    num_test = min(MAX_TEST, (len(dataset.labels) - num_train) // 2)
    if num_test < MIN_TEST:
        raise DataError(
            f"cannot check a method on {pluralize(len(dataset.labels), 'row')}, {num_train} of them for training; "
            f"give at least {num_train + 2 * MIN_TEST}"
        )
    case = _draw(use, entry, options, folders, dataset, source, (num_train, num_test))
    return replace(case, variant=variant)


def _describe_rows(case: Case) -> str:
    """Describe what distinguishes the rows of a variant."""
    parts = [pluralize(len(case.train.inputs), "train row")]
    if case.task.class_names:
        parts.insert(0, pluralize(len(case.task.class_names), "class", "classes"))
    if not isinstance(case.test, np.ndarray):
        parts.append(f"texts of up to {max(map(len, case.test)):,} characters")
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def _num_train(dataset: Dataset) -> int:
    """Return the size of the train set: two rows or more of each class, and at most half of the smallest class."""
    if dataset.kind != "classification":
        return MAX_TRAIN
    num_classes = len(dataset.class_names)
    counts = class_counts(dataset)
    smallest = min(counts.get(label, 0) for label in range(num_classes))
    return num_classes * max(1, min(max(2, MAX_TRAIN // num_classes), smallest // 2))


def _draw(
    use: str,
    entry: MethodEntry,
    options: Options,
    folders: Folders,
    dataset: Dataset,
    source: SourceRef | None,
    sizes: tuple[int, int],
) -> Case:
    if source is None:
        source = SourceRef(SAMPLE, {"rows": data.fingerprint(dataset)}, folders.spec)
        data.remember(source, dataset)
    grader = None
    if dataset.kind == "generation":
        grader = find_grader(dataset.grader, folders.spec)
    num_train, num_test = sizes
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


class Observation(NamedTuple):
    """What the predictor of one fit returns."""

    predictions: FloatArray
    empty: Attempt
    """Predictions of an empty text alone, and in a batch; None if the inputs are no texts."""
    texts: Attempt
    """Log-likelihoods of the test inputs, and the predictions afterwards; None if the predictor gives none."""


class Refits(NamedTuple):
    """Predictions of a second fit with the same arguments, before and after another fit, and of a third fit."""

    second: FloatArray
    second_after_other: Attempt
    third: Attempt


def observe(case: Case, unlabeled: Inputs | None) -> Observation:
    """Fit the method in one arm and observe its predictor; once for all checks."""
    return case.memo.share(f"observation {case.describe(unlabeled)}", partial(_observe, case, unlabeled))


def _observe(case: Case, unlabeled: Inputs | None) -> Observation:
    predictor = case.fit(unlabeled)
    return Observation(
        case.apply(predictor, case.test),
        empty=Attempt(partial(_predict_empty, case, predictor)),
        texts=Attempt(partial(score_batches, case, predictor, (case.test,))),
    )


def _predict_empty(case: Case, predictor: Predictor) -> tuple[FloatArray, FloatArray] | None:
    if isinstance(case.test, np.ndarray):
        return None
    return case.apply(predictor, ("",)), case.apply(predictor, ("", *case.test))


def score_batches(case: Case, predictor: Predictor, batches: Sequence[Inputs]) -> tuple[FloatArray, FloatArray] | None:
    """Return log-likelihoods of batches, and the predictions afterwards; None if the predictor gives none."""
    values = []
    for batch in batches:
        with case.time_limit(batch):
            scored = score_texts(predictor, batch, case.task)
        if scored is None:
            return None
        values.append(scored.values)
    return np.concatenate(values), case.apply(predictor, case.test)


def refit(case: Case, unlabeled: Inputs | None) -> Refits:
    """Fit again, fit with another seed and other unlabeled inputs, and fit a third time; once for all checks."""
    return case.memo.share(f"refits {case.describe(unlabeled)}", partial(_refit, case, unlabeled))


def _refit(case: Case, unlabeled: Inputs | None) -> Refits:
    predictor = case.fit(unlabeled)
    second = case.apply(predictor, case.test)
    case.fit(case.other, seed=2)
    after = Attempt(partial(case.apply, predictor, case.test))
    del predictor  # it may keep a model that the next fit can use
    return Refits(second, after, Attempt(partial(case.predict, unlabeled)))


def are_equal(first: FloatArray, second: FloatArray, tolerance: float = 0.0) -> bool:
    """Return whether two arrays differ by at most `tolerance` times their largest number, or times 1.

    With a tolerance, a quarter of generated answers may differ, because rounding can change all tokens that follow.
    """
    if first.dtype == object:
        return first.shape == second.shape and float(np.mean(first != second)) <= (MAX_CHANGED if tolerance else 0)
    scale = max(1.0, float(np.abs(first[np.isfinite(first)]).max(initial=0)))
    return first.shape == second.shape and np.allclose(first, second, rtol=0, atol=tolerance * scale, equal_nan=True)


def is_deterministic(case: Case, unlabeled: Inputs | None) -> bool:
    """Return whether two fits in a row with the same arguments give the same predictions."""
    return are_equal(observe(case, unlabeled).predictions, refit(case, unlabeled).second)


Check: TypeAlias = Callable[[Case], str | None]
CheckOfArm: TypeAlias = Callable[[Case, Inputs | None], str | None]


def in_arms(*arms: str) -> Callable[[CheckOfArm], Check]:
    """Make a check of arms from a check of one; errors and warnings name the arm. A variant is checked in the first."""

    def decorate(check: CheckOfArm) -> Check:
        @wraps(check)
        def check_all(case: Case) -> str | None:
            found = [_check_arm(check, case, case.unlabeled_of[arm]) for arm in arms]
            if case.variant is not None:
                found.append(_check_arm(check, case.variant, case.variant.unlabeled_of[arms[0]]))
            return next(filter(None, found), None)

        return check_all

    return decorate


def _check_arm(check: CheckOfArm, case: Case, unlabeled: Inputs | None) -> str | None:
    place = case.describe(unlabeled)
    try:
        warning = check(case, unlabeled)
    except ContractError as error:
        raise type(error)(f"{place}: {error}") from error
    except Exception as error:
        if not case.name:
            raise
        problem = str(error) if isinstance(error, PeekbenchError) else f"it raised {describe_exception(error, HERE)}"
        raise ContractError(
            f"{place}, after fits to other rows: {problem}; adapt the method to such rows, or remove what it keeps of "
            "earlier fits in the module or under an incomplete cache key"
        ) from error
    return f"{place}: {warning}" if warning else None


in_both_arms = in_arms("extra", "base")
