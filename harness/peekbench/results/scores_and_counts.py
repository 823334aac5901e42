"""Computes scores from counts of correct answers or from bits per byte, and counts from scores."""

from __future__ import annotations

from typing import NoReturn

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.results.cells import CellReader, quoted
from peekbench.results.column_names import ignore_option
from peekbench.results.column_roles import ColumnRoles
from peekbench.results.columns import LOSS

ANSWERS = "answers"
"""Column of rows of single texts: number of answers to the text, of which `num_correct` are correct."""
DECIMALS = range(2, 6)
"""Numbers of decimals of rounded scores. Scores with more decimals are exact to 6."""
FLOAT_ERROR = 1e-7
"""Largest error of a score in single precision."""


class ScoreChecks:
    """Refuses scores that are missing or contradict counts; messages name the user's columns.

    Parameters
    ----------
    results
        Rows of the user's table, once for each arm that they contain.
    roles
        Roles of the user's columns.
    reader
        Reader of the user's table.
    """

    def __init__(self, results: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> None:
        self._arms = results["arm"]
        self._roles = roles
        self._reader = reader

    def require(self, is_valid: pd.Series[bool], column: str, problem: str) -> None:
        """Refuse the first row that is not valid."""
        invalid = (~is_valid.astype("bool")).to_numpy()
        if invalid.any():
            position = int(invalid.argmax())
            source = self._source(column, position) or self._source("score", position)
            assert source is not None  # `require_scores` passed
            raise self._reader.error(position % len(self._reader.index), source, problem)

    def require_scores(self, scores: pd.Series[float]) -> None:
        """Refuse the first row without a score."""
        missing = scores.isna().to_numpy()
        if missing.any():
            self._refuse_missing(int(missing.argmax()))

    def _refuse_missing(self, position: int) -> NoReturn:
        row = position % len(self._reader.index)
        score, count = self._source("score", position), self._source("num_correct", position)
        remedy = "is empty; fill it in, or delete the row and use --allow-incomplete"
        if score is None and count is not None:
            size = self._roles.source("num_test")
            if size is not None:
                source = size if self._reader.is_empty(row, size) else count
                raise self._reader.error(row, source, remedy)
            raise self._reader.error(
                row, count, "is a count, and the number of test texts is missing; add the column 'num_test'"
            )
        if score is not None:
            raise self._reader.error(row, score, remedy)
        raise ResultsError(
            f"{self._reader.origin}: no column has the scores; the columns are {quoted(self._reader.names)}. Add a "
            "column 'score' or 'accuracy', or name yours with --map COLUMN=score"
        )

    def _source(self, column: str, position: int) -> str | None:
        """Return the user's column of a row of the results, or None."""
        arm = str(self._arms.iloc[position]) if self._roles.arms else ""
        return self._roles.source(column, arm)


def fill_text_scores(results: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> None:
    """Compute missing scores and counts of rows that are about single texts, and the column of numbers of answers.

    Scores of 0 and 1 are those of a single answer, also if `num_test` is the number of all texts. With `num_correct`,
    `num_test` is the number of answers to each text. Other scores are no counts.

    Parameters
    ----------
    results
        Rows of the user's table, once for each arm that they contain; changed in place.
    roles, reader
        As for `fill_scores`.

    Raises
    ------
    ResultsError
        As `fill_scores`, or if a row has bits per byte, whose mean over texts would be another measure.
    """
    for column in (names[0] for role, names in roles.sources.items() if role.column == "bits_per_byte"):
        raise ResultsError(
            f"{reader.origin}: bits per byte of single texts cannot be averaged, because texts have different lengths; "
            f"give one row for each subsample and arm, or use {ignore_option(column)}"
        )
    given, sizes = results["num_correct"], results["num_test"]
    scores = results["score"].fillna(given.astype("float64"))
    if scores.isin((0.0, 1.0)).all() and (given.isna() | (given == scores)).all():
        answers = pd.Series(1, index=results.index, dtype="Int64")
    else:
        answers = sizes.where(given.notna())
    results["num_test"] = answers
    fill_scores(results, roles, reader)
    results["num_test"], results["num_scored"], results[ANSWERS] = sizes, pd.NA, answers.fillna(1)


def fill_scores(results: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> None:
    """Compute missing scores and counts, counts by rounding: 0.29 x 100 is 28.999999999999996, not 28.

    Parameters
    ----------
    results
        Rows of the user's table, once for each arm that they contain; changed in place.
    roles
        Roles of the user's columns, for messages.
    reader
        Reader of the user's table, for messages.

    Raises
    ------
    ResultsError
        If a row has no score, or scores, counts and sizes contradict each other.
    """
    checks = ScoreChecks(results, roles, reader)
    given = results["num_correct"]
    results["num_scored"] = results["num_scored"].fillna(results["num_test"])
    size = results["num_scored"].astype("float64")
    scores = results["score"].fillna(given.astype("float64") / size)
    if scores.isna().all():  # an accuracy that is missing beside others is an error
        scores = -results["bits_per_byte"]
    checks.require_scores(scores)
    fits = given.isna() | (scores <= 1)
    checks.require(fits, "num_correct", "is larger than the number of test texts; correct one of them")
    is_loss = any(role.column == LOSS.name for role in roles.sources)
    is_accuracy = ~(~scores.between(0, 1) | is_loss).groupby(results["task"]).transform("any")  # R^2 can be negative
    exact = scores * size
    tolerance = size * (_last_decimal(results) - FLOAT_ERROR)  # 0.50 is not 49 of 100
    is_whole = exact.isna() | ~is_accuracy | ((exact - exact.round()).abs() <= tolerance)
    if not is_whole.all():
        column = roles.source("num_scored") or roles.source("num_test") or "num_test"
        problem = (
            f"is not a whole number of correct answers out of {column}; correct {column}, or use "
            f"{ignore_option(column)} if the score is not an accuracy"
        )
        checks.require(is_whole, "score", problem)
    counts = exact.where(is_accuracy).round().astype("Int64")
    agrees = given.isna() | counts.isna() | ((given - exact).abs() <= tolerance)
    checks.require(agrees.fillna(True), "num_correct", "is not score x num_test; correct one of them")
    results["score"] = scores
    results["num_correct"] = given.fillna(counts)


def _last_decimal(results: pd.DataFrame) -> pd.Series[float]:
    """Return the unit of the last decimal of the scores of each task and arm: 0.0001 for 0.7222 and 0.7."""
    scores = results["score"]
    decimals = pd.Series(DECIMALS.stop, index=scores.index).where(scores.notna(), DECIMALS.start)
    for number in reversed(DECIMALS):
        decimals = decimals.mask((scores - scores.round(number)).abs() < FLOAT_ERROR, number)
    return 0.1 ** decimals.groupby([results["task"], results["arm"]]).transform("max")
