"""Checksums of the rows of a store: written by triggers with each row, verified when a store is opened.

Every row has a BLAKE2b hash of its values, and the table `seal` has the exclusive or of all of them, so a changed, lost
or foreign row is found. Predictions are too large to be read each time: the row of an arm has their hash, which is
verified when they are read.

Triggers belong to the connection, not to the file. They cover every statement that writes, and other programs can still
read the file, but cannot change it unnoticed.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from marshal import dumps
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from time import monotonic
from typing import Any

import numpy as np

from peekbench.store.files import read_only_uri

SIZE = 16
NONE = bytes(SIZE)
TABLES = ("run", "sessions", "hosts", "looks", "tasks", "texts", "methods", "draws", "trials", "arms")
MARSHAL_VERSION = 2
"""Equal values have equal bytes in this version, which has no references, on all machines and versions of Python. They
are written several times as fast as by `repr`."""
BATCH = 1_000
"""Rows that are compared together."""
KEYS = {"draws": "id", "trials": "draw", "arms": "id"}
"""Columns by which the rows of large tables are divided between two processes."""
MIN_ARMS_FOR_TWO = 300_000
"""Arms from which two processes compare the rows. The second one takes 0.3 s to start."""
OWN_SHARE = 0.6
"""Share of the rows that this process compares. The second one also checks the indices, which takes as long as a fifth
of the rows."""
MIN_WAIT = 5
"""Seconds to wait for the second process, in addition to three times the time of this one."""
MAX_TEXT = 240
"""Characters of a description."""
MAX_LINES = 20
"""Errors that SQLite reports."""


def hash_bytes(content: bytes) -> bytes:
    """Return the hash of bytes."""
    return blake2b(content, digest_size=SIZE).digest()


def hash_row(*values: float | str | bytes | None) -> bytes:
    """Return the hash of the values of a row as SQLite returns them."""
    return hash_bytes(dumps(values, MARSHAL_VERSION))


def combine(*hashes: bytes) -> bytes:
    """Return the exclusive or of hashes."""
    total = 0
    for value in hashes:
        total ^= int.from_bytes(value, "little")
    return total.to_bytes(SIZE, "little")


def add_triggers(connection: sqlite3.Connection) -> None:
    """Let every later statement on this connection keep the checksums of the rows that it changes."""
    connection.create_function("hash_row", -1, hash_row, deterministic=True)
    connection.create_function("combine", -1, combine, deterministic=True)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA recursive_triggers = ON")  # for the rows that INSERT OR REPLACE deletes
    for table in TABLES:
        names, key = _columns(connection, table)
        columns = ", ".join(names)
        own = " AND ".join(f"{name} = NEW.{name}" for name in key)
        set_row = f"UPDATE {table} SET checksum = hash_row({columns}) WHERE {own};"  # noqa: S608 - constants only
        seal = "UPDATE seal SET changes = changes + 1, checksum = combine(checksum, OLD.checksum{});"
        for name, event, action in (
            ("insert", "INSERT", set_row),
            ("update", f"UPDATE OF {columns}", set_row),
            ("seal", "UPDATE OF checksum", seal.format(", NEW.checksum")),
            ("delete", "DELETE", seal.format("")),
        ):
            connection.execute(f"CREATE TEMP TRIGGER {table}_{name} AFTER {event} ON main.{table} BEGIN {action} END")


def _columns(connection: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """Return the columns of a table without the checksum, and those of its primary key."""
    info = connection.execute(f"PRAGMA main.table_info({table})").fetchall()
    return [row[1] for row in info if row[1] != "checksum"], [row[1] for row in info if row[5]]


def find_damage(connection: sqlite3.Connection, tables: Sequence[str] = TABLES) -> Iterator[str]:
    """Compare rows, their indices and the seal with their checksums. Predictions are not read.

    Parameters
    ----------
    connection
        Store.
    tables
        Tables to compare. The seal is compared only with all of them.

    Yields
    ------
    str
        A description of each damaged row or table.
    """
    total, is_intact = 0, True
    try:
        if tables == TABLES and _is_intact_by_two_processes(connection):
            return
        for table in tables:
            names, _ = _columns(connection, table)
            query = _select_rows(connection, table)
            if (combined := _combine_intact(connection, query)) is not None:
                total ^= combined
            else:
                for *values, checksum in connection.execute(query):
                    if hash_row(*values) == checksum:
                        total ^= int.from_bytes(checksum, "little")
                    else:
                        is_intact = False
                        row = dict(zip(names, values, strict=True))
                        yield f"the checksum of {_describe(connection, table, row)} is wrong"
            yield from integrity_errors(connection, f"'{table}'")
        seals = connection.execute("SELECT checksum FROM seal").fetchall()
        if tables == TABLES and is_intact and seals != [(total.to_bytes(SIZE, "little"),)]:
            yield "the rows are not those that were stored: some are missing, or belong to another store"
    finally:
        connection.text_factory = str


def _is_intact_by_two_processes(connection: sqlite3.Connection) -> bool:
    """Check a large store in two processes. If they find no damage, the store has none.

    If they find damage, or cannot do it, the answer is only that the store is to be checked in one process: they may
    have read different states of a store that is being filled, or the second process may not have started.
    """
    try:
        query = "SELECT (SELECT max(id) FROM draws), (SELECT max(id) FROM arms)"
        ((last_draw, last_arm),) = connection.execute(query)
        if not sys.executable or not last_draw or not last_arm or last_arm < MIN_ARMS_FOR_TWO:
            return False
        draw, arm = int(last_draw * OWN_SHARE), int(last_arm * OWN_SHARE)
        ends = {"draws": draw, "trials": draw, "arms": arm}
        file = Path(connection.execute("PRAGMA database_list").fetchone()[2])
        code = "from peekbench.store.checksums import check_rest; check_rest()"
        command = [sys.executable, "-P", "-c", code, read_only_uri(file), json.dumps(ends)]
        with Popen(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL) as other:  # noqa: S603 - constants and the store
            answer, own = b"", None
            try:
                conditions = {table: f"{KEYS[table]} <= {end}" for table, end in ends.items()}
                start = monotonic()
                own = _combine_tables(connection, conditions, TABLES)
                if own is not None:
                    answer, _ = other.communicate(timeout=MIN_WAIT + 3 * (monotonic() - start))
            finally:
                other.kill()
        seals = connection.execute("SELECT checksum FROM seal").fetchall()
        return own is not None and bool(answer) and seals == [((own ^ int(answer, 16)).to_bytes(SIZE, "little"),)]
    except (OSError, ValueError, OverflowError, TimeoutExpired, sqlite3.Error):
        # For example, the path is not UTF-8, or the second process prints other text.
        return False


def check_rest() -> None:
    """Check the indices of a store, and the rows that another process does not check.

    The arguments of the command line are the URI of the store and, as JSON, the last number of each large table that
    the other process checks. Prints the exclusive or of the checksums of the rows, or nothing if there is damage.
    """
    with closing(sqlite3.connect(sys.argv[1], uri=True)) as connection:
        ends = json.loads(sys.argv[2])
        combined = _combine_tables(connection, {table: f"{KEYS[table]} > {end}" for table, end in ends.items()}, KEYS)
        if combined is not None and not any(integrity_errors(connection, f"'{table}'") for table in TABLES):
            print(f"{combined:x}")


def _combine_tables(connection: sqlite3.Connection, conditions: Mapping[str, str], tables: Iterable[str]) -> int | None:
    """Return the exclusive or of the checksums of rows in tables, or None if a row is damaged.

    Parameters
    ----------
    connection
        Store.
    conditions
        Conditions for rows, by table.
    tables
        Tables to read.
    """
    total = 0
    for table in tables:
        query = f"{_select_rows(connection, table)} WHERE {conditions.get(table, 'true')}"
        if (combined := _combine_intact(connection, query)) is None:
            return None
        total ^= combined
    return total


def _select_rows(connection: sqlite3.Connection, table: str) -> str:
    """Return a query for the columns of a table, with the checksum as the last one."""
    names, _ = _columns(connection, table)
    return f"SELECT {', '.join(names)}, checksum FROM {table}"  # noqa: S608 - constants only


def _combine_intact(connection: sqlite3.Connection, query: str) -> int | None:
    """Return the exclusive or of the checksums of rows, or None if the rows are to be read one by one.

    The rows of millions of trials are compared in seconds, batch by batch.

    Parameters
    ----------
    connection
        Store. Text that cannot be decoded is damage; afterwards, its text factory accepts such text.
    query
        Selects the columns of a table with the checksum as the last one.
    """
    connection.text_factory = str
    total = np.zeros(SIZE // 8, "<u8")
    try:
        cursor = connection.execute(query)
        while rows := cursor.fetchmany(BATCH):
            checksums = [row[-1] for row in rows]
            if [blake2b(dumps(row[:-1], MARSHAL_VERSION), digest_size=SIZE).digest() for row in rows] != checksums:
                return None
            total ^= np.bitwise_xor.reduce(np.frombuffer(b"".join(checksums), "<u8").reshape(len(rows), -1))
    except sqlite3.OperationalError:  # of text that is not UTF-8; reading the rows again raises any other
        return None
    finally:
        connection.text_factory = _decode
    return int.from_bytes(total.tobytes(), "little")


def _decode(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def integrity_errors(connection: sqlite3.Connection, table: str = str(MAX_LINES)) -> list[str]:
    """Return what SQLite finds wrong with a table and its indices, or with the whole file."""
    rows = connection.execute(f"PRAGMA integrity_check({table})").fetchall()
    return [f"SQLite: {shorten(str(text))}" for (text,) in rows[:MAX_LINES] if text != "ok"]


def find_damaged_predictions(connection: sqlite3.Connection) -> Iterator[str]:
    """Compare all predictions with the checksums of their arms.

    Yields
    ------
    str
        A description of each arm whose predictions are missing or changed.
    """
    names, _ = _columns(connection, "arms")
    query = f"""
    SELECT {", ".join(f"arms.{name}" for name in names)}, predictions.numbers
    FROM arms LEFT JOIN predictions ON predictions.arm = arms.id
    """  # noqa: S608 - constants only
    for *values, numbers in connection.execute(query):
        arm = dict(zip(names, values, strict=True))
        if not isinstance(numbers, bytes) or hash_bytes(numbers) != arm["predictions_checksum"]:
            state = "missing" if numbers is None else "changed"
            yield f"the predictions of {_describe(connection, 'arms', arm)} are {state}"
    ((extra,),) = connection.execute("SELECT count(*) FROM predictions WHERE arm NOT IN (SELECT id FROM arms)")
    if extra:
        yield f"the table predictions has {extra} rows without an arm"


def _describe(connection: sqlite3.Connection, table: str, row: dict[str, Any]) -> str:
    """Return the trial of a damaged row in words, or the table and the key of another row."""
    if table in ("arms", "trials"):
        draw = connection.execute(
            "SELECT task, num_train, num_test, subsample FROM draws WHERE id = ?", (row["draw"],)
        ).fetchone()
        sizes = describe_draw(*draw) if draw else f"draw {row['draw']}"
        if table == "trials":
            return shorten(f"the trial {sizes}, method {row['method']}")
        return shorten(f"arm {row['arm']} of the trial {sizes}, method or base arm {row['owner']}")
    if table == "draws":
        return shorten(f"the labels or sizes of {describe_draw(*(row[name] for name in list(row)[1:5]))}")
    first, value = next(iter(row.items()))
    return shorten(f"table {table}, {first} {value}")


def describe_draw(task: object, num_train: object, num_test: object, subsample: object) -> str:
    """Return a draw in words."""
    return f"task {task}, num_train {num_train}, num_test {num_test}, subsample {subsample}"


def shorten(text: str, size: int = MAX_TEXT) -> str:
    """Return text of bounded length in which other than printable characters are escaped."""
    text = text[:size] + ("..." if len(text) > size else "")
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)
