"""Checks a user's table of scores and brings it into the form of the results table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import get_args

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.data import IntArray
from peekbench.records.trials import Control
from peekbench.results.columns import COLUMN_NAMES, COLUMNS

CONFIGURATION = ("method", "model", "num_train", "num_test")
"""Columns that distinguish configurations, which analyses keep apart."""
TRIAL = (*CONFIGURATION, "task", "subsample")
"""Columns that identify a trial."""
SIZES = ("num_train", "num_test")
MAJORITY = "majority"
ARMS = ("base", "extra", "test")
DOSE = re.compile(r"mix-0?\.\d+")
TEXT_DEFAULTS = {column.name: "" for column in COLUMNS if column.type == "text"} | {"task": "task", "method": "method"}
"""Columns of texts with the values that replace missing columns."""
WHOLE_NUMBERS = tuple(column.name for column in COLUMNS if column.type == "integer")
NUMBERS = tuple(column.name for column in COLUMNS if column.type == "number")
ARM_MEASURES = tuple(column.name for column in COLUMNS if column.is_of_arm and column.name != "arm")
"""Columns whose values belong to one arm."""
DISTINGUISHING = (*CONFIGURATION, "subsample", "control")
"""Columns that decide which rows belong together."""
SYNONYMS = ("accuracy",)
SIMILARITY_CUTOFF = 0.65  # model_name and model are similar, num_rows and num_test are not
COUNT_TOLERANCE = 0.26  # maximum distance of score x num_test from a whole number, because scores are printed rounded


def is_arm(name: str) -> bool:
    """Return whether a text is the name of an arm."""
    return name in ARMS or DOSE.fullmatch(name) is not None


def tidy(table: pd.DataFrame, origin: str) -> pd.DataFrame:
    """Check a table of scores and fill in the columns of the results table.

    Parameters
    ----------
    table
        One row for each arm with the columns of `peekbench.results.COLUMNS`, or one row for each subsample with a
        column of scores for each arm. Only the task and the scores are required.
    origin
        Name of the table for messages, such as its file.

    Returns
    -------
    pandas.DataFrame
        The results table.

    Raises
    ------
    ResultsError
        If the table is malformed. The message names `origin`, the row (the first below the heading is 1) and the
        column.

    Examples
    --------
    >>> scores = pd.DataFrame({"task": ["news"], "num_test": [200], "extra": [0.715], "test": [0.730]})
    >>> tidy(scores, "my scores")["num_correct"].tolist()
    [143, 146]
    """
    table = table.reset_index(drop=True)
    if table.empty:
        raise ResultsError(f"{origin} has no rows; give one row for each subsample, or for each arm of a subsample")
    table = table.rename(columns={"accuracy": "score"}) if "score" not in table.columns else table
    if "task" not in table.columns:
        remedy = "; separate columns by commas" if any(";" in str(column) for column in table.columns) else ""
        raise ResultsError(f"{origin}: column 'task' is missing; the columns are {_quoted(table.columns)}{remedy}")
    _refuse_similar_names(table, origin)
    row_numbers = np.arange(1, len(table) + 1)
    if "arm" not in table.columns:
        table, row_numbers = _one_row_per_arm(table, origin)
    checks = _Checks(origin, row_numbers)
    result = table.copy()
    for column, default in TEXT_DEFAULTS.items():
        if column in table.columns:
            result[column] = table[column].astype("str").where(table[column].notna(), "")
        else:
            result[column] = pd.Series(default, index=table.index, dtype="str")
    for column in WHOLE_NUMBERS:
        result[column] = checks.whole_numbers(table, column)
    for column in NUMBERS:
        result[column] = checks.numbers(table, column)
    checks.texts(result)
    for arm in ("extra", "test"):
        if not (result["arm"] == arm).any():
            raise ResultsError(
                f"{origin}: no row has the arm {arm!r}, but the bias is the score of test minus the score of extra; "
                "add these rows"
            )
    if "subsample" not in table.columns:
        within = [*CONFIGURATION, "task", "arm"]
        result["subsample"] = result.groupby(within, dropna=False).cumcount().astype("Int64")
    _fill_scores(result, checks)
    checks.require(
        ~result.duplicated([*TRIAL, "arm"]),
        result,
        "subsample",
        "is duplicated for the same task, method, model, sizes and arm; number the subsamples, or name the columns "
        "that distinguish the rows method or model",
    )
    return result[list(COLUMN_NAMES)]


def _refuse_similar_names(table: pd.DataFrame, origin: str) -> None:
    """Refuse unknown columns similar to missing ones. Ignoring `model_name` would pool the rows of several models."""
    absent = [name for name in DISTINGUISHING if name not in table.columns]
    for column in map(str, table.columns):
        is_known = column in (*COLUMN_NAMES, *SYNONYMS) or is_arm(column)
        if not is_known and (similar := get_close_matches(column, absent, n=1, cutoff=SIMILARITY_CUTOFF)):
            raise ResultsError(
                f"{origin}: unknown column {column!r}; rename it to {similar[0]!r} if you mean that column, or "
                "otherwise to a less similar name"
            )


def _one_row_per_arm(table: pd.DataFrame, origin: str) -> tuple[pd.DataFrame, IntArray]:
    """Turn columns base, extra, test into rows. Also return the original row number of each new row."""
    arms = [str(column) for column in table.columns if is_arm(str(column))]
    missing = [arm for arm in ("extra", "test") if arm not in arms]
    if missing:
        raise ResultsError(
            f"{origin}: column 'arm' or {missing[0]!r} is missing; the columns are {_quoted(table.columns)}"
        )
    # A log loss belongs to one arm, and a row with several arms does not say to which.
    columns = [column for column in table.columns if column not in (*arms, *ARM_MEASURES)]
    if "subsample" not in table.columns:
        within = [column for column in (*CONFIGURATION, "task") if column in table.columns]
        table = table.assign(subsample=table.groupby(within, dropna=False).cumcount())
        columns.append("subsample")
    long = table.melt(id_vars=columns, value_vars=arms, var_name="arm", value_name="score")
    return long, np.tile(np.arange(1, len(table) + 1), len(arms))


class _Checks:
    """Checks whose messages name the table, the row and the column."""

    def __init__(self, origin: str, row_numbers: IntArray) -> None:
        self._origin = origin
        self._row_numbers = row_numbers

    def require(self, is_valid: pd.Series[bool], table: pd.DataFrame, column: str, problem: str) -> None:
        """Refuse the first row that is not valid."""
        invalid = (~is_valid.astype("bool")).to_numpy()
        if invalid.any():
            position = int(invalid.argmax())
            value = table[column].iloc[position]
            row = self._row_numbers[position]
            raise ResultsError(f"{self._origin}, row {row}, column {column!r}: {value} {problem}")

    def numbers(self, table: pd.DataFrame, column: str) -> pd.Series[float]:
        """Return a column as float64, all NaN if it is missing."""
        if column not in table.columns:
            return pd.Series(np.nan, index=table.index, dtype="float64")
        values = pd.to_numeric(table[column], errors="coerce").astype("float64")
        is_valid = table[column].isna() | (values.notna() & np.isfinite(values))
        self.require(is_valid, table, column, "is not a number")
        return values

    def whole_numbers(self, table: pd.DataFrame, column: str) -> pd.Series[int]:
        """Return a column as Int64, all missing if it is missing."""
        values = self.numbers(table, column)
        is_valid = values.isna() | ((values == values.round()) & (values >= 0))
        self.require(is_valid, table, column, "is not a whole number of 0 or more")
        return values.astype("Int64")

    def texts(self, table: pd.DataFrame) -> None:
        """Refuse empty tasks, unknown arms, and contradictory controls."""
        self.require(table["task"] != "", table, "task", "is empty; name the task")
        self.require(
            table["arm"].map(is_arm),
            table,
            "arm",
            "is not an arm; arms are base, extra, test and doses such as mix-0.25",
        )
        self.require(
            table["control"].isin(get_args(Control)),
            table,
            "control",
            "is neither 'negative' nor 'positive'; leave it empty for methods that are not controls",
        )
        first = table.groupby("method")["control"].transform("first")
        self.require(
            table["control"] == first,
            table,
            "control",
            "differs from the first row of its method; use one value for all rows of a method",
        )


def _fill_scores(table: pd.DataFrame, checks: _Checks) -> None:
    """Compute scores from counts, or counts from scores by rounding: 0.29 x 100 is 28.999999999999996, not 28."""
    size = table["num_test"].astype("float64")
    from_counts = table["num_correct"].astype("float64") / size
    table["score"] = table["score"].fillna(from_counts)
    checks.require(
        table["score"].notna(), table, "score", "is missing, and num_correct or num_test is missing too; add one"
    )
    checks.require(table["score"] <= 1, table, "score", "is above 1; give fractions, not percentages or counts")
    is_accuracy = ~(table["score"] < 0).groupby(table["task"]).transform("any")  # R^2 can be negative
    exact = table["score"] * size
    is_whole = exact.isna() | ~is_accuracy | ((exact - exact.round()).abs() <= COUNT_TOLERANCE)
    checks.require(
        is_whole,
        table,
        "score",
        "is not a whole number of correct answers out of num_test; correct num_test, or remove that column if the "
        "score is not an accuracy",
    )
    given = table["num_correct"]
    counts = exact.where(is_accuracy).round().astype("Int64")
    agrees = given.isna() | counts.isna() | (given == counts)
    checks.require(agrees.fillna(True), table, "num_correct", "is not score x num_test")
    table["num_correct"] = given.fillna(counts)


def _quoted(names: Iterable[object]) -> str:
    return ", ".join(map(repr, map(str, names)))
