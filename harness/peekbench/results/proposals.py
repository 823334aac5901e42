"""Proposes, for messages, what the columns of a user's table mean whose names are unknown, as one complete command."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from peekbench.results.cells import to_floats
from peekbench.results.column_names import claims, guess_arm, map_option, nearest, normalize_arm
from peekbench.results.columns import SCORE_SOURCES

ARMS_EXPLAINED = "where ARM is base (without unlabeled text), extra (independent text) or test (the test texts)"
MAX_ARMS = 12  # values that a column of arms may have: three arms and some doses


def propose(table: pd.DataFrame, names: Sequence[str], known: Collection[str], needed: Collection[str]) -> str:
    """Return the options that probably name the meanings of columns.

    Parameters
    ----------
    table
        The user's table.
    names
        Its columns whose meaning is unknown.
    known
        Columns of the results table that it has, and arms whose scores it has.
    needed
        Arms whose scores no column has.

    Returns
    -------
    str
        Options of the command line, with COLUMN and ARM where nothing suggests a meaning.

    Examples
    --------
    >>> table = pd.DataFrame({"area": ["law"] * 2, "setup": ["other", "same"], "no": [1, 1], "result": [0.5, 0.6]})
    >>> propose(table, list(table), (), ["extra", "test"])
    '--map area=task --map setup=arm --map other=extra --map same=test --map no=subsample --map result=score'
    """
    numbers = {name: to_floats(table[name]) for name in names}
    fractional = [name for name in names if numbers[name].notna().all() and (numbers[name] % 1 != 0).any()]
    whole = [name for name in names if numbers[name].notna().all() and name not in fractional]
    texts = [name for name in names if numbers[name].isna().all()]
    targets: list[tuple[str, str]] = []
    column = _find_column_of_arms(table, texts)
    wide = {name: arm for name in fractional if (arm := guess_arm(name)) not in known}
    if "arm" not in known and needed and column and not any(wide.values()):
        texts.remove(column)
        values = dict.fromkeys(str(value) for value in table[column].dropna())
        targets.append((column, "arm"))
        targets += [(value, guess_arm(value) or "ARM") for value in values if normalize_arm(value) is None]
    elif "arm" not in known and (only := next(iter(needed), "")):
        unnamed = only if len(needed) == 1 else "ARM"
        arms = [(name, arm or unnamed) for name, arm in wide.items() if not arm or arm in (*needed, "base")]
        targets += arms if {"ARM", *needed} & {arm for _, arm in arms} else []
    if "subsample" not in known and whole and (targets or "arm" in known):
        targets.append((whole[0], "subsample"))
    if not any(arm in known for arm in SCORE_SOURCES) and ("arm" in known or (column, "arm") in targets):
        targets += [(score, "score") for score in [find_score(table, fractional)] if score]
    if "task" not in known:
        near = nearest("task", names) or (texts[0] if len(texts) == 1 else "COLUMN")
        targets.insert(0, (near, "task"))
    options = " ".join(map_option(source, target) for source, target in targets)
    return options + (f", {ARMS_EXPLAINED}" if any(target == "ARM" for _, target in targets) else "")


def find_score(table: pd.DataFrame, names: Sequence[str]) -> str:
    """Return the column that probably has the scores of a table with one row for each arm, or an empty text."""
    numbers = {name: to_floats(table[name]) for name in names}
    fractional = [name for name, cells in numbers.items() if cells.notna().all() and (cells != cells.round()).any()]
    near = nearest("score", fractional) or nearest("accuracy", fractional)
    in_range = (name for name in fractional if numbers[name].between(0, 1).all())
    return near or next(in_range, "") or next(iter(fractional), "")


def _find_column_of_arms(table: pd.DataFrame, texts: Sequence[str]) -> str:
    """Return the column whose values are most often names of arms, in other words; empty if none has such values."""
    best, most = "", 0
    for name in texts:
        values = [str(value) for value in table[name].dropna().unique()]
        if not 1 < len(values) <= MAX_ARMS:
            continue
        num_arms = sum(bool(guess_arm(value)) for value in values) + claims(name, "arm")
        if num_arms > most:
            best, most = name, num_arms
    return best
