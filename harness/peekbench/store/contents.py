"""What the values in a store must be, so that a forged store is refused instead of failing in a report."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from peekbench.records.scores import SCORES, Score
from peekbench.spec.design import Design


class _Part(BaseModel):
    """Keys that reports read; others are kept unread."""

    model_config = ConfigDict(extra="allow")


class _Named(_Part):
    name: str
    use: str


class _Spec(_Part):
    name: str
    seed: int
    tasks: list[_Named]
    methods: list[_Named]
    design: Design
    arms: list[str | dict[str, FiniteFloat]]


class _Task(_Part):
    class_names: list[str]
    class_counts: list[int]
    fingerprint: str
    kind: str
    rows: int
    details: dict[str, Any]
    splits: dict[str, Any]


class _Machine(_Part):
    processor: str
    cores: int | None
    memory: int
    system: str
    gpus: list[str] = []


class _Session(_Part):
    started: datetime
    command: Annotated[list[str], Field(min_length=1)]
    peekbench: str
    python: str
    commit: str | None
    packages: dict[str, str]
    machine: _Machine
    code: dict[str, dict[str, str]] = {}
    methods: dict[str, dict[str, Any]] = {}
    versions: dict[str, str] = {}


class _Host(_Part):
    machine: _Machine
    packages: dict[str, str | None]


class _Look(_Part):
    is_planned: bool
    fraction: FiniteFloat
    maximum: int


class _Overlap(_Part):
    exact: dict[str, float]
    near: dict[str, float]


class _Texts(_Part):
    """An empty description is that of features."""

    characters: dict[str, float]
    classes: dict[str, int]
    num_texts: int
    overlap: _Overlap | None
    splits: dict[str, dict[str, int]]
    tokens: dict[str, dict[str, float | None]]


_METRICS = TypeAdapter(dict[str, FiniteFloat])
_SHAPES: Mapping[str, tuple[str, str, TypeAdapter[Any]]] = {
    "run": ("SELECT value FROM run WHERE key = 'spec'", "the spec", TypeAdapter(_Spec)),
    "tasks": ("SELECT data FROM tasks", "the data of a task", TypeAdapter(_Task)),
    "sessions": ("SELECT provenance FROM sessions", "a session", TypeAdapter(_Session)),
    "hosts": ("SELECT host FROM hosts", "a machine", TypeAdapter(_Host)),
    "looks": ("SELECT look FROM looks", "a look", TypeAdapter(_Look)),
    "texts": (
        "SELECT description FROM texts WHERE description <> '{}'", "the description of texts", TypeAdapter(_Texts),
    ),
    "methods": ("SELECT metrics FROM methods", "the metrics of a method", TypeAdapter(dict[str, str])),
}  # fmt: skip
"""For each table, the query of its JSON values, their name, and their shape. The metrics of arms are many, and are
checked when they are read."""


MAX_COUNT = 10**12  # of rows, subsamples and seconds
MAX_SIZE = 1e150  # of a score without a bound, so that its square is finite


def _range_of(score: Score) -> str:
    low = -MAX_SIZE if score.minimum is None else score.minimum
    high = 1.0 if score.name == "score" else score.maximum or MAX_SIZE  # accuracy, R^2 and log-likelihoods
    return f"{score.name} BETWEEN {low} AND {high}"


CONDITIONS: Mapping[str, tuple[str, ...]] = {
    "methods": ("control IN ('', 'negative', 'positive')",),
    "draws": (
        *(f"{name} BETWEEN 0 AND {MAX_COUNT}" for name in ("num_train", "num_test", "subsample")),
        "length(test_labels) % 4 + length(test_rows) % 4 = 0",
    ),
    "trials": ("(error IS NULL) = (traceback IS NULL)",),
    "arms": (
        *map(_range_of, SCORES),
        f"num_scored BETWEEN 1 AND {MAX_COUNT} AND num_correct <= num_scored",
        f"fit_seconds BETWEEN 0 AND {MAX_COUNT} AND predict_seconds BETWEEN 0 AND {MAX_COUNT}",
        "(num_correct IS NULL AND log_loss IS NULL OR num_correct IS NOT NULL AND score >= 0)",  # or classification
        "arm NOT GLOB '*[^a-z0-9.-]*'",
    ),
}
"""What SQLite checks of the rows of a table, besides the types of its columns. NULL fulfills a condition."""


def find_wrong_values(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield what is wrong with the types, ranges and references of the rows of a table.

    SQLite itself does not check the constraints of a file that is opened for reading.
    """
    conditions = []
    for _, name, kind, is_required, _, _ in connection.execute(f"PRAGMA table_info({table})"):
        if kind != "REAL":  # all of these have a range, which neither a text nor a blob is in
            null = "" if is_required else f" OR {name} IS NULL"
            conditions.append(f"(typeof({name}) = '{kind.lower()}'{null})")
    conditions += CONDITIONS.get(table, ())
    for condition in conditions if _has_wrong_row(connection, table, " AND ".join(conditions)) else ():
        if _has_wrong_row(connection, table, condition):
            yield f"a value in the table {table} is not valid: {condition} does not hold"
    for _, _, parent, _ in connection.execute(f"PRAGMA foreign_key_check({table})"):
        yield f"a row of the table {table} belongs to a row that the table {parent} has not"
        break


def _has_wrong_row(connection: sqlite3.Connection, table: str, condition: str) -> bool:
    query = f"SELECT 1 FROM {table} WHERE NOT ({condition}) LIMIT 1"  # noqa: S608 - constants only
    return connection.execute(query).fetchone() is not None


def find_wrong_contents(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    """Yield what the JSON values of a table lack, and names in the spec that have no row."""
    if table not in _SHAPES:
        return
    query, name, shape = _SHAPES[table]
    for (text,) in connection.execute(query):
        try:
            found = shape.validate_json(text)
        except ValueError as error:
            yield f"{name} is not valid: {_first_problem(error)}"
            continue
        if isinstance(found, _Spec):
            for kind, parts in (("tasks", found.tasks), ("methods", found.methods)):
                known = {row[0] for row in connection.execute(f"SELECT name FROM {kind}")}  # noqa: S608 - constants
                for missing in [part.name for part in parts if part.name not in known]:
                    yield f"{name} has {missing!r} in {kind}, and the table {kind} has not"


def read_metrics(text: str) -> dict[str, float]:
    """Return the numbers that a fit recorded.

    Raises
    ------
    ValueError
        If they are not finite numbers by name.
    """
    return _METRICS.validate_json(text)


def _first_problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else str(first["msg"])
