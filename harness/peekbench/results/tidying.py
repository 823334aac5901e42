"""Checks a user's table of scores and brings it into the form of the results table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, get_args

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.data import IntArray
from peekbench.records.table_options import TableOptions
from peekbench.records.trials import Control
from peekbench.results.arm_names import rename_arms
from peekbench.results.cells import CellReader, has_whole, is_empty, quoted, short
from peekbench.results.column_names import Role, ignore_option, map_option, nearest, normalize_arm
from peekbench.results.column_roles import ARM, SUBSAMPLE, TASK, ColumnRoles, assign_roles
from peekbench.results.column_use import BY_ORDER, BY_ROW, ColumnUse, describe_use
from peekbench.results.columns import (
    ARM_MEASURES,
    ARMS,
    COLUMN_NAMES,
    CONFIGURATION,
    MAJORITY,
    SIZES,
    TEXT_DEFAULTS,
    TRIAL,
)
from peekbench.results.numbering import (
    choose_numbering,
    number_rows_by_content,
    number_rows_by_order,
    read_subsamples,
    refuse_unnumbered,
    refuse_unpaired,
)
from peekbench.results.other_columns import ignore_harmless, is_row_number
from peekbench.results.row_order import sort_arms, sort_rows
from peekbench.results.scores_and_counts import fill_scores

UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names that pandas and Parquet give to columns without a name."""


@dataclass(frozen=True, slots=True)
class TidyTable:
    """A results table made from a user's table."""

    results: pd.DataFrame
    columns: ColumnUse


def tidy(
    table: pd.DataFrame,
    origin: str,
    *,
    columns: Mapping[str, str] | None = None,
    ignore: Collection[str] = (),
    pair_by_order: bool = False,
    percent: bool = False,
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

    Returns
    -------
    pandas.DataFrame
        The results table, sorted by method, model, sizes, task, subsample and arm.

    Raises
    ------
    ResultsError
        If the table is malformed, or a column that is neither known nor ignored distinguishes rows. The message names
        `origin`, the row (the first below the heading is 1) and the column.

    Examples
    --------
    >>> scores = pd.DataFrame({"task": ["news"], "num_test": [200], "extra": [0.715], "test": [0.730]})
    >>> tidy(scores, "my scores")["num_correct"].tolist()
    [143, 146]
    """
    return tidy_table(table, origin, TableOptions(columns or {}, ignore, pair_by_order, percent)).results


def tidy_table(table: pd.DataFrame, origin: str, options: TableOptions) -> TidyTable:
    """Return the results table of a user's table, as `tidy`, and what was done with its columns."""
    table, row_numbers = _plain(table, origin)
    if table.empty:
        raise ResultsError(f"{origin} has no rows; give one row for each subsample, or for each arm of a subsample")
    table, options, arm_names = rename_arms(table, origin, options)
    roles = assign_roles(table, origin, options)
    reader = CellReader(table, origin, percent=options.percent)
    trials = _read_trials(roles, reader)
    is_plain = SUBSAMPLE in roles.sources and not roles.others and not roles.numberings
    groups = np.arange(len(table)) if is_plain else _group(trials)  # grouping takes a while and is rarely needed
    roles = choose_numbering(table, roles, groups, origin)
    roles = ignore_harmless(table, roles, trials, groups, origin)
    results = _read_arms(trials, roles, reader, options.arms)
    pairing = ""
    if SUBSAMPLE in roles.sources:
        if options.pair_by_order:
            source = roles.sources[SUBSAMPLE][0]
            raise ResultsError(
                f"{origin}: --pair-by-order is given, but the column {short(source)!r} numbers the subsamples; remove "
                f"the option, or use {ignore_option(source)}"
            )
        subsamples = read_subsamples(table, roles, reader)
        if not roles.arms:
            refuse_unpaired(trials, subsamples, roles, origin)
    elif len(np.unique(groups)) == len(groups):
        subsamples = pd.Series(0, index=table.index, dtype="Int64")
    elif options.pair_by_order:
        subsamples, pairing = number_rows_by_order(groups), BY_ORDER
    elif roles.arms:
        scores = results["score"].to_numpy().reshape(len(roles.arms), len(table)).T
        subsamples, pairing = number_rows_by_content(trials, pd.DataFrame(scores), groups), BY_ROW
    else:
        refuse_unnumbered(groups, origin)
    results["subsample"] = pd.concat([subsamples] * max(1, len(roles.arms))).array
    ordered = sort_rows(results[list(COLUMN_NAMES)])
    if ordered is None:
        _refuse_duplicate(results, roles, reader)
    use = describe_use(roles, row_numbers, reader.percentages, pairing)
    return TidyTable(ordered, replace(use, mapped={**use.mapped, **arm_names}))


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
            raise ResultsError(f"{origin}: the column {short(name)!r} is duplicated; remove or rename one")


def _plain(table: pd.DataFrame, origin: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the table with a plain index and distinct names of columns, and the unnamed columns that were dropped.

    An unnamed column is dropped if it only numbers the rows or is empty, as other tools write it. Any other could
    distinguish rows, and ignoring it would pool them.
    """
    if isinstance(table.index, pd.RangeIndex):
        table = table.reset_index(drop=True)
    elif table.index.names == [None]:
        index = table.index.to_series()
        if not has_whole(index) and not table.empty:
            raise ResultsError(
                f"{origin}: the index has no name, and its values are not row numbers, but {quoted(index[:3])}; name "
                "it to use it as a column, or drop it with reset_index(drop=True)"
            )
        table = table.reset_index(drop=True)
    else:
        table = table.reset_index(allow_duplicates=True)
    table = table.set_axis([str(column).strip() for column in table.columns], axis="columns")
    unnamed = [UNNAMED.fullmatch(column) is not None for column in table.columns]
    for position in np.flatnonzero(unnamed).tolist():
        cells = table.iloc[:, position]
        if not is_row_number(cells) and not is_empty(cells).all():
            raise ResultsError(
                f"{origin}: column {position + 1} has no name, and its values are not row numbers; name it or remove it"
            )
    dropped = [f"column {position + 1} without a name" for position in np.flatnonzero(unnamed).tolist()]
    table = table.loc[:, [not each for each in unnamed]]
    refuse_duplicates(table.columns, origin)
    return table, dropped


def _read_trials(roles: ColumnRoles, reader: CellReader) -> pd.DataFrame:
    """Return the columns that are not of one arm, and the arm if each row has one."""
    trials = pd.DataFrame(index=reader.index)
    for column, default in TEXT_DEFAULTS.items():
        sources = roles.sources.get(Role(column), ())
        if sources:
            texts = [reader.texts(source) for source in sources]
            trials[column] = texts[0] if len(texts) == 1 else _join(texts)
        elif column != "arm":
            trials[column] = pd.Series(default, index=reader.index, dtype="str")
    for column in (*SIZES, MAJORITY):
        trials[column] = reader.column(roles.source(column), column)
    if "arm" in trials.columns:
        names = {arm: normalize_arm(arm) for arm in trials["arm"].unique()}
        reader.require(
            trials["arm"].isin([arm for arm, name in names.items() if name]),
            roles.sources[ARM][0],
            _explain_arm,
        )
        trials["arm"] = trials["arm"].map(names).astype("str")
    elif not roles.arms:
        trials["arm"] = pd.Series("base", index=reader.index, dtype="str")
    reader.require(trials["task"] != "", roles.sources[TASK][0], "is empty; name the task")
    _check_controls(trials, roles, reader)
    return trials


def _explain_arm(value: str) -> str:
    near = nearest(value, ARMS)
    return (
        f"is not an arm; {f'did you mean {near}? Arms' if near else 'arms'} are base, extra, test and doses such as "
        f"mix-0.25. Say which arm a value is with --map VALUE=ARM, such as {map_option(value, near or 'extra')}"
    )


def _group(trials: pd.DataFrame) -> IntArray:
    """Return a number for each row, equal for rows of the same configuration and task, and of the same arm if any."""
    names = [*CONFIGURATION, "task", *(["arm"] if "arm" in trials.columns else [])]
    return trials.groupby(names, dropna=False, sort=False).ngroup().to_numpy().astype(np.int64)


def _join(texts: Sequence[pd.Series[str]]) -> pd.Series[str]:
    """Return the texts of several columns as one, such as 'lsa, 100'."""
    parts = pd.concat(texts, axis="columns", keys=range(len(texts)))
    codes = parts.groupby(list(parts.columns), sort=False).ngroup().to_numpy()
    distinct = parts.drop_duplicates()
    names = [", ".join(filter(None, row)) for row in distinct.itertuples(index=False)]
    return pd.Series(np.array(names, dtype="object")[codes], index=parts.index, dtype="str")


def _check_controls(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> None:
    source = roles.source("control")
    if source is None:
        return
    reader.require(
        trials["control"].isin(get_args(Control)),
        source,
        "is neither 'negative' nor 'positive'; leave it empty for methods that are not controls",
    )
    first = trials.groupby("method")["control"].transform("first")
    reader.require(
        trials["control"] == first,
        source,
        "differs from the first row of its method; use one value for all rows of a method",
    )


def _read_arms(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader, needed: Sequence[str]) -> pd.DataFrame:
    """Return one row for each arm of each row of the user's table, one arm below the other."""
    arms = sort_arms(roles.arms) or [""]
    tables = []
    for arm in arms:
        measures = {column: reader.column(roles.source(column, arm), column) for column in ARM_MEASURES}
        tables.append(trials.assign(**({"arm": arm} if arm else {}), **measures))
    results = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
    for arm in needed:
        if not (results["arm"] == arm).any():
            because = (
                "but the bias is the score of test minus the score of extra" if arm != "base" else "which is needed"
            )
            raise ResultsError(f"{reader.origin}: no row has the arm {arm!r}, {because}; add these rows")
    fill_scores(results, roles, reader)
    return results


def _refuse_duplicate(results: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> NoReturn:
    position = int(results.duplicated([*TRIAL, "arm"]).to_numpy().argmax())
    source = roles.source("subsample")
    assert source is not None  # other numbers are distinct
    raise reader.error(
        position % len(reader.index),
        source,
        "is duplicated for the same task, method, model, sizes and arm; number the subsamples, or name the columns "
        "that distinguish the rows, such as --map COLUMN=method",
    )
