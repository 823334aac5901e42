"""Renames the values of a column of arms to base, extra and test, on request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pandas as pd
from pandas.api.types import is_numeric_dtype

from peekbench.errors import ResultsError
from peekbench.records.table_options import TableOptions
from peekbench.results.cells import quoted, short
from peekbench.results.column_names import claims, map_option, nearest, normalize, normalize_arm


def rename_arms(
    table: pd.DataFrame, origin: str, options: TableOptions
) -> tuple[pd.DataFrame, TableOptions, Mapping[str, str]]:
    """Rename arms as requests such as ``{"none": "base"}`` say.

    A request is about a value if no column has its name, its target is an arm, and all such requests together name
    values of one column: one that is mapped to 'arm', or that may contain arms according to its name.

    Parameters
    ----------
    table
        The user's table.
    origin
        Name of the table for messages.
    options
        What the user says about columns and arms.

    Returns
    -------
    tuple
        The table with arms renamed, the other requests, and the old names of arms to the new ones.

    Raises
    ------
    ResultsError
        If a column has some of the named values, but not all, or if a column has them that is not known to have
        the arms.

    Examples
    --------
    >>> table = pd.DataFrame({"condition": ["none", "independent"], "acc": [0.7, 0.8]})
    >>> renamed, _, names = rename_arms(table, "scores", TableOptions({"none": "base", "independent": "extra"}))
    >>> renamed["condition"].tolist(), names
    (['base', 'extra'], {'none': 'base', 'independent': 'extra'})
    """
    columns = {normalize(str(name)) for name in table.columns}
    names = {
        source: arm
        for source, target in options.columns.items()
        if normalize(source) not in columns and (arm := normalize_arm(str(target)))
    }
    if not names:
        return table, options, {}
    for column in _find_columns_of_arms(table, options):
        values = table[column].astype("str").str.strip()
        known = set(values)
        if missing := [name for name in names if name not in known]:
            if len(missing) < len(names):
                near = nearest(missing[0], known)
                raise ResultsError(
                    f"--map {short(missing[0])}={names[missing[0]]}: {origin} has no column {short(missing[0])!r}, and "
                    f"the column of arms, {short(column)!r}, has no such value; "
                    + (f"did you mean {near!r}?" if near else f"its values are {quoted(list(dict.fromkeys(values)))}")
                )
        else:
            others = {source: target for source, target in options.columns.items() if source not in names}
            return table.assign(**{column: values.replace(names)}), replace(options, columns=others), names
    for column in (str(column) for column in table.columns if not is_numeric_dtype(table[column])):
        if not claims(column, "arm") and names.keys() <= set(table[column].astype("str").str.strip()):
            first = next(iter(names))
            raise ResultsError(
                f"{map_option(first, names[first])}: {origin} has no column {short(first)!r}, but the column "
                f"{short(column)!r} has this value; add {map_option(column, 'arm')} if it has the arms"
            )
    return table, options, {}


def _find_columns_of_arms(table: pd.DataFrame, options: TableOptions) -> Iterator[str]:
    """Iterate over the column that the user named, or those that may contain arms according to their names."""
    requested = [normalize(source) for source, target in options.columns.items() if normalize(str(target)) == "arm"]
    for column in map(str, table.columns):
        if normalize(column) in requested if requested else claims(column, "arm"):
            yield column
