"""Reads the cells of a user's table, computes scores from counts and counts from scores, and finds their metric.

Messages about a cell name the table, the row and the user's column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

from peekbench.errors import Argument, ResultsError
from peekbench.records.data import IntArray, TableOptions
from peekbench.records.report import ACCURACY
from peekbench.results.columns import (
    LOSS,
    METRIC,
    SCORE_SOURCES,
    USER_COLUMNS,
    WHOLE_NUMBERS,
    ColumnRoles,
    Role,
    find_role,
    is_counted,
    names_loss,
)
from peekbench.results.roles import (
    ALLOW_INCOMPLETE,
    PERCENT,
    REGION,
    ignoring,
    is_missing,
    mapping,
    quoted,
    short,
)

SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which no encoding can store."""
LINE_BREAK = "[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
MAX_NAME = 1000  # characters of a task, method or model
MAX_SIZE = 2**53  # larger whole numbers are not exact as float64, and squares and sums of all numbers are finite
LIMITS = {
    column.name: (max(column.minimum, -MAX_SIZE), min(column.maximum, MAX_SIZE))
    for column in USER_COLUMNS
    if column.type != "text"
} | {"score": (-MAX_SIZE, 1.0)}  # R^2 can be negative
"""Minimum and maximum of the columns of numbers."""
PERCENTAGES = ("score", "loss", "error_rate", "macro_f1", "majority")
"""Columns that may be percentages."""
PERCENT_DIGITS = 14  # decimals of a fraction, so that 71.1% is exactly 0.711

MISSING = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None")
"""Texts that mean a missing number. In columns of texts they are ordinary names."""

UNSTATED = "an unknown metric"
ANSWERS = "answers"
"""Column of rows of single texts: number of answers to the text, of which `num_correct` are correct."""
DECIMALS = range(2, 6)
"""Numbers of decimals of rounded scores. Scores with more decimals are exact to 6."""
FLOAT_ERROR = 1e-7
"""Largest error of a score in single precision."""


class CellReader:
    """Reads columns of a table, and refuses the first cell that is not valid.

    Parameters
    ----------
    table
        The user's table, with a plain index.
    origin
        Name of the table for messages.
    row_numbers
        Number of each row for messages.
    percent
        Whether scores are percentages.
    has_unit
        Whether the user knows the unit of the scores, which can then have any size.
    """

    def __init__(
        self, table: pd.DataFrame, origin: str, row_numbers: pd.Index[int], *, percent: bool, has_unit: bool = False
    ) -> None:
        self._table = table
        self.index = table.index
        self.origin = origin
        self.row_numbers = row_numbers
        self._percent = percent
        self._has_unit = has_unit
        self.percentages: set[str] = set()
        """Columns of the user that were read as percentages."""

    def require(self, is_valid: pd.Series[bool], source: str, *problem: str | Argument) -> None:
        """Refuse the first row that is not valid."""
        invalid = (~is_valid.astype("bool")).to_numpy()
        if invalid.any():
            raise self.error(int(invalid.argmax()), source, *problem)

    def require_filled(self, source: str, remedy: str) -> None:
        """Refuse the first empty cell of a column."""
        self.require(~is_empty(self._table[source]), source, f"is empty; {remedy}")

    def require_numbers(self, source: str, *remedy: str | Argument) -> None:
        """Refuse the first cell of a column that is empty, or is a text that stands for a missing number."""
        self.require(~is_absent(self._table[source]), source, "is empty; ", *remedy)

    def require_one_spelling(self, source: str) -> None:
        """Refuse names that differ only by case or by spaces around them."""
        cells = self._table[source]
        names = pd.Series(cells.dropna().astype("str").unique(), dtype="str")
        folded = names.str.strip().str.casefold()
        if folded.duplicated().any():
            name = names[folded.duplicated()].iloc[0]
            other = names[folded == name.strip().casefold()].iloc[0]
            problem = f"differs from {short(other)!r} only by case or spaces; write one name in all rows, or rename one"
            self.require(cells.astype("str") != name, source, problem)

    def error(
        self, position: int, source: str, *problem: str | Argument, added: TableOptions | None = None
    ) -> ResultsError:
        """Return an error about the cell of a row, which is counted from 0."""
        cell = self._table[source].iloc[position]
        text = "the cell"
        if not is_missing(cell):
            text = short(str(cell))
        place = f"{self.origin}, row {self.row_numbers[position]}, column {short(source)!r}"
        return ResultsError(f"{place}: {text} ", *problem, added=added)

    def column(self, source: str | None, column: str) -> pd.Series[Any]:
        """Return a column of numbers of the results table; all values are missing if the user has no such column."""
        values = pd.Series(np.nan, index=self.index, dtype="float64")
        if source is not None:
            values = self.numbers(source, column)
        if column not in WHOLE_NUMBERS:
            return values
        if source is not None:
            self.require(values.isna() | (values == values.round()), source, "is not a whole number; correct it")
        return values.astype("Int64")

    def numbers(self, source: str, column: str) -> pd.Series[float]:
        """Return a column of the user as float64, checked as a column of the results table."""
        cells = self._table[source]
        values = to_floats(cells)
        problem = "is not a number; correct it, and write numbers without a comma"
        remedy: tuple[str | Argument, ...] = ("correct it",)
        if column in PERCENTAGES:
            values = self._fractions(values, cells, source, is_bounded=column != "loss" and not self._has_unit)
            remedy = ("give fractions, or use ", PERCENT, " if these are percentages")
            if column == "score":
                remedy += _explain_scores(source)
        self.require(is_absent(cells) | np.isfinite(values), source, problem)
        low, high = LIMITS[column]
        if column == "score" and self._has_unit:
            high = MAX_SIZE
        self.require(values.isna() | (values >= low), source, f"is below the minimum of {low:g}; correct it")
        self.require(values.isna() | (values <= high), source, f"is above the maximum of {high:g}; ", *remedy)
        return values

    def _fractions(
        self, values: pd.Series[float], cells: pd.Series[Any], source: str, *, is_bounded: bool
    ) -> pd.Series[float]:
        """Return fractions: cells with a percent sign are percentages, and with --percent all others, too.

        Where values are at most 100, a comma can only be a decimal comma. '1,234' of an unbounded loss is refused.
        """
        is_percentage = pd.Series(False, index=values.index)
        if not is_numeric_dtype(cells):
            texts = cells.where(cells.map(lambda cell: isinstance(cell, str)), "").astype("object").str.strip()
            is_percentage = texts.str.endswith("%")
            numbers = texts.str.removesuffix("%")
            if is_bounded:
                numbers = numbers.str.replace(",", ".")
            values = values.fillna(to_floats(numbers))
            if is_percentage.any() and not self._percent:
                problem = "has no percent sign, but other cells have one; write it in all cells or in none"
                self.require(is_percentage | values.isna(), source, problem)
        if self._percent:
            remedy = " is given; remove the option if these are fractions, or write a % sign"
            is_large = ~values.between(0, 1, inclusive="right")
            self.require(is_percentage | is_large, source, "is at most 1, but ", PERCENT, remedy)
            is_percentage |= True
        if not (is_percentage & values.notna()).any():
            return values
        self.percentages.add(source)
        with np.errstate(over="ignore"):
            return values.where(~is_percentage, (values / 100).round(PERCENT_DIGITS))

    def texts(self, source: str, max_length: int = MAX_NAME) -> pd.Series[str]:
        """Return a column of the user as texts without white space around them, empty where it is missing."""
        cells = self._table[source]
        if cells.dtype == "object":
            self.require(cells.map(_is_plain), source, "is not a name; write a text or a number")
        codes, names = pd.factorize(cells.astype("str").where(cells.notna(), ""))
        names = names.str.strip()
        texts = pd.Series(names.take(codes), index=cells.index, dtype="str")
        if max_length == MAX_NAME and names.str.contains(LINE_BREAK).any():
            self.require(~texts.str.contains(LINE_BREAK), source, "has a line break; write the name on one line")
        if names.str.len().max() > max_length:
            self.require(texts.str.len() <= max_length, source, f"has more than {max_length} characters; shorten it")
        return texts

    def joined_texts(self, sources: Sequence[str], max_length: int = MAX_NAME) -> pd.Series[str]:
        """Return the texts of several columns as one, such as 'lsa, 100'."""
        texts = [self.texts(source, max_length) for source in sources]
        if len(texts) == 1:
            return texts[0]
        parts = pd.concat(texts, axis="columns", keys=range(len(texts)))
        codes = parts.groupby(list(parts.columns), sort=False).ngroup().to_numpy()
        names = [", ".join(filter(None, row)) for row in parts.drop_duplicates().itertuples(index=False)]
        return pd.Series(np.array(names, dtype="object")[codes], index=self.index, dtype="str")


def _explain_scores(source: str) -> tuple[str | Argument, ...]:
    """Return what to do about scores above 1, from the column of a user."""
    arm = (find_role(source) or Role("")).arm
    of_arm = ""
    if not arm:
        of_arm = " (loss_ARM for a column of one arm)"
    return (
        "; counts of correct answers belong in columns extra_correct and test_correct, or num_correct with one row per "
        "arm; ",
        mapping(source, Role(LOSS.name, arm)),
        f"{of_arm} is for scores of which lower is better, and ",
        REGION,
        " for a unit of your own: the largest bias that is negligible",
    )


def is_empty(cells: pd.Series[Any]) -> pd.Series[bool]:
    """Return which cells are missing or only white space."""
    if is_numeric_dtype(cells):
        return cells.isna()
    return cells.map(is_missing).astype("bool")


def is_absent(cells: pd.Series[Any]) -> pd.Series[bool]:
    """Return which numbers are missing: cells that are empty, and texts that other programs write for them."""
    if is_numeric_dtype(cells):
        return cells.isna()
    return is_empty(cells) | cells.isin(MISSING)


def to_floats(cells: pd.Series[Any]) -> pd.Series[float]:
    """Return cells as float64, NaN for cells that are not numbers: True is none, and neither is a date."""
    if isinstance(cells.dtype, pd.StringDtype):
        return pd.to_numeric(cells, errors="coerce").astype("float64")
    if is_numeric_dtype(cells) and not is_bool_dtype(cells) and not is_complex_dtype(cells):
        numbers = pd.Series(cells.to_numpy(dtype="float64", na_value=np.nan), index=cells.index)
        stored = getattr(cells.dtype, "numpy_dtype", cells.dtype)
        if stored in ("float16", "float32"):  # 0.61 becomes 0.61, not 0.6100000143
            return numbers.astype(stored).astype("str").astype("float64")
        return numbers
    return cells.astype("object").map(_to_float).astype("float64")


def _to_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | Real | Decimal):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _is_plain(value: object) -> bool:
    """Return whether a cell of a column of texts is a text that can be stored, a number, a date, or missing."""
    if isinstance(value, str):
        return SURROGATE.search(value) is None
    return isinstance(value, Real | Decimal | date) or value is None or value is pd.NA or value is pd.NaT


def rank(cells: pd.Series[Any]) -> IntArray:
    """Return the position of each value in the natural order of the distinct values; missing values come first."""
    codes, values = pd.factorize(cells, use_na_sentinel=True)
    order = sorted(range(len(values)), key=lambda position: natural_key(str(values[position])))
    ranks = np.empty(len(values) + 1, dtype=np.int64)
    ranks[order] = np.arange(1, len(values) + 1)
    ranks[-1] = 0
    return ranks[codes]


def natural_key(text: str) -> list[str | int]:
    """Return a key that sorts n50 before n100."""
    return [int(part) if number % 2 else part for number, part in enumerate(re.split(r"(\d+)", text))]


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
            "give one row for each subsample and arm, or use ",
            ignoring(column),
        )
    given, sizes = results["num_correct"], results["num_test"]
    scores = results["score"].fillna(given.astype("float64"))
    if scores.isin((0.0, 1.0)).all() and (given.isna() | (given == scores)).all():
        answers = pd.Series(1, index=results.index, dtype="Int64")
        results["num_correct"] = given.fillna(scores.astype("Int64"))
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

    def require(is_valid: pd.Series[bool], *problem: str | Argument, column: str = "score") -> None:
        """Refuse the first row that is not valid; the message names the column, or one of a score."""
        invalid = (~is_valid.astype("bool")).to_numpy()
        if invalid.any():
            position = int(invalid.argmax())
            arm = ""
            if roles.arms:
                arm = str(results["arm"].iloc[position])
            sources = (roles.source(name, arm) for name in (column, *SCORE_SOURCES))
            raise reader.error(position % len(reader.index), next(filter(None, sources)), *problem)

    given = results["num_correct"]
    results["num_scored"] = results["num_scored"].fillna(results["num_test"])
    size = results["num_scored"].astype("float64")
    scores = results["score"].fillna(given.astype("float64") / size)
    if scores.isna().all():  # an accuracy that is missing beside others is an error
        scores = -results["bits_per_byte"]
    is_count = given.notna() & results["score"].isna()
    unknown_size = "is a count, and the number of test texts is missing; add the column 'num_test' and fill it in"
    require(scores.notna() | ~is_count, unknown_size, column="num_correct")
    require(scores.notna(), "is empty; fill it in, or delete the row and use ", ALLOW_INCOMPLETE)
    fits = given.isna() | (scores <= 1)
    require(fits, "is larger than the number of test texts; correct one of them", column="num_correct")
    is_loss = any(role.column == LOSS.name for role in roles.sources)
    is_other = given.isna() & results["metric"].map(lambda metric: bool(metric) and not is_counted(metric))
    is_none = ~scores.between(0, 1) | is_loss | is_other  # R^2 can be negative
    is_accuracy = ~is_none.groupby(results["task"]).transform("any")
    exact = scores * size
    tolerance = size * (last_decimal(results) - FLOAT_ERROR)  # 0.50 is not 49 of 100
    is_whole = exact.isna() | ~is_accuracy | ((exact - exact.round()).abs() <= tolerance)
    size_column = roles.source("num_scored") or roles.source("num_test") or "num_test"
    problem = f"is not a whole number of correct answers out of {short(size_column)}; correct {short(size_column)}, or "
    require(is_whole, f"{problem}use ", ignoring(size_column), " if the score is not an accuracy")
    counts = exact.where(is_accuracy).round().astype("Int64")
    agrees = given.isna() | counts.isna() | ((given - exact).abs() <= tolerance)
    require(agrees.fillna(True), "is not score x num_test; correct one of them", column="num_correct")
    results["score"] = scores
    results["num_correct"] = given.fillna(counts)


def last_decimal(results: pd.DataFrame) -> pd.Series[float]:
    """Return the unit of the last decimal of the scores of each task and arm: 0.0001 for 0.7222 and 0.7."""
    scores = results["score"]
    decimals = pd.Series(DECIMALS.stop, index=scores.index).where(scores.notna(), DECIMALS.start)
    for number in reversed(DECIMALS):
        decimals = decimals.mask((scores - scores.round(number)).abs() < FLOAT_ERROR, number)
    return 0.1 ** decimals.groupby([results["task"], results["arm"]]).transform("max")


def find_metric(results: pd.DataFrame, origin: str = "") -> str:
    """Return the metric of scores: accuracy if all are counts of correct answers, or the one that a table states.

    Parameters
    ----------
    results
        The results table; the column `metric`, which only users' tables have, is used if there is one.
    origin
        Name of a user's table, for messages; empty for the results of runs.

    Returns
    -------
    str
        Empty if it is not known.

    Raises
    ------
    ResultsError
        If tasks have different metrics.

    Examples
    --------
    >>> find_metric(pd.DataFrame({"task": ["news"], "num_correct": [70], "score": [0.7], "bits_per_byte": [0.0]}))
    'accuracy'
    """
    tasks: dict[str, list[str]] = {}
    for task, metric in _metrics_by_task(results).items():
        tasks.setdefault(metric, []).append(task)
    if len(tasks) <= 1:
        return next(iter(tasks), "")
    listed = "; ".join(f"{short(metric) or UNSTATED} of {quoted(names)}" for metric, names in tasks.items())
    first = TableOptions(tasks=next(iter(tasks.values())))
    problem = f"the tasks have scores of different metrics, which have no common average: {listed}."
    if not origin:
        raise ResultsError(f"{problem} Analyze one metric at a time: peekbench analyze RUN ", first.argument)
    if {*tasks} == {ACCURACY, ""}:
        problem += " If all scores are accuracies, give num_test for every task."
    raise ResultsError(f"{origin}: {problem} Analyze the tasks of one metric at a time", added=first)


def _metrics_by_task(results: pd.DataFrame) -> Mapping[str, str]:
    of_rows = results.get(METRIC.name, pd.Series("", index=results.index))
    is_bits = (results["score"] == -results["bits_per_byte"]) & (of_rows == "")
    of_rows = of_rows.mask(is_bits, "bits per byte")
    of_tasks = of_rows.groupby(results["task"], sort=False).first()
    is_count = results["num_correct"].notna().groupby(results["task"], sort=False).all()
    return {
        str(task): ACCURACY if counted or is_counted(metric) else str(metric)
        for (task, metric), counted in zip(of_tasks.items(), is_count, strict=True)
    }


def refuse_losses(results: pd.DataFrame, metric: str, roles: ColumnRoles, origin: str) -> None:
    """Refuse a metric of which lower is better in columns of scores of which higher is better.

    Negative values of such a metric are scores, and so is 1 minus its value.
    """
    if not names_loss(metric) or metric.startswith("1 - ") or (results["score"] <= 0).all():
        return
    for role, (source, *_) in roles.sources.items():
        if role.column == SCORE_SOURCES[0]:
            target = role._replace(column="loss")
            instead = f" in place of {source}={role}" if source in roles.mapped else ""
            raise ResultsError(
                f"{origin}: lower is better for the metric {short(metric)!r}, but higher is better for the column "
                f"{short(source)!r}; use ",
                mapping(source, target),
                instead,
            )
