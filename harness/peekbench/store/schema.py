"""The SQLite file that a run is stored in: its tables, its identity, and what its errors mean.

The journal is a write-ahead log without a sync at each commit: a killed process loses nothing that was committed, and a
power cut at most the last commits, never the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from peekbench.errors import StoreError

if TYPE_CHECKING:
    from typing import Self

APPLICATION_ID = 0x7065656B  # "peek"
VERSION = 4

SCHEMA = """
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
-- The owner is a method's name, or for a base arm the base key that methods may share.
CREATE TABLE arms (
    id INTEGER PRIMARY KEY, draw INTEGER NOT NULL REFERENCES draws, owner TEXT NOT NULL, arm TEXT NOT NULL,
    num_correct INTEGER, score REAL NOT NULL, log_loss REAL, brier REAL, macro_f1 REAL,
    fit_seconds REAL NOT NULL, predict_seconds REAL NOT NULL, metrics TEXT NOT NULL, UNIQUE (draw, owner, arm)
);
-- Apart from the arms, so that scores can be read without them. float32, of regressions float64.
CREATE TABLE predictions (arm INTEGER PRIMARY KEY REFERENCES arms, numbers BLOB NOT NULL);
"""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what SQLite and the system say into what a user can act on."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "full" in text or "disk I/O" in text:
            remedy = "make room on the disk and run again: what is stored is kept and the rest goes on"
        elif "readonly" in text or "unable to open" in text:
            remedy = "make the folder writable, or choose another with --store"
        elif "locked" in text:
            remedy = "another program has it open; close that and run again"
        else:
            remedy = "the file is damaged; restore a copy, or move it away and run again. Nothing was changed in it"
        raise StoreError(f"store {path}: {text}; {remedy}") from error
    except OSError as error:
        raise StoreError(
            f"store {path}: {error.strerror or error}; make the folder writable, or choose another with --store"
        ) from error


class Database:
    """An open file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None = None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock

    def close(self) -> None:
        with explained(self.path):
            self._connection.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:  # SQLite has rolled back by itself where the disk was full
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
        identity = self._connection.execute("PRAGMA application_id").fetchone()[0]
        version = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if identity != APPLICATION_ID:
            raise StoreError(f"{self.path} is an SQLite file, but no store of peekbench; name another path")
        if version != VERSION:
            raise StoreError(
                f"store {self.path} has version {version}, this peekbench reads version {VERSION}; "
                "use the peekbench that made it, or run the spec under another name"
            )

    def _get(self, key: str) -> str | None:
        row = self._connection.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])


def is_store(path: Path) -> bool:
    """Whether the file begins as every SQLite file does."""
    try:
        with closing(path.open("rb")) as file:
            return file.read(16) == b"SQLite format 3\x00"
    except OSError:
        return False
