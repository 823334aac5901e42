"""Finds the column that names the test text of each row, if the rows of a table are about single texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype

from peekbench.results.cells import to_floats
from peekbench.results.column_names import SYNONYM, find_claims
from peekbench.results.column_roles import SUBSAMPLE, TEXT, ColumnRoles, refuse_ambiguity
from peekbench.results.other_columns import is_constant, number_values
from peekbench.results.row_order import natural_key, rank_numbers

if TYPE_CHECKING:
    from peekbench.records.data import IntArray
    from peekbench.results.cells import CellReader

OF_TEXT = "the same in all rows of a text"
MAX_TEXT = 1_000_000  # characters of a text, which can be its own name


def grades_as_numbers(table: pd.DataFrame, roles: ColumnRoles) -> pd.DataFrame:
    """Return a table whose rows may be about single texts, with correct answers as 1 and others as 0."""
    if TEXT not in roles.sources and not roles.texts:
        return table
    grades = {name: table[name].astype("int64") for name in _find_scores(roles) if is_bool_dtype(table[name])}
    return table.assign(**grades)


def choose_texts(table: pd.DataFrame, roles: ColumnRoles, groups: IntArray, origin: str) -> ColumnRoles:
    """Return the roles, in which the column that names the text of each row has this role, if there is one.

    A column called `text` names the texts if it differs within a task and configuration. A synonym also needs scores
    that are all 0 or 1: other scores can be those of many texts, so its meaning is uncertain.

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
        If several columns can name the texts.
    """
    varying = [name for name in roles.texts if not is_constant(number_values(table[name]), groups)]
    chosen = [name for name in varying if any(claim.fit < SYNONYM for claim in find_claims(name))]
    if not chosen and all(to_floats(table[name]).isin((0.0, 1.0)).all() for name in _find_scores(roles)):
        chosen = varying
    if len(chosen) > 1:
        refuse_ambiguity(TEXT, chosen, origin)
    return replace(
        roles,
        sources={**roles.sources, **({TEXT: tuple(chosen)} if chosen else {})},
        others=(*roles.others, *(name for name in roles.texts if name not in chosen)),
        texts=(),
    )


@dataclass(frozen=True, slots=True)
class RowTexts:
    """The test text that each row of a table is about."""

    numbers: IntArray
    """Number of the text of each row, in natural order of the names: (n_rows,)."""
    names: Sequence[str]
    """Names of the texts by their numbers."""
    of_tasks: IntArray
    """Number of the task and text of each row: (n_rows,)."""


def read_texts(trials: pd.DataFrame, roles: ColumnRoles, reader: CellReader) -> RowTexts | None:
    """Return the text of each row, or None if rows are not about single texts.

    Raises
    ------
    ResultsError
        If a cell is empty, or is neither a text nor a number.
    """
    sources = roles.sources.get(TEXT, ())
    if not sources:
        return None
    parts = [reader.texts(source, MAX_TEXT) for source in sources]
    for source, part in zip(sources, parts, strict=True):
        remedy = "name the text of each row, and delete rows that are not about a text"
        reader.require(part != "", source, f"is empty; {remedy}")
    first, *others = parts
    codes, found = pd.factorize(first.str.cat(pd.concat(others, axis=1), sep=", ") if others else first)
    names = sorted(map(str, found), key=natural_key)
    positions = {name: position for position, name in enumerate(names)}
    numbers = np.array([positions[str(name)] for name in found], dtype=np.int64)[codes]
    return RowTexts(numbers, names, rank_numbers(number_values(trials["task"]) * len(names) + numbers))


def ignore_facts_of_texts(table: pd.DataFrame, roles: ColumnRoles, groups: IntArray, texts: RowTexts) -> ColumnRoles:
    """Return the roles with columns that describe the texts among the ignored ones, such as their labels.

    Such a column is the same in all rows of a text. It also differs within a subsample, so it cannot distinguish rows
    that other columns would have to keep apart, such as those of two methods.
    """
    draws = groups
    for name in roles.sources.get(SUBSAMPLE, ()):
        codes = number_values(table[name])
        draws = rank_numbers(draws * (codes.max() + 1) + codes)
    values = {name: number_values(table[name]) for name in roles.others}
    facts = [
        name for name, codes in values.items() if is_constant(codes, texts.of_tasks) and not is_constant(codes, draws)
    ]
    others = tuple(name for name in roles.others if name not in facts)
    return replace(roles, ignored={**roles.ignored, **dict.fromkeys(facts, OF_TEXT)}, others=others)


def _find_scores(roles: ColumnRoles) -> Iterator[str]:
    """Iterate over the columns with the scores, or with the counts if there are no scores."""
    by_column = {role.column for role in roles.sources}
    column = "score" if "score" in by_column else "num_correct"
    return (names[0] for role, names in roles.sources.items() if role.column == column)
