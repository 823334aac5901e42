"""Units of work and their outcomes: draws, trials, arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from peekbench.records.answers import Predicted
    from peekbench.records.data import FloatArray, Folders, Inputs, IntArray, Reference


Control: TypeAlias = Literal["", "negative", "positive"]
"""What is known in advance of a method's bias: 'negative' means none, 'positive' a planted one, '' nothing."""


@dataclass(frozen=True, slots=True)
class Context:
    """Seed, threads and folders of one fit."""

    seed: int
    """Seed below 2**32. It depends on the draw only, so results do not depend on workers or the order of work."""
    threads: int
    """CPU threads this fit may use. BLAS and OpenMP always run single-threaded, so results do not depend on the number
    of workers."""
    folders: Folders
    """Folder of the spec, and folder for files that fits share."""
    gpu_fraction: float = 1.0
    """Share of a GPU's memory that this fit may use, because other fits use the same GPU."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """A fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> coin = Predictor(lambda inputs: np.full((len(inputs), 2), 0.5), {"parameters": 0})
    >>> coin.predict(["a", "b"]).shape
    (2, 2)
    """

    predict: Callable[[Inputs], Any]
    """Returns probabilities of shape (n, n_classes) in the order of `Task.class_names`, or
    `peekbench.records.Predicted` if the method chooses other labels than the most probable ones; targets of shape (n,)
    for regression; for language modeling the natural logarithm of the probability of each text, shape (n,); or in
    generation an answer to each prompt, or k answers to each, whose mean grade counts. The prediction for one input
    must not depend on the other inputs."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers to store with the arm, such as training losses or sizes."""
    log_likelihoods: Callable[[Inputs], FloatArray] | None = None
    """For classifiers of texts that contain a language model: returns the natural logarithm of the probability of each
    text, shape (n,), from which peekbench computes bits per byte beside the accuracy. The value for one text must not
    depend on the other texts. In language modeling, `predict` returns these numbers instead."""


@dataclass(frozen=True, slots=True)
class Subsample:
    """Row numbers of one draw. Its sets are disjoint and share no groups, each is in the order drawn.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Subsample(train=np.array([4, 0]), sets=(np.array([1]), np.array([2])), shared=np.array([], dtype=int))
    >>> rows.test, rows.extra
    (array([1]), array([2]))
    """

    train: IntArray
    """Rows of the labeled texts for training."""
    sets: tuple[IntArray, ...]
    """At least two exchangeable sets of the same size. With crossover scoring, each is the test set of one fit and an
    extra set of the others; otherwise, the first one is the test set and the second one the extra set. With folds, the
    whole official test split, and if the task has private extra texts as many of these, repeated if they are fewer."""
    shared: IntArray
    """Further rows whose texts every fit with unlabeled texts adapts to, after its own; see `design.num_unlabeled`."""
    folds: tuple[tuple[int, int], ...] = ()
    """First and last position of each fold of the test set, the last one excluded; empty without folds."""

    @property
    def test(self) -> IntArray:
        """The first set."""
        return self.sets[0]

    @property
    def extra(self) -> IntArray:
        """The second set."""
        return self.sets[1]


class Draw(NamedTuple):
    """Identifier of one draw from one task, shared by the arms of a trial and by the trials of all methods."""

    task: str
    """Name of the task in the spec."""
    num_train: int
    """Number of labeled texts for training."""
    num_test: int
    """Number of test texts and of extra texts."""
    subsample: int
    """Number of the subsample, from 0."""


class Trial(NamedTuple):
    """The unit of work: one method on one draw, in all arms.

    Examples
    --------
    >>> print(Trial(Draw("tickets", 50, 200, 0), "lsa"))
    task tickets, method lsa, num_train 50, num_test 200, subsample 0
    """

    draw: Draw
    """Task, sizes and subsample."""
    method: str
    """Name of the method in the spec."""

    def __str__(self) -> str:
        """Return the trial in words, for messages."""
        draw = self.draw
        return (
            f"task {draw.task}, method {self.method}, num_train {draw.num_train}, "
            f"num_test {draw.num_test}, subsample {draw.subsample}"
        )


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Trials on one draw whose methods share a base arm, so that one worker runs them together.

    Examples
    --------
    >>> item = WorkItem((Trial(Draw("tickets", 50, 200, 0), "lsa"),), has_base=False)
    >>> len(item.trials)
    1
    """

    trials: tuple[Trial, ...]
    """Trials to run, in this order."""
    has_base: bool
    """Whether the store already has the base arm."""


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One scored arm.

    Examples
    --------
    >>> import numpy as np
    >>> from peekbench.records import Predicted
    >>> predicted = Predicted(np.eye(2, dtype=np.float32), np.array([0, 1]))
    >>> arm = ArmResult("test", {"score": 0.75}, 1.5, 0.1, {}, predicted)
    >>> arm.score
    0.75
    """

    arm: str
    """Name of the arm: 'base', 'extra', 'test', a dose such as 'mix-0.25', or a rule such as 'cross-5'."""
    scores: Mapping[str, float | int | None]
    """Scores by name, see `peekbench.results.SCORES`; None if a score is undefined for the kind of task."""
    fit_seconds: float
    """Seconds of the fits. That of a fit which serves several sets or arms is divided among them, so that sums over
    arms are the time spent."""
    predict_seconds: float
    """Seconds of the predictions for all scored sets."""
    metrics: Mapping[str, float]
    """Numbers that the method recorded."""
    predicted: Predicted
    """Labels that the method chose, in classification, and numbers: float32, or for other kinds of tasks float64. The
    scores are computed from exactly these. They are in the order of the test rows, which are repeated if several fits
    predicted them."""
    answers: tuple[Reference, ...] = ()
    """The answer to each prompt in generation, or a tuple of several, length n_scored."""

    @property
    def score(self) -> float:
        """Accuracy as a fraction, R^2, or the log-likelihood of texts in bits per byte."""
        score = self.scores["score"]
        assert score is not None
        return score


@dataclass(frozen=True, slots=True)
class Repeat:
    """What differs between two fits with the same seed.

    Examples
    --------
    >>> Repeat(12, 40, 0.488, 0.501).num_changed
    12
    """

    num_changed: int
    """Predictions that differ."""
    num_predictions: int
    """All of them."""
    first: float
    """Score the first time, as a fraction."""
    second: float
    """Score the second time."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A finished trial. It is stored completely or not at all."""

    trial: Trial
    """The trial that finished."""
    test_labels: IntArray | FloatArray
    """Labels of the test rows, shape (n_sets * n_test,)."""
    test_rows: IntArray
    """Numbers of the test rows in the data of the task, set by set, shape (n_sets * n_test,)."""
    arms: tuple[ArmResult, ...]
    """Arms in the spec's order, without the base arm if another method's trial on the same draw has it."""
    host: str = ""
    """Name of the machine that computed the trial."""
    test_groups: IntArray | None = None
    """Number of the group of each test row, shape (n_sets * n_test,); None if every row is a group of its own."""
    seconds: float = 0.0
    """Wall time of the trial in its worker process; pilots measure it."""
    repeats: tuple[Repeat, ...] = ()
    """The fit that was made twice, in the first trial of a method."""


MAX_ERROR, MAX_TRACEBACK = 2_000, 20_000
"""Characters of an error and of a traceback that stores and `report.json` keep."""


@dataclass(frozen=True, slots=True)
class TrialFailure:
    """A trial that raised an error."""

    trial: Trial
    """The trial that failed."""
    error: str
    """Type and message of the error."""
    traceback: str
    """Traceback of the error."""
    host: str = ""
    """Name of the machine that tried the trial; empty if its machine or worker was lost."""


@dataclass(frozen=True, slots=True, order=True)
class RowLimit:
    """The number of subsamples that the rows of a task support.

    Examples
    --------
    >>> min(RowLimit(40, "news", 400), RowLimit(60, "mails", 600)).task
    'news'
    """

    num_subsamples: int
    """Number of subsamples."""
    task: str
    """Name of the task."""
    num_rows: int
    """Rows from which test sets are drawn."""
