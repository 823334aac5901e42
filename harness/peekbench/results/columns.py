"""The columns of the results table: names, types, meanings, defaults, and the other names that users give them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from peekbench.records.scores import SCORES, Score

__all__ = ["COLUMNS", "COLUMN_NAMES", "SCORES", "ResultsColumn", "Score", "describe_columns", "results_schema"]

JSON_TYPES = {"text": "string", "integer": "integer", "number": "number"}


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
    minimum: float | None = None
    """Smallest value; None if there is no bound."""
    maximum: float | None = None
    """Largest value; None if there is no bound."""
    synonyms: tuple[str, ...] = ()
    """Other names of the column in users' tables. Each is safe: no other column of a table of scores has this name.

    Synonyms of `arm` count only if all values are arms, those of `subsample` only if values are integers, and those of
    `text` only if all scores are 0 or 1."""


SYNONYMS_OF_SCORES = {
    "num_correct": ("n_correct", "correct"),
    "score": ("accuracy", "acc", "value", "r2"),
    "macro_f1": ("f1_macro",),
    "bits_per_byte": ("bpb",),
}

COLUMNS: tuple[ResultsColumn, ...] = (
    ResultsColumn(
        "task", "text", "name of the task", "required", is_of_arm=False,
        synonyms=("task_name", "dataset", "dataset_name", "data", "corpus", "benchmark", "benchmark_name"),
    ),
    ResultsColumn(
        "method", "text", "label of the method", "'method'", is_of_arm=False,
        synonyms=("method_name", "system", "system_name", "algorithm", "algo", "approach"),
    ),
    ResultsColumn(
        "model", "text", "language model, or empty", "empty", is_of_arm=False,
        synonyms=("model_name", "base_model", "language_model", "pretrained_model", "backbone", "checkpoint", "encoder",
                  "lm", "plm"),
    ),
    ResultsColumn(
        "num_train", "integer", "labeled train texts", is_of_arm=False, minimum=0,
        synonyms=("n_train", "train_size", "num_labeled", "n_labeled", "m"),
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
        "each row of a table with a column for each arm is a draw of its own; otherwise required",
        is_of_arm=False, minimum=0,
        synonyms=("seed", "random_seed", "run", "run_id", "fold", "trial", "trial_id", "draw", "repeat", "repetition",
                  "rep", "split", "iteration", "replicate", "resample"),
    ),
    ResultsColumn(
        "arm", "text", "base, extra, test, a dose such as mix-0.25, or a rule such as cross-5",
        "required, or one column for each arm",
        synonyms=("condition", "setting", "variant", "treatment", "group", "split", "variable"),
    ),
    ResultsColumn(
        "num_scored", "integer", "answers from which scores are computed: num_test, or with crossover scoring those to "
        "several sets by several fits", "num_test", is_of_arm=False, minimum=1,
    ),
    *(
        ResultsColumn(
            score.name, score.type, score.meaning, score.if_missing, minimum=score.minimum, maximum=score.maximum,
            synonyms=SYNONYMS_OF_SCORES.get(score.name, ()),
        )
        for score in SCORES
    ),
    ResultsColumn(
        "majority", "number", "share of the most frequent class among the test texts of the draw", is_of_arm=False,
        minimum=0, maximum=1,
    ),
    ResultsColumn("fit_seconds", "number", "seconds to fit", minimum=0),
    ResultsColumn("predict_seconds", "number", "seconds to predict", minimum=0),
)  # fmt: skip
"""All columns in order. Scores come from `peekbench.results.SCORES`.

Examples
--------
>>> [column.name for column in COLUMNS][:4]
['task', 'method', 'model', 'num_train']
"""

TEXT = ResultsColumn(
    "text", "text", "test text of a row that is about a single text; these rows are added up for each subsample",
    "rows are about all texts of a subsample", is_of_arm=False,
    synonyms=("text_id", "doc_id", "sample_id", "example_id", "instance_id", "item", "item_id", "question_id"),
)  # fmt: skip
"""The column that only users' tables have."""

LOSS = ResultsColumn(
    "loss", "number", "a score of which lower is better, whose negative becomes the score; analyses then need a region",
    "the score", synonyms=("error", "err", "wer", "cer", "ter", "eer", "rmse", "mae", "mse", "mape", "nll", "ppl",
                           "perplexity", "cross_entropy", "eval_loss"),
)  # fmt: skip
ERROR_RATE = ResultsColumn(
    "error_rate",
    "number",
    "share of wrong answers; the score is 1 - error_rate",
    "the score",
    minimum=0,
    maximum=1,
    synonyms=("err_rate", "error rate", "misclassification_rate"),
)
"""Columns of scores of which lower is better, which only users' tables have."""

USER_COLUMNS = (*COLUMNS, TEXT, LOSS, ERROR_RATE)
COLUMN_NAMES = tuple(column.name for column in COLUMNS)
CONFIGURATION = ("method", "model", "num_train", "num_test")
"""Columns that distinguish configurations, which analyses keep apart."""
TRIAL = (*CONFIGURATION, "task", "subsample")
"""Columns that identify a trial."""
SIZES = ("num_train", "num_test")
MAJORITY = "majority"
TEXT_DEFAULTS = {column.name: "" for column in COLUMNS if column.type == "text"} | {"task": "task", "method": "method"}
"""Columns of texts with the values that replace missing columns."""
WHOLE_NUMBERS = tuple(column.name for column in COLUMNS if column.type == "integer")
NUMBERS = tuple(column.name for column in COLUMNS if column.type == "number")
ARM_MEASURES = tuple(column.name for column in COLUMNS if column.is_of_arm and column.name != "arm")
"""Columns whose values belong to one arm."""
SCORE_SOURCES = ("score", "num_correct", "bits_per_byte", LOSS.name, ERROR_RATE.name)
"""Columns of users' tables from which the score is known."""
ARMS = ("base", "extra", "test")
DOSE = re.compile(r"mix-0?\.\d+")
PROTOCOL = re.compile(r"(?:cross|stream|blocks|swap-in)-(?:[2-9]|[1-9]\d+)|leave-one-out|single|swap-in")
"""Names of arms in which each block of the test set is predicted by a fit of its own."""


def is_arm(name: str) -> bool:
    """Return whether a text is the name of an arm."""
    return name in ARMS or any(pattern.fullmatch(name) for pattern in (DOSE, PROTOCOL))


def arm_order(name: str) -> tuple[int, float, str]:
    """Return the place of an arm in an order: base, extra, test, then doses by their share, then rules by name."""
    if name in ARMS:
        return ARMS.index(name), 0.0, ""
    is_dose = DOSE.fullmatch(name) is not None
    return (len(ARMS), float(name.removeprefix("mix-")), "") if is_dose else (len(ARMS) + 1, 0.0, name)


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


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema 2020-12 of one row of the results table.

    Returns
    -------
    dict
        An object schema with a property for each column. Missing numbers are null.

    Examples
    --------
    >>> results_schema()["properties"]["macro_f1"]["maximum"]
    1.0
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "peekbench results row",
        "description": "One arm of one trial.",
        "type": "object",
        "required": [column.name for column in COLUMNS],
        "additionalProperties": False,
        "properties": {column.name: _property_schema(column) for column in COLUMNS},
    }


def _property_schema(column: ResultsColumn) -> dict[str, Any]:
    name = JSON_TYPES[column.type]
    schema: dict[str, Any] = {"description": column.meaning, "type": name if column.type == "text" else [name, "null"]}
    bounds = {"minimum": column.minimum, "maximum": column.maximum}
    return schema | {bound: value for bound, value in bounds.items() if value is not None}
