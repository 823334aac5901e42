"""Recognizes the columns of a user's table by their names: exactly, in another spelling, or as a synonym."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records.table_options import TableOptions
from peekbench.results.cells import quoted, short
from peekbench.results.columns import ARM_MEASURES, ARMS, ERROR_RATE, LOSS, USER_COLUMNS, is_arm

EXACT, SPELLING, SYNONYM = range(3)
"""How well a name fits a column, best first."""
NAMES = tuple(column.name for column in USER_COLUMNS)
"""Columns that users' tables can have."""
LOSSES = (LOSS.name, ERROR_RATE.name)
"""Columns of scores of which lower is better."""
COMBINABLE = ("task", "method", "model", "subsample", "text")
"""Columns that several columns of a user can form together, such as a subsample for each seed and fold."""
SIMILARITY_CUTOFF = 0.7  # models and model are similar, notes and num_test are not
SPACING = re.compile(r"[\s_\-()%]+")
ARM_WORDS = {
    "base": ("none", "no", "without", "baseline", "vanilla", "plain"),
    "extra": ("other", "others", "independent", "indep", "different", "fresh"),
    "test": ("same", "own", "leak", "leaky", "leaked", "peek", "peeking", "transductive"),
}
"""Words that suggest an arm. They are only proposed to the user, because other meanings are possible."""
ARM_FIRST = re.compile(r"(base|extra|test|mix[-_ ]?0?\.\d+)[\s_.:(\-]+(.+)", re.IGNORECASE)
ARM_LAST = re.compile(r"(.+?)[\s_.:(\-]+(base|extra|test|mix[-_ ]?0?\.\d+)\)?", re.IGNORECASE)


class Role(NamedTuple):
    """What a column of a user's table contains: a column of the results table, perhaps of one arm only."""

    column: str
    arm: str = ""

    def __str__(self) -> str:
        """Return the role as users write it after `--map`."""
        if self.arm:
            return self.arm if self.column == "score" else f"{self.column}_{self.arm}"
        return self.column


class Claim(NamedTuple):
    """A role that the name of a column claims."""

    fit: int
    role: Role


@dataclass(frozen=True, slots=True)
class Requests:
    """Options of the user, with the names of the columns as they are in the table."""

    roles: dict[str, Role]
    ignored: tuple[str, ...]


def normalize(name: str) -> str:
    """Return a name without case, spaces, hyphens, underscores, parentheses and percent signs.

    Examples
    --------
    >>> normalize("Num-Test"), normalize("accuracy (%)")
    ('numtest', 'accuracy')
    """
    return SPACING.sub("", name.casefold())


NORMALIZED = {normalize(name): name for name in NAMES}
SYNONYMS = {
    synonym: tuple(column.name for column in USER_COLUMNS if synonym in map(normalize, column.synonyms))
    for column in USER_COLUMNS
    for synonym in map(normalize, column.synonyms)
}
"""Normalized synonyms, with the columns that they can mean."""


def find_claims(name: str) -> Iterator[Claim]:
    """Iterate over the roles that the name of a column claims.

    Examples
    --------
    >>> [str(claim.role) for claim in find_claims("split")]
    ['subsample', 'arm']
    >>> [str(claim.role) for claim in find_claims("Accuracy (extra)")]
    ['extra']
    """
    normalized, arm = normalize(name), normalize_arm(name)
    if name in NAMES:
        yield Claim(EXACT, Role(name))
    elif arm is not None:
        yield Claim(EXACT if name == arm else SPELLING, Role("score", arm))
    elif normalized in NORMALIZED:
        yield Claim(SPELLING, Role(NORMALIZED[normalized]))
    elif normalized in SYNONYMS:
        yield from (Claim(SYNONYM, Role(column)) for column in SYNONYMS[normalized])
    else:
        yield from _find_measures(name)


def _find_measures(name: str) -> Iterator[Claim]:
    """Iterate over the measure of one arm that a name such as 'num_correct_test' or 'test accuracy' claims."""
    first, last = ARM_FIRST.fullmatch(name), ARM_LAST.fullmatch(name)
    for arm, measure in ((first[1], first[2]) if first else ("", ""), (last[2], last[1]) if last else ("", "")):
        normalized = normalize(measure)
        for column in dict.fromkeys([NORMALIZED.get(normalized, ""), *SYNONYMS.get(normalized, ())]):
            known_arm = normalize_arm(arm)
            if column in (*ARM_MEASURES, *LOSSES) and known_arm:
                yield Claim(SPELLING if normalized in NORMALIZED else SYNONYM, Role(column, known_arm))


def normalize_arm(name: str) -> str | None:
    """Return the arm that a text names in any case, or None.

    Examples
    --------
    >>> normalize_arm("Extra"), normalize_arm("MIX 0.25"), normalize_arm("mix")
    ('extra', 'mix-0.25', None)
    """
    if is_arm(name):
        return name
    arm = re.sub(r"^mix[-_ ]?", "mix-", name.strip().casefold())
    return arm if is_arm(arm) else None


def guess_arm(name: str) -> str:
    """Return the arm that a name suggests, for a proposal, or an empty text.

    Examples
    --------
    >>> [guess_arm(name) for name in ("none", "F1 (extra)", "tset", "acc_1")]
    ['base', 'extra', 'test', '']
    """
    words = set(re.split(r"[\W_]+", name.casefold()))
    found = [arm for arm, synonyms in ARM_WORDS.items() if words & {arm, *synonyms}]
    return found[0] if len(found) == 1 else nearest(name, ARMS)


def claims(name: str, column: str) -> bool:
    """Return whether the name of a column can mean a column of the results table."""
    return any(claim.role == Role(column) for claim in find_claims(name))


def read_requests(options: TableOptions, names: Sequence[str], origin: str) -> Requests:
    """Return the options with the names of the columns that they mean.

    Raises
    ------
    ResultsError
        If a column or a target does not exist, or a column is both mapped and ignored. The message names the nearest.
    """
    roles = {}
    for source, target in options.columns.items():
        role = _find_target(source, target)
        if role.column == "score" and (losses := [claim.role for claim in find_claims(source) if is_loss(claim.role)]):
            role = Role(losses[0].column, role.arm)  # such as --map wer=score
        roles[_find_column(source, names, f"--map {source}={target}", origin)] = role
    sources = [options.ignore] if isinstance(options.ignore, str) else options.ignore
    ignored = tuple(_find_column(source, names, f"--ignore {source}", origin) for source in sources)
    if both := [name for name in ignored if name in roles]:
        raise ResultsError(f"{origin}: the column {short(both[0])!r} is both mapped and ignored; choose one")
    return Requests(roles, ignored)


def is_loss(role: Role) -> bool:
    """Return whether a column has a score of which lower is better."""
    return role.column in LOSSES


def as_score(losses: pd.Series[float], role: Role) -> pd.Series[float]:
    """Return the scores of losses: 1 - error_rate, and the negatives of other losses."""
    return 1 - losses if role.column == ERROR_RATE.name else -losses


def _find_target(source: str, target: str) -> Role:
    for claim in find_claims(str(target)):
        if claim.fit < SYNONYM:
            return claim.role
    near = nearest(str(target), [*NAMES, *ARMS])
    raise ResultsError(
        f"--map {short(source)}={short(str(target))}: no such column of the results table; "
        + (f"did you mean {near}?" if near else f"choose one of {', '.join(NAMES)}, or an arm")
    )


def _find_column(source: str, names: Sequence[str], option: str, origin: str) -> str:
    if source in names:
        return source
    if len(alike := [name for name in names if normalize(name) == normalize(source)]) == 1:
        return alike[0]
    near = nearest(source, names)
    raise ResultsError(
        f"{short(option)}: {origin} has no column {short(source)!r}; "
        + (f"did you mean {near!r}?" if near else f"its columns are {quoted(names)}")
    )


def nearest(name: str, names: Collection[str]) -> str:
    """Return the most similar of several names, or an empty text if none is similar."""
    by_spelling = {normalize(each)[:100]: each for each in reversed(list(names))}
    close = get_close_matches(normalize(name)[:100], by_spelling, n=1, cutoff=SIMILARITY_CUTOFF)
    return by_spelling[close[0]] if close else ""


def map_option(source: str, target: str) -> str:
    """Return the option of the command line that maps a column, for messages."""
    return f"--map {shlex.quote(f'{short(source)}={target}')}"


def ignore_option(source: str) -> str:
    """Return the option of the command line that ignores a column, for messages."""
    return f"--ignore {shlex.quote(short(source))}"
