"""The scores that peekbench computes for each arm: one table, from which every list of scores is derived.

To add a score, add an entry to `SCORES`. Its name as an option of analyses, the columns of the store, the results table
and its documentation follow from it; stores that other scores wrote are refused. Analyses read it as
`peekbench.results.SCORES`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from peekbench.errors import ContractError
from peekbench.lazy import LazyModule
from peekbench.records.answers import Predicted, find_answers, find_correct, find_true_probabilities
from peekbench.records.data import FloatArray, IntArray, TaskKind
from peekbench.records.verdicts import Unit

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")  # reading a spec needs the names of the scores, and must not import numpy

MIN_PROBABILITY = 2.0**-23
"""Smaller probabilities count as this one, float32's resolution at 1, so that a log loss is always finite."""


@dataclass(frozen=True, slots=True)
class TextLikelihoods:
    """Log-likelihoods of the test texts under the language model of a classifier."""

    values: FloatArray
    """float64: natural logarithm of each text's probability, shape (n_test,)."""
    num_bytes: int
    """Bytes of all texts in UTF-8."""


@dataclass(frozen=True)
class ScoringInput:
    """Predictions of one arm with the true labels."""

    predicted: Predicted
    """Labels that the method chose, and numbers, which scores compute with in float64."""
    labels: IntArray | FloatArray
    """Shape (n_test,): class indices, the targets of a regression, or the texts' bytes in language modeling; shape
    (n_test, n_labels) with 0 and 1 for multi-label tasks."""
    num_classes: int
    """Number of classes or labels."""
    texts: TextLikelihoods | None = None
    """Of classified texts only; None if the method gives no log-likelihoods."""

    @cached_property
    def numbers(self) -> FloatArray:
        """Numbers of the predictions in float64."""
        return self.predicted.numbers.astype(np.float64)

    @cached_property
    def truth(self) -> IntArray:
        """Class indices of shape (n_test,), or 0 and 1 of shape (n_test, n_labels)."""
        return self.labels.astype(np.int64)

    @cached_property
    def answers(self) -> IntArray:
        """Answers as `find_answers` returns them, in the shape of the truth."""
        return find_answers(self.predicted, self.truth)

    @cached_property
    def true_probabilities(self) -> FloatArray:
        """Probability of what is true of each text; see `find_true_probabilities`."""
        return find_true_probabilities(self.numbers, self.truth)


ScoreFunction: TypeAlias = Callable[[ScoringInput], float | None]


@dataclass(frozen=True, slots=True)
class Score:
    """A number that says how well the predictions of one arm fit.

    Examples
    --------
    >>> data = ScoringInput(Predicted(np.array([[0.8, 0.2], [0.3, 0.7]])), np.array([0, 0]), num_classes=2)
    >>> brier = next(score for score in SCORES if score.name == "brier")
    >>> round(brier.functions["classification"](data), 3), brier.is_higher_better
    (0.53, False)
    """

    name: str
    """Column of the store and of the results table."""
    title: str
    """Name in reports of the quantity in which higher is better: the score, or its negative if a lower score is better.
    """
    unit: Unit
    """How reports show values."""
    functions: Mapping[TaskKind, ScoreFunction]
    """Kinds of tasks for which the score is defined, with the function that computes it, or None if it cannot."""
    type: Literal["integer", "number"] = "number"
    """Type of the values."""
    minimum: float = 0.0
    """Smallest value."""
    maximum: float = 1.0
    """Largest value."""
    is_required: bool = False
    """Whether every arm has this score for every kind of task."""
    is_higher_better: bool = True
    """Whether a higher score is better; analyses change the sign of other scores."""
    is_mean: bool = False
    """Whether the score of a set is the mean over its texts, so that the theorem of membership holds for it. That of
    'score' depends on the kind of task."""
    region: float = 0.005
    """Default half-width of the region of practical equivalence: smaller changes of the score are negligible."""
    synonyms: tuple[str, ...] = ()
    """Other names of the column in users' tables. Each has a single meaning in a table of scores."""


MEANS_OF_SKLEARN = ("accuracy", "top_k_accuracy", "neg_log_loss", "neg_brier_score")
"""Scores of scikit-learn that are means over rows, beside those named 'neg_mean_...' or '..._samples'."""
FRACTIONS_OF_SKLEARN = (
    "accuracy", "average_precision", "balanced_accuracy", "f1", "jaccard", "precision", "recall", "roc_auc",
    "top_k_accuracy",
)  # fmt: skip
"""Scores of scikit-learn from 0 to 1, or the beginnings of their names, such as 'f1_weighted'."""


def find_score(name: str) -> Score:
    """Return the score of a name; names that `SCORES` lacks are those of scikit-learn, of which higher is better.

    Parameters
    ----------
    name
        Column of the store, or name in scikit-learn.

    Returns
    -------
    Score
        The score of scikit-learn has its name as title and computes nothing.

    Examples
    --------
    >>> find_score("macro_f1").title, find_score("roc_auc").is_higher_better
    ('macro-F1', True)
    """
    known = (score for score in SCORES if score.name == name)
    is_mean = name in MEANS_OF_SKLEARN or name.startswith("neg_mean_") or name.endswith("_samples")
    unit: Unit = "number"
    if name.startswith(FRACTIONS_OF_SKLEARN):
        unit = "fraction"
    return next(known, Score(name, name, unit, {}, minimum=-math.inf, maximum=math.inf, is_mean=is_mean))


def count_correct(data: ScoringInput) -> int:
    """Return the number of texts whose answer is the true class or, in a multi-label task, exactly the true labels."""
    return int(np.count_nonzero(find_correct(data.predicted, data.truth)))


def count_right_grades(data: ScoringInput) -> int | None:
    """Return the number of prompts that are answered right; None if some are right in part, or in some answers."""
    if np.isin(data.numbers, (0, 1)).all():
        return int(data.numbers.sum())
    return None


def mean_grade(data: ScoringInput) -> float:
    """Return the mean grade of the answers to prompts."""
    return float(data.numbers.mean())


def accuracy(data: ScoringInput) -> float:
    """Return the share of texts whose answer is right; the *subset accuracy* of a multi-label task."""
    return count_correct(data) / len(data.labels)


def r_squared(data: ScoringInput) -> float:
    """Return R^2, the share of the targets' variance that the predictions explain.

    Raises
    ------
    ContractError
        If all targets are equal, or R^2 is not finite.
    """
    predictions, targets = data.numbers, data.labels
    if targets.min() == targets.max():
        raise ContractError("all test targets are equal, so R^2 is undefined; use a larger num_test")
    deviations = targets - targets.mean()
    # Squares of very large or small numbers leave the range of float64. Scaling by a power of two changes no digit.
    _, exponent = np.frexp(np.abs(deviations).max())
    with np.errstate(over="ignore"):
        residuals, deviations = (np.ldexp(values, -exponent) for values in (targets - predictions, deviations))
        score = 1 - float(residuals @ residuals) / float(deviations @ deviations)
    if not np.isfinite(score):
        raise ContractError(
            "predictions are so far from the targets that R^2 is not a finite number; check the scale of predictions"
        )
    return score


def log_loss(data: ScoringInput) -> float:
    """Return the mean of -ln p of the true class, or over labels of -ln p of their presence or absence."""
    return -float(np.mean(np.log(np.maximum(data.true_probabilities, MIN_PROBABILITY))))


def brier_score(data: ScoringInput) -> float:
    """Return the mean over texts of the squared distance of the probabilities from the truth (Brier 1950)."""
    return float(np.mean((data.numbers**2).sum(axis=1) - 2 * data.true_probabilities + 1))


def brier_score_of_labels(data: ScoringInput) -> float:
    """Return the mean over texts and labels of the Brier score of a label as a class, which is 0 to 2 as well."""
    return float(2 * np.mean((1 - data.true_probabilities) ** 2))


def micro_f1(data: ScoringInput) -> float:
    """Return F1 of all decisions on labels together; 0 if no text has a label and none is given one.

    The definition is that of `sklearn.metrics.f1_score` with `average="micro"` and `zero_division=0`.
    """
    num_hits = np.count_nonzero(data.answers & data.truth)
    total = int(data.truth.sum() + data.answers.sum())
    return 2 * num_hits / max(total, 1)


def macro_f1_of_labels(data: ScoringInput) -> float:
    """Return the mean over all labels of F1, which is 0 for a label that no text has and none is given.

    The definition is that of `sklearn.metrics.f1_score` with `average="macro"` and `zero_division=0`.
    """
    num_hits = (data.answers & data.truth).sum(axis=0)
    total = data.truth.sum(axis=0) + data.answers.sum(axis=0)
    return float(np.mean(2 * num_hits / np.maximum(total, 1)))


def macro_f1(data: ScoringInput) -> float:
    """Return the mean of F1 over the classes that occur among labels or answers."""
    hits = data.truth[data.answers == data.truth]
    num_true, num_answered, num_hits = (
        np.bincount(classes, minlength=data.num_classes) for classes in (data.truth, data.answers, hits)
    )
    total = num_true + num_answered
    occurs = total > 0
    return float(np.mean(2 * num_hits[occurs] / total[occurs]))


def bits_per_byte(data: ScoringInput) -> float:
    """Return the bits that an ideal code needs for the texts, per byte of their UTF-8 encoding (Gao et al. 2020).

    Source: https://doi.org/10.48550/arXiv.2101.00027, section 3.1. All texts count together, so long texts weigh more.

    Raises
    ------
    ContractError
        If all texts are empty.
    """
    return _bits_per_byte(data.numbers, float(data.labels.sum()))


def bits_per_byte_of_classified(data: ScoringInput) -> float | None:
    """Return `bits_per_byte` of the texts that a method classifies; None if it gives no log-likelihoods of texts.

    Raises
    ------
    ContractError
        If all texts are empty.
    """
    if data.texts is None:
        return None
    return _bits_per_byte(data.texts.values, data.texts.num_bytes)


def _bits_per_byte(log_likelihoods: FloatArray, num_bytes: float) -> float:
    if num_bytes == 0:
        raise ContractError("all test texts are empty, so bits per byte are undefined; drop empty texts")
    return -float(log_likelihoods.sum()) / (math.log(2) * num_bytes)


def log_likelihood_per_byte(data: ScoringInput) -> float:
    """Return the log-likelihood of the texts in bits per byte."""
    return -bits_per_byte(data)


def score_all(kind: TaskKind, data: ScoringInput) -> dict[str, float | int | None]:
    """Return every score by name; None for scores that are undefined for the kind of task."""
    return {score.name: score.functions.get(kind, _undefined)(data) for score in SCORES}


def _undefined(_: ScoringInput) -> None:
    return None


def average_scores(scores: Sequence[Mapping[str, float | int | None]], num_sets: int) -> dict[str, float | int | None]:
    """Average the scores of fits on sets of equal size, and add up counts.

    Parameters
    ----------
    scores
        Scores of each set, as often as fits predicted it: set by set, and fit by fit.
    num_sets
        Number of sets.
    """
    averages: dict[str, float | int | None] = {}
    for score in SCORES:
        values = [of_set[score.name] for of_set in scores]
        present = [value for value in values if value is not None]
        if len(present) < len(values):
            averages[score.name] = None
        elif score.unit == "count":
            averages[score.name] = sum(present)
        else:
            averages[score.name] = average_sets(present, num_sets)
    return averages


def average_sets(values: Sequence[float], num_sets: int) -> float:
    """Return the average of a score over sets and fits; equal predictions of all fits have exactly that of one fit.

    Parameters
    ----------
    values
        Scores in the order of `average_scores`.
    num_sets
        Number of sets.
    """
    return _mean([_mean(values[first : first + num_sets]) for first in range(0, len(values), num_sets)])


def _mean(values: Sequence[float]) -> float:
    """Return the mean, which is exact for equal values."""
    first = values[0]
    return first + math.fsum(value - first for value in values) / len(values)


SCORES: tuple[Score, ...] = (
    Score(
        "num_correct",
        "correct answers",
        "count",
        {"classification": count_correct, "multilabel": count_correct, "generation": count_right_grades},
        type="integer",
        maximum=math.inf,
        synonyms=("n_correct", "correct"),
    ),
    Score(
        "score",
        "score",
        "fraction",
        {
            "classification": accuracy,
            "multilabel": accuracy,
            "regression": r_squared,
            "language_modeling": log_likelihood_per_byte,
            "generation": mean_grade,
        },
        minimum=-math.inf,
        is_required=True,
        synonyms=("accuracy", "acc", "main_score", "r2"),
    ),
    Score(
        "log_loss",
        "log-likelihood",
        "number",
        {"classification": log_loss, "multilabel": log_loss},
        maximum=math.inf,
        is_higher_better=False,
        is_mean=True,
        region=0.01,
    ),
    Score(
        "brier",
        "negative Brier score",
        "number",
        {"classification": brier_score, "multilabel": brier_score_of_labels},
        maximum=2.0,
        is_higher_better=False,
        is_mean=True,
    ),
    Score(
        "macro_f1",
        "macro-F1",
        "fraction",
        {"classification": macro_f1, "multilabel": macro_f1_of_labels},
        synonyms=("f1_macro",),
    ),
    Score("micro_f1", "micro-F1", "fraction", {"multilabel": micro_f1}, synonyms=("f1_micro",)),
    Score("grade", "mean grade", "fraction", {"generation": mean_grade}, is_mean=True),
    Score(
        "bits_per_byte",
        "log-likelihood in bits per byte",
        "number",
        {
            "classification": bits_per_byte_of_classified,
            "multilabel": bits_per_byte_of_classified,
            "language_modeling": bits_per_byte,
        },
        maximum=math.inf,
        is_higher_better=False,
        region=0.01,
        synonyms=("bpb",),
    ),
)
"""All scores, in the order of the columns.

Examples
--------
>>> [score.name for score in SCORES if score.is_required]
['score']
"""

SCORE_NAMES = tuple(score.name for score in SCORES if score.unit != "count")
"""Names of the scores that analyses can be about."""

if TYPE_CHECKING:
    ScoreName: TypeAlias = str
    """Name of a score that analyses can be about: one of `peekbench.results.SCORES` except the count of answers.

    Examples
    --------
    >>> from pydantic import TypeAdapter
    >>> TypeAdapter(ScoreName).validate_python("macro_f1")
    'macro_f1'
    """
else:
    ScoreName = Literal[SCORE_NAMES]
