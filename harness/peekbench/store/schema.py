"""The SQLite file of a run: its tables, the form of its values, its identity, and the meaning of SQLite's errors.

The journal is a write-ahead log, `FILE-wal`, which is copied into the file at least once a second while trials are
saved, and when the store is closed. A killed process loses nothing that was committed, as long as the log stays beside
the file. A power cut loses at most the commits of the last second, and never damages the file.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from peekbench.errors import StoreError
from peekbench.formatting import shorten, visible
from peekbench.records.answers import Predicted
from peekbench.records.data import FloatArray, IntArray, Reference
from peekbench.records.scores import SCORES, Score
from peekbench.store.files import has_log, log_path

FAILED_LOCKS = (
    sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_RDLOCK, sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK, sqlite3.SQLITE_IOERR_SHMLOCK,
)  # fmt: skip
LOCAL_DISK = "this file system has no locks, as some shared ones: choose a folder on a local disk"
"""Remedy of these errors of the file system and of SQLite."""
APPLICATION_ID = 0x7065656B  # "peek"
VERSION = 23

SCORE_COLUMNS = tuple(score.name for score in SCORES)
ARM_COLUMNS = (
    "draw", "owner", "arm", "num_scored", *SCORE_COLUMNS, "fit_seconds", "predict_seconds", "metrics",
)  # fmt: skip
DRAW_COLUMNS = ("task", "num_train", "num_test", "subsample", "test_labels", "test_rows", "test_groups")
KEEP_LABELS = """
ON CONFLICT (task, num_train, num_test, subsample) DO UPDATE
SET test_labels = excluded.test_labels, test_rows = excluded.test_rows, test_groups = excluded.test_groups
WHERE draws.test_labels IS NULL AND excluded.test_labels IS NOT NULL
"""
"""End of a statement that inserts draws: a draw of failed trials gets the labels and rows that another trial knows."""
SQL_TYPES = {"integer": "INTEGER", "number": "REAL"}


def _column_definition(score: Score) -> str:
    definition = f"{score.name} {SQL_TYPES[score.type]}"
    if score.is_required:
        return f"{definition} NOT NULL"
    return definition


TABLES = ("run", "sessions", "hosts", "looks", "tasks", "methods", "bases", "draws", "trials", "arms")
"""All tables but `predictions`."""
SCHEMA = f"""
-- The spec, its folder, a random id of the store, and the number of transactions since it was created.
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (id INTEGER PRIMARY KEY, provenance TEXT NOT NULL);
-- Machines that did work in a session: packages whose versions differ from the session's, and the machine.
CREATE TABLE hosts (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES sessions, name TEXT NOT NULL, host TEXT NOT NULL,
    UNIQUE (session, name)
);
-- Each analysis of the results that could have influenced how many trials the run has, as JSON.
CREATE TABLE looks (id INTEGER PRIMARY KEY, look TEXT NOT NULL);
CREATE TABLE tasks (name TEXT PRIMARY KEY, position INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
-- What reports say about a method and its plugin does: the plugin may be missing or have changed when one is written.
CREATE TABLE methods (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, model TEXT NOT NULL, control TEXT NOT NULL,
    summary TEXT NOT NULL, metrics TEXT NOT NULL
) WITHOUT ROWID;
-- Methods with the same key share their base arms in a task.
CREATE TABLE bases (
    method TEXT NOT NULL REFERENCES methods, task TEXT NOT NULL REFERENCES tasks, key TEXT NOT NULL,
    PRIMARY KEY (method, task)
) WITHOUT ROWID;
CREATE TABLE draws (
    id INTEGER PRIMARY KEY, task TEXT NOT NULL, num_train INTEGER NOT NULL, num_test INTEGER NOT NULL,
    subsample INTEGER NOT NULL, test_labels BLOB, test_rows BLOB, test_groups BLOB,
    UNIQUE (task, num_train, num_test, subsample)
);
-- What was done twice, a list in JSON, is NULL in most trials.
CREATE TABLE trials (
    draw INTEGER NOT NULL REFERENCES draws, method TEXT NOT NULL REFERENCES methods,
    session INTEGER NOT NULL REFERENCES sessions, host INTEGER REFERENCES hosts, error TEXT, traceback TEXT,
    repeats TEXT,
    PRIMARY KEY (draw, method)
) WITHOUT ROWID;
-- The owner is the name of a method, or for a base arm its key in `bases`.
CREATE TABLE arms (
    id INTEGER PRIMARY KEY, draw INTEGER NOT NULL REFERENCES draws, owner TEXT NOT NULL, arm TEXT NOT NULL,
    num_scored INTEGER NOT NULL, {", ".join(map(_column_definition, SCORES))},
    fit_seconds REAL NOT NULL, predict_seconds REAL NOT NULL, metrics TEXT NOT NULL,
    UNIQUE (draw, owner, arm)
);
-- Separate from the arms, so that scores can be read without them. Labels are those that a method chose, of tasks with
-- classes: a byte for each label of a multi-label task, otherwise int32. Numbers are probabilities in float32, and of
-- other tasks in float64. Generated answers are a list in JSON, compressed by zlib.
CREATE TABLE predictions (arm INTEGER PRIMARY KEY REFERENCES arms, numbers BLOB NOT NULL, labels BLOB, answers BLOB);
"""
MAX_TEXT, MAX_LINES = 240, 20  # characters of a description, and problems that SQLite reports
STATEMENTS = [statement.strip() for statement in SCHEMA.split(";") if statement.strip()]


LOST_ROWS = """
SELECT DISTINCT 'rows of ' || parent || ' are missing, to which ' || "table" || ' refers' FROM pragma_foreign_key_check
UNION ALL SELECT 'rows of predictions are missing' WHERE EXISTS (SELECT id FROM arms EXCEPT SELECT arm FROM predictions)
UNION ALL SELECT 'rows of run are missing' WHERE NOT EXISTS (SELECT 1 FROM run)
"""
"""Statement that describes rows that another program has deleted."""


def placeholders(values: Sequence[object]) -> str:
    """Return the placeholders of values in a statement."""
    return ", ".join("?" for _ in values)


def find_damage(connection: sqlite3.Connection) -> str:
    """Return the defects that SQLite finds in a file, and rows that it lacks; empty if there are none."""
    defects = [text for (text,) in connection.execute(f"PRAGMA integrity_check({MAX_LINES})") if text != "ok"]
    return "\n".join(map(quote, defects or [text for (text,) in connection.execute(LOST_ROWS)]))


def quote(text: object) -> str:
    """Return foreign text for a message."""
    return visible(shorten(str(text), MAX_TEXT))


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into errors that say what to do.

    Raises
    ------
    StoreError
        If the block raises `sqlite3.Error`, `OSError` or `UnicodeDecodeError`.
    """
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT:
            raise damage_error(path, quote(error)) from error
        raise StoreError(f"store {path}: {quote(error)}; {_remedy(error)}") from error
    except UnicodeDecodeError as error:  # of a message about a damaged schema
        raise damage_error(path, f"SQLite: {quote(error.object)}") from error
    except OSError as error:
        remedies = {
            errno.ENOENT: "create the folder, or choose another one",
            errno.ENOSPC: "free some disk space, or choose another folder",
            errno.ENOLCK: f"{LOCAL_DISK} with --store",
        }
        remedy = remedies.get(error.errno or 0, "make the folder writable, or choose another one")
        problem = error.strerror or str(error)
        other = error.filename2  # the target of a copy
        if str(error.filename).endswith(".lock"):
            other = error.filename
        if other:
            problem = f"{other}: {problem}"
        raise StoreError(f"store {path}: {problem}; {remedy}") from error


def damage_error(path: Path, problem: str) -> StoreError:
    """Return the error of a store that an integrity check found damaged."""
    file = Path(os.path.realpath(path))
    log = ""
    if has_log(file):
        log = f" If the log {log_path(file)} belongs to another store, move the log away first."
    return StoreError(
        f"store {path}: {problem}; the file is damaged. It was not modified.{log} Restore a copy, or move the file "
        "away and run the spec again"
    )


def _remedy(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0)
    if code in FAILED_LOCKS:
        return f"{LOCAL_DISK} with --store"
    match code & 0xFF:
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return "free some disk space and run the spec again; the stored trials are kept and the run resumes"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return "make the folder writable, or choose another one with --store"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "another program has the file open; close it and run again"
        case sqlite3.SQLITE_NOTADB:
            return "give the path of a store; if the file was one, restore a copy. It was not modified"
    return "another program may have changed the file: restore a copy, or move it away and run the spec again"


def is_empty(connection: sqlite3.Connection) -> bool:
    """Return whether a file has no table yet."""
    return not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]


def create_tables(connection: sqlite3.Connection) -> None:
    """Make a store of an empty file."""
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for statement in STATEMENTS:
        connection.execute(statement)
    connection.execute("INSERT INTO run VALUES ('id', ?), ('transactions', '0')", (secrets.token_hex(16),))


def refuse_other_versions(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file of another program, of another version, or with other scores."""
    ((identity,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    if identity != APPLICATION_ID:
        raise StoreError(f"{path} is an SQLite file but not a peekbench store; choose another path")
    remedy = "use the peekbench that wrote it, or run the spec under another name"
    if version != VERSION:
        raise StoreError(f"store {path} has version {version}, this peekbench reads version {VERSION}; {remedy}")
    columns = {row[1] for row in connection.execute("PRAGMA table_info(arms)")}
    if columns and (different := columns ^ {"id", *ARM_COLUMNS}):
        raise StoreError(f"store {path} has other scores than this version ({', '.join(sorted(different))}); {remedy}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("UPDATE run SET value = value + 1 WHERE key = 'transactions'")
    except BaseException:
        if connection.in_transaction:  # SQLite itself rolls back if the disk is full
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def size_of_sets(spec: Mapping[str, Any], num_test: int, num_texts: int) -> int:
    """Return the number of texts of each set that the arms of a draw score: with folds, all texts of the draw."""
    return num_texts if spec["design"].get("folds") else num_test


def decode_labels(labels: bytes, task: Mapping[str, Any]) -> IntArray | FloatArray:
    """Return stored labels of test rows.

    Parameters
    ----------
    labels
        Column `test_labels`.
    task
        Facts about the task.

    Returns
    -------
    numpy.ndarray
        Shape (n,): indices of classes, targets, or numbers of bytes. Shape (n, n_labels) for multi-label tasks.
    """
    if task["kind"] == "multilabel":
        return np.frombuffer(labels, "u1").astype(np.int64).reshape(-1, len(task["class_names"]))
    if task["class_names"]:
        return np.frombuffer(labels, "<i4").astype(np.int64)
    return np.frombuffer(labels, "<f8")


def encode_labels(labels: IntArray | FloatArray) -> bytes:
    """Return labels of test rows as `decode_labels` reads them; of references, which are texts, the grade 1."""
    if labels.dtype.kind == "O":
        labels = np.ones(len(labels))
    if labels.ndim == 2:
        return labels.astype("u1").tobytes()
    return labels.astype({"f": "<f8"}.get(labels.dtype.kind, "<i4")).tobytes()


def decode_predictions(numbers: bytes, labels: bytes | None, task: Mapping[str, Any]) -> Predicted:
    """Return stored predictions of a task, given the facts about it."""
    if labels is None:
        return Predicted(np.frombuffer(numbers, "<f8"))
    probabilities = np.frombuffer(numbers, "<f4").reshape(-1, len(task["class_names"]))
    chosen: Any = decode_labels(labels, task)
    return Predicted(probabilities, chosen)


def encode_predictions(predicted: Predicted) -> tuple[bytes, bytes | None]:
    """Return the numbers and the labels of predictions as the store keeps them."""
    if predicted.labels is None:
        return predicted.numbers.astype("<f8").tobytes(), None
    return predicted.numbers.astype("<f4").tobytes(), encode_labels(predicted.labels)


def encode_answers(answers: Sequence[Reference]) -> bytes | None:
    """Return generated answers as the store keeps them; None for other tasks."""
    if not answers:
        return None
    return zlib.compress(json.dumps(answers).encode())


def decode_answers(answers: bytes) -> list[Reference]:
    """Return stored answers: a text for each prompt, or a tuple of several."""
    found: list[Any] = json.loads(zlib.decompress(answers))
    return [answer if isinstance(answer, str) else tuple(answer) for answer in found]
