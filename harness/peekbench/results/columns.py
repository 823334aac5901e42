"""The columns of the results table: names, types, meanings, defaults, and the other names that users give them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from peekbench.records.scores import SCORES, Score, find_score
from peekbench.spec.arms import BLOCK_RULES, OF_SINGLE_TEXTS, RULE

__all__ = ["COLUMNS", "COLUMN_NAMES", "SCORES", "ResultsColumn", "Score", "describe_columns", "find_score"]


@dataclass(frozen=True, slots=True)
class ResultsColumn:
    """One column of the results table.

    Examples
    --------
    >>> next(column for column in COLUMNS if column.name == "task").if_missing
    'required'
    """

    name: str
    """Name in the results table."""
    type: Literal["text", "integer", "number"]
    """Type of the values."""
    meaning: str
    """One line for the documentation."""
    if_missing: str = "missing"
    """Value of the results table if a user's file lacks this column."""
    is_of_arm: bool = True
    """Whether the value belongs to one arm. Otherwise it belongs to the whole trial."""
    minimum: float = -math.inf
    """Smallest value."""
    maximum: float = math.inf
    """Largest value."""
    synonyms: tuple[str, ...] = ()
    """Other names of the column in users' tables. Each has a single meaning in a table of scores."""


COLUMNS: tuple[ResultsColumn, ...] = (
    ResultsColumn(
        "task", "text", "name of the task", "required", is_of_arm=False, synonyms=("task_name", "dataset", "benchmark"),
    ),
    ResultsColumn(
        "method", "text", "label of the method", "'method'", is_of_arm=False,
        synonyms=("method_name", "system", "algorithm"),
    ),
    ResultsColumn(
        "model", "text", "language model, or empty", "empty", is_of_arm=False,
        synonyms=("model_name", "language_model"),
    ),
    ResultsColumn(
        "num_train", "integer", "labeled train texts", is_of_arm=False, minimum=0, synonyms=("n_train", "train_size"),
    ),
    ResultsColumn(
        "num_test", "integer", "test texts, and as many extra texts", "missing; num_correct is then missing too",
        is_of_arm=False, minimum=1, synonyms=("n_test", "test_size", "n"),
    ),
    ResultsColumn(
        "control", "text", "'negative' (no bias by design), 'positive' (a planted bias), or empty", "empty",
        is_of_arm=False,
    ),
    ResultsColumn(
        "subsample", "integer", "number of the draw; methods with the same number are paired",
        "each row is a draw if each arm has a column; otherwise required",
        is_of_arm=False, minimum=0, synonyms=("seed", "random_seed", "run", "fold", "draw", "repeat"),
    ),
    ResultsColumn(
        "arm", "text", "base, extra, test, a dose such as mix-0.25, or a rule such as cross-5",
        "required, or one column for each arm",
        synonyms=("condition",),
    ),
    ResultsColumn(
        "num_scored", "integer", "answers that are scored, more than num_test with crossover scoring", "num_test",
        is_of_arm=False, minimum=1,
    ),
    *(
        ResultsColumn(
            score.name, score.type, score.meaning, score.if_missing, minimum=score.minimum, maximum=score.maximum,
            synonyms=score.synonyms,
        )
        for score in SCORES
    ),
    ResultsColumn(
        "majority", "number", "share of the most frequent class among the test texts of the draw", is_of_arm=False,
        minimum=0, maximum=1,
    ),
    ResultsColumn("fit_seconds", "number", "seconds to fit", minimum=0),
    ResultsColumn("predict_seconds", "number", "seconds to predict", minimum=0),
    ResultsColumn(
        "looks", "text", "looks at an exported table so far", "none", is_of_arm=False
    ),
    ResultsColumn(
        "independent_tasks", "text",
        "'yes' if different tasks have independent draws, as in a run, or empty if draws with the same number may be "
        "related", "empty", is_of_arm=False,
    ),
)  # fmt: skip
"""All columns in order. Scores come from `peekbench.results.SCORES`.

Examples
--------
>>> [column.name for column in COLUMNS][:4]
['task', 'method', 'model', 'num_train']
"""

TEXT = ResultsColumn(
    "text", "text", "test text of a row that is about a single text",
    "rows are about all texts", is_of_arm=False, synonyms=("text_id", "doc_id", "question_id"),
)  # fmt: skip
METRIC = ResultsColumn(
    "metric", "text", "metric of the scores, one for each task", "not needed", is_of_arm=False,
    synonyms=("metric_name", "score_name"),
)  # fmt: skip
LOSS = ResultsColumn(
    "loss", "number", "a score of which lower is better; its negative becomes the score",
    "not needed", synonyms=("wer", "cer", "rmse", "mae", "mse", "nll", "perplexity", "eval_loss"),
)  # fmt: skip
ERROR_RATE = ResultsColumn(
    "error_rate", "number", "share of wrong answers; the score is 1 - error_rate", "not needed", minimum=0, maximum=1
)
ONLY_OF_USERS = (TEXT, METRIC, LOSS, ERROR_RATE)
"""Columns that only users' tables have."""

USER_COLUMNS = (*COLUMNS, *ONLY_OF_USERS)
COLUMN_NAMES = tuple(column.name for column in COLUMNS)
CONFIGURATION = ("method", "model", "num_train", "num_test")
"""Columns that distinguish configurations, which analyses keep apart."""
TRIAL = (*CONFIGURATION, "task", "subsample")
"""Columns that identify a trial."""
SIZES = ("num_train", "num_test")
MAJORITY = "majority"
INDEPENDENT = {"independent_tasks": "yes"}
"""The cell of tables whose tasks have independent draws."""
TEXT_DEFAULTS = {column.name: "" for column in COLUMNS if column.type == "text"} | {"task": "task", "method": "method"}
"""Columns of texts with the values that replace missing columns."""
WHOLE_NUMBERS = tuple(column.name for column in COLUMNS if column.type == "integer")
NUMBERS = tuple(column.name for column in COLUMNS if column.type == "number")
ARM_MEASURES = tuple(column.name for column in COLUMNS if column.is_of_arm and column.name != "arm")
"""Columns whose values belong to one arm."""
LOSSES = (LOSS.name, ERROR_RATE.name)
"""Columns of scores of which lower is better."""
COUNTED = ("acc", "acc_norm", "accuracy", "exact_match")
"""Metrics that are shares of correct answers."""
SCORE_SOURCES = ("score", "num_correct", "bits_per_byte", *LOSSES)
"""Columns of users' tables from which the score is known."""
ARMS = ("base", "extra", "test")
RULE_KINDS = {"test": True} | {
    name: rule.sees_as_many_texts
    for kind, rule in BLOCK_RULES.items()
    for name in (kind, OF_SINGLE_TEXTS.get(kind, kind))
}
"""Kinds of arms that are rules of adaptation, in the order of reports, and whether their difference from extra is a
bias. Those with blocks of one text are kinds of their own.

Examples
--------
>>> [kind for kind, is_bias in RULE_KINDS.items() if is_bias]
['test', 'swap-in']
"""
IN_RULES = {"biased up": "higher", "biased down": "lower"}
"""Words for decisions on rules whose difference from extra is not a bias, because their fits adapt to fewer texts.

Examples
--------
>>> IN_RULES["biased up"]
'higher'
"""
DOSE = re.compile(r"mix-0?\.\d+")


def is_arm(name: str) -> bool:
    """Return whether a text is the name of an arm."""
    return name in ARMS or any(pattern.fullmatch(name) for pattern in (DOSE, RULE))


def sort_arms(arms: Iterable[str]) -> list[str]:
    """Return base, extra, test, doses in ascending order, and other arms."""

    def rank(arm: str) -> tuple[int, float, str]:
        if arm in ARMS:
            return ARMS.index(arm), 0.0, ""
        if DOSE.fullmatch(arm):
            return len(ARMS), float(arm.partition("-")[2]), ""
        return len(ARMS) + 1, 0.0, arm

    return sorted(arms, key=rank)


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


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Roles of the columns of a user's table."""

    sources: Mapping[Role, tuple[str, ...]]
    """Columns of the user that form each column of the results table; several only if they are combined."""
    unknown: Mapping[str, str]
    """Columns without a role, with the reason if their names are known."""
    ignored: tuple[str, ...]
    """Columns that the user ignored."""
    mapped: frozenset[str]
    """Columns whose role the user named."""
    arm_names: Mapping[str, str]
    """Values of the column of arms that the user renames."""

    @property
    def arms(self) -> list[str]:
        """Arms of a table that has columns for each arm; none if it has one row for each arm."""
        return sort_arms({role.arm for role in self.sources if role.arm})

    def source(self, column: str, arm: str = "") -> str | None:
        """Return the user's column that is a column of the results table, or None."""
        return next(iter(self.sources.get(Role(column, arm), ())), None)


COLUMN_NAMES_OF_USERS = [column.name for column in USER_COLUMNS]
COLUMN_OF = {name: column.name for column in USER_COLUMNS for name in names_of(column)}
"""Columns by the normalized names that users give them."""
OF_ARMS = (*ARM_MEASURES, *LOSSES)
"""Columns that a table can have for each arm."""
SINGLE_WORDS = ("single", "swap-in")  # arms whose names mean nothing as a part of a column's name


def spell(measure: str, arm: str) -> tuple[str, str]:
    """Return the normalized names of a column of an arm: `acc_test` and `Test accuracy` mean the same."""
    return measure + normalize(arm), normalize(arm) + measure


ROLES = {
    spelling: Role(column, arm)
    for name, column in COLUMN_OF.items()
    for arm in ARMS
    for spelling in spell(name, arm)
    if column in OF_ARMS
} | {name: Role(column) for name, column in COLUMN_OF.items()}
"""What columns contain, by normalized name."""
ERRORS = {
    spelling: str(Role(ERROR_RATE.name, arm))
    for name in ("error", "err", "errors")
    for arm in ARMS
    for spelling in spell(name, arm)
}
"""Names of columns that are probably error rates, but could also be standard errors."""


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
    """Return what a column contains according to its name, or None.

    A name is an arm, a column, a measure and base, extra or test in either order, or MEASURE_ARM for any arm.

    Examples
    --------
    >>> [str(find_role(name)) for name in ("Seed", "Accuracy (extra)", "num_correct_test", "host", "log_loss_mix-0.25")]
    ['subsample', 'extra', 'num_correct_test', 'None', 'log_loss_mix-0.25']
    """
    if (arm := normalize_arm(name)) is not None:
        return Role("score", arm)
    if (role := ROLES.get(normalize(name))) is not None:
        return role
    measure, _, of_arm = name.rpartition("_")
    column, arm = COLUMN_OF.get(normalize(measure), ""), normalize_arm(of_arm)
    if arm is None or arm in SINGLE_WORDS or column not in OF_ARMS:
        return None
    return Role(column, arm)


def describe_columns() -> str:
    """Return the documentation of the results table as a Markdown table.

    Returns
    -------
    str
        One row per column, also of those that only users' tables have: name, type, meaning, what happens if a file
        lacks it, and its synonyms.

    Examples
    --------
    >>> print(describe_columns())  # doctest: +ELLIPSIS
    | column | type | meaning | if your file lacks it | synonyms |
    |---|---|---|---|---|
    | `task` | text | name of the task | required | `task_name`, ... |
    ...
    """
    lines = ["| column | type | meaning | if your file lacks it | synonyms |", "|---|---|---|---|---|"]
    for column in USER_COLUMNS:
        synonyms = ", ".join(f"`{synonym}`" for synonym in column.synonyms)
        lines.append(f"| `{column.name}` | {column.type} | {column.meaning} | {column.if_missing} | {synonyms} |")
    return "\n".join(lines)
