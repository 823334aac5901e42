"""Gives a user's table a plain index and distinct names of columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.results.cells import has_whole, is_empty, quoted, short
from peekbench.results.other_columns import is_row_number

UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names that pandas and Parquet give to columns without a name."""


def plain_table(table: pd.DataFrame, origin: str) -> tuple[pd.DataFrame, list[str]]:
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
