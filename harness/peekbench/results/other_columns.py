"""Columns of a user's table that the results table does not have: harmless ones are ignored, others refused.

A column is harmless if its values never differ among rows that would be pooled. Otherwise it could distinguish methods
or draws, and ignoring it would change the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.data import IntArray
from peekbench.results.cells import quoted, short, to_floats
from peekbench.results.column_names import find_claims, ignore_option, map_option, nearest, normalize
from peekbench.results.column_roles import ColumnRoles
from peekbench.results.columns import COLUMN_NAMES, CONFIGURATION, SCORE_SOURCES
from peekbench.results.proposals import find_score

CONSTANT = "the same in all rows of a task and configuration"
ROW_NUMBERS = "it numbers the rows"
DERIVED = "a difference of arms"
ROW_NUMBER_NAMES = ("index", "id", "row", "rownumber", "rowid")
MAX_LISTED = 5  # columns that a message lists
MAX_VALUES = 4  # values of each
DOSE_IN_PERCENT = re.compile(r"mix[-_ ]?([1-9]\d?) ?%?", re.IGNORECASE)
TOLERANCE = 1e-6  # of differences of scores that were written with few digits


def ignore_harmless(
    table: pd.DataFrame, roles: ColumnRoles, trials: pd.DataFrame, groups: IntArray, origin: str
) -> ColumnRoles:
    """Return the roles with the columns without a role among the ignored ones, or refuse such columns.

    Parameters
    ----------
    table
        The user's table.
    roles
        Roles of its columns.
    trials
        Configuration and task of each row, and its arm if rows are arms.
    groups
        A number for each row, equal for rows of the same configuration and task, and of the same arm if rows are arms.
    origin
        Name of the table for messages.

    Raises
    ------
    ResultsError
        If a column has different values within a group. The message lists its values and the remedies.
    """
    varying = []
    ignored = dict(roles.ignored)
    within_arms = _join_arms(trials, groups)
    likely_score = _find_score(table, roles.others, roles)
    for name in roles.others:
        cells = table[name]
        codes = number_values(cells)
        if is_constant(codes, groups):
            if name != likely_score and not is_constant(codes, within_arms):
                raise ResultsError(
                    f"{origin}: the column {short(name)!r} ({_list_values(cells)}) differs between the arms extra and "
                    f"test, so the arms may not be comparable; use {ignore_option(name)} if they are"
                )
            ignored[name] = CONSTANT
        elif normalize(name) in ROW_NUMBER_NAMES and is_row_number(cells):
            ignored[name] = ROW_NUMBERS
        elif _is_difference(name, table, roles):
            ignored[name] = DERIVED
        else:
            varying.append(name)
    if varying:
        _refuse(table, varying, trials, groups, roles, origin)
    return replace(roles, ignored=ignored, others=())


def _join_arms(trials: pd.DataFrame, groups: IntArray) -> IntArray:
    """Return the groups with those of all arms but base joined."""
    if "arm" not in trials.columns:
        return groups
    names = [*CONFIGURATION, "task"]
    joined = trials.assign(arm=trials["arm"] == "base").groupby([*names, "arm"], dropna=False, sort=False)
    return joined.ngroup().to_numpy().astype(np.int64)


def is_constant(codes: IntArray, groups: IntArray) -> bool:
    """Return whether values that are given by codes never differ within a group."""
    first = np.empty(groups.max(initial=-1) + 1, dtype=codes.dtype)
    first[groups] = codes
    return bool((first[groups] == codes).all())


def number_values(cells: pd.Series[Any]) -> IntArray:
    """Return a number for each cell, equal for equal values."""
    try:
        codes, _ = pd.factorize(cells, use_na_sentinel=False)
    except (TypeError, ValueError):  # values that cannot be hashed, such as lists
        codes, _ = pd.factorize(cells.map(repr))
    return codes.astype(np.int64)


def is_row_number(cells: pd.Series[Any]) -> bool:
    """Return whether cells are distinct whole numbers, which tell no group of rows apart."""
    numbers = to_floats(cells)
    return bool((numbers == numbers.round()).all()) and numbers.is_unique


def _is_difference(name: str, table: pd.DataFrame, roles: ColumnRoles) -> bool:
    """Return whether a column is a difference of the scores of two arms, as `paired_scores` names and computes it."""
    minuend, minus, subtrahend = {"bias": "test - extra", "boost": "extra - base"}.get(name, name).partition(" - ")
    first, second = roles.source("score", minuend), roles.source("score", subtrahend)
    if not minus or first is None or second is None:
        return False
    difference = to_floats(table[first]) - to_floats(table[second])
    return bool(((to_floats(table[name]) - difference).abs() <= TOLERANCE).all())


def _refuse(
    table: pd.DataFrame, names: Sequence[str], trials: pd.DataFrame, groups: IntArray, roles: ColumnRoles, origin: str
) -> NoReturn:
    alike = "model and sizes" if roles.arms else "model, sizes and arm"
    lines = []
    likely_score = _find_score(table, names, roles)
    for name in names[:MAX_LISTED]:
        meaning = "score" if name == likely_score else _guess(name, table[name], groups, roles)
        remedies = [map_option(name, meaning) + " for the scores" * (name == likely_score), ignore_option(name)]
        if name == likely_score:
            remedies.insert(1, map_option(name, "loss") + " if lower is better")
        if name != likely_score and _is_note(name, meaning, table, trials, roles):
            remedies.reverse()
        lines.append(f"  {short(name)!r} ({_list_values(table[name])}): {', or '.join(remedies)}")
    if len(names) > MAX_LISTED:
        lines.append(f"  and {quoted(names[MAX_LISTED:])}")
    known = "this column" if len(names) == 1 else "these columns"
    raise ResultsError(
        f"{origin}: the meaning of {known} is unknown, and rows of the same task, method, {alike} have "
        "different values:\n" + "\n".join(lines) + "\nName what a column distinguishes with --map (columns= in "
        "Python), or ignore it if it says nothing about the scores"
    )


def _find_score(table: pd.DataFrame, names: Sequence[str], roles: ColumnRoles) -> str:
    """Return the column that probably has the scores, or an empty text if they are known."""
    is_known = roles.arms or any(roles.source(column) for column in SCORE_SOURCES)
    return "" if is_known else find_score(table, names)


def _is_note(name: str, meaning: str, table: pd.DataFrame, trials: pd.DataFrame, roles: ColumnRoles) -> bool:
    """Return whether a column probably says nothing about the scores: as a method, it would leave trials missing."""
    source = roles.source("subsample")
    if meaning not in COLUMN_NAMES or source is None:
        return False
    if _differs_often(table[name]):
        return True
    if meaning != "method":
        return False
    keys = trials.assign(value=number_values(table[name]), subsample=number_values(table[source]))
    rows = keys.groupby([*CONFIGURATION, "value"], dropna=False)["subsample"]
    num_places = len(keys[["task", *(["arm"] if "arm" in keys else [])]].drop_duplicates())
    return bool((rows.nunique() * num_places != rows.size()).any())


def _differs_often(cells: pd.Series[Any]) -> bool:
    return bool(number_values(cells).max() + 1 > len(cells) / 2)


def _list_values(cells: pd.Series[Any]) -> str:
    _, positions = np.unique(number_values(cells), return_index=True)
    values = cells.iloc[np.sort(positions)[:MAX_VALUES]].tolist()
    more = f", ... {len(positions)} values" if len(positions) > MAX_VALUES else ""
    return ", ".join(_show(value) for value in values) + more


def _show(value: Any) -> str:
    is_empty = pd.api.types.is_scalar(value) and pd.isna(value)
    return "empty" if is_empty else short(repr(value))


def _guess(name: str, cells: pd.Series[Any], groups: IntArray, roles: ColumnRoles) -> str:
    """Return the most probable meaning of a column, for a message."""
    known = ("task", "method", "model", "num_train", "num_test")
    synonym = next((claim.role.column for claim in find_claims(name)), None)
    if synonym is not None and roles.source(synonym) is None:
        return synonym
    if roles.arms and (percent := DOSE_IN_PERCENT.fullmatch(name)):
        dose = f"mix-{int(percent[1]) / 100:g}"
        if dose not in roles.arms:
            return dose
    near = nearest(name, [column for column in known if roles.source(column) is None])
    if near:
        return near
    has_digits = all(re.search(r"\d", str(cell)) for cell in cells)
    is_distinct = not pd.DataFrame({"group": groups, "value": number_values(cells)}).duplicated().any()
    return "subsample" if roles.source("subsample") is None and has_digits and is_distinct else "method"
