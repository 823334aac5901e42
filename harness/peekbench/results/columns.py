"""The columns of the results table: names, types, meanings, and defaults."""

from __future__ import annotations

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
    type: Literal["text", "integer", "number"]
    meaning: str
    if_missing: str = "missing"
    """Value of the results table if a user's file lacks this column."""
    is_of_arm: bool = True
    """Whether the value belongs to one arm. Otherwise it belongs to the whole trial."""
    minimum: float | None = None
    maximum: float | None = None


COLUMNS: tuple[ResultsColumn, ...] = (
    ResultsColumn("task", "text", "name of the task", "required", is_of_arm=False),
    ResultsColumn("method", "text", "label of the method", "'method'", is_of_arm=False),
    ResultsColumn("model", "text", "language model, or empty", "empty", is_of_arm=False),
    ResultsColumn("num_train", "integer", "labeled train texts", is_of_arm=False, minimum=0),
    ResultsColumn(
        "num_test",
        "integer",
        "test texts, and as many extra texts",
        "missing; num_correct is then missing too",
        is_of_arm=False,
        minimum=1,
    ),
    ResultsColumn(
        "control", "text", "'negative' (no bias by design), 'positive' (a planted bias), or empty", "empty",
        is_of_arm=False,
    ),
    ResultsColumn(
        "subsample",
        "integer",
        "number of the draw; methods with the same number are paired",
        "counted from 0 within method, model, sizes, task and arm",
        is_of_arm=False,
        minimum=0,
    ),
    ResultsColumn(
        "arm", "text", "base, extra, test, or a dose such as mix-0.25", "required, or one column for each arm"
    ),
    *(
        ResultsColumn(
            score.name, score.type, score.meaning, score.if_missing, minimum=score.minimum, maximum=score.maximum
        )
        for score in SCORES
    ),
    ResultsColumn(
        "majority",
        "number",
        "share of the most frequent class among the test texts of the draw",
        is_of_arm=False,
        minimum=0,
        maximum=1,
    ),
    ResultsColumn("fit_seconds", "number", "seconds to fit", minimum=0),
    ResultsColumn("predict_seconds", "number", "seconds to predict", minimum=0),
)  # fmt: skip
"""All columns in order. Scores come from `peekbench.results.SCORES`."""

COLUMN_NAMES = tuple(column.name for column in COLUMNS)


def describe_columns() -> str:
    """Return the documentation of the results table as a Markdown table.

    Returns
    -------
    str
        One row per column: name, type, meaning, and what happens if a file lacks it.

    Examples
    --------
    >>> print(describe_columns())  # doctest: +ELLIPSIS
    | column | type | meaning | if your file lacks it |
    |---|---|---|---|
    | `task` | text | name of the task | required |
    ...
    """
    lines = ["| column | type | meaning | if your file lacks it |", "|---|---|---|---|"]
    lines += [f"| `{column.name}` | {column.type} | {column.meaning} | {column.if_missing} |" for column in COLUMNS]
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
