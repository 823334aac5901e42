"""Gives the columns of a user's table distinct names, and decides what each contains.

A column has a known name, or the user named its meaning, or ignored it. Everything else is refused, with arguments of
the command line that make it work. They are a proposal: nothing is used that is neither known nor named.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.plugins.entries import AnalyzerEntry
from peekbench.plugins.registry import names_with
from peekbench.records.data import IntArray, TableOptions
from peekbench.results.cells import is_empty, number_values, quoted, short, to_floats
from peekbench.results.columns import (
    ARM_MEASURES,
    ARMS,
    ERROR_RATE,
    LOSS,
    LOSSES,
    NAMES,
    SCORE_SOURCES,
    ColumnRoles,
    Role,
    find_role,
    normalize,
    normalize_arm,
)

UNNAMED = re.compile(r"|Unnamed: \d+|__index_level_\d+__")
"""Names that pandas and Parquet give to columns without a name."""
ARM, SUBSAMPLE, TASK, SCORE = Role("arm"), Role("subsample"), Role("task"), Role("score")
METHOD, MODEL, TEXT = Role("method"), Role("model"), Role("text")
COMBINABLE = (TASK, METHOD, MODEL, SUBSAMPLE, TEXT)
"""Columns that several columns of a user can form together, such as a subsample for each seed and fold."""
NEARBY = ("task", "method", "model", "num_train", "num_test", "subsample")
"""Columns that are proposed for similar names."""
ARMS_EXPLAINED = "base (without unlabeled text), extra (independent text) or test (the test texts) in place of each ARM"
SIMILARITY_CUTOFF = 0.7  # models and model are similar, notes and num_test are not
MAX_ARMS = 12  # values that a column of arms may have: three arms and some doses
MAX_LISTED = 5  # columns that a message lists
MAX_VALUES = 4  # values of each


def plain_table(table: pd.DataFrame, origin: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the table with a plain index and distinct names of columns, and the unnamed columns that were dropped.

    An unnamed column is dropped if it only numbers the rows or is empty, as other tools write it. Any other could
    distinguish rows, and ignoring it would pool them.
    """
    if table.index.names != [None]:
        table = table.reset_index(allow_duplicates=True)
    elif not isinstance(table.index, pd.RangeIndex) and not table.empty:
        index = table.index.to_series()
        numbers = to_floats(index)
        if not (numbers == numbers.round()).any():
            raise ResultsError(
                f"{origin}: the index has no name, and its values are not row numbers, but {quoted(index[:3])}; name "
                "it to use it as a column, or drop it with reset_index(drop=True)"
            )
    table = table.reset_index(drop=True)
    if table.empty:
        raise ResultsError(f"{origin} has no rows; give one row for each subsample, or for each arm of a subsample")
    table = table.set_axis([str(column).strip() for column in table.columns], axis="columns")
    unnamed = [position for position, name in enumerate(table.columns) if UNNAMED.fullmatch(name)]
    for position in unnamed:
        cells = table.iloc[:, position]
        numbers = to_floats(cells)
        if not ((numbers == numbers.round()).all() and numbers.is_unique) and not is_empty(cells).all():
            raise ResultsError(
                f"{origin}: column {position + 1} has no name, and its values are not row numbers; name it or remove it"
            )
    dropped = {f"column {position + 1} without a name": "it numbers the rows" for position in unnamed}
    table = table.iloc[:, [position for position in range(len(table.columns)) if position not in unnamed]]
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


def assign_roles(table: pd.DataFrame, origin: str, options: TableOptions) -> ColumnRoles:
    """Return the roles of the columns of a table.

    Parameters
    ----------
    table
        The user's table, whose names of columns are distinct texts.
    origin
        Name of the table for messages.
    options
        What the user says about the columns.

    Raises
    ------
    ResultsError
        If two columns have the same role, a needed column is missing, or an option names an unknown column.
    """
    names = [str(name) for name in table.columns]
    requested, arm_names = _read_requests(options, names, origin)
    listed = [options.ignore] if isinstance(options.ignore, str) else options.ignore
    ignored = tuple(_find_column(source, names, f"--ignore {source}", origin) for source in listed)
    if both := [name for name in ignored if name in requested]:
        raise ResultsError(f"{origin}: the column {short(both[0])!r} is both mapped and ignored; choose one")
    sources: dict[Role, tuple[str, ...]] = {}
    for name, role in requested.items():
        sources[role] = (*sources.get(role, ()), name)
    claims: dict[Role, list[str]] = {}
    unknown: dict[str, str] = {}
    for name in (name for name in names if name not in requested and name not in ignored):
        known = find_role(name)
        if known is None:
            unknown[name] = ""
        else:
            claims.setdefault(known, []).append(name)
    for role, claimants in claims.items():
        winners = [name for name in claimants if is_name(name, role)] or ([] if role in sources else claimants)
        if len(winners) > 1:
            _refuse_ambiguity(role, winners, origin)
        unknown |= {name: f"means {str(role)!r}, like another column" for name in claimants if name not in winners}
        sources[role] = (*winners, *sources.get(role, ()))
    for role, combined in sources.items():
        if len(combined) > 1 and role not in COMBINABLE:
            raise ResultsError(
                f"{origin}: the columns {quoted(combined)} cannot both be {str(role)!r}; leave one out, such as "
                f"--ignore {short(combined[0])}"
            )
    sources = _use_losses(sources, unknown, requested, origin, lower_is_better=options.lower_is_better)
    _use_one_form(sources, unknown)
    roles = ColumnRoles(sources, unknown, ignored, frozenset(requested), arm_names)
    missing = _find_missing(roles, options)
    if arm_names and ARM not in sources and not (missing and _arm_columns(table, roles)):
        source, arm = next(iter(arm_names.items()))
        raise ResultsError(f"--map {short(source)}={arm}: {_no_column(source, names, origin)}")
    if missing:
        _refuse_missing(table, roles, missing, origin)
    is_plain = not roles.arms and ARM not in sources
    if is_plain and METHOD not in sources and MODEL in sources:  # scores of models without arms
        sources = {METHOD if role == MODEL else role: names for role, names in sources.items()}
    return replace(roles, sources=sources)


def _read_requests(options: TableOptions, names: Sequence[str], origin: str) -> tuple[dict[str, Role], dict[str, str]]:
    """Return the roles of columns that the user named, and the values of the column of arms that are renamed."""
    requested: dict[str, Role] = {}
    arm_names: dict[str, str] = {}
    known = {normalize(name) for name in names}
    for source, target in options.columns.items():
        arm = normalize_arm(str(target))
        if arm is not None and normalize(source) not in known:
            arm_names[source] = arm
            continue
        role = find_role(str(target))
        if role is None or not is_name(str(target), role):
            near = nearest(str(target), [*NAMES.values(), *ARMS])
            raise ResultsError(
                f"--map {short(source)}={short(str(target))}: no such column of the results table; "
                + (f"did you mean {near}?" if near else f"choose one of {', '.join(NAMES.values())}, or an arm")
            )
        meaning = find_role(source)
        if role.column == "score" and meaning is not None and meaning.column in LOSSES:  # such as --map wer=score
            role = Role(meaning.column, role.arm)
        requested[_find_column(source, names, f"--map {source}={target}", origin)] = role
    return requested, arm_names


def _find_column(source: str, names: Sequence[str], option: str, origin: str) -> str:
    if source in names:
        return source
    if len(alike := [name for name in names if normalize(name) == normalize(source)]) == 1:
        return alike[0]
    raise ResultsError(f"{short(option)}: {_no_column(source, names, origin)}")


def _no_column(source: str, names: Sequence[str], origin: str) -> str:
    near = nearest(source, names)
    remedy = f"did you mean {near!r}?" if near else f"its columns are {quoted(names)}"
    return f"{origin} has no column {short(source)!r}; {remedy}"


def is_name(name: str, role: Role) -> bool:
    """Return whether a column has the name of its role, in any spelling, and not a synonym."""
    return normalize(name) == normalize(str(role))


def nearest(name: str, names: Collection[str]) -> str:
    """Return the most similar of several names, or an empty text if none is similar."""
    by_spelling = {normalize(each)[:100]: each for each in reversed(list(names))}
    close = get_close_matches(normalize(name)[:100], by_spelling, n=1, cutoff=SIMILARITY_CUTOFF)
    return by_spelling[close[0]] if close else ""


def _refuse_ambiguity(role: Role, names: Sequence[str], origin: str) -> NoReturn:
    mapped = names if role == SUBSAMPLE else names[:1]  # seeds and folds usually number the draws together
    remedy = "ignore all but one with --ignore, or combine them" if role == SUBSAMPLE else "choose one"
    raise ResultsError(
        f"{origin}: the columns {quoted(names)} can all mean {str(role)!r}; {remedy}",
        TableOptions(dict.fromkeys(mapped, str(role)), names[len(mapped) :]).arguments(),
    )


def _use_losses(
    sources: Mapping[Role, tuple[str, ...]],
    unknown: dict[str, str],
    requested: Collection[str],
    origin: str,
    *,
    lower_is_better: bool,
) -> dict[Role, tuple[str, ...]]:
    """Return the roles with losses as the scores of arms that have no other score; other losses are not used."""
    if lower_is_better:
        if not any(role.column in ("score", *LOSSES) for role in sources):
            raise ResultsError(f"{origin}: --lower-is-better is given, but no column has scores; remove the option")
        return {Role(LOSS.name, role.arm) if role.column == "score" else role: n for role, n in sources.items()}
    scored = {role.arm for role in sources if role.column in SCORE_SOURCES and role.column not in LOSSES}
    used: dict[Role, tuple[str, ...]] = {}
    for role, names in sources.items():
        if role.column in LOSSES and role.arm in scored and not set(requested) & set(names):
            unknown |= dict.fromkeys(names, "would be a second score")
        elif role.column == "log_loss" and not any(each.column in SCORE_SOURCES for each in sources):
            used[Role(LOSS.name, role.arm)] = names
        else:
            used[role] = names
    return used


def as_score(losses: pd.Series[float], column: str) -> pd.Series[float]:
    """Return the scores of losses: 1 - error_rate, and the negatives of other losses."""
    return 1 - losses if column == ERROR_RATE.name else -losses


def _use_one_form(sources: dict[Role, tuple[str, ...]], unknown: dict[str, str]) -> None:
    """Move to the unknown columns what belongs to the form that a table does not have: rows or columns of arms."""
    is_long, is_wide = ARM in sources, any(role.arm for role in sources)
    for role, names in list(sources.items()):
        if is_long and role.arm:
            reason = f"has values of the arm {role.arm!r}, and each row is one arm"
        elif is_wide and not is_long and not role.arm and role.column in (*ARM_MEASURES, *LOSSES):
            reason = "does not name its arm"
        else:
            continue
        unknown |= dict.fromkeys(names, reason)
        del sources[role]


def _find_missing(roles: ColumnRoles, options: TableOptions) -> list[Role]:
    """Return the roles that a column must have."""
    missing = [] if TASK in roles.sources else [TASK]
    arms = roles.arms
    if ARM not in roles.sources and (arms or options.needs_pairs):
        needed = [Role("score", arm) for arm in options.arms if not any(roles.source(s, arm) for s in SCORE_SOURCES)]
        return [*missing, *(needed if arms else [ARM])]
    return missing if any(roles.source(column) for column in SCORE_SOURCES) else [*missing, SCORE]


def _refuse_missing(table: pd.DataFrame, roles: ColumnRoles, missing: Sequence[Role], origin: str) -> NoReturn:
    names = [str(name) for name in table.columns]
    columns = f"the columns are {quoted(names)}"
    if missing[0] == TASK:
        if {"text", "label"} <= {normalize(name) for name in names}:
            raise ResultsError(
                f"{origin} has texts and labels, not scores; to measure a method on them, name the file in the tasks "
                f"of a spec: `{{use: files, options: {{path: {origin}}}}}`"
            )
        problem = f"the column 'task' is missing; {columns}. "
        if not to_floats(pd.Series(names, dtype="str")).isna().all():
            raise ResultsError(f"{origin}: {problem}The first line must name the columns")
        problem += "Add it"
    elif missing[0] == ARM:
        usable = names_with(AnalyzerEntry, lambda entry: set(entry.arms) <= {"base"})
        problem = f"no column has the arms; {columns}. Add a column 'arm', or one for each arm: base, extra, test"
        problem += f" (scores without arms can be analyzed by {', '.join(usable)})" if usable else ""
    elif missing[0] == SCORE:
        problem = f"no column has the scores; {columns}. Add a column 'score', or 'loss' if lower is better"
    else:
        arm = missing[0].arm
        problem = f"no column has the scores of the arm {arm!r}; {columns}. Add a column {arm!r}"
    proposal = _propose(table, roles, missing)
    if not proposal:
        problem += f", or name yours with --map COLUMN={missing[0]}" if roles.unknown else ""
        raise ResultsError(f"{origin}: {problem}")
    ignored = [name for name in roles.unknown if name not in proposal]
    problem += ", or name yours, and ignore what says nothing about the scores" if ignored else ", or name yours"
    problem += f", with {ARMS_EXPLAINED}" if "ARM" in proposal.values() else ""
    raise ResultsError(f"{origin}: {problem}", TableOptions(proposal, ignored).arguments())


def refuse_unknown(table: pd.DataFrame, roles: ColumnRoles, places: IntArray, origin: str) -> NoReturn:
    """Refuse columns that are neither known nor named nor ignored.

    Parameters
    ----------
    table
        The user's table.
    roles
        Roles of its columns.
    places
        A number for each row, equal for rows of the same place: task, configuration, subsample, arm and text.
    origin
        Name of the table for messages.

    Raises
    ------
    ResultsError
        Always. The message lists the values of the columns, and the arguments name columns with similar names and those
        that tell rows of the same place apart, and ignore the others.
    """
    absent = [name for name in NEARBY if Role(name) not in roles.sources]
    columns: dict[str, str] = {}
    for name in (name for name, reason in roles.unknown.items() if not reason):
        if near := nearest(name, [target for target in absent if target not in columns.values()]):
            columns[name] = near
    if separating := find_separating(table, roles, places):
        columns.setdefault(*separating)
    shown = list(roles.unknown.items())[:MAX_LISTED]
    listed = ", ".join(f"{short(name)!r} ({reason or _list_values(table[name])})" for name, reason in shown)
    more = f" and {len(roles.unknown) - MAX_LISTED} more" if len(roles.unknown) > MAX_LISTED else ""
    example = next((name for name, reason in shown if not reason), "COLUMN")
    raise ResultsError(
        f"{origin}: unknown column{'s' * (len(shown) > 1)} {listed}{more}. Name what a column distinguishes, such as "
        f"--map {shlex.quote(short(example))}=method, and ignore what says nothing about the scores",
        TableOptions(columns, [name for name in roles.unknown if name not in columns]).arguments(),
    )


def find_separating(table: pd.DataFrame, roles: ColumnRoles, places: IntArray) -> tuple[str, str] | None:
    """Return an unknown column that tells all rows of the same place apart, and what it may be; None without one."""
    if len(np.unique(places)) == len(places) or (roles.arms and SUBSAMPLE not in roles.sources):
        return None
    for name in roles.unknown:
        values = number_values(table[name])
        is_repeated = values.max() + 1 < len(values)  # numbers of rows pair nothing
        if is_repeated and not pd.DataFrame({"place": places, "value": values}).duplicated().any():
            return name, "method" if SUBSAMPLE in roles.sources else "subsample"
    return None


def _propose(table: pd.DataFrame, roles: ColumnRoles, missing: Sequence[Role]) -> dict[str, str]:
    """Return meanings of unknown columns for all missing roles; empty if a role fits none of them."""
    numbers = {name: to_floats(table[name]) for name in roles.unknown}
    fractional = [name for name, values in numbers.items() if values.notna().all() and (values % 1 != 0).any()]
    whole = [name for name, values in numbers.items() if values.notna().all() and name not in fractional]
    texts = [name for name in numbers if name not in (*fractional, *whole)]
    columns: dict[str, str] = {}
    for role in missing:
        if role == ARM:
            arms = _propose_arms(table, roles, [name for name in texts if name not in columns], fractional)
            is_long = "arm" in arms.values()
            has_scores = any(roles.source(column) for column in SCORE_SOURCES)
            arms |= {name: "subsample" for name in whole[:1] if is_long and SUBSAMPLE not in roles.sources}
            arms |= {name: "score" for name in fractional[:1] if is_long and not has_scores}
        else:
            left = [name for name in numbers if name not in columns]
            fitting = [name for name in (texts if role == TASK else fractional) if name in left]
            near = nearest(str(role), left)
            meaning = str(role) if near or not role.arm else "ARM"  # only a name tells the arm
            arms = {name: meaning for name in [near or next(iter(fitting), "")] if name}
        if not arms:
            return {}
        columns |= arms
    return columns


def _arm_columns(table: pd.DataFrame, roles: ColumnRoles) -> list[str]:
    """Return the unknown columns whose values are arms, with the names that the user gives."""
    values = {name: _distinct(table[name]) for name in roles.unknown}
    return [
        name
        for name, cells in values.items()
        if cells and all(normalize_arm(roles.arm_names.get(cell, cell)) for cell in cells)
    ]


def _distinct(cells: pd.Series[Any]) -> list[str]:
    """Return the distinct values of a column as texts."""
    return list(dict.fromkeys(str(cell).strip() for cell in cells.dropna()))


def _propose_arms(
    table: pd.DataFrame, roles: ColumnRoles, texts: Sequence[str], fractional: Sequence[str]
) -> dict[str, str]:
    """Return a column of arms with its values, or columns for each arm; ARM stands for arms that no name tells."""
    if named := _arm_columns(table, roles):
        return {named[0]: "arm"}
    if columns := {name: arm for name in fractional if (arm := _arm_in(name))}:
        return columns
    for name in texts:
        values = _distinct(table[name])
        if 1 < len(values) <= MAX_ARMS:
            return {name: "arm"} | propose_values([value for value in values if normalize_arm(value) is None])
    return dict.fromkeys(fractional, "ARM")


def propose_values(values: Sequence[str]) -> dict[str, str]:
    """Return the arms of values with similar names, and ARM for others."""
    return {value: nearest(value, ARMS) or "ARM" for value in values[:MAX_ARMS]}


def _arm_in(name: str) -> str:
    """Return the arm in the name of a column such as 'f1_extra', or an empty text."""
    return next((arm for word in re.split(r"[\s_.:()]+", name) if (arm := normalize_arm(word))), "")


def _list_values(cells: pd.Series[Any]) -> str:
    """Return the first distinct values of a column."""
    first = np.unique(number_values(cells), return_index=True)[1]
    values = cells.iloc[np.sort(first)[:MAX_VALUES]]
    shown = [
        "empty" if pd.api.types.is_scalar(each) and pd.isna(each) else short(repr(each)) for each in values.tolist()
    ]
    return ", ".join(shown) + (f", ... {len(first)} values" if len(first) > MAX_VALUES else "")
