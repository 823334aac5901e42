"""Decides what each column of a user's table contains. Every column has a role, is ignored for a reason, or is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.table_options import TableOptions
from peekbench.results.cells import has_whole, quoted, short, to_floats
from peekbench.results.column_names import (
    COMBINABLE,
    EXACT,
    SYNONYM,
    Role,
    find_claims,
    ignore_option,
    map_option,
    nearest,
    normalize,
    normalize_arm,
    read_requests,
)

BY_REQUEST = "by request"
NO_ARM = "it does not say which arm it belongs to"
ARM, SUBSAMPLE, TASK = Role("arm"), Role("subsample"), Role("task")


@dataclass(slots=True)
class ColumnRoles:
    """Roles of the columns of a table."""

    sources: dict[Role, tuple[str, ...]]
    """Columns of the user that form each column of the results table; several only if they are combined."""
    ignored: dict[str, str]
    """Columns that are not used, with the reason."""
    others: list[str]
    """Columns without a role. They are harmless only if they distinguish no rows."""
    numberings: list[str] = field(default_factory=list)
    """Columns that may number the subsamples, according to their names."""

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
    for source, role in requests.roles.items():
        sources[role] = (*sources.get(role, ()), source)
    roles = ColumnRoles(sources, dict.fromkeys(requests.ignored, BY_REQUEST), [], requested=frozenset(requests.roles))
    claims: dict[Role, list[tuple[int, str]]] = {}
    for name in names:
        if name in requests.roles or name in requests.ignored:
            continue
        claim = next(_find_plausible(name, table[name]), None)
        if claim is None:
            roles.others.append(name)
        else:
            claims.setdefault(claim[1], []).append((claim[0], name))
    for role, claimants in claims.items():
        _decide(role, claimants, roles, origin)
    _refuse_combinations(roles, origin)
    _check_form(roles, names, origin)
    return roles


def _find_plausible(name: str, cells: pd.Series[Any]) -> Iterator[tuple[int, Role]]:
    """Iterate over the roles that the name of a column claims, without synonyms whose values do not fit."""
    for fit, role in find_claims(name):
        if fit < SYNONYM or role not in (ARM, SUBSAMPLE) or (_are_arms if role == ARM else has_whole)(cells):
            yield fit, role


def _are_arms(cells: pd.Series[Any]) -> bool:
    if cells.dtype == "object" and not cells.map(lambda cell: isinstance(cell, str)).all():
        return False
    return all(isinstance(value, str) and normalize_arm(value) is not None for value in cells.unique())


def _decide(role: Role, claimants: Sequence[tuple[int, str]], roles: ColumnRoles, origin: str) -> None:
    """Give a role to the column that fits best. Another column that could have it needs a decision of the user."""
    best = min(fit for fit, _ in claimants)
    winners = [name for fit, name in claimants if fit == best]
    losers = [name for fit, name in claimants if fit > best]
    if role in roles.sources and best == SYNONYM:  # the user named another column
        losers += winners
    elif role == SUBSAMPLE and best == SYNONYM:
        roles.numberings += winners
    elif len(winners) > 1:
        refuse_ambiguity(role, winners, origin)
    else:
        roles.sources[role] = (*winners, *roles.sources.get(role, ()))
    roles.others += losers


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


def _check_form(roles: ColumnRoles, names: Sequence[str], origin: str) -> None:
    """Check that the table has tasks, and either a column of arms or columns for the arms extra and test."""
    rest = [*roles.others, *roles.numberings]
    if TASK not in roles.sources:
        near = nearest("task", rest) or next(iter(rest), "NAME")
        has_numbers = not to_floats(pd.Series(names, dtype="str")).isna().all()
        heading = "The first line must name the columns" if has_numbers else "Add it"
        raise ResultsError(
            f"{origin}: the column 'task' is missing; the columns are {quoted(names)}. {heading}, or name the column "
            f"with the tasks, such as {map_option(near, 'task')}"
        )
    arms = roles.arms
    if ARM in roles.sources:
        if arms:
            wide = next(names[0] for role, names in roles.sources.items() if role.arm)
            raise ResultsError(
                f"{origin}: the column {short(roles.sources[ARM][0])!r} says that each row is one arm, but the column "
                f"{short(wide)!r} contains scores of the arm {next(iter(arms))!r}; name its meaning, such as "
                f"{map_option(wide, 'score')}, or use {ignore_option(wide)}"
            )
        return
    for arm in ("extra", "test"):
        if not any(roles.source(column, arm) for column in ("score", "num_correct")):
            remedy = map_option(next(iter(rest), "NAME"), arm if arms else "arm")
            raise ResultsError(
                f"{origin}: no column has the {'scores of the arm ' + repr(arm) if arms else 'arms'}; the columns are "
                f"{quoted(names)}. Add a column {'' if arms else repr('arm') + ', or one for each arm: '}"
                f"{repr(arm) if arms else 'base, extra, test'}; or name yours, such as {remedy}"
            )
    for role in [role for role in roles.sources if not role.arm]:
        (name, *_) = roles.sources[role]
        if role.column == "score":
            raise ResultsError(
                f"{origin}: the column {short(name)!r} does not say which arm its scores belong to, beside the columns "
                f"of {quoted(arms)}; use {ignore_option(name)}, or {map_option(name, 'base')} if it is that arm"
            )
        if role.column in ("num_correct", "log_loss", "brier", "macro_f1", "fit_seconds", "predict_seconds"):
            roles.ignored[name] = NO_ARM
            del roles.sources[role]


def is_exact(role: Role, name: str) -> bool:
    """Return whether a column has exactly the name of its role."""
    return any(claim.fit == EXACT and claim.role == role for claim in find_claims(name))


__all__ = ["ColumnRoles", "assign_roles", "is_exact", "normalize", "refuse_ambiguity"]
