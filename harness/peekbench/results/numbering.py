"""Numbers the subsamples of a user's table, so that the rows that belong together have the same number."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.data import IntArray
from peekbench.results.cells import MAX_COUNT, CellReader, short, to_floats
from peekbench.results.column_names import ignore_option, map_option
from peekbench.results.column_roles import ARM, SUBSAMPLE, TEXT, ColumnRoles, is_exact, refuse_ambiguity
from peekbench.results.columns import CONFIGURATION
from peekbench.results.other_columns import is_constant, number_values
from peekbench.results.row_order import rank

DIGITS = 9  # of scores that decide the order of rows, so that percentages and fractions have the same order
MAX_LISTED = 3  # rows that a message lists


def choose_numbering(table: pd.DataFrame, roles: ColumnRoles, groups: IntArray, origin: str) -> ColumnRoles:
    """Return the roles, in which the synonym that numbers the rows of each group has the role of the subsample.

    Parameters
    ----------
    table
        The user's table.
    roles
        Roles of its columns.
    groups
        A number for each row, equal for rows of the same configuration and task, and of the same arm if rows are arms.
    origin
        Name of the table for messages.

    Raises
    ------
    ResultsError
        If several columns vary within groups.
    """
    varying = [name for name in roles.numberings if not is_constant(number_values(table[name]), groups)]
    if len(varying) > 1:
        refuse_ambiguity(SUBSAMPLE, varying, origin)
    return replace(
        roles,
        sources={**roles.sources, **({SUBSAMPLE: tuple(varying)} if varying else {})},
        others=(*roles.others, *(name for name in roles.numberings if name not in varying)),
        numberings=(),
    )


def read_subsamples(table: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> pd.Series[int]:
    """Return the numbers of the subsamples.

    Numbers that the user gives are kept. Texts, negative or very large numbers, and combinations of columns are
    numbered in their sorted order.

    Parameters
    ----------
    table
        The user's table.
    roles
        Roles of its columns, of which one or several number the subsamples.
    reader
        Reader of its cells.

    Raises
    ------
    ResultsError
        If a cell is empty, or is a text in a column that the user did not name.
    """
    names = roles.sources[SUBSAMPLE]
    for name in names:
        reader.require_filled(name, "number every row, or none, and delete rows that are not draws, such as means")
        if name in roles.requested:
            reader.texts(name)
    if is_exact(SUBSAMPLE, names[0]) and len(names) == 1:
        return reader.whole_numbers(names[0], "subsample")
    if len(names) > 1:
        ranks = pd.DataFrame({name: rank(table[name]) for name in names})
        return ranks.groupby(list(names)).ngroup().astype("Int64")
    (name,) = names
    numbers = to_floats(table[name])
    is_number = numbers == numbers.round()
    if name not in roles.requested:
        remedy = f"number the draws, delete rows that are not draws, or use {map_option(name, 'subsample')}"
        reader.require(is_number, name, f"is not a whole number; {remedy}")
    if is_number.all() and numbers.between(0, MAX_COUNT).all():
        return numbers.astype("Int64")
    return pd.Series(rank(table[name]), index=table.index, dtype="Int64")


def refuse_unpaired(trials: pd.DataFrame, subsamples: pd.Series[int], roles: ColumnRoles, origin: str) -> None:
    """Refuse a column that was taken for the number of the draw if all rows of the arms have different numbers.

    Parameters
    ----------
    trials
        Configuration, task and arm of each row.
    subsamples
        Number of the draw of each row.
    roles
        Roles of the user's columns.
    origin
        Name of the table for messages.
    """
    (name, *_) = roles.sources[SUBSAMPLE]
    if is_exact(SUBSAMPLE, name) or name in roles.requested:
        return
    numbers = [subsamples[trials["arm"] == arm] for arm in ("extra", "test")]
    if all(map(len, numbers)) and not numbers[0].isin(numbers[1]).any():
        raise ResultsError(
            f"{origin}: no value of the column {short(name)!r} belongs to rows of both arms, extra and test, so it "
            f"does not number the draws; use {ignore_option(name)} and name another column with --map COLUMN=subsample"
        )


def number_rows_by_content(trials: pd.DataFrame, scores: pd.DataFrame, groups: IntArray) -> pd.Series[int]:
    """Return numbers of subsamples for rows that have all arms of a trial but no number.

    The numbers depend on the scores of a row, not on its position, and look random, so that the first subsamples are
    not those of the lowest scores. Configurations have different numbers, because nothing says that they share draws.

    Parameters
    ----------
    trials
        Configuration of each row.
    scores
        Scores of each row, one column for each arm.
    groups
        A number for each row, equal for rows of the same configuration and task.
    """
    _, counts = np.unique(groups, return_counts=True)
    hashes = pd.util.hash_pandas_object(scores.round(DIGITS) + 0.0, index=False).to_numpy()
    order = np.lexsort([*(scores[arm].to_numpy() for arm in scores.columns), hashes, groups])
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    ranks = pd.DataFrame({name: rank(trials[name]) for name in CONFIGURATION})
    configuration = ranks.groupby(list(CONFIGURATION)).ngroup()
    return (configuration * int(counts.max()) + position).astype("Int64")


def number_rows_by_order(groups: IntArray) -> pd.Series[int]:
    """Return numbers of subsamples that count the rows of each group."""
    return pd.Series(groups).groupby(groups).cumcount().astype("Int64")


def refuse_unnumbered(groups: IntArray, origin: str, roles: ColumnRoles) -> NoReturn:
    """Refuse rows that each contain one arm, if several are of the same arm and no column says which are pairs.

    Parameters
    ----------
    groups
        A number for each row, equal for rows of the same configuration, task and arm, and of the same text if any.
    origin
        Name of the table for messages.
    roles
        Roles of the user's columns.
    """
    optional = [str(role) for role in (TEXT, ARM) if role in roles.sources]
    *columns, last = ["task", "method", "model", "sizes", *optional]
    _, first, counts = np.unique(groups, return_index=True, return_counts=True)
    largest = int(counts.argmax())
    rows = (np.flatnonzero(groups == groups[first[largest]])[:MAX_LISTED] + 1).tolist()
    raise ResultsError(
        f"{origin}: {counts[largest]:,} rows have the same {', '.join(columns)} and {last} (rows "
        f"{', '.join(map(str, rows))}{', ...' if counts[largest] > MAX_LISTED else ''}), and no column numbers the "
        f"subsamples, so it is unknown which rows belong together. Add a column "
        f"'subsample', name yours with --map COLUMN=subsample, or use --pair-by-order if the rows of all arms have the "
        "same order"
    )
