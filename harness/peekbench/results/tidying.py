"""Checks a user's table of scores and brings it into the form of the results table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, get_args

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.data import IntArray, Predictions, TableOptions
from peekbench.records.trials import Control
from peekbench.results.cells import (
    MAX_NAME,
    MAX_SIZE,
    CellReader,
    fill_scores,
    fill_text_scores,
    find_metric,
    rank,
    refuse_losses,
    to_floats,
)
from peekbench.results.columns import (
    ARM_MEASURES,
    COLUMN_NAMES,
    CONFIGURATION,
    ERROR_RATE,
    INDEPENDENT,
    LOSSES,
    MAJORITY,
    METRIC,
    SIZES,
    TEXT_DEFAULTS,
    TRIAL,
    ColumnRoles,
    Role,
    normalize,
    normalize_arm,
    sort_arms,
)
from peekbench.results.looks import state_earlier
from peekbench.results.roles import (
    ARM,
    BY_ORDER,
    BY_ROW,
    BY_TEXT,
    METHOD,
    MODEL,
    SUBSAMPLE,
    TASK,
    TEXT,
    ColumnUse,
    assign_roles,
    describe_use,
    explain_arms,
    ignoring,
    mapping,
    plain_table,
    refuse_unknown,
    short,
    suggest_name,
)
from peekbench.results.texts import RowTexts, add_up, grades_as_numbers, read_texts

PAIR_BY_ORDER = TableOptions(pair_by_order=True).argument
AVERAGES = frozenset(("average", "avg", "mean", "all", "overall", "total", "macroavg", "microavg", "macroaverage"))
"""Normalized names of rows that summarize other rows."""
SPREADS = frozenset(("std", "sd", "se", "sem", "stderr", "var", "ci", "median", "min", "max"))
"""Normalized names of further rows that are no draws."""
PLACE = (*CONFIGURATION, "task")
DIGITS = 9  # of scores that decide the order of rows, so that percentages and fractions have the same order
MAX_LISTED = 3  # rows that a message lists
MAX_ARMS = 12  # values of a column of arms that a message lists
MAX_LOOKS = 100_000  # characters of the column of looks
MIN_COPIED = 4  # distinct rows; fewer can all occur twice by chance


@dataclass(frozen=True, slots=True)
class TidyTable:
    """A results table, and what is known about it."""

    results: pd.DataFrame
    columns: ColumnUse = field(default_factory=ColumnUse)
    """What was done with the columns of a user's table."""
    predictions: Predictions | None = None
    """Answers to single texts, if they are known."""

    @property
    def has_texts_as_draws(self) -> bool:
        """Whether each subsample is a single text, because there is one run for each arm."""
        return self.columns.pairing == BY_TEXT

    @property
    def has_rows_of_texts(self) -> bool:
        """Whether a user's table has one row for each text and run."""
        return bool(self.columns) and self.predictions is not None


def tidy(
    table: pd.DataFrame,
    origin: str,
    *,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    pair_by_order: bool = False,
    percent: bool = False,
    independent_tasks: bool = False,
) -> pd.DataFrame:
    """Check a table of scores and fill in the columns of the results table.

    Parameters
    ----------
    table
        One row for each arm with the columns of `peekbench.results.COLUMNS`, or one row for each subsample with a
        column of scores for each arm. Only the task and the scores are required.
    origin
        Name of the table for messages, such as its file.
    columns
        Meaning of columns with names of their own: ``{"seed": "subsample"}``. Several columns can form the same task,
        method, model or subsample together. Values of the column of arms are renamed in the same way:
        ``{"independent": "extra"}``.
    ignore
        Columns that say nothing about the scores.
    pair_by_order
        Pair rows that have no number of the draw in the order in which they stand.
    percent
        Read scores, macro-F1 and majority as percentages.
    independent_tasks
        Different tasks have independent draws, although these have the same numbers.

    Returns
    -------
    pandas.DataFrame
        The results table, sorted by method, model, sizes, task, subsample and arm.

    Raises
    ------
    ResultsError
        If the table is malformed, or a column is neither known nor mapped nor ignored. The message names
        `origin`, the row (the first below the heading is 1) and the column.

    Examples
    --------
    >>> scores = pd.DataFrame({"task": ["news"], "num_test": [200], "extra": [0.715], "test": [0.730]})
    >>> tidy(scores, "my scores")["num_correct"].tolist()
    [143, 146]
    """
    options = TableOptions(columns or {}, ignore, pair_by_order, percent, independent_tasks)
    return tidy_table(table, origin, options).results


def tidy_table(table: pd.DataFrame, origin: str, options: TableOptions) -> TidyTable:
    """Return the results table of a user's table, as `tidy`, and what was done with its columns."""
    table = plain_table(table, origin)
    roles = assign_roles(table, origin, options)
    table = select_tasks(table, roles, options.tasks, origin)
    numbers, table = table.index + 1, grades_as_numbers(table.reset_index(drop=True), roles)
    reader = CellReader(table, origin, numbers, percent=options.percent, has_unit=options.region is not None)
    trials = _read_trials(roles, reader)
    texts = read_texts(roles, reader)
    subsamples, pairing = _number_rows(table, trials, texts, roles, reader, pair_by_order=options.pair_by_order)
    refuse_unknown(table, roles, origin)
    rows = _read_arms(trials, roles, reader, options.arms)
    if texts:
        fill_text_scores(rows, roles, reader)
    else:
        fill_scores(rows, roles, reader)
    num_arms = max(1, len(roles.arms))
    if pairing in (BY_ORDER, BY_ROW):
        _refuse_copies(trials, rows, origin)
    if subsamples is None:
        scores = rows["score"].to_numpy().reshape(num_arms, len(table)).T
        subsamples = number_by_content(trials, pd.DataFrame(scores))
    rows["subsample"] = pd.concat([subsamples] * num_arms).array
    if texts:
        rows[TEXT.column] = np.tile(texts.numbers, num_arms)
    results = sort_rows(rows, [TEXT.column] if texts else [])
    if results is None:
        _refuse_duplicate(rows, roles, reader)
    metric = find_metric(results, origin)
    refuse_losses(results, metric, roles, origin)
    predictions = None
    if texts:
        results, predictions = add_up(results, texts.names, origin)
        if predictions is None:
            results, pairing = sort_rows(results), pairing or BY_TEXT
            assert results is not None  # no text is duplicated
    has_texts_as_draws = pairing == BY_TEXT or bool(results["num_test"].eq(1).fillna(False).all())
    if options.independent_tasks or has_texts_as_draws or pairing == BY_ROW:  # the last has no numbers that tasks share
        results = results.assign(**INDEPENDENT)
    results = state_earlier(results, options.earlier_numbers, origin)
    use = describe_use(results, roles, reader.percentages, pairing, options.region, metric, origin)
    return TidyTable(results[list(COLUMN_NAMES)], use, predictions)


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


def _read_trials(roles: ColumnRoles, reader: CellReader) -> pd.DataFrame:
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


def _number_rows(
    table: pd.DataFrame,
    trials: pd.DataFrame,
    texts: RowTexts | None,
    roles: ColumnRoles,
    reader: CellReader,
    *,
    pair_by_order: bool,
) -> tuple[pd.Series[int] | None, str]:
    """Return the number of the subsample of each row, and how rows are paired if the user's table has no such number.

    None instead of numbers: each row of a table with columns of arms is a draw of its own.
    """
    if source := roles.source("subsample"):
        if pair_by_order:
            raise ResultsError(
                f"{reader.origin}: ",
                PAIR_BY_ORDER,
                f" is given, but the column {short(source)!r} numbers the subsamples; remove the option, or use ",
                ignoring(source),
            )
        return _read_subsamples(table, roles, reader), ""
    places = trials[[name for name in (*PLACE, "arm") if name in trials]]
    if texts:
        places = places.assign(text=texts.numbers)
    groups = _number(places)
    if len(np.unique(groups)) == len(groups):
        return pd.Series(0, index=table.index, dtype="Int64"), ""
    if pair_by_order:
        return pd.Series(groups).groupby(groups).cumcount().astype("Int64"), BY_ORDER
    if roles.arms and texts is None:
        return None, BY_ROW
    raise _unnumbered(groups, roles, reader)


def _number(places: pd.DataFrame) -> IntArray:
    """Return a number for each row, equal for equal rows."""
    return places.groupby(list(places.columns), dropna=False, sort=False).ngroup().to_numpy().astype(np.int64)


def _read_subsamples(table: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> pd.Series[int]:
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


def number_by_content(trials: pd.DataFrame, scores: pd.DataFrame) -> pd.Series[int]:
    """Return numbers of subsamples for rows that have all arms of a trial but no number.

    The numbers depend on the scores of a row, not on its position, and look random, so that the first subsamples are
    not those of the lowest scores. Configurations have different numbers, because nothing says that they share draws.

    Parameters
    ----------
    trials
        Configuration and task of each row.
    scores
        Scores of each row, one column for each arm.
    """
    groups = _number(trials[list(PLACE)])
    _, counts = np.unique(groups, return_counts=True)
    hashes = pd.util.hash_pandas_object(scores.round(DIGITS) + 0.0, index=False).to_numpy()
    order = np.lexsort([*(scores[arm].to_numpy() for arm in scores.columns), hashes, groups])
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    ranks = pd.DataFrame({name: rank(trials[name]) for name in CONFIGURATION})
    configuration = ranks.groupby(list(CONFIGURATION)).ngroup()
    return (configuration * int(counts.max()) + position).astype("Int64")


def _unnumbered(groups: IntArray, roles: ColumnRoles, reader: CellReader) -> ResultsError:
    """Return an error about several rows of the same arm, which no column pairs with rows of other arms."""
    is_same = groups == groups[pd.Series(groups).duplicated(keep=False).to_numpy().argmax()]
    rows = ", ".join(map(str, reader.row_numbers[np.flatnonzero(is_same)[:MAX_LISTED]]))
    if is_same.sum() > MAX_LISTED:
        rows += ", ..."
    place = "task, method, model, sizes"
    if TEXT in roles.sources:
        place += ", text"
    unknown = dict.fromkeys(roles.unknown, "MEANING")
    return ResultsError(
        f"{reader.origin}: {is_same.sum():,} rows have the same {place} and arm (rows {rows}), and no "
        "column numbers the subsamples, so it is unknown which rows belong together. Add a column 'subsample', name "
        "yours with ",
        mapping("COLUMN", "subsample"),
        ", or, if the rows of all arms have the same order, pair them by it with ",
        PAIR_BY_ORDER,
        added=TableOptions(unknown, pair_by_order=not unknown),
    )


def _read_arms(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader, needed: Sequence[str]) -> pd.DataFrame:
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


def _refuse_copies(trials: pd.DataFrame, rows: pd.DataFrame, origin: str) -> None:
    """Refuse rows without numbers of which each occurs several times, so that copies would count as draws."""
    scores = rows["score"].to_numpy().reshape(-1, len(trials))
    distinct = trials.assign(**{f"score {number}": column for number, column in enumerate(scores)})
    counts = distinct.groupby(list(distinct.columns), dropna=False).size()
    if len(counts) >= MIN_COPIED and counts.min() > 1:
        raise ResultsError(
            f"{origin}: each row occurs at least {counts.min()} times, and no column numbers the draws; delete the "
            "copies, or add a column 'subsample' with the number of the draw if these are different draws"
        )


def _refuse_duplicate(rows: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> NoReturn:
    place, column = [*TRIAL, "arm"], "subsample"
    listed = "task, method, model, sizes and arm"
    if TEXT in roles.sources:
        place, column = [*place, TEXT.column], TEXT.column
        listed = "task, method, model, sizes, subsample and arm"
    position = int(rows.duplicated(place).to_numpy().argmax())
    source = roles.source(column)
    assert source is not None  # other numbers are distinct
    raise reader.error(
        position % len(reader.index),
        source,
        f"is duplicated for the same {listed}; number the subsamples, or name the columns that distinguish the rows, "
        "such as ",
        mapping("COLUMN", "method"),
    )


def sort_rows(results: pd.DataFrame, last: Sequence[str] = ()) -> pd.DataFrame | None:
    """Return a results table in natural order of its rows, or None if two rows are the same arm of the same trial.

    Results then do not depend on the order of the rows of a file, not even in their last digit. `last` names columns of
    numbers that also distinguish and order rows.
    """
    arms = {arm: number for number, arm in enumerate(sort_arms(results["arm"].unique()))}
    numbers = (results["subsample"], results["arm"].map(arms), *(results[name] for name in last))
    keys = [rank(results[name]) for name in (*CONFIGURATION, "task")]
    keys += [column.to_numpy().astype(np.int64) for column in numbers]
    order = np.lexsort(keys[::-1])
    is_new = np.zeros(max(len(order) - 1, 0), dtype=np.bool_)
    for key in keys:
        is_new |= np.diff(key[order]) != 0
    if not is_new.all():
        return None
    return results.iloc[order].reset_index(drop=True)
