"""Reads the cells of a user's table into rows with the columns and types of the results table.

Messages about a cell name the table, the row and the user's column.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any, get_args

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_complex_dtype, is_integer_dtype, is_numeric_dtype

from peekbench.errors import Argument, ResultsError
from peekbench.identity import DIFFERENCES, find_alike, key_of
from peekbench.records.data import IntArray, TableOptions
from peekbench.records.trials import Control
from peekbench.results.columns import (
    FIT,
    LOSS,
    MAJORITY,
    MAX_SIZE,
    METRIC,
    SCORE_SOURCES,
    SIZES,
    TEXT,
    TEXT_DEFAULTS,
    TYPES,
    USER_COLUMNS,
    quoted,
    short,
)
from peekbench.results.user_columns import (
    PERCENT,
    REGION,
    SUBSAMPLE,
    ColumnRoles,
    Role,
    find_role,
    ignoring,
    is_missing,
    mapping,
    normalize,
    normalize_arm,
    suggest_name,
)

SURROGATE = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which no encoding can store."""
LIMITS = {column.name: (column.minimum, column.maximum) for column in USER_COLUMNS if column.type != "text"}
"""Minimum and maximum of the columns of numbers."""
DRAWS = re.compile("fold|split|(?<![a-z])(run|seed|draw|repeat|trial|experiment)(?![a-z])")
"""Words in names of columns that number subsamples."""
GRADES = frozenset(("0", "1", "0.0", "1.0", "false", "true"))
"""Cells of scores of single answers."""
PERCENTAGES = ("score", "loss", "error_rate", "macro_f1", "majority")
"""Columns that may be percentages."""
JOINED = ", "  # between the columns that number the subsamples together, and between their cells
YES_OR_EMPTY = ("independent_tasks", "percentages")
PERCENT_DIGITS = 14  # decimals of a fraction, so that 71.1% is exactly 0.711
MISSING = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "None", "-", "--")
"""Texts that mean a missing number. In columns of texts they are ordinary names."""
AVERAGES = ("average", "avg", "mean", "median", "all", "overall", "total", "macroavg", "microavg", "macroaverage")
SUMMARIES = frozenset((*AVERAGES, "std", "sd", "stderr", "sem", "var", "min", "max"))
"""Normalized names of rows that summarize other rows."""
MAX_REPEATED = 0.05  # share of rows with an identifier of an earlier row that are probably mistakes
MIN_OTHERS = 2  # cells of a column that show that another one is out of range
MAX_ARMS = 12  # values of a column of arms that a message lists


def plain_table(table: pd.DataFrame, origin: str) -> pd.DataFrame:
    """Return the table with a plain index and distinct names of columns; an index with a name becomes a column.

    Cells of other types than numbers and texts, such as categories and dates, become objects of Python.
    """
    if table.empty:
        raise ResultsError(f"{origin} has no rows; give one row for each subsample, or for each arm of a subsample")
    if table.index.names != [None]:
        table = table.reset_index(allow_duplicates=True)
    elif not is_integer_dtype(table.index.dtype):
        raise ResultsError(
            f"{origin}: the index has no name, and its values are not row numbers, but {quoted(table.index[:3])}; name "
            "it to use it as a column, or drop it with reset_index(drop=True)"
        )
    names = [str(name).strip() or f"Unnamed: {position}" for position, name in enumerate(table.columns)]
    refuse_duplicates(names, origin)
    table = table.reset_index(drop=True).set_axis(names, axis="columns")
    is_plain = [is_numeric_dtype(dtype) or isinstance(dtype, pd.StringDtype) for dtype in table.dtypes]
    return table.astype({name: "object" for name, plain in zip(names, is_plain, strict=True) if not plain})


def join_draws(table: pd.DataFrame, options: TableOptions) -> tuple[pd.DataFrame, TableOptions]:
    """Join the columns that the user named as subsamples, such as seed and fold, to one that numbers all pairs."""
    names = [name for name, to in options.columns.items() if find_role(str(to)) == SUBSAMPLE and name in table.columns]
    if len(names) < 2:
        return table, options
    draws = table[names].map(str).agg(JOINED.join, axis="columns")
    draws = draws.where(~table[names].map(is_missing).any(axis="columns"))
    joined = JOINED.join(names)
    columns = {name: target for name, target in options.columns.items() if name not in names}
    table = table.drop(columns=names).assign(**{joined: draws})
    return table, replace(options, columns={**columns, joined: str(SUBSAMPLE)})


def refuse_duplicates(names: Iterable[str], origin: str) -> None:
    """Refuse two columns of the same name, of which one would be ignored."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ResultsError(f"{origin}: the column {short(name)!r} is duplicated; remove or rename one")


class CellReader:
    """Reads columns of a user's table, and refuses the first cell that is not valid.

    Parameters
    ----------
    table
        The user's table, as `plain_table` returns it.
    roles
        Roles of its columns.
    origin
        Name of the table for messages.
    options
        How to read the table. Rows of other tasks than its tasks are left out.
    task
        Name of the task if no column names it.
    """

    def __init__(
        self, table: pd.DataFrame, roles: ColumnRoles, origin: str, options: TableOptions, task: str = "task"
    ) -> None:
        self.table = table
        self.task = task
        self.roles = roles
        self.origin = origin
        self.alike_answers: list[str] = []
        """Answers that are not equal to their labels but alike, and count as correct."""
        self.has_percentages = False
        """Whether a column of scores that was read has percentages."""
        self._options = options
        self._has_unit = options.region is not None  # scores can then have any size
        self.has_grades = self._find_grades()
        """Whether all scores are 0 or 1, as those of single answers."""
        self.drops_empty = options.drops_empty and not self.is_of_texts
        """Whether arms without a score are left out. All arms need the same texts."""
        self.row_numbers = table.index + 1
        """Numbers of rows for messages; the first row below the heading is 1."""
        if options.tasks:
            self._select_tasks(options.tasks)
        if self.is_of_texts or self.has_grades:
            self._grades_as_numbers()

    @property
    def is_of_texts(self) -> bool:
        """Whether each row is about a single text."""
        is_named = {name: self.roles.source(name) is not None for name in ("subsample", "num_test", TEXT.name)}
        return is_named[TEXT.name] or (self.has_grades and bool(self.roles.arms) and not any(is_named.values()))

    def _select_tasks(self, tasks: Collection[str]) -> None:
        """Leave out the rows of other tasks before their cells are checked."""
        names = self.texts("task")
        known = names.unique().tolist()
        for task in map(key_of, tasks):
            if task not in known:
                option, remedy = TableOptions(tasks=[str(task)]).argument, suggest_name(str(task), known, "tasks")
                raise ResultsError(option, f": {self.origin} has no such task; {remedy}")
        is_selected = names.isin([*map(key_of, tasks)]).to_numpy()
        self.row_numbers = self.row_numbers[is_selected]
        self.table = self.table[is_selected].reset_index(drop=True)

    def _find_grades(self) -> bool:
        """Return whether all scores are 0 or 1, and are no counts of correct answers to several texts."""
        sources = {role: name for role, name in self.roles.sources.items() if role.column in SCORE_SOURCES}
        columns = {role.column for role in sources}
        if columns == {"num_correct"} and self.roles.source("num_test") is None:
            columns = {"score"}
        cells = {str(cell).casefold() for name in sources.values() for cell in self.table[name].astype("str").unique()}
        return columns == {"score"} and cells <= GRADES

    def _grades_as_numbers(self) -> None:
        """Make 1 of correct answers to single texts, and 0 of others, if they are True and False."""
        for role, source in self.roles.sources.items():
            if role.column in ("score", "num_correct"):
                grades = self.table[source].astype("str").str.casefold()
                if grades.isin(("true", "false")).all():
                    self.table = self.table.assign(**{source: (grades == "true").astype("int64")})

    def grade(self, source: str, sameness: pd.Series[str], arm: str) -> None:
        """Replace a column of answers by 1 for those that equal their label or are alike, and 0 for others."""
        self.alike_answers += self.table.loc[sameness == "alike", source].astype("str").tolist()
        self.table = self.table.assign(**{source: (sameness != "different").astype("int64")})
        sources = {role: name for role, name in self.roles.sources.items() if name != source}
        self.roles = replace(self.roles, sources={**sources, Role("num_correct", arm): source})
        self.has_grades = self._find_grades()

    def require(self, is_valid: pd.Series[bool], source: str, *problem: str | Argument, added: Any = None) -> None:
        """Refuse the first row that is not valid. Rows of several arms follow each other arm by arm."""
        invalid = (~is_valid.astype("bool")).to_numpy()
        if invalid.any():
            raise self.error(int(invalid.argmax()) % len(self.table), source, *problem, added=added)

    def require_filled(self, column: str, *problem: str | Argument, arm: str = "") -> None:
        """Refuse the first missing cell of a column, if the user's table has it."""
        if (source := self.roles.source(column, arm)) is not None:
            is_filled = ~self.table[source].map(is_missing).astype("bool")
            if column in LIMITS:
                is_filled = ~is_absent(self.table[source])
            self.require(is_filled, source, "is empty; ", *problem)

    def require_one_spelling(self, column: str) -> None:
        """Refuse names that are alike."""
        if (source := self.roles.source(column)) is None:
            return
        names = self.texts(column)
        for other, name, *_ in find_alike(map(str, names.unique())):
            problem = (
                f"differs from {json.dumps(other)} only by {DIFFERENCES}; write one name in all rows, or rename one"
            )
            self.require(names != name, source, problem)

    def error(
        self, position: int, source: str, *problem: str | Argument, added: TableOptions | None = None
    ) -> ResultsError:
        """Return an error about the cell of a row, which is counted from 0."""
        cell = self.table[source].iloc[position]
        text = "the cell"
        if not is_missing(cell):
            text = short(str(cell))
        place = f"{self.origin}, row {self.row_numbers[position]}, column {quoted(source.split(JOINED))}"
        return ResultsError(f"{place}: {text} ", *problem, added=added)

    def column(self, column: str, arm: str = "") -> pd.Series[Any]:
        """Return a column of numbers of the results table; all values are missing if the user has no such column."""
        source = self.roles.source(column, arm)
        if source is None:
            return pd.Series(np.nan, index=self.table.index).astype(TYPES[column])
        values = self.numbers(source, column)
        if TYPES[column] == "Int64":
            self.require(values.isna() | (values == values.round()), source, "is not a whole number; correct it")
        return values.astype(TYPES[column])

    def numbers(self, source: str, column: str) -> pd.Series[float]:
        """Return a column of the user as float64, checked as a column of the results table."""
        cells = self.table[source]
        values = to_floats(cells)
        low, high = LIMITS[column]
        remedy: tuple[str | Argument, ...] = ("correct it",)
        if column in PERCENTAGES:
            values = self._fractions(values, source, is_bounded=column != "loss" and not self._has_unit)
            is_single = (values > high).sum() == 1 and len(values) > MIN_OTHERS
            remedy = ("give fractions, or use ", PERCENT, " if these are percentages")
            counts = "; write counts into num_correct"
            if is_single:
                remedy, counts = ("correct the cell, as all other cells of the column are at most 1",), ""
        if column == "score":
            as_loss = mapping(source, Role(LOSS.name, (find_role(source) or Role("")).arm))
            remedy += (f"{counts}, or use ", as_loss, " if lower is better, or ", REGION)
            if self._has_unit:
                high = MAX_SIZE
        problem = "is not a number; correct it, and write numbers without a comma"
        self.require(is_absent(cells) | np.isfinite(values), source, problem)
        self.require(values.isna() | (values >= low), source, f"is below the minimum of {low:g}; correct it")
        added = None
        if column in PERCENTAGES and values.max() <= 100 and not values.between(0, 1, inclusive="right").any():
            added = TableOptions(percent=True)
        self.require(
            values.isna() | (values <= high), source, f"is above the maximum of {high:g}; ", *remedy, added=added
        )
        return values

    def _fractions(self, values: pd.Series[float], source: str, *, is_bounded: bool) -> pd.Series[float]:
        """Return fractions: cells with a percent sign are percentages, and with --percent all others, too.

        Where values are at most 100, a comma can only be a decimal comma. '1,234' of an unbounded loss is refused.
        """
        cells = self.table[source]
        is_percentage = pd.Series(False, index=cells.index)
        if not is_numeric_dtype(cells):
            texts = cells.where(cells.map(lambda cell: isinstance(cell, str)), "").astype("object").str.strip()
            is_percentage = texts.str.endswith("%")
            numbers = texts.str.removesuffix("%")
            if is_bounded:
                numbers = numbers.str.replace(",", ".")
            values = values.fillna(to_floats(numbers))
        if self._options.percent:
            remedy = " is given; remove the option if these are fractions, or write a % sign"
            is_large = ~values.between(0, 1, inclusive="right")
            self.require(is_percentage | is_large, source, "is at most 1, but ", PERCENT, remedy)
            is_percentage |= True
        elif is_percentage.any():
            problem = "has no percent sign, but other cells have one; write it in all cells or in none"
            self.require(is_percentage | values.isna(), source, problem)
        self.has_percentages |= bool(is_percentage.any())
        with np.errstate(over="ignore"):
            return values.where(~is_percentage, (values / 100).round(PERCENT_DIGITS))

    def guess_columns(self, trials: pd.DataFrame) -> TableOptions:
        """Return options for columns of unknown meaning: some are texts or tasks by their values."""
        table, sources = self.table, self.roles.sources
        draws = {role.column: table[name] for role, name in sources.items() if role in (SUBSAMPLE, Role(FIT.name))}
        columns: dict[str, str] = {}
        for name in sorted(self.roles.unknown, key=lambda name: not names_text(name)):
            cells = table[name]
            if self.roles.unknown[name] or cells.nunique() == 1 or cells.map(is_missing).any():
                continue
            num_repeated = trials.assign(**draws, text=cells).duplicated().sum()
            is_text = num_repeated <= len(cells) * (MAX_REPEATED if names_text(name) else 0)
            if cells.nunique() == len(cells) and not (self.is_of_texts and is_text):
                continue
            if is_text and DRAWS.search(name.casefold()):
                columns.setdefault("subsample", name)
            elif is_text and Role(TEXT.name) not in sources and (self.has_grades or names_text(name)):
                columns.setdefault(TEXT.name, name)
            elif is_text and (self.is_of_texts or self.has_grades):
                continue
            elif Role("task") not in sources and to_floats(cells).isna().all():
                columns.setdefault("task", name)
        found = {name: column for column, name in columns.items()}
        return TableOptions(found, [name for name in self.roles.unknown if name not in found])

    def texts(self, column: str, arm: str = "") -> pd.Series[str]:
        """Return the keys of a column of texts, empty where it is missing; the default if there is none."""
        source = self.roles.source(column, arm)
        if source is None:
            defaults = TEXT_DEFAULTS | {"task": self.task, "arm": "base"}
            return pd.Series(defaults.get(column, ""), index=self.table.index, dtype="str")
        cells = self.table[source]
        if cells.dtype == "object":
            self.require(cells.map(_is_plain), source, "is not a name; write a text or a number")
        codes, found = pd.factorize(cells.astype("str").where(cells.notna(), ""))
        names = pd.Index([key_of(name) for name in found], dtype="str")
        return pd.Series(names.take(codes), index=cells.index, dtype="str")


def names_text(name: str) -> bool:
    """Return whether the name of a column is one of identifiers, such as `example_id` or `idx`, but not `run_id`."""
    return normalize(name).endswith(("id", "idx", "index")) and not DRAWS.search(name.casefold())


def is_absent(cells: pd.Series[Any]) -> pd.Series[bool]:
    """Return which numbers are missing: cells that are empty, and texts that other programs write for them."""
    if is_numeric_dtype(cells):
        return cells.isna()
    return cells.map(is_missing).astype("bool") | cells.isin(MISSING)


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


def read_trials(reader: CellReader) -> pd.DataFrame:
    """Return the columns that are not of one arm, and the arm if each row has one."""
    trials = pd.DataFrame(index=reader.table.index)
    for column in (*TEXT_DEFAULTS, METRIC.name):
        trials[column] = reader.texts(column)
    for column in (*SIZES, "num_scored"):
        trials[column] = reader.column(column)
        if trials[column].notna().any():
            source = reader.roles.sources[Role(column)]
            reader.require_filled(column, "fill it in as in other rows, or use ", ignoring(source))
    trials[MAJORITY] = reader.column(MAJORITY)
    if reader.roles.source("arm") is not None:
        trials["arm"] = _read_arm_names(trials["arm"], reader)
    elif reader.roles.arms:
        del trials["arm"]
    _check_names(trials, reader)
    return trials


def _read_arm_names(cells: pd.Series[str], reader: CellReader) -> pd.Series[str]:
    """Return the arms of the rows, with values that the user renames."""
    source, renamed = reader.roles.sources[Role("arm")], reader.roles.arm_names
    values = [str(value) for value in cells.unique()]
    for name, arm in renamed.items():
        if name not in values:
            raise ResultsError(
                mapping(name, arm),
                f": {reader.origin} has no column {short(name)!r}, and the column of arms, "
                f"{short(source)!r}, has no such value, but {', '.join(map(short, values[:MAX_ARMS]))}",
            )
    arms = {value: renamed.get(value) or normalize_arm(value) for value in values}
    if unknown := [value for value, arm in arms.items() if arm is None]:
        raise reader.error(
            int(cells.isin(unknown).to_numpy().argmax()),
            source,
            "is not an arm. Correct it, or name each value: write base (without unlabeled text), extra (independent "
            "text), test (the test texts), a dose such as mix-0.25 or a rule such as cross-5 in place of each ARM",
            added=TableOptions(dict.fromkeys(unknown[:MAX_ARMS], "ARM")),
        )
    return cells.map(arms).astype("str")


def _check_names(trials: pd.DataFrame, reader: CellReader) -> None:
    """Refuse missing names, averages of other rows, and values that differ between rows of which all need the same."""
    fill_in = "is empty, but other rows have a name; fill in every cell, also below merged cells"
    has_model = (trials["model"] != "").groupby(trials["method"]).transform("any")
    is_summary = trials["task"].map(normalize).isin(SUMMARIES)
    checks = [
        ("task", trials["task"] != "", "is empty; name the task"),
        ("method", trials["method"] != "", fill_in),
        ("model", (trials["model"] != "") | ~has_model, fill_in),
        (
            "task",
            ~is_summary | bool(is_summary.all()),
            "summarizes other tasks, which would count twice; delete its rows, or rename the task",
        ),
        ("metric", trials["metric"] != "", "is empty; name the metric, or ignore the column"),
        *((name, trials[name].isin(("", "yes")), "is neither 'yes' nor empty; correct it") for name in YES_OR_EMPTY),
        ("control", trials["control"].isin(get_args(Control)), "is not 'negative', 'positive' or empty; correct it"),
    ]
    for column, place in (("metric", "task"), ("control", "method")):
        is_first = trials[column] == trials.groupby(place)[column].transform("first")
        checks.append((column, is_first, f"differs from the first row of its {place}; give one for each {place}"))
    for column, is_valid, problem in checks:
        if (source := reader.roles.source(column)) is not None:
            reader.require(is_valid, source, problem)
    for column in ("task", "method", "model"):
        reader.require_one_spelling(column)


def read_subsamples(reader: CellReader) -> pd.Series[int]:
    """Return the numbers of the subsamples.

    Whole numbers are kept. Texts and negative or very large numbers are numbered in their sorted order, if the user
    named the column.
    """
    source = reader.roles.sources[Role("subsample")]
    reader.require_filled("subsample", "number every row, or none, and delete rows that are not draws, such as means")
    numbers = to_floats(reader.table[source])
    if source not in reader.roles.mapped:
        problem = "is not a whole number; number the draws, delete rows that are not draws, or keep their names"
        added = TableOptions({source: "subsample"})
        reader.require(numbers == numbers.round(), source, problem, added=added)
        return reader.column("subsample")
    if (numbers == numbers.round()).all() and numbers.between(0, MAX_SIZE).all():
        return numbers.astype("Int64")
    names = reader.table[source].astype("str").str.split(JOINED)
    is_summary = names.map(lambda parts: not SUMMARIES.isdisjoint(map(normalize, parts)))
    reader.require(~is_summary, source, "summarizes other rows, which would count twice; delete its rows, or rename it")
    return pd.Series(rank(reader.table[source]), dtype="Int64")
