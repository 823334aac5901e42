"""The SQLite file of a run: its tables, its identity, and the meaning of SQLite's errors.

The journal is a write-ahead log without a sync at each commit. A killed process loses nothing that was committed. A
power cut loses at most the last commits and never damages the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from filelock import FileLock

from peekbench.errors import StoreError
from peekbench.records.scores import SCORES, Score

APPLICATION_ID = 0x7065656B  # "peek"
VERSION = 4

SCORE_COLUMNS = tuple(score.name for score in SCORES)
ARM_COLUMNS = ("draw", "owner", "arm", *SCORE_COLUMNS, "fit_seconds", "predict_seconds", "metrics")
SQL_TYPES = {"integer": "INTEGER", "number": "REAL"}


def _column_definition(score: Score) -> str:
    return f"{score.name} {SQL_TYPES[score.type]}" + (" NOT NULL" if score.is_required else "")


SCHEMA = f"""
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (id INTEGER PRIMARY KEY, provenance TEXT NOT NULL);
CREATE TABLE tasks (name TEXT PRIMARY KEY, position INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE texts (task TEXT PRIMARY KEY REFERENCES tasks, description TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE methods (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, model TEXT NOT NULL, base_key TEXT NOT NULL,
    control TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE draws (
    id INTEGER PRIMARY KEY, task TEXT NOT NULL, num_train INTEGER NOT NULL, num_test INTEGER NOT NULL,
    subsample INTEGER NOT NULL, test_labels BLOB, UNIQUE (task, num_train, num_test, subsample)
);
CREATE TABLE trials (
    draw INTEGER NOT NULL REFERENCES draws, method TEXT NOT NULL REFERENCES methods,
    session INTEGER NOT NULL REFERENCES sessions, error TEXT, traceback TEXT, PRIMARY KEY (draw, method)
) WITHOUT ROWID;
-- The owner is the name of a method, or for a base arm the base key, which several methods may share.
CREATE TABLE arms (
    id INTEGER PRIMARY KEY, draw INTEGER NOT NULL REFERENCES draws, owner TEXT NOT NULL, arm TEXT NOT NULL,
    {", ".join(map(_column_definition, SCORES))},
    fit_seconds REAL NOT NULL, predict_seconds REAL NOT NULL, metrics TEXT NOT NULL, UNIQUE (draw, owner, arm)
);
-- Separate from the arms, so that scores can be read without them. float32, or float64 for regression.
CREATE TABLE predictions (arm INTEGER PRIMARY KEY REFERENCES arms, numbers BLOB NOT NULL);
"""


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into errors that say what to do.

    Raises
    ------
    StoreError
        If the block raises `sqlite3.Error` or `OSError`.
    """
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            remedy = "free some disk space and run the spec again; the stored trials are kept and the run resumes"
        elif "readonly" in text or "unable to open" in text:
            remedy = "make the folder writable, or choose another one with --store"
        elif "locked" in text:
            remedy = "another program has the file open; close it and run again"
        else:
            remedy = "the file is damaged; restore a copy, or move it away and run again. It was not modified"
        raise StoreError(f"store {path}: {text}; {remedy}") from error
    except OSError as error:
        raise StoreError(
            f"store {path}: {error.strerror or error}; make the folder writable, or choose another one with --store"
        ) from error


class Database:
    """An open store file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None = None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock

    def close(self) -> None:
        """Close the file and release its lock."""
        with translate_errors(self.path):
            self._connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        """Return the open store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # SQLite itself rolls back if the disk is full
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _is_empty(self) -> bool:
        return not self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]

    def _create(self) -> None:
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._connection.execute(f"PRAGMA user_version = {VERSION}")
        for statement in SCHEMA.split(";"):
            self._connection.execute(statement)

    def _check_identity(self) -> None:
        """Refuse a file of another program, of another version, or with other scores."""
        identity = self._connection.execute("PRAGMA application_id").fetchone()[0]
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if identity != APPLICATION_ID:
            raise StoreError(f"{self.path} is an SQLite file but not a peekbench store; choose another path")
        remedy = "use the peekbench that wrote it, or run the spec under another name"
        if version != VERSION:
            raise StoreError(
                f"store {self.path} has version {version}, this peekbench reads version {VERSION}; {remedy}"
            )
        columns = [row[1] for row in self._connection.execute("PRAGMA table_info(arms)")]
        if different := set(columns[1:]) ^ set(ARM_COLUMNS):
            raise StoreError(
                f"store {self.path} has other scores than this peekbench ({', '.join(sorted(different))}); {remedy}"
            )

    def _get(self, key: str) -> str | None:
        row = self._connection.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])


def is_store(path: Path) -> bool:
    """Return whether the file starts like every SQLite file."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\x00"
    except OSError:
        return False
