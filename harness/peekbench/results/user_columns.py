"""What each column of a user's table contains, and what was done with it.

A column has a known name, or the user named its meaning, or ignored it. Everything else is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import pandas as pd

from peekbench.errors import Argument, ResultsError
from peekbench.plugins.names import find_nearest
from peekbench.records.data import TableOptions
from peekbench.records.report import ACCURACY
from peekbench.results.columns import (
    ANSWER,
    ARM_MEASURES,
    ARMS,
    COUNTED,
    ERROR_RATE,
    FIT,
    GROUP,
    LABEL,
    LOSS,
    LOSSES,
    METRIC,
    PROBABILITY,
    SCORE_SOURCES,
    SCORES,
    SEED_NAMES,
    USER_COLUMNS,
    ResultsColumn,
    is_arm,
    quoted,
    short,
    sort_arms,
)

PERCENT = TableOptions(percent=True).argument
ALLOW_INCOMPLETE = Argument("--allow-incomplete", "allow_incomplete=True")
REGION = Argument("--region WIDTH", "region=WIDTH")


def mapping(source: str, target: object) -> Argument:
    """Return the option that names the meaning of a column."""
    return TableOptions({source: str(target)}).argument


def ignoring(source: str) -> Argument:
    """Return the option that ignores a column."""
    return TableOptions(ignore=[source]).argument


def suggest_name(name: str, names: Sequence[str], what: str) -> str:
    """Return a question that names the nearest name, or the list of all."""
    if near := find_nearest(name, names):
        return f"did you mean {near!r}?"
    return f"its {what} are {quoted(names)}"


def is_missing(cell: Any) -> bool:
    """Return whether a cell is missing or only white space."""
    if isinstance(cell, str):
        return not cell.strip()
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def normalize(name: str) -> str:
    """Return a name without case, spaces, hyphens, underscores and parentheses.

    Examples
    --------
    >>> normalize("Num-Test"), normalize("accuracy (mean)")
    ('numtest', 'accuracymean')
    """
    return re.sub(r"[\s_\-()]+", "", name.casefold())


def names_of(column: ResultsColumn) -> list[str]:
    """Return the normalized name and synonyms of a column."""
    return [normalize(name) for name in (column.name, *column.synonyms)]


LOWER_WORDS = frozenset(
    [
        *names_of(LOSS), *names_of(ERROR_RATE), "error", "loss", "deviance", "ece",
        *(normalize(score.name) for score in SCORES if not score.is_higher_better),
    ]
)  # fmt: skip
"""Words in names of scores of which lower is better, such as `mean_absolute_error`."""


def names_loss(name: str) -> bool:
    """Return whether a name is that of a score of which lower is better: one of its words says it, and none is `neg`.

    Examples
    --------
    >>> [names_loss(name) for name in ("nll_heldout", "error rate (own texts)", "acc_heldout", "closed_book")]
    [True, True, False, False]
    >>> names_loss("mean_absolute_error"), names_loss("neg_mean_absolute_error")
    (True, False)
    """
    words = re.split(r"[\W_]+", name.casefold())
    return "neg" not in words and not LOWER_WORDS.isdisjoint([*words, normalize(name)])


def is_counted(metric: str) -> bool:
    """Return whether a metric is the share of correct answers, whatever its filter.

    Examples
    --------
    >>> [is_counted(name) for name in ("Accuracy", "exact_match,strict-match", "auc")]
    [True, True, False]
    """
    return normalize(metric.partition(",")[0]) in map(normalize, COUNTED)


class Role(NamedTuple):
    """What a column of a user's table contains: a column of the results table, perhaps of one arm only."""

    column: str
    arm: str = ""

    def __str__(self) -> str:
        """Return the role as users write it after `--map`."""
        if not self.arm:
            return self.column
        if self.column == "score":
            return self.arm
        return f"{self.column}_{self.arm}"


ARM, SUBSAMPLE, SCORE = Role("arm"), Role("subsample"), Role("score")
METHOD, MODEL, TEXT = Role("method"), Role("model"), Role("text")
ANSWERED = (ANSWER.name, LABEL.name)
"""Columns from which the score of a text is known together."""
OF_ARMS = (*ARM_MEASURES, *LOSSES, ANSWER.name)
"""Columns that a table can have for each arm."""
NOT_OF_TEXTS = (
    *(score.name for score in SCORES if not score.is_mean and score.name not in ("score", "num_correct")),
    "majority",
    "fit_seconds",
    "predict_seconds",
)
"""Measures of all texts that those of single texts do not give."""
COLUMN_NAMES_OF_USERS = [column.name for column in USER_COLUMNS]
COLUMN_OF = {name: column.name for column in USER_COLUMNS for name in names_of(column)}
"""Columns by the normalized names that users give them."""
ROLES = {
    spelling: Role(column, arm)
    for name, column in COLUMN_OF.items()
    for arm in ARMS
    for spelling in (name + arm, arm + name)  # `acc_test` and `Test accuracy` mean the same
    if column in OF_ARMS
} | {name: Role(column) for name, column in COLUMN_OF.items()}
"""What columns contain, by normalized name."""


def normalize_arm(name: str) -> str | None:
    """Return the arm that a text names in any case, or None.

    Examples
    --------
    >>> normalize_arm("Extra"), normalize_arm("MIX 0.25"), normalize_arm("mix")
    ('extra', 'mix-0.25', None)
    """
    folded = re.sub(r"[\s_]+", "-", name.strip().casefold())
    if is_arm(folded):
        return folded
    return None


def find_role(name: str) -> Role | None:
    """Guess the content of a column from its name; None if the name is unknown.

    A name is an arm, a column, a measure and base, extra or test in either order, or MEASURE_ARM; eval_ is a prefix.

    Examples
    --------
    >>> [str(find_role(name)) for name in ("Seed", "Accuracy (extra)", "eval_accuracy", "host", "log_loss_mix-0.25")]
    ['subsample', 'extra', 'score', 'None', 'log_loss_mix-0.25']
    """
    if (arm := normalize_arm(name)) is not None:
        return Role("score", arm)
    if (role := ROLES.get(normalize(name).removeprefix("eval"))) is not None:
        return role
    measure, _, of_arm = name.rpartition("_")
    column, arm = COLUMN_OF.get(normalize(measure), ""), normalize_arm(of_arm)
    if arm is None or column not in OF_ARMS:
        return None
    return Role(column, arm)


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Roles of the columns of a user's table."""

    sources: Mapping[Role, str]
    """Column of the user for each column of the results table."""
    unknown: Mapping[str, str]
    """Columns without a role, with the reason if their names are known."""
    ignored: Mapping[str, str]
    """Columns that are ignored, with the reason."""
    mapped: frozenset[str]
    """Columns whose role the user named."""
    arm_names: Mapping[str, str]
    """Values of the column of arms that the user renames."""

    @property
    def arms(self) -> list[str]:
        """Arms of a table that has columns for each arm; none if it has one row for each arm."""
        return sort_arms({role.arm for role in self.sources if role.arm})

    def source(self, column: str, arm: str = "") -> str | None:
        """Return the user's column for a column of the results table, or None."""
        return self.sources.get(Role(column, arm))


def assign_roles(table: pd.DataFrame, origin: str, options: TableOptions) -> ColumnRoles:
    """Return the roles of the columns of a table.

    Raises
    ------
    ResultsError
        If two columns have the same role, a needed column is missing, or an option names an unknown column.
    """
    names = list(table.columns)
    mapped, arm_names = _read_mapping(names, origin, options)
    ignored = dict.fromkeys(options.ignored, "by request")
    for name in ignored:
        if name not in names:
            raise _no_column(ignoring(name), name, names, origin)
    found = {name: mapped.get(name) or find_role(name) for name in names if name not in ignored}
    roles = {name: role for name, role in found.items() if role is not None}
    unknown = dict.fromkeys((name for name, role in found.items() if role is None), "")
    constant, seeds = _divide_draws(roles, mapped, table)
    ignored |= dict.fromkeys(constant, "equal in all rows")
    roles = {name: role for name, role in roles.items() if name not in constant} | dict.fromkeys(seeds, Role(FIT.name))
    is_long, is_wide = ARM in roles.values(), any(role.arm for role in roles.values())
    is_text = TEXT in roles.values()
    is_scored = any(role.column in SCORE_SOURCES and role.column not in ANSWERED for role in roles.values())
    is_of_one = is_text or (is_wide and SUBSAMPLE not in roles.values())
    is_answered = is_of_one and {*ANSWERED} <= {role.column for role in roles.values()}
    if not is_long and not is_wide and METHOD not in roles.values():  # scores of models
        roles |= {name: METHOD for name, role in roles.items() if role == MODEL}
    for name, role in list(roles.items()):
        if role.column == PROBABILITY.name or (role.column in ANSWERED and is_scored):
            ignored[name] = "not a score"
            del roles[name]
            continue
        reason = ""
        if is_long and role.arm:
            reason = f"has values of the arm {role.arm!r}, and each row is one arm"
        elif is_wide and not is_long and not role.arm and role.column in OF_ARMS:
            reason = "does not name its arm"
        elif is_text and role.column in NOT_OF_TEXTS:
            reason = "is a measure of all texts, and each row is about one"
        elif not is_text and role.column == GROUP.name:
            reason = "is of single texts, and no column names the text of each row"
        elif role.column == FIT.name and not is_text and SUBSAMPLE not in roles.values():
            reason = "distinguishes fits of a subsample, and no column numbers the subsamples"
        elif role.column in ANSWERED and not is_scored and not is_answered:
            reason = "is no score without the columns text, answer and label"
        if reason and name in mapped:
            raise ResultsError(mapping(name, role), f": {origin}: {short(name)!r} {reason}; remove the option")
        if reason:
            unknown[name] = reason
            del roles[name]
    assigned = ColumnRoles({role: name for name, role in roles.items()}, unknown, ignored, frozenset(mapped), arm_names)
    missing = _find_missing(assigned, options)
    if arm_names and ARM not in assigned.sources and missing != ARM:
        source, arm = next(iter(arm_names.items()))
        raise _no_column(mapping(source, arm), source, names, origin)
    if missing is not None:
        _refuse_missing(missing, assigned, names, origin)
    _refuse_ambiguity(roles, mapped, origin)
    return assigned


def _divide_draws(
    roles: Mapping[str, Role], mapped: Mapping[str, Role], table: pd.DataFrame
) -> tuple[list[str], list[str]]:
    """Find the columns that number no draws although they are named like that, because another column does.

    One column has the same cell in all rows, and seeds are those of fits of the same rows, such as a fold.
    """
    draws = [name for name, role in roles.items() if role == SUBSAMPLE]
    recognized = [name for name in draws if name not in mapped]
    constant = [name for name in recognized if table[name].astype("str").nunique() == 1]
    if len(constant) == len(draws):
        constant = []
    seeds = [name for name in recognized if name not in constant and normalize(name) in map(normalize, SEED_NAMES)]
    if len(constant) + len(seeds) == len(draws):
        seeds = []
    return constant, seeds


def _read_mapping(names: Sequence[str], origin: str, options: TableOptions) -> tuple[dict[str, Role], dict[str, str]]:
    """Return the roles of columns that the user named, and the values of the column of arms that are renamed."""
    mapped: dict[str, Role] = {}
    arm_names: dict[str, str] = {}
    for source, target in options.columns.items():
        option, role = mapping(source, target), find_role(str(target))
        if role is None or normalize(str(target)) != normalize(str(role)):
            remedy = suggest_name(str(target), [*COLUMN_NAMES_OF_USERS, *ARMS], "columns and arms")
            raise ResultsError(option, f": no such column of the results table; {remedy}")
        if role.column == "score" and source in names and names_loss(source):
            instead = mapping(source, Role(LOSS.name, role.arm))
            raise ResultsError(option, f": lower is better for {source}; use ", instead)
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


def _refuse_ambiguity(roles: Mapping[str, Role], mapped: Mapping[str, Role], origin: str) -> None:
    """Refuse several columns of one role."""
    claims: dict[Role, list[str]] = {}
    for name, role in roles.items():
        if role.column in LOSSES:
            role = SCORE._replace(arm=role.arm)
        claims.setdefault(role, []).append(name)
    for role, names in claims.items():
        if len(names) > 1:
            problem = f"{origin}: the columns {quoted(names)} can all mean {str(role)!r}; "
            if role == SUBSAMPLE:
                names.sort(key=lambda name: (name not in mapped, normalize(name) != "fold"))
                joined = TableOptions(dict.fromkeys(names, str(role))).argument
                raise ResultsError(
                    f"{problem}if each of their combinations has rows of its own, join the columns with ", joined,
                    "; otherwise, average over one of them", added=TableOptions({names[-1]: FIT.name}),
                )  # fmt: skip
            names.sort(key=lambda name: (name not in mapped, roles[name].column in LOSSES, name != str(roles[name])))
            added = TableOptions({names[0]: str(roles[names[0]])}, names[1:])
            raise ResultsError(f"{problem}ignore all but one", added=added)


def _find_missing(roles: ColumnRoles, options: TableOptions) -> Role | None:
    """Return a role that a column must have, but none has."""
    needed = [SCORE]
    if roles.arms:
        needed = [Role("score", arm) for arm in options.arms]
    elif ARM not in roles.sources and options.needs_pairs:
        return ARM
    return next((role for role in needed if not any(roles.source(name, role.arm) for name in SCORE_SOURCES)), None)


def _refuse_missing(missing: Role, roles: ColumnRoles, names: Sequence[str], origin: str) -> NoReturn:
    alternative = {ARM: ", or one for each arm: base, extra, test", SCORE: ", or 'loss' if lower is better"}
    problem = (
        f"{origin}: there is no column {str(missing)!r}{alternative.get(missing, '')}; the columns in the first line "
        f"are {quoted(names)}. Add it"
    )
    details = [f"{short(name)!r} {reason}" for name, reason in roles.unknown.items() if reason]
    if missing.arm:
        details.append(explain_arms(missing.arm))
    warning = "".join(f". {detail}" for detail in details)
    if not roles.unknown:
        raise ResultsError(problem + warning)
    near = find_nearest(str(missing), roles.unknown)
    of_arms = [name for name in roles.unknown if getattr(find_role(name), "column", "") == str(missing)]
    if len(of_arms) == 1:  # test_score of scikit-learn in a table with a column of arms
        near = of_arms[0]
    alike = (name for name in roles.unknown if ROLES.get(find_nearest(normalize(name), ROLES)) == missing)
    if near := near or next(alike, ""):
        raise ResultsError(f"{problem}, or did you mean {short(near)!r}?", added=TableOptions({near: str(missing)}))
    raise ResultsError(
        f"{problem}, or name yours: in place of each MEANING, write what the column has, such as {missing}, method or "
        f"loss_extra if lower is better, and ignore columns that say nothing about the scores{warning}",
        added=TableOptions(dict.fromkeys(roles.unknown, "MEANING")),
    )


def explain_arms(arm: str) -> str:
    """Return why the scores of one arm are not those of another."""
    return (
        f"Scores of {arm} can only come from fits in this arm: base has no unlabeled text, extra has texts that are "
        "not in the test set, and test has the test texts. Run the method in each arm"
    )


def refuse_unknown(roles: ColumnRoles, origin: str, suggested: TableOptions) -> None:
    """Refuse columns that are neither known nor named nor ignored, and suggest what they mean."""
    if roles.unknown:
        names = [f"{short(name)!r} {reason}".strip() for name, reason in roles.unknown.items()]
        raise ResultsError(
            f"{origin}: the meaning of some columns is unknown: {'; '.join(names)}. Name what a column distinguishes, "
            "such as ",
            mapping("COLUMN", "method"),
            ", and ignore what says nothing about the scores",
            added=suggested,
        )


def names_accuracy(roles: ColumnRoles) -> bool:
    """Return whether the names of all columns of scores say that these are accuracies."""
    names = [name.casefold() for role, name in roles.sources.items() if role.column == "score"]
    return all(not {"acc", "accuracy"}.isdisjoint(re.split(r"[\W_]+", name)) for name in names)


def find_metric(results: pd.DataFrame, origin: str = "") -> str:
    """Return the metric of scores: accuracy if all are counts of correct answers, or the one that a table states.

    Parameters
    ----------
    results
        The results table; the column `metric`, which only users' tables have, is used if there is one.
    origin
        Name of a user's table, for messages; empty for the results of runs.

    Returns
    -------
    str
        Empty if it is not known.

    Raises
    ------
    ResultsError
        If tasks have different metrics.

    Examples
    --------
    >>> from peekbench.results import tidy
    >>> find_metric(tidy(pd.DataFrame({"task": ["a"], "extra": [0.5], "test": [0.6], "num_test": 10}), "my scores"))
    'accuracy'
    """
    stated = results.get(METRIC.name, pd.Series("", index=results.index))
    stated = stated.mask((results["score"] == -results["bits_per_byte"]) & (stated == ""), "bits per byte")
    is_share = results["num_correct"].notna() | (results["score"] == results["grade"])
    is_count = is_share.groupby(results["task"], sort=False).all()
    tasks: dict[str, list[str]] = {}
    for task, metric in stated.groupby(results["task"], sort=False).first().items():
        if is_count[str(task)] or is_counted(metric):
            metric = ACCURACY
        tasks.setdefault(str(metric), []).append(str(task))
    if len(tasks) <= 1:
        return next(iter(tasks), "")
    listed = "; ".join(f"{short(metric) or 'an unknown metric'} of {quoted(names)}" for metric, names in tasks.items())
    first = TableOptions(tasks=next(iter(tasks.values())))
    problem = f"the tasks have scores of different metrics, which have no common average: {listed}."
    if not origin:
        raise ResultsError(f"{problem} Analyze one metric at a time: peekbench analyze RUN ", first.argument)
    raise ResultsError(f"{origin}: {problem} Analyze the tasks of one metric at a time", added=first)


def refuse_losses(results: pd.DataFrame, metric: str, roles: ColumnRoles, origin: str) -> None:
    """Refuse a metric of which lower is better in columns of scores of which higher is better.

    Negative values of such a metric are scores, and so is 1 minus its value.
    """
    if not names_loss(metric) or metric.startswith("1 - ") or (results["score"] <= 0).all():
        return
    for role, source in roles.sources.items():
        if role.column == "score":
            instead = ""
            if source in roles.mapped:
                instead = f" in place of {source}={role}"
            raise ResultsError(
                f"{origin}: lower is better for the metric {short(metric)!r}, but higher is better for the column "
                f"{short(source)!r}; use ",
                mapping(source, role._replace(column=LOSS.name)),
                instead,
            )
