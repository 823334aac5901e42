"""Brings the rows of a user's table into the form of the results table: numbers, counts, order and metric."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
import pandas as pd

from peekbench.errors import Argument, ResultsError
from peekbench.records.data import IntArray, Predictions, TableOptions
from peekbench.records.report import ACCURACY
from peekbench.results.cells import (
    ANSWERS,
    FLOAT_ERROR,
    CellReader,
    last_decimal,
    rank,
    read_arms,
    read_subsamples,
    read_trials,
    refuse_means,
    select_tasks,
)
from peekbench.results.columns import (
    COLUMN_NAMES,
    CONFIGURATION,
    INDEPENDENT,
    LOSS,
    METRIC,
    SCORE_SOURCES,
    TRIAL,
    ColumnRoles,
    is_counted,
    names_loss,
    sort_arms,
)
from peekbench.results.looks import state_earlier
from peekbench.results.roles import (
    ALLOW_INCOMPLETE,
    BY_ORDER,
    BY_ROW,
    BY_TEXT,
    TEXT,
    ColumnUse,
    assign_roles,
    describe_use,
    ignoring,
    mapping,
    plain_table,
    quoted,
    refuse_unknown,
    short,
)
from peekbench.results.texts import RowTexts, add_up, grades_as_numbers, read_texts

PAIR_BY_ORDER = TableOptions(pair_by_order=True).argument
PLACE = (*CONFIGURATION, "task")
DIGITS = 9  # of scores that decide the order of rows, so that percentages and fractions have the same order
MAX_LISTED = 3  # rows that a message lists
UNSTATED = "an unknown metric"
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
    trials = read_trials(roles, reader)
    texts = read_texts(roles, reader)
    subsamples, pairing = _number_rows(table, trials, texts, roles, reader, pair_by_order=options.pair_by_order)
    refuse_unknown(table, roles, origin)
    rows = read_arms(trials, roles, reader, options.arms)
    if texts:
        fill_text_scores(rows, roles, reader)
    else:
        fill_scores(rows, roles, reader)
    if source := roles.source("subsample"):
        refuse_means(rows, table[source], source, reader)
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
        return read_subsamples(table, roles, reader), ""
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
