"""Decides what each column of a user's table contains, and states it for reports.

A column has a known name, or the user named its meaning, or ignored it. Everything else is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from peekbench.errors import Argument, ResultsError
from peekbench.formatting import list_names, visible
from peekbench.plugins.similar_names import find_nearest
from peekbench.records.data import TableOptions
from peekbench.results.columns import (
    ARM_MEASURES,
    ARMS,
    COLUMN_NAMES_OF_USERS,
    ERRORS,
    LOSS,
    LOSSES,
    SCORE_SOURCES,
    ColumnRoles,
    Role,
    find_role,
    names_loss,
    normalize,
)

PERCENT = TableOptions(percent=True).argument
ALLOW_INCOMPLETE = Argument("--allow-incomplete", "allow_incomplete=True")
REGION = Argument("--region WIDTH", "region=WIDTH")
ARM, SUBSAMPLE, TASK, SCORE = Role("arm"), Role("subsample"), Role("task"), Role("score")
METHOD, MODEL, TEXT = Role("method"), Role("model"), Role("text")
COMBINABLE = (TASK, METHOD, MODEL, SUBSAMPLE, TEXT)
"""Columns that several columns of a user can form together, such as a subsample for each seed and fold."""
MAX_SHOWN = 100  # characters of a cell in a message
MAX_QUOTED = 30  # names listed in a message
MAX_LISTED = 5  # columns that a message lists
MAX_VALUES = 4  # values of each
MAX_SCANNED = 1000  # rows from which these values are

KNOWN_UNITS = ("num_correct", "bits_per_byte", "error_rate")
"""Columns of scores with a known unit."""
MIN_SHARE = 0.05
"""Scores that are all smaller are in an unknown unit: the default region would contain most of their range."""
BY_ORDER = "rows paired by their order, on request"
BY_TEXT = "no column numbers several subsamples, so each text is one, and arms and methods are paired by text"
BY_ROW = "no column numbers the subsamples, so arms are paired by row and methods are not paired"
WARNINGS_OF_PAIRING = {
    BY_TEXT: "Each arm has a single run, so each test text is a subsample: intervals are for other texts with these "
    "fitted models, and not for models that are trained again. Several runs of each arm, such as training seeds, would "
    "show both.",
    BY_ORDER: "Rows were paired by their order in the table, on request. If arms or methods have "
    "their rows in different orders, all intervals are wrong.",
}


def short(text: str) -> str:
    """Return the start of a text of any length."""
    if len(text) > MAX_SHOWN:
        text = text[:MAX_SHOWN] + "..."
    return visible(text)


def mapping(source: str, target: object) -> Argument:
    """Return the option that names the meaning of a column."""
    return TableOptions({source: str(target)}).argument


def ignoring(source: str) -> Argument:
    """Return the option that ignores a column."""
    return TableOptions(ignore=[source]).argument


def quoted(names: Collection[object]) -> str:
    """Return a bounded list of names for a message."""
    return list_names([repr(short(str(name))) for name in names], MAX_QUOTED)


def is_missing(cell: Any) -> bool:
    """Return whether a cell is missing or only white space."""
    if isinstance(cell, str):
        return not cell.strip()
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def suggest_name(name: str, names: Sequence[str], what: str) -> str:
    """Return a question that names the nearest name, or the list of all."""
    if near := find_nearest(name, names):
        return f"did you mean {near!r}?"
    return f"its {what} are {quoted(names)}"


def plain_table(table: pd.DataFrame, origin: str) -> pd.DataFrame:
    """Return the table with a plain index and distinct names of columns; an index with a name becomes a column."""
    if table.empty:
        raise ResultsError(f"{origin} has no rows; give one row for each subsample, or for each arm of a subsample")
    if table.index.names != [None]:
        table = table.reset_index(allow_duplicates=True)
    elif not is_integer_dtype(table.index.dtype):
        raise ResultsError(
            f"{origin}: the index has no name, and its values are not row numbers, but {quoted(table.index[:3])}; name "
            "it to use it as a column, or drop it with reset_index(drop=True)"
        )
    names = [str(name).strip() or f"Unnamed: {position}" for position, name in enumerate(table.columns)]
    refuse_duplicates(names, origin)
    table = table.reset_index(drop=True).set_axis(names, axis="columns")
    return table.astype({name: "object" for name, dtype in table.dtypes.items() if not _is_plain(dtype)})


def _is_plain(dtype: Any) -> bool:
    """Return whether cells of a type are read as they are; categories, dates and lists become objects of Python."""
    return is_numeric_dtype(dtype) or dtype == "object" or isinstance(dtype, pd.StringDtype)


def refuse_duplicates(names: Iterable[str], origin: str) -> None:
    """Refuse two columns of the same name, of which one would be ignored."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ResultsError(f"{origin}: the column {short(name)!r} is duplicated; remove or rename one")


def assign_roles(table: pd.DataFrame, origin: str, options: TableOptions) -> ColumnRoles:
    """Return the roles of the columns of a table with distinct names.

    Raises
    ------
    ResultsError
        If two columns have the same role, a needed column is missing, or an option names an unknown column.
    """
    names = list(table.columns)
    mapped, arm_names = _read_mapping(options, names, origin)
    ignored = options.ignored
    for name in ignored:
        if name not in names:
            raise _no_column(ignoring(name), name, names, origin)
        if name in mapped:
            raise ResultsError(f"{origin}: the column {short(name)!r} is both mapped and ignored; choose one")
    by_name = {name: mapped.get(name) or find_role(name) for name in names if name not in ignored}
    unknown = {name: "" for name, role in by_name.items() if role is None}
    roles = {name: role for name, role in by_name.items() if role is not None}
    is_long, is_wide = ARM in roles.values(), any(role.arm for role in roles.values())
    for name, role in list(roles.items()):
        if is_long and role.arm:
            unknown[name] = f"has values of the arm {role.arm!r}, and each row is one arm"
        elif is_wide and not is_long and not role.arm and role.column in (*ARM_MEASURES, *LOSSES):
            unknown[name] = "does not name its arm"
        if name in unknown:
            del roles[name]
    if ARM not in roles.values() and METHOD not in roles.values() and not any(role.arm for role in roles.values()):
        roles = {name: METHOD if role == MODEL else role for name, role in roles.items()}  # scores of models
    _refuse_ambiguity(roles, mapped, origin)
    sources = {role: tuple(name for name in roles if roles[name] == role) for role in roles.values()}
    assigned = ColumnRoles(sources, unknown, ignored, frozenset(mapped), arm_names)
    missing = _find_missing(assigned, options)
    if arm_names and ARM not in sources and missing != ARM:
        source, arm = next(iter(arm_names.items()))
        raise _no_column(mapping(source, arm), source, names, origin)
    if missing is not None:
        _refuse_missing(missing, assigned, names, origin)
    return assigned


def _read_mapping(options: TableOptions, names: Sequence[str], origin: str) -> tuple[dict[str, Role], dict[str, str]]:
    """Return the roles of columns that the user named, and the values of the column of arms that are renamed."""
    mapped: dict[str, Role] = {}
    arm_names: dict[str, str] = {}
    for source, target in options.columns.items():
        option, role = mapping(source, target), find_role(str(target))
        if role is None or normalize(str(target)) != normalize(str(role)):
            remedy = f"choose one of {', '.join(COLUMN_NAMES_OF_USERS)}, or an arm"
            if near := find_nearest(str(target), [*COLUMN_NAMES_OF_USERS, *ARMS]):
                remedy = f"did you mean {near}?"
            raise ResultsError(option, f": no such column of the results table; {remedy}")
        if role.column == "score" and source in names and names_loss(source):
            raise ResultsError(
                option,
                f": lower is better for {source}; use ",
                mapping(source, Role(LOSS.name, role.arm)),
            )
        own_arm = (find_role(source) or role).arm
        if own_arm and role.arm and own_arm != role.arm:
            raise ResultsError(option, f": {origin} has scores of the arm {own_arm} there. {explain_arms(own_arm)}")
        if source in names:
            mapped[source] = role
        elif role.arm and role.column == "score":
            arm_names[source] = role.arm
        else:
            raise _no_column(option, source, names, origin)
    return mapped, arm_names


def _no_column(option: Argument, source: str, names: Sequence[str], origin: str) -> ResultsError:
    return ResultsError(option, f": {origin} has no column {short(source)!r}; {suggest_name(source, names, 'columns')}")


def _refuse_ambiguity(roles: Mapping[str, Role], mapped: Collection[str], origin: str) -> None:
    """Refuse several columns of one role, unless the user named all of them and they can be combined."""
    claims: dict[Role, list[str]] = {}
    for name, role in roles.items():
        claims.setdefault(Role("score", role.arm) if role.column in LOSSES else role, []).append(name)
    for role, names in claims.items():
        is_combinable = role in COMBINABLE
        if len(names) > 1 and not (is_combinable and set(names) <= set(mapped)):
            names.sort(key=lambda name: (name not in mapped, roles[name].column in LOSSES, name != str(roles[name])))
            used, remedy = names[:1], "ignore all but one"
            if is_combinable:
                used, remedy = names, "ignore all but one, or combine them"
            columns = {name: str(roles[name]) for name in used if name not in mapped}
            raise ResultsError(
                f"{origin}: the columns {quoted(names)} can all mean {str(role)!r}; {remedy}",
                added=TableOptions(columns, names[len(used) :]),
            )


def _find_missing(roles: ColumnRoles, options: TableOptions) -> Role | None:
    """Return a role that a column must have, but none has."""
    if TASK not in roles.sources:
        return TASK
    arms = roles.arms
    if ARM not in roles.sources and options.needs_pairs and not arms:
        return ARM
    needed = [SCORE]
    if arms:
        needed = [Role("score", arm) for arm in options.arms]
    return next((role for role in needed if not any(roles.source(name, role.arm) for name in SCORE_SOURCES)), None)


def _refuse_missing(missing: Role, roles: ColumnRoles, names: Sequence[str], origin: str) -> NoReturn:
    alternative = {ARM: ", or one for each arm: base, extra, test", SCORE: ", or 'loss' if lower is better"}
    problem = (
        f"{origin}: there is no column {str(missing)!r}{alternative.get(missing, '')}; the columns in the first line "
        f"are {quoted(names)}. Add it"
    )
    warning = ""
    if missing.arm:
        warning = f". {explain_arms(missing.arm)}"
    if not roles.unknown:
        raise ResultsError(problem + warning)
    if likely := {name: role for name in roles.unknown if (role := _guess_role(name, missing))}:
        raise ResultsError(f"{problem}, or name yours, if this is its meaning", added=TableOptions(likely))
    example = {ARM: "extra, test, loss_extra if lower is better, arm"}.get(missing, str(missing))
    if missing.arm:
        warning += ", and name its columns"
    raise ResultsError(
        f"{problem}, or name yours: in place of each MEANING, write what the column has, such as {example} or method, "
        f"and ignore columns that say nothing about the scores{warning}",
        added=TableOptions(dict.fromkeys(roles.unknown, "MEANING")),
    )


def explain_arms(arm: str) -> str:
    """Return why the scores of one arm are not those of another."""
    return (
        f"Scores of {arm} can only come from fits in this arm: base has no unlabeled text, extra has texts that are "
        "not in the test set, and test has the test texts. Run the method in each arm"
    )


def _guess_role(name: str, missing: Role) -> str:
    """Return the role that an unknown column probably has, to be confirmed by the user; empty if nothing is likely."""
    if (role := ERRORS.get(normalize(name))) is not None:
        return role
    near = find_nearest(name, [*ARMS, str(missing)]) or ""
    if missing == ARM or near == str(missing):
        return near
    return ""


def refuse_unknown(table: pd.DataFrame, roles: ColumnRoles, origin: str) -> None:
    """Refuse columns that are neither known nor named nor ignored; the message lists their values."""
    if not roles.unknown:
        return
    names = list(roles.unknown)
    first = [f"{short(name)!r} ({roles.unknown[name] or _list_values(table[name])})" for name in names[:MAX_LISTED]]
    listed = list_names([*first, *names[MAX_LISTED:]], MAX_LISTED)
    raise ResultsError(
        f"{origin}: unknown {'columns' if len(names) > 1 else 'column'} {listed}. Name what a column distinguishes, "
        "such as ",
        mapping("COLUMN", "method"),
        ", and ignore what says nothing about the scores",
        added=TableOptions(ignore=names),
    )


def _list_values(cells: pd.Series[Any]) -> str:
    """Return the first distinct values of a column."""
    first = cells.head(MAX_SCANNED).tolist()
    values = list(dict.fromkeys("empty" if is_missing(cell) else short(repr(cell)) for cell in first))
    if len(values) > MAX_VALUES:
        values[MAX_VALUES:] = ["..."]
    return ", ".join(values)


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """What was done with each column of a user's table.

    Examples
    --------
    >>> print(ColumnUse(("task", "extra"), {"seed": "subsample"}, {"notes": "by request"}))
    used task, extra; mapped seed=subsample; ignored notes (by request)
    """

    used: tuple[str, ...] = ()
    """Columns that have the names of the results table, or of arms."""
    mapped: Mapping[str, str] = field(default_factory=dict)
    """Other columns that were used, with their meaning."""
    ignored: Mapping[str, str] = field(default_factory=dict)
    """Columns that were not used, with the reason."""
    percentages: tuple[str, ...] = ()
    """Columns that were read as percentages."""
    pairing: str = ""
    """How rows of different arms or methods were matched, if no column numbers the subsamples."""
    not_like_accuracy: tuple[str | Argument, ...] = ()
    """Parts of the error that scores have no default region of practical equivalence; empty if they are shares."""
    region: float | None = None
    """Half-width of the region of practical equivalence that the user chose for this table."""
    metric: str = ""
    """Metric of the scores; empty if it is not known."""
    controls: tuple[str, ...] = ()
    """Methods that are controls according to the table, which no spec confirms."""

    def __bool__(self) -> bool:
        """Whether anything is known; the columns of a store need no words."""
        return bool(self.used or self.mapped)

    def __str__(self) -> str:
        """Return the columns in one line."""
        ignored = [
            f"{_listed([name for name, other in self.ignored.items() if other == reason])} ({reason})"
            for reason in dict.fromkeys(self.ignored.values())
        ]
        parts = {
            "used ": _listed(self.used),
            "mapped ": _listed([f"{source}={target}" for source, target in self.mapped.items()]),
            "ignored ": ", ".join(ignored),
            "percentages ": _listed(self.percentages),
            "": self.pairing,
        }
        return "; ".join(name + text for name, text in parts.items() if text)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What readers of a report must know about the direction of scores and the pairing of rows."""
        meanings = {**self.mapped, **{name: name for name in self.used}}
        losses = [name for name, role in meanings.items() if role.startswith("loss")]
        warnings = []
        if self.controls:
            controls = _listed(self.controls)
            warnings.append(f"Controls according to the table itself: {controls}. They are not judged as methods.")
        if losses:
            warnings.append(
                f"Lower is better for {_listed(losses)}: scores are negatives, so a positive bias is an improvement."
            )
        if self.pairing in WARNINGS_OF_PAIRING:
            warnings.append(WARNINGS_OF_PAIRING[self.pairing])
        return tuple(warnings)

    def as_json(self) -> dict[str, Any]:
        """Return the columns as JSON values."""
        lists = {"used": self.used, "percentages": self.percentages, "controls": self.controls}
        as_lists = {name: list(values) for name, values in lists.items()}
        return {**as_lists, "mapped": dict(self.mapped), "ignored": dict(self.ignored), "pairing": self.pairing}


def describe_use(
    results: pd.DataFrame,
    roles: ColumnRoles,
    percentages: Iterable[str],
    pairing: str,
    region: float | None,
    metric: str,
    origin: str,
) -> ColumnUse:
    """Return what was done with the columns of a table."""
    assigned = [(name, role) for role, names in roles.sources.items() for name in names]
    return ColumnUse(
        tuple(name for name, role in assigned if name == str(role)),
        {name: str(role) for name, role in assigned if name != str(role)} | dict(roles.arm_names),
        dict.fromkeys(roles.ignored, "by request"),
        tuple(sorted(percentages)),
        pairing,
        _explain_unit(results, roles, origin),
        region,
        metric,
        tuple(results.loc[results["control"] != "", "method"].unique()),
    )


def _explain_unit(results: pd.DataFrame, roles: ColumnRoles, origin: str) -> tuple[str | Argument, ...]:
    """Return why scores are not shares, as accuracies are, in the parts of an error; empty if they are."""
    if results["num_correct"].notna().all() or any(role.column in KNOWN_UNITS for role in roles.sources):
        return ()
    losses = [name for role, names in roles.sources.items() if role.column == LOSS.name for name in names]
    sizes = results["score"].abs()
    is_share = MIN_SHARE <= sizes.max() <= 1 and (results["score"] > 0).any()
    if not losses and is_share:
        return ()
    name = quoted(losses) or "the scores"
    return (
        f"{origin}: the unit of {name} is unknown (mean {sizes.mean():.3g}), so there is no default for the "
        "largest bias that is negligible; choose one in this unit with ",
        REGION,
        ", such as ",
        TableOptions(region=float(f"{sizes.mean() / 100:.1g}")).argument,
        ", which is 1% of the mean",
    )


def _listed(names: Sequence[str]) -> str:
    return list_names([short(name) for name in names], MAX_QUOTED)
