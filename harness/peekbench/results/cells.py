"""Reads the cells of a user's table into rows with the columns and types of the results table.

Messages about a cell name the table, the row and the user's column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any, get_args

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

from peekbench.errors import Argument, ResultsError
from peekbench.records.data import IntArray, TableOptions
from peekbench.records.trials import Control
from peekbench.results.columns import (
    ARM_MEASURES,
    CONFIGURATION,
    ERROR_RATE,
    LOSS,
    LOSSES,
    MAJORITY,
    METRIC,
    SIZES,
    TEXT_DEFAULTS,
    USER_COLUMNS,
    WHOLE_NUMBERS,
    ColumnRoles,
    Role,
    find_role,
    normalize,
    normalize_arm,
)
from peekbench.results.roles import (
    ARM,
    METHOD,
    MODEL,
    PERCENT,
    REGION,
    SUBSAMPLE,
    TASK,
    explain_arms,
    ignoring,
    is_missing,
    mapping,
    short,
    suggest_name,
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

AVERAGES = frozenset(("average", "avg", "mean", "all", "overall", "total", "macroavg", "microavg", "macroaverage"))
"""Normalized names of rows that summarize other rows."""
SPREADS = frozenset(("std", "sd", "se", "sem", "stderr", "var", "ci", "median", "min", "max"))
"""Normalized names of further rows that are no draws."""
MAX_ARMS = 12  # values of a column of arms that a message lists
MAX_LOOKS = 100_000  # characters of the column of looks
MIN_AVERAGED = 4  # numbers of draws, among which one can be that of a mean
DECIMALS = range(2, 6)
"""Numbers of decimals of rounded scores. Scores with more decimals are exact to 6."""
FLOAT_ERROR = 1e-7
"""Largest error of a score in single precision."""
ANSWERS = "answers"
"""Column of rows of single texts: number of answers to the text, of which `num_correct` are correct."""


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


def select_tasks(table: pd.DataFrame, roles: ColumnRoles, tasks: Collection[str], origin: str) -> pd.DataFrame:
    """Return the rows of some tasks, before cells of others are checked, or all rows if none are named.

    Raises
    ------
    ResultsError
        If the table lacks a task.
    """
    if not tasks:
        return table
    names = CellReader(table, origin, table.index + 1, percent=False).joined_texts(roles.sources[TASK])
    known = names.unique().tolist()
    for task in tasks:
        if task not in known:
            remedy = suggest_name(task, known, "tasks")
            raise ResultsError(TableOptions(tasks=[task]).argument, f": {origin} has no such task; {remedy}")
    return table[names.isin(tasks)]


def read_trials(roles: ColumnRoles, reader: CellReader) -> pd.DataFrame:
    """Return the columns that are not of one arm, and the arm if each row has one."""
    trials = pd.DataFrame(index=reader.index)
    for column, default in TEXT_DEFAULTS.items():
        if sources := roles.sources.get(Role(column)):
            trials[column] = reader.joined_texts(sources, MAX_LOOKS if column == "looks" else MAX_NAME)
        elif column != "arm":
            trials[column] = pd.Series(default, index=reader.index, dtype="str")
    for column in (*SIZES, "num_scored", MAJORITY):
        size = roles.source(column)
        trials[column] = reader.column(size, column)
        if size is not None and column != MAJORITY and trials[column].notna().any():
            reader.require_numbers(size, "fill it in as in other rows, or use ", ignoring(size))
    trials["metric"] = ""
    if metric := roles.source(METRIC.name):
        trials["metric"] = reader.texts(metric)
    if "arm" in trials.columns:
        trials["arm"] = _read_arm_names(trials["arm"], roles, reader)
    elif not roles.arms:
        trials["arm"] = pd.Series("base", index=reader.index, dtype="str")
    _check_names(trials, roles, reader)
    return trials


def _read_arm_names(cells: pd.Series[str], roles: ColumnRoles, reader: CellReader) -> pd.Series[str]:
    """Return the arms of the rows, with values that the user renames."""
    (source,) = roles.sources[ARM]
    values = [str(value) for value in cells.unique()]
    for name, arm in roles.arm_names.items():
        if name not in values:
            raise ResultsError(
                mapping(name, arm),
                f": {reader.origin} has no column {short(name)!r}, and the column of arms, "
                f"{short(source)!r}, has no such value, but {', '.join(map(short, values[:MAX_ARMS]))}",
            )
    arms = {value: roles.arm_names.get(value) or normalize_arm(value) for value in values}
    if unknown := [value for value, arm in arms.items() if arm is None]:
        raise reader.error(
            int(cells.isin(unknown).to_numpy().argmax()),
            source,
            "is not an arm. Correct it, or name each value: write base (without unlabeled text), extra (independent "
            "text), test (the test texts), a dose such as mix-0.25 or a rule such as cross-5 in place of each ARM",
            added=TableOptions(dict.fromkeys(unknown[:MAX_ARMS], "ARM")),
        )
    return cells.map(arms).astype("str")


def _check_names(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> None:
    """Refuse missing names, averages of other rows, and values that differ between rows of which all need the same."""
    reader.require(trials["task"] != "", roles.sources[TASK][0], "is empty; name the task")
    remedy = "is empty, but other rows have a name; fill in every cell, also below merged cells"
    if METHOD in roles.sources:
        reader.require(trials["method"] != "", roles.sources[METHOD][0], remedy)
    if MODEL in roles.sources:
        has_some = (trials["model"] != "").groupby(trials["method"]).transform("any")
        reader.require((trials["model"] != "") | ~has_some, roles.sources[MODEL][0], remedy)
    for role in (TASK, METHOD, MODEL):
        for name in roles.sources.get(role, ()):
            reader.require_one_spelling(name)
    is_average = trials["task"].map(normalize).isin(AVERAGES)
    if not is_average.all():
        problem = "is an average of other tasks, which would count twice; delete its rows, or rename the task"
        reader.require(~is_average, roles.sources[TASK][0], problem)
    if source := roles.source(METRIC.name):
        reader.require(trials["metric"] != "", source, "is empty; name the metric, or ignore the column")
        is_first = trials["metric"] == trials.groupby("task")["metric"].transform("first")
        problem = "differs from the first row of its task, so scores are not comparable; give one metric for each task"
        reader.require(is_first, source, problem)
    if source := roles.source("independent_tasks"):
        problem = "is neither 'yes' nor empty; write 'yes' if different tasks have independent draws, or leave it empty"
        reader.require(trials["independent_tasks"].isin(("", "yes")), source, problem)
    if source := roles.source("control"):
        problem = "is neither 'negative' nor 'positive'; leave it empty for methods that are not controls"
        reader.require(trials["control"].isin(get_args(Control)), source, problem)
        problem = "differs from the first row of its method; use one value for all rows of a method"
        first = trials.groupby("method")["control"].transform("first")
        reader.require(trials["control"] == first, source, problem)


def read_subsamples(table: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> pd.Series[int]:
    """Return the numbers of the subsamples.

    Whole numbers are kept. Texts, negative or very large numbers, and combinations of columns are numbered in their
    sorted order, if the user named the columns.
    """
    names = roles.sources[SUBSAMPLE]
    for name in names:
        reader.require_numbers(name, "number every row, or none, and delete rows that are not draws, such as means")
        if name in roles.mapped:
            is_summary = reader.texts(name).map(normalize).isin(AVERAGES | SPREADS)
            reader.require(~is_summary, name, "summarizes other rows; delete its rows, or rename the draw")
    numbers = to_floats(table[names[0]])
    if len(names) == 1 and names[0] not in roles.mapped:
        problem = "is not a whole number; number the draws, delete rows that are not draws, or name them with "
        reader.require(numbers == numbers.round(), names[0], problem, mapping(names[0], SUBSAMPLE))
        return reader.column(names[0], "subsample")
    if len(names) == 1 and (numbers == numbers.round()).all() and numbers.between(0, MAX_SIZE).all():
        return numbers.astype("Int64")
    ranks = pd.DataFrame({name: rank(table[name]) for name in names})
    if len(names) == 1:
        return ranks[names[0]].astype("Int64")
    return ranks.groupby(list(names)).ngroup().astype("Int64")


def read_arms(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader, needed: Sequence[str]) -> pd.DataFrame:
    """Return one row for each arm of each row of the user's table, one arm below the other."""
    tables = []
    for arm in roles.arms or [""]:
        measures: dict[str, Any] = {column: reader.column(roles.source(column, arm), column) for column in ARM_MEASURES}
        for column in LOSSES:
            if (source := roles.source(column, arm)) is not None:
                losses = reader.numbers(source, column)
                measures["score"] = 1 - losses if column == ERROR_RATE.name else -losses
        if arm:
            measures["arm"] = arm
        tables.append(trials.assign(**measures))
    rows = pd.concat(tables, ignore_index=True)
    for arm in needed:
        if not (rows["arm"] == arm).any():
            raise ResultsError(
                f"{reader.origin}: no row has the arm {arm!r}, which the analysis needs; add these rows. "
                f"{explain_arms(arm)}"
            )
    return rows


def last_decimal(results: pd.DataFrame) -> pd.Series[float]:
    """Return the unit of the last decimal of the scores of each task and arm: 0.0001 for 0.7222 and 0.7."""
    scores = results["score"]
    decimals = pd.Series(DECIMALS.stop, index=scores.index).where(scores.notna(), DECIMALS.start)
    for number in reversed(DECIMALS):
        decimals = decimals.mask((scores - scores.round(number)).abs() < FLOAT_ERROR, number)
    return 0.1 ** decimals.groupby([results["task"], results["arm"]]).transform("max")


def refuse_means(rows: pd.DataFrame, draws: pd.Series[Any], source: str, reader: CellReader) -> None:
    """Refuse draws whose numbers are far from all others, such as -1, and whose scores are the means of the others."""
    numbers = to_floats(draws)
    order = np.unique(numbers.dropna())
    if len(order) < MIN_AVERAGED:
        return
    place = [*CONFIGURATION, "task", "arm"]
    groups = [rows[name] for name in place]
    of_rows = np.tile(numbers.to_numpy(), len(rows) // len(numbers))
    for number, gap in ((order[0], order[1] - order[0]), (order[-1], order[-1] - order[-2])):
        if gap <= len(order) and number >= 0:
            continue
        is_it = of_rows == number
        means = rows["score"].mask(is_it).groupby(groups, dropna=False).agg(["mean", "std"])
        found = rows[is_it].merge(means, left_on=place, right_index=True)
        is_mean = (found["score"] - found["mean"]).abs() <= last_decimal(rows)[is_it] / 2 + FLOAT_ERROR
        if is_mean.all() and (found["std"] > 0).any():
            problem = "numbers rows with the means of the others; delete them, or give the draws consecutive numbers"
            raise reader.error(int((numbers == number).to_numpy().argmax()), source, problem)
