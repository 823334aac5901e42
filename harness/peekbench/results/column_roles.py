"""Decides what each column of a user's table contains. Every column has a role, is ignored for a reason, or is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.plugins.entries import AnalyzerEntry
from peekbench.plugins.roles import names_with
from peekbench.records.table_options import TableOptions
from peekbench.results.cells import has_whole, quoted, short, to_floats
from peekbench.results.column_names import (
    COMBINABLE,
    EXACT,
    SYNONYM,
    Role,
    find_claims,
    ignore_option,
    is_loss,
    map_option,
    normalize,
    normalize_arm,
    read_requests,
)
from peekbench.results.columns import ARM_MEASURES, LOSS, SCORE_SOURCES
from peekbench.results.proposals import propose

BY_REQUEST = "by request"
BASE = "base"  # the arm of a table without arms
NO_ARM = "it does not say which arm it belongs to"
ARM, SUBSAMPLE, TASK = Role("arm"), Role("subsample"), Role("task")
METHOD, MODEL, TEXT = Role("method"), Role("model"), Role("text")


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Roles of the columns of a table."""

    sources: Mapping[Role, tuple[str, ...]]
    """Columns of the user that form each column of the results table; several only if they are combined."""
    ignored: Mapping[str, str]
    """Columns that are not used, with the reason."""
    others: tuple[str, ...] = ()
    """Columns without a role. They are harmless only if they distinguish no rows."""
    numberings: tuple[str, ...] = ()
    """Columns that may number the subsamples, according to their names."""
    texts: tuple[str, ...] = ()
    """Columns that may name the test text of each row, according to their names."""
    requested: frozenset[str] = frozenset()
    """Columns whose role the user named."""

    @property
    def arms(self) -> list[str]:
        """Arms of a table that has columns for each arm; none if it has one row for each arm."""
        return list(dict.fromkeys(role.arm for role in self.sources if role.arm))

    def source(self, column: str, arm: str = "") -> str | None:
        """Return the user's column that is a column of the results table, or None."""
        names = self.sources.get(Role(column, arm))
        return names[0] if names else None


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
        If two columns claim the same role, or an option names an unknown column.
    """
    names = [str(name) for name in table.columns]
    requests = read_requests(options, names, origin)
    sources: dict[Role, tuple[str, ...]] = {}
    for name, role in requests.roles.items():
        sources[role] = (*sources.get(role, ()), name)
    claims: dict[Role, list[tuple[int, str]]] = {}
    others: list[str] = []
    for name in names:
        if name in requests.roles or name in requests.ignored:
            continue
        claim = next(_find_plausible(name, table[name]), None)
        if claim is None:
            others.append(name)
        else:
            claims.setdefault(claim[1], []).append((claim[0], name))
    numberings: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    for role, claimants in claims.items():
        best = min(fit for fit, _ in claimants)
        winners = tuple(name for fit, name in claimants if fit == best)
        if best == SYNONYM and role in sources:  # the user named another column
            winners = ()
        elif best == SYNONYM and role == SUBSAMPLE:  # their values tell which of them numbers the subsamples
            numberings = winners
        elif role == TEXT and role not in sources:  # their values tell whether each row is about one text
            texts = winners
        elif len(winners) > 1:
            refuse_ambiguity(role, winners, origin)
        else:
            sources[role] = (*winners, *sources.get(role, ()))
        others += [name for _, name in claimants if name not in winners]
    sources, unused = _use_losses(sources, requests.roles, origin, options)
    others += unused
    ignored = dict.fromkeys(requests.ignored, BY_REQUEST)
    roles = ColumnRoles(sources, ignored, tuple(others), numberings, texts, frozenset(requests.roles))
    _refuse_combinations(roles, origin)
    _check_form(roles, table, origin, options)
    if roles.arms:
        return _without_unknown_arms(roles)
    return roles if ARM in roles.sources else _with_models_as_methods(roles)


def _use_losses(
    sources: Mapping[Role, tuple[str, ...]], requested: Mapping[str, Role], origin: str, options: TableOptions
) -> tuple[dict[Role, tuple[str, ...]], list[str]]:
    """Return the roles with losses as the scores of arms that have no other score, and the other losses."""
    if options.lower_is_better:
        if not any(role.column == "score" or is_loss(role) for role in sources):
            raise ResultsError(f"{origin}: --lower-is-better is given, but no column has scores; remove the option")
        return {Role(LOSS.name, role.arm) if role.column == "score" else role: n for role, n in sources.items()}, []
    scored = {role.arm for role in sources if role.column in SCORE_SOURCES and not is_loss(role)}
    used: dict[Role, tuple[str, ...]] = {}
    unused: list[str] = []
    for role, names in sources.items():
        is_needless = role.arm in scored and not requested.keys() & set(names)
        if is_loss(role) and is_needless:
            unused += names
        elif role.column == "log_loss" and not any(each.column in SCORE_SOURCES for each in sources):
            used[Role(LOSS.name, role.arm)] = names
        else:
            used[role] = names
    return used, unused


def _find_plausible(name: str, cells: pd.Series[Any]) -> Iterator[tuple[int, Role]]:
    """Iterate over the roles that the name of a column claims, without synonyms whose values do not fit."""
    for fit, role in find_claims(name):
        if fit < SYNONYM or role not in (ARM, SUBSAMPLE) or (_are_arms if role == ARM else has_whole)(cells):
            yield fit, role


def _are_arms(cells: pd.Series[Any]) -> bool:
    if cells.dtype == "object" and not cells.map(lambda cell: isinstance(cell, str)).all():
        return False
    return all(isinstance(value, str) and normalize_arm(value) is not None for value in cells.unique())


def refuse_ambiguity(role: Role, names: Sequence[str], origin: str) -> None:
    """Refuse several columns that claim the same role."""
    first, second = names[:2]
    combined = f", or combine them: {map_option(first, str(role))} {map_option(second, str(role))}"
    raise ResultsError(
        f"{origin}: the columns {quoted(names)} can all mean {str(role)!r}; name one, such as "
        f"{map_option(first, str(role))} {ignore_option(second)}{combined if role.column in COMBINABLE else ''}"
    )


def _refuse_combinations(roles: ColumnRoles, origin: str) -> None:
    for role, names in roles.sources.items():
        if len(names) > 1 and role.column not in COMBINABLE:
            raise ResultsError(
                f"{origin}: the columns {quoted(names)} cannot both be {str(role)!r}; leave one out, such as "
                f"{ignore_option(names[0])}"
            )


def _check_form(roles: ColumnRoles, table: pd.DataFrame, origin: str, options: TableOptions) -> None:
    """Check that the table has tasks, and a column of arms, or columns for the needed arms unless no pairs are."""
    names = [str(name) for name in table.columns]
    arms = roles.arms
    is_wide = ARM not in roles.sources and (arms or options.needs_pairs)
    missing = [arm for arm in options.arms if is_wide and not any(roles.source(each, arm) for each in SCORE_SOURCES)]
    proposal = propose(
        table,
        [*roles.others, *roles.numberings, *roles.texts],
        {*(role.column for role in roles.sources if not role.arm), *arms, *(["subsample"] if roles.numberings else [])},
        missing,
    )
    if TASK not in roles.sources:
        if {"text", "label"} <= {normalize(name) for name in names}:
            raise ResultsError(
                f"{origin} has texts and labels, not scores; to measure a method on them, name the file in the tasks "
                f"of a spec: `{{use: files, options: {{path: {origin}}}}}`"
            )
        has_numbers = not to_floats(pd.Series(names, dtype="str")).isna().all()
        heading = "The first line must name the columns" if has_numbers else "Add it"
        raise ResultsError(
            f"{origin}: the column 'task' is missing; the columns are {quoted(names)}. {heading}, or name the column "
            f"with the tasks, such as {proposal}"
        )
    if ARM in roles.sources:
        if arms:
            wide = next(names[0] for role, names in roles.sources.items() if role.arm)
            score = roles.source("score")
            remedy = f"name its meaning, such as {map_option(wide, 'score')}, or use {ignore_option(wide)}"
            if score is not None:
                remedy = f"use {ignore_option(wide)} if the scores are those of the column {short(score)!r}"
            raise ResultsError(
                f"{origin}: the column {short(roles.sources[ARM][0])!r} says that each row is one arm, but the column "
                f"{short(wide)!r} contains scores of the arm {next(iter(arms))!r}; {remedy}"
            )
        return
    if not is_wide:
        return
    if missing:
        problem = f"scores of the arm {missing[0]!r}" if arms else "arms"
        remedy = f"a column {missing[0]!r}" if arms else "a column 'arm', or one for each arm: base, extra, test"
        raise ResultsError(
            f"{origin}: no column has the {problem}; the columns are {quoted(names)}. Add {remedy}"
            + (f"; or name yours, such as {proposal}" if proposal else "")
            + ("" if arms or "ARM" not in (proposal or "ARM") else _analyses_without_arms())
        )
    if (name := roles.source("score")) is not None:
        raise ResultsError(
            f"{origin}: the column {short(name)!r} does not say which arm its scores belong to, beside the columns of "
            f"{quoted(arms)}; use {ignore_option(name)}, or {map_option(name, 'base')} if it is that arm"
        )


def _analyses_without_arms() -> str:
    names = names_with(AnalyzerEntry, lambda entry: set(entry.arms) <= {BASE})
    return f". Scores of models without arms can be analyzed by {', '.join(names)}" if names else ""


def _without_unknown_arms(roles: ColumnRoles) -> ColumnRoles:
    """Ignore measures of one arm in rows with several arms, if their names do not say which arm it is."""
    of_arms = (*ARM_MEASURES, *SCORE_SOURCES)
    unknown = {role: names[0] for role, names in roles.sources.items() if role.column in of_arms and not role.arm}
    return replace(
        roles,
        sources={role: names for role, names in roles.sources.items() if role not in unknown},
        ignored={**roles.ignored, **dict.fromkeys(unknown.values(), NO_ARM)},
    )


def _with_models_as_methods(roles: ColumnRoles) -> ColumnRoles:
    """Let the models of a table without arms and without methods be its methods."""
    if METHOD in roles.sources or MODEL not in roles.sources:
        return roles
    return replace(roles, sources={METHOD if role == MODEL else role: names for role, names in roles.sources.items()})


def is_exact(role: Role, name: str) -> bool:
    """Return whether a column has exactly the name of its role."""
    return any(claim.fit == EXACT and claim.role == role for claim in find_claims(name))
