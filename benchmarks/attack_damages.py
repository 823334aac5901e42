"""Ways to damage the file of a store or its write-ahead log at random."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np

FINAL, KILLED, HALF, OTHER_NAME, OTHER_SEED = "final", "killed", "half", "other_name", "other_seed"
"""Stores that a damage starts from: complete, killed at the end, killed halfway, and two of other runs."""
PAGE = 4096

Damage = Callable[[Path, Path, np.random.Generator], None]
"""Damages a copy of a store, given its path and the folder of all stores."""


def _edit(path: Path, edit: Callable[[bytearray], None]) -> None:
    content = bytearray(path.read_bytes())
    edit(content)
    path.write_bytes(content)


def _flip_bits(number: int, suffix: str = "") -> Damage:
    def damage(path: Path, _: Path, rng: np.random.Generator) -> None:
        def flip(content: bytearray) -> None:
            for place in rng.integers(len(content), size=number):
                content[place] ^= 1 << int(rng.integers(8))

        _edit(Path(f"{path}{suffix}"), flip)

    return damage


def _truncate(suffix: str = "") -> Damage:
    def damage(path: Path, _: Path, rng: np.random.Generator) -> None:
        file = Path(f"{path}{suffix}")
        _edit(file, lambda content: content.__delitem__(slice(int(rng.integers(len(content))), None)))

    return damage


def _replace_page(fill: str) -> Damage:
    def damage(path: Path, _: Path, rng: np.random.Generator) -> None:
        def replace(content: bytearray) -> None:
            target, source = (PAGE * int(page) for page in rng.choice(len(content) // PAGE, 2, replace=False))
            pages = {
                "zero": bytes(PAGE),
                "random": rng.bytes(PAGE),
                "other": bytes(content[source : source + PAGE]),
                "removed": b"",
            }
            content[target : target + PAGE] = pages[fill]

        _edit(path, replace)

    return damage


def _execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def _drop_table(path: Path, _: Path, rng: np.random.Generator) -> None:
    with closing(sqlite3.connect(path)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    _execute(path, f"DROP TABLE {rng.choice(names)}")


def _drop_rows(path: Path, _: Path, rng: np.random.Generator) -> None:
    table = rng.choice(["arms", "trials", "draws", "predictions", "tasks", "methods", "sessions", "run", "seal"])
    query = f"SELECT * FROM {table} ORDER BY random() LIMIT 1"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        cursor = connection.execute(query)
        row = cursor.fetchone()
        columns = [name for name, *_ in cursor.description]
        condition = " AND ".join(f"{name} IS ?" for name in columns)
        connection.execute(f"DELETE FROM {table} WHERE {condition}", row)


def _change_value(path: Path, _: Path, rng: np.random.Generator) -> None:
    changes = [
        "arms SET score = 7.5", "arms SET num_correct = num_correct + 1", "arms SET metrics = '{'",
        "arms SET log_loss = NULL", "arms SET draw = draw + 1000", "draws SET test_labels = zeroblob(8)",
        "draws SET num_test = num_test + 1", "tasks SET data = '[]'", "methods SET control = 'positive'",
        "trials SET error = 'ValueError'", "run SET value = ''", "sessions SET provenance = 'null'",
        "predictions SET numbers = zeroblob(length(numbers))",
    ]  # fmt: skip
    change = str(rng.choice(changes))
    _execute(path, f"UPDATE {change}")


def _take(file: str, log: str) -> Damage:
    """Put the file of one store and the log of another together."""

    def damage(path: Path, stores: Path, rng: np.random.Generator) -> None:
        shutil.copy(stores / file, path)
        shutil.copy(stores / f"{log}-wal", f"{path}-wal")
        if rng.integers(2):  # only a part of the log was copied
            _truncate("-wal")(path, stores, rng)

    return damage


def _delete_log(path: Path, _: Path, __: np.random.Generator) -> None:
    Path(f"{path}-wal").unlink()


def _delete_file(path: Path, _: Path, __: np.random.Generator) -> None:
    path.unlink()


KINDS: tuple[tuple[str, str, Damage], ...] = (
    ("one bit", FINAL, _flip_bits(1)),
    ("40 bits", FINAL, _flip_bits(40)),
    ("truncated", FINAL, _truncate()),
    ("page of zeros", FINAL, _replace_page("zero")),
    ("page of random bytes", FINAL, _replace_page("random")),
    ("page replaced by another", FINAL, _replace_page("other")),
    ("page removed", FINAL, _replace_page("removed")),
    ("row dropped", FINAL, _drop_rows),
    ("table dropped", FINAL, _drop_table),
    ("values changed", FINAL, _change_value),
    ("log: one bit", KILLED, _flip_bits(1, "-wal")),
    ("log: truncated", KILLED, _truncate("-wal")),
    ("log: deleted", KILLED, _delete_log),
    ("log: file deleted", KILLED, _delete_file),
    ("log: file has one bit changed", KILLED, _flip_bits(1)),
    ("log: an earlier one is left", FINAL, _take(FINAL, HALF)),
    ("log: a later one is left", HALF, _take(HALF, KILLED)),
    ("log: of a run with another name", FINAL, _take(FINAL, OTHER_NAME)),
    ("log: of a run with another seed", FINAL, _take(FINAL, OTHER_SEED)),
    ("log: of half a run with another seed", KILLED, _take(KILLED, f"{HALF}.{OTHER_SEED}")),
)
