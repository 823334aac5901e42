"""Checks a user's table of scores and brings it into the form of the results table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from decimal import Decimal
from difflib import get_close_matches
from itertools import islice
from numbers import Real
from typing import Any, get_args

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype, is_string_dtype

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
UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names that pandas and Parquet give to columns without a name."""
SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which no encoding can store."""
MAX_NAME = 1000  # characters of a task, method or model
MAX_COUNT = 2**53  # larger whole numbers are not exact as float64
MAX_SIZE = 1e12  # of a number without a limit of its own, so that squares and sums of effects are finite
MAX_SHOWN = 100  # characters of a cell in a message
MAX_QUOTED = 30  # names listed in a message
LIMITS = {
    column.name: (
        -MAX_SIZE if column.minimum is None else column.minimum,
        column.maximum or (MAX_COUNT if column.type == "integer" else MAX_SIZE),
    )
    for column in COLUMNS
    if column.type != "text" and column.name != "score"
}
"""Minimum and maximum of the columns of numbers. Scores have a message of their own for percentages."""
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
    table = _name_columns(table, origin)
    if table.empty:
        raise ResultsError(f"{origin} has no rows; give one row for each subsample, or for each arm of a subsample")
    arms = _wide_arms(table, origin)
    checks = _Checks(origin, np.arange(1, len(table) + 1))
    result = pd.DataFrame(index=table.index)
    for column, default in TEXT_DEFAULTS.items():
        if column in table.columns:
            result[column] = checks.texts(table, column)
        elif column != "arm":
            result[column] = pd.Series(default, index=table.index, dtype="str")
    # A log loss belongs to one arm, and a row with several arms does not say to which.
    absent = ARM_MEASURES if arms else ()
    for column in (*WHOLE_NUMBERS, *NUMBERS):
        known = table.drop(columns=column, errors="ignore") if column in absent else table
        result[column] = (
            checks.whole_numbers(known, column) if column in WHOLE_NUMBERS else checks.numbers(known, column)
        )
    if "subsample" in table.columns:
        checks.require(result["subsample"].notna(), table, "subsample", "is missing; number every row, or none")
    else:
        within = [*CONFIGURATION, "task", *(["arm"] if not arms else [])]
        result["subsample"] = result.groupby(within, dropna=False).cumcount().astype("Int64")
    if arms:
        scores = [checks.numbers(table, arm) for arm in arms]
        result = pd.concat(
            [result.assign(arm=arm, score=of_arm) for arm, of_arm in zip(arms, scores, strict=True)], ignore_index=True
        )
        checks = checks.repeated(len(arms))
    checks.names(result)
    for arm in ("extra", "test"):
        if not (result["arm"] == arm).any():
            raise ResultsError(
                f"{origin}: no row has the arm {arm!r}, but the bias is the score of test minus the score of extra; "
                "add these rows"
            )
    _fill_scores(result, checks)
    checks.require(
        ~result.duplicated([*TRIAL, "arm"]),
        result,
        "subsample",
        "is duplicated for the same task, method, model, sizes and arm; number the subsamples, or name the columns "
        "that distinguish the rows method or model",
    )
    return result[list(COLUMN_NAMES)]


def refuse_duplicates(names: Iterable[str], origin: str) -> None:
    """Refuse two columns of the same name, of which one would be ignored.

    Parameters
    ----------
    names
        Names of the columns of a table.
    origin
        Name of the table for messages.

    Raises
    ------
    ResultsError
        If a name is duplicated.
    """
    for name, count in Counter(names).items():
        if count > 1:
            also = f" ({SYNONYMS[0]!r} is another name for it)" if name == "score" else ""
            raise ResultsError(f"{origin}: the column {_short(name)!r} is duplicated{also}; remove or rename one")


def _name_columns(table: pd.DataFrame, origin: str) -> pd.DataFrame:
    """Return the table with a plain index and distinct, known names of columns."""
    if isinstance(table.index, pd.RangeIndex) or table.index.names == [None]:
        table = table.reset_index(drop=True)
    else:
        table = table.reset_index(allow_duplicates=True)
    table = table.set_axis([str(column).strip() for column in table.columns], axis="columns")
    table = table.loc[:, [not is_row_number for is_row_number in _find_row_numbers(table, origin)]]
    table = table.rename(columns=dict.fromkeys(SYNONYMS, "score"))
    refuse_duplicates(table.columns, origin)
    if "task" not in table.columns:
        remedy = "; separate columns by commas" if any(";" in column for column in table.columns) else ""
        raise ResultsError(f"{origin}: column 'task' is missing; the columns are {_quoted(table.columns)}{remedy}")
    _refuse_similar_names(table, origin)
    return table


def _find_row_numbers(table: pd.DataFrame, origin: str) -> list[bool]:
    """Return which columns are unnamed ones that only number the rows or are empty, as other tools write them.

    Any other unnamed column could be one that distinguishes rows, and ignoring it would pool them.
    """
    unnamed = [UNNAMED.fullmatch(column) is not None for column in table.columns]
    for position in np.flatnonzero(unnamed).tolist():
        cells: pd.Series[Any] = table.iloc[:, position]
        numbers = _to_floats(cells)
        is_counting = bool((numbers == numbers.round()).all()) and numbers.is_monotonic_increasing and numbers.is_unique
        if not is_counting and not (cells.isna() | cells.eq("")).all():
            raise ResultsError(
                f"{origin}: column {position + 1} has no name, and its values are not row numbers; name it or remove it"
            )
    return unnamed


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


def _wide_arms(table: pd.DataFrame, origin: str) -> list[str]:
    """Return the columns of scores of a table with one row per subsample; none if it has one row per arm."""
    arms = [column for column in table.columns if is_arm(column)]
    if "arm" in table.columns:
        if arms:
            raise ResultsError(
                f"{origin}: the column 'arm' says that each row is one arm, but the column {arms[0]!r} contains "
                "another arm's scores; remove one of them"
            )
        return []
    missing = [arm for arm in ("extra", "test") if arm not in arms]
    if missing:
        raise ResultsError(
            f"{origin}: column 'arm' or {missing[0]!r} is missing; the columns are {_quoted(table.columns)}"
        )
    if "score" in table.columns:
        raise ResultsError(
            f"{origin}: the column 'score' or 'accuracy' does not say which arm its scores belong to, beside the "
            f"columns {_quoted(arms)}; remove it, or rename it to 'base' if it is the score of that arm"
        )
    return arms


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
            value = _short(str(table[column].iloc[position]))
            row = self._row_numbers[position]
            raise ResultsError(f"{self._origin}, row {row}, column {column!r}: {value} {problem}")

    def repeated(self, times: int) -> _Checks:
        """Return checks of the same rows, several times one below the other."""
        return _Checks(self._origin, np.tile(self._row_numbers, times))

    def numbers(self, table: pd.DataFrame, column: str) -> pd.Series[float]:
        """Return a column as float64, all NaN if it is missing."""
        if column not in table.columns:
            return pd.Series(np.nan, index=table.index, dtype="float64")
        cells = table[column]
        values = _to_floats(cells)
        self.require(cells.isna() | np.isfinite(values), table, column, "is not a number")
        limits = LIMITS.get(column, (-MAX_SIZE, MAX_SIZE))
        for is_valid, name, limit in (
            (values >= limits[0], "below the minimum", limits[0]),
            (values <= limits[1], "above the maximum", limits[1]),
        ):
            self.require(is_valid | values.isna(), table, column, f"is {name} of {limit:g}; correct it")
        return values

    def whole_numbers(self, table: pd.DataFrame, column: str) -> pd.Series[int]:
        """Return a column as Int64, all missing if it is missing."""
        values = self.numbers(table, column)
        self.require(values.isna() | (values == values.round()), table, column, "is not a whole number")
        return values.astype("Int64")

    def texts(self, table: pd.DataFrame, column: str) -> pd.Series[str]:
        """Return a column as texts, empty where it is missing."""
        cells = table[column]
        if cells.dtype == "object":
            self.require(cells.map(_is_plain), table, column, "is not a name; write a text or a number")
        texts = cells.astype("str").where(cells.notna(), "")
        self.require(texts.str.len() <= MAX_NAME, table, column, f"has more than {MAX_NAME} characters; shorten it")
        return texts

    def names(self, table: pd.DataFrame) -> None:
        """Refuse empty tasks, unknown arms, and contradictory controls."""
        self.require(table["task"] != "", table, "task", "is empty; name the task")
        self.require(
            table["arm"].isin([arm for arm in table["arm"].unique() if is_arm(arm)]),
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


def _to_floats(cells: pd.Series[Any]) -> pd.Series[float]:
    """Return cells as float64, NaN for cells that are not numbers: True is none, and neither is a date."""
    if cells.dtype == "object":
        return cells.map(_to_float).astype("float64")
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return _to_floats(cells.astype("object"))
    if is_string_dtype(cells):
        return pd.to_numeric(cells, errors="coerce").astype("float64")
    if is_numeric_dtype(cells) and not is_bool_dtype(cells) and not is_complex_dtype(cells):
        return pd.Series(cells.to_numpy(dtype="float64", na_value=np.nan), index=cells.index)
    return pd.Series(np.nan, index=cells.index, dtype="float64")


def _to_float(value: object) -> float:
    try:
        return float(value) if isinstance(value, str | Real | Decimal) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def _is_plain(value: object) -> bool:
    """Return whether a cell of a column of texts is a text that can be stored, a number, or missing."""
    if isinstance(value, str):
        return SURROGATE.search(value) is None
    return isinstance(value, Real | Decimal) or value is None or value is pd.NA or value is pd.NaT


def _short(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _quoted(names: Collection[object]) -> str:
    listed = [repr(_short(str(name))) for name in islice(names, MAX_QUOTED)]
    return ", ".join(listed) + (f" and {len(names) - MAX_QUOTED} more" if len(names) > MAX_QUOTED else "")
