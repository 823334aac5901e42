"""Finds names of a results table that are probably misspelled: methods, models and tasks that stand in few rows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pandas as pd

from peekbench.formatting import pluralize
from peekbench.results.cells import short
from peekbench.results.column_names import nearest
from peekbench.results.columns import TRIAL

NAMED = ("task", "method", "model")
MAX_NAMES = 200  # names of a column that are compared; comparing all pairs of more takes seconds
MAX_HINTS = 3


def explain_similar_names(results: pd.DataFrame) -> str:
    """Return a sentence on similar names, for a message about missing trials.

    Parameters
    ----------
    results
        The results table.

    Returns
    -------
    str
        Such as "The method 'tpat' (3 rows) may be a misspelling of 'tapt'."; empty if no names are similar.
    """
    hints = [
        f"the {column} {short(name)!r} ({pluralize(count, 'row')}) may be a misspelling of {short(near)!r}"
        for column in NAMED
        for name, near, count in _find_similar(results[column])
    ]
    more = "; and others" if len(hints) > MAX_HINTS else ""
    return f"T{'; '.join(hints[:MAX_HINTS])[1:]}{more}." if hints else ""


def warn_of_similar_names(results: pd.DataFrame) -> Iterator[str]:
    """Yield a warning for each method that is probably another one, misspelled in some rows.

    The names are similar, and no trial has both, although the rarer one has fewer trials: as if a part of a method had
    another name. Such a table is balanced, so no trial is missing.

    Parameters
    ----------
    results
        The results table.
    """
    others = [name for name in TRIAL if name != "method"]
    for name, near, _ in _find_similar(results["method"]):
        trials = [results[results["method"] == each][others].drop_duplicates() for each in (name, near)]
        if len(trials[0]) < len(trials[1]) and trials[0].merge(trials[1]).empty:
            yield (
                f"The methods {short(name)!r} ({pluralize(len(trials[0]), 'trial')}) and {short(near)!r} "
                f"({pluralize(len(trials[1]), 'trial')}) have similar names and no subsample in common. If they are "
                "the same method, correct the name"
            )


def _find_similar(names: pd.Series[str]) -> Iterator[tuple[str, str, int]]:
    """Yield names with a similar one in at least as many rows, and their numbers of rows; the rarest come first."""
    counts = names.value_counts()  # the most frequent come first
    frequent = [str(name) for name in counts.index if name][:MAX_NAMES]
    for position in range(len(frequent) - 1, 0, -1):
        name = frequent[position]
        same_numbers = [each for each in frequent[:position] if _numbers(each) == _numbers(name)]
        if near := nearest(name, same_numbers):
            yield name, near, int(counts[name])


def _numbers(name: str) -> list[str]:
    """Return the numbers in a name; those of methods tell their sizes apart, as in 'lsa-10' and 'lsa-50'."""
    return re.findall(r"\d+", name)
