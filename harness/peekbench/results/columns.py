"""The columns of the results table, and how messages and reports name the columns of users' tables."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from peekbench.errors import Argument
from peekbench.formatting import list_names, pluralize, visible
from peekbench.identity import DIFFERENCES
from peekbench.records.scores import SCORES, Score, find_score
from peekbench.records.verdicts import NUMBERS, POINTS, ScoreUnits
from peekbench.spec.arms import ALL_TEXTS, RULE

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "COLUMN_NAMES", "SCORES", "ResultsColumn", "Score", "find_score"]


MAX_SHOWN = 100  # characters of a cell in a message
MAX_QUOTED = 30  # names listed in a message
BY_TEXT = "no column numbers several subsamples, so each text is one, and arms and methods are paired by text"
BY_ROW = "no column numbers the subsamples, so arms are paired by row and methods are not paired"
WARNING_OF_TEXTS = (
    "Each arm has a single run, so each test text is a subsample: intervals are for other texts with these fitted "
    "models, and not for models that are trained again. Several runs of each arm, such as training seeds, would show "
    "both."
)


MAX_SIZE = 2**53  # larger whole numbers are not exact as float64, and squares and sums of all numbers are finite


@dataclass(frozen=True, slots=True)
class ResultsColumn:
    """One column of the results table; docs/results-table.md describes its meaning.

    Examples
    --------
    >>> next(column for column in COLUMNS if column.name == "subsample").synonyms[0]
    'seed'
    """

    name: str
    """Name in the results table."""
    type: Literal["text", "integer", "number"]
    """Type of the values."""
    synonyms: tuple[str, ...] = ()
    """Other names of the column in users' tables. Each has a single meaning in a table of scores."""
    is_of_arm: bool = True
    """Whether the value belongs to one arm. Otherwise it belongs to the whole trial."""
    minimum: float = -MAX_SIZE
    """Smallest value."""
    maximum: float = MAX_SIZE
    """Largest value."""


OF_TRIAL = partial(ResultsColumn, is_of_arm=False)
SEED_NAMES = ("seed", "random_seed", "run")
SUBSAMPLE_NAMES = (*SEED_NAMES, "fold", "draw", "repeat")
LOSS_NAMES = ("wer", "cer", "rmse", "mae", "mse", "nll", "perplexity")
COLUMNS: tuple[ResultsColumn, ...] = (
    OF_TRIAL("task", "text", ("task_name", "dataset", "benchmark")),
    OF_TRIAL("method", "text", ("method_name", "system", "algorithm")),
    OF_TRIAL("model", "text", ("model_name", "language_model")),
    OF_TRIAL("num_train", "integer", ("n_train", "train_size"), minimum=0),
    OF_TRIAL("num_test", "integer", ("n_test", "test_size", "n"), minimum=1),
    OF_TRIAL("control", "text"),
    OF_TRIAL("subsample", "integer", SUBSAMPLE_NAMES, minimum=0),
    ResultsColumn("arm", "text", ("condition",)),
    OF_TRIAL("num_scored", "integer", minimum=1),
    *(
        ResultsColumn(
            score.name,
            score.type,
            score.synonyms,
            minimum=max(score.minimum, -MAX_SIZE),
            maximum=min(score.maximum, MAX_SIZE),
        )
        for score in SCORES
    ),
    OF_TRIAL("majority", "number", minimum=0, maximum=1),
    ResultsColumn("fit_seconds", "number", minimum=0),
    ResultsColumn("predict_seconds", "number", minimum=0),
    OF_TRIAL("looks", "text"),
    OF_TRIAL("independent_tasks", "text"),
    OF_TRIAL("percentages", "text"),
)
"""All columns in order. Scores come from `peekbench.results.SCORES`.

Examples
--------
>>> [column.name for column in COLUMNS][:4]
['task', 'method', 'model', 'num_train']
"""

TEXT = OF_TRIAL("text", "text", ("text_id", "doc_id", "question_id"))
FIT = ResultsColumn("fit", "text")
GROUP = OF_TRIAL("group", "text")
ANSWER = ResultsColumn("answer", "text", ("prediction", "predicted_label", "y_pred"))
LABEL = OF_TRIAL("label", "text", ("true_label", "gold_label", "y_true"))
PROBABILITY = ResultsColumn("probability", "text")
METRIC = OF_TRIAL("metric", "text", ("metric_name", "score_name"))
LOSS = ResultsColumn("loss", "number", LOSS_NAMES)
ERROR_RATE = ResultsColumn("error_rate", "number", minimum=0, maximum=1)
USER_COLUMNS = (*COLUMNS, TEXT, FIT, GROUP, ANSWER, LABEL, PROBABILITY, METRIC, LOSS, ERROR_RATE)
"""Columns of users' tables, which have some that no results table has."""
COLUMN_NAMES = tuple(column.name for column in COLUMNS)
CONFIGURATION = ("method", "model", "num_train", "num_test")
"""Columns that distinguish configurations, which analyses keep apart."""
TRIAL = (*CONFIGURATION, "task", "subsample")
"""Columns that identify a trial."""
SIZES = ("num_train", "num_test")
MAJORITY = "majority"
INDEPENDENT = {"independent_tasks": "yes"}
"""The cell of tables whose tasks have independent draws."""
AS_PERCENTAGES = {"percentages": "yes"}
"""The cell of tables whose scores are percentages, of which nothing else is known."""
TEXT_DEFAULTS = {column.name: "" for column in COLUMNS if column.type == "text"} | {"task": "task", "method": "method"}
"""Columns of texts with the values that replace missing columns."""
DTYPES = {"text": "str", "integer": "Int64", "number": "float64"}
TYPES: dict[str, Any] = {column.name: DTYPES[column.type] for column in COLUMNS}
"""Types of the columns of the results table."""
ARM_MEASURES = tuple(column.name for column in COLUMNS if column.is_of_arm and column.name != "arm")
"""Columns whose values belong to one arm."""
LOSSES = (LOSS.name, ERROR_RATE.name)
"""Columns of scores of which lower is better."""
COUNTED = ("acc", "acc_norm", "accuracy", "exact_match")
"""Metrics that are shares of correct answers."""
SCORE_SOURCES = ("score", "num_correct", "grade", "bits_per_byte", *LOSSES, ANSWER.name)
"""Columns of users' tables from which the score is known."""
ARMS = ("base", "extra", "test")
DOSE = re.compile(r"mix-0?\.\d+")


def is_arm(name: str) -> bool:
    """Return whether a text is the name of an arm."""
    return name in (*ARMS, ALL_TEXTS.name) or any(pattern.fullmatch(name) for pattern in (DOSE, RULE))


def sort_arms(arms: Iterable[str]) -> list[str]:
    """Return base, extra, test, doses in ascending order, and other arms."""

    def rank(arm: str) -> tuple[int, float, str]:
        if arm in ARMS:
            return ARMS.index(arm), 0.0, ""
        if DOSE.fullmatch(arm):
            return len(ARMS), float(arm.partition("-")[2]), ""
        return len(ARMS) + 1, 0.0, arm

    return sorted(arms, key=rank)


def short(text: str) -> str:
    """Return the start of a text of any length."""
    if len(text) > MAX_SHOWN:
        text = text[:MAX_SHOWN] + "..."
    return visible(text)


def quoted(names: Collection[object]) -> str:
    """Return a bounded list of names for a message."""
    return list_names([repr(short(str(name))) for name in names], MAX_QUOTED)


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """What was done with each column of a user's table.

    Examples
    --------
    >>> print(ColumnUse(("task", "extra"), {"seed": "subsample"}, {"notes": "by request"}))
    used task, extra; mapped seed=subsample; ignored notes (by request)
    """

    used: tuple[str, ...] = ()
    """Columns that have the names of the results table, or of arms."""
    mapped: Mapping[str, str] = field(default_factory=dict)
    """Other columns that were used, with their meaning."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Columns that were not used, with the reason."""
    pairing: str = ""
    """How rows of different arms or methods were matched, if no column numbers the subsamples."""
    not_like_accuracy: tuple[str | Argument, ...] = ()
    """Parts of the error that scores have no default region of practical equivalence; empty if they are shares."""
    region: float | None = None
    """Half-width of the region of practical equivalence that the user chose for this table."""
    metric: str = ""
    """Metric of the scores; empty if it is not known."""
    num_empty: int = 0
    """Number of arms that were left out because their score is empty, or another arm lacks their fit."""
    num_fits: int = 0
    """Largest number of fits of a subsample whose scores are averaged."""
    controls: tuple[str, ...] = ()
    """Methods that are controls according to the table, which no spec confirms."""
    alike_answers: tuple[str, ...] = ()
    """Answers that are not equal to their labels but alike, and count as correct."""

    def __bool__(self) -> bool:
        """Whether anything is known; the columns of a store need no words."""
        return bool(self.used or self.mapped)

    def __str__(self) -> str:
        """Return the columns in one line."""
        ignored = [
            f"{_listed([name for name, other in self.ignored.items() if other == reason])} ({reason})"
            for reason in dict.fromkeys(self.ignored.values())
        ]
        parts = {
            "used ": _listed(self.used),
            "mapped ": _listed([f"{source}={target}" for source, target in self.mapped.items()]),
            "ignored ": ", ".join(ignored),
            "": self.pairing,
        }
        return "; ".join(name + text for name, text in parts.items() if text)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What readers of a report must know about the direction of scores and the pairing of rows."""
        warnings = []
        if self.num_empty:
            kind = "empty or unpaired score" if self.num_fits else "empty score"
            warnings.append(f"{pluralize(self.num_empty, kind)} left out, as missing trials.")
        meanings = {**self.mapped, **{name: name for name in self.used}}
        if self.num_fits > 1:
            fit, draw = (next(name for name, to in meanings.items() if to == role) for role in ("fit", "subsample"))
            warnings.append(
                f"The scores of each {short(draw)} are averaged over {short(fit)} ({self.num_fits} at most), because "
                "they are not independent."
            )
        if self.controls:
            controls = _listed(self.controls)
            warnings.append(f"Controls according to the table itself: {controls}. They are not judged as methods.")
        if losses := [name for name, role in meanings.items() if role.startswith("loss")]:
            warnings.append(
                f"Lower is better for {_listed(losses)}: scores are negatives, so a positive bias is an improvement."
            )
        if self.alike_answers:
            warnings.append(
                f"Answers that differ from their labels only by {DIFFERENCES} count as correct: "
                f"{len(self.alike_answers):,}, such as {json.dumps(self.alike_answers[0])}."
            )
        if self.pairing == BY_TEXT:
            warnings.append(WARNING_OF_TEXTS)
        return tuple(warnings)

    def as_json(self) -> dict[str, Any]:
        """Return the columns as JSON values."""
        lists = {"used": [*self.used], "controls": [*self.controls]}
        return {**lists, "mapped": dict(self.mapped), "ignored": dict(self.ignored), "pairing": self.pairing}


def _listed(names: Sequence[str]) -> str:
    return list_names([short(name) for name in names], MAX_QUOTED)


def are_accuracies(results: pd.DataFrame) -> bool:
    """Return whether all scores are accuracies or mean grades.

    Parameters
    ----------
    results
        The results table.

    Returns
    -------
    bool
        False if some score is of another kind, such as R^2.

    Examples
    --------
    >>> import pandas as pd
    >>> from peekbench.results import tidy
    >>> are_accuracies(tidy(pd.DataFrame({"task": ["a"], "extra": [0.5], "test": [0.6], "num_test": 10}), "my scores"))
    True
    """
    return bool((results["num_correct"].notna() | (results["score"] == results["grade"])).all())


def score_units(results: pd.DataFrame) -> ScoreUnits:
    """Return the units of scores: points if all are accuracies, percentages, or other fractions by definition.

    Parameters
    ----------
    results
        The results table, with the chosen score in the column `score`.

    Returns
    -------
    ScoreUnits
        `NUMBERS` if some score is of another kind, such as R^2, or of an unknown kind.

    Examples
    --------
    >>> import pandas as pd
    >>> from peekbench.results import tidy
    >>> scores = pd.DataFrame({"task": "a", "arm": ["extra", "test"], "score": [0.3, 0.4], "macro_f1": [0.5, 0.6]})
    >>> results = tidy(scores, "my scores")
    >>> score_units(results).score, score_units(results.assign(score=results["macro_f1"])).score
    ('number', 'fraction')
    """
    is_fraction = results["num_correct"].notna() | (results["percentages"] == "yes")
    for name in results.columns:
        if name != "score" and find_score(name).unit == "fraction":
            is_fraction |= results["score"] == results[name]
    if is_fraction.all():
        return POINTS
    return NUMBERS
