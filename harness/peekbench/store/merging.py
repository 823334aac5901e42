"""Stores of shards: each attempt of a job of a batch system writes one, which is merged into the store of the run.

A trial that several jobs have computed must have the same bits each time. Only times may differ, and the numbers that a
method records besides its predictions.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from peekbench.errors import StoreError
from peekbench.records.trials import Draw
from peekbench.store.files import has_log, log_path, read_state, real_path, refuse_foreign_log
from peekbench.store.maintenance import describe_arm, find_damaged_predictions
from peekbench.store.reader import Store
from peekbench.store.schema import (
    ARM_COLUMNS,
    DRAW_COLUMNS,
    KEEP_LABELS,
    damage_error,
    is_empty,
    refuse_other_versions,
    translate_errors,
)
from peekbench.store.writer import StoreWriter

JOB_TABLES = ("run", "sessions", "tasks", "methods")
"""Tables that do not change after the start of a job."""
ATTEMPTS, PAUSE = 20, 0.2
"""Attempts to read a store while its job writes it, and seconds between them."""

MEASURED = ("fit_seconds", "predict_seconds", "metrics")
"""Columns of an arm that may differ if a trial is computed again."""
COMPARED = tuple(name for name in ARM_COLUMNS if name not in ("draw", "owner", "arm", *MEASURED))


def _list(prefix: str = "", columns: Sequence[str] = COMPARED) -> str:
    return ", ".join(prefix + name for name in columns)


COPY_DRAWS = f"""
INSERT INTO main.draws ({_list("", DRAW_COLUMNS)})
SELECT {_list("", DRAW_COLUMNS)} FROM shard.draws WHERE true ORDER BY id {KEEP_LABELS}
"""  # noqa: S608 - constants only
DRAWS = """
JOIN shard.draws AS theirs ON theirs.id = new.draw
JOIN main.draws AS ours USING (task, num_train, num_test, subsample)
"""
DIFFERENT_DRAWS = """
SELECT task, num_train, num_test, subsample
FROM shard.draws AS new JOIN main.draws AS old USING (task, num_train, num_test, subsample)
WHERE old.test_labels <> new.test_labels OR old.test_rows <> new.test_rows LIMIT 1
"""
ARMS = f"FROM shard.arms AS new {DRAWS}"
STORED_ARMS = "JOIN main.arms AS old ON old.draw = ours.id AND old.owner = new.owner AND old.arm = new.arm"
DIFFERENT_ARMS = f"""
SELECT task, num_train, num_test, subsample, old.owner, old.arm, {_list("old.")}, {_list("new.")}
{ARMS} {STORED_ARMS}
WHERE ({_list("old.")}) IS NOT ({_list("new.")}) LIMIT 1
"""
COPY_ARMS = f"""
INSERT INTO main.arms (draw, owner, arm, {_list("", MEASURED)}, {_list()})
SELECT ours.id, new.owner, new.arm, {_list("new.", MEASURED)}, {_list("new.")} {ARMS} WHERE true ORDER BY new.id
ON CONFLICT (draw, owner, arm) DO NOTHING
"""
COPY_PREDICTIONS = f"""
INSERT INTO main.predictions SELECT old.id, predictions.numbers, predictions.labels, predictions.answers
{ARMS} {STORED_ARMS} JOIN shard.predictions ON predictions.arm = new.id WHERE old.id > ? ORDER BY old.id
"""
TRIALS = f"""
FROM shard.trials AS new {DRAWS}
LEFT JOIN main.trials AS old ON old.draw = ours.id AND old.method = new.method
"""
IS_NEW = "WHERE old.draw IS NULL OR (old.error IS NOT NULL AND new.error IS NULL)"
COUNT_TRIALS = f"SELECT count(*), coalesce(sum(new.error IS NULL), 0) {TRIALS} {IS_NEW}"
COPY_HOSTS = "INSERT OR IGNORE INTO main.hosts (session, name, host) SELECT ?, name, host FROM shard.hosts ORDER BY id"
COPY_TRIALS = f"""
INSERT OR REPLACE INTO main.trials (draw, method, session, host, error, traceback, repeats)
SELECT ours.id, new.method, :session, here.id, new.error, new.traceback, new.repeats {TRIALS}
LEFT JOIN shard.hosts AS there ON there.id = new.host
LEFT JOIN main.hosts AS here ON here.session = :session AND here.name = there.name
{IS_NEW} ORDER BY ours.id
"""


@contextmanager
def open_shard(path: Path, *, is_whole: bool) -> Iterator[Store | None]:
    """Open the store of a shard as it is now, and verify it, without a change to its files or a lock.

    Its job may be writing it on another machine. What is read while the job copies the log into the file is damaged or
    incomplete, and is read again.

    Parameters
    ----------
    path
        The file.
    is_whole
        Whether the trials are to be read, too, for which the log is needed. The file and its log are then copied to
        this machine.

    Yields
    ------
    Store or None
        None if the job has just started, or was killed at its start.

    Raises
    ------
    StoreError
        If the file is not the store of a shard, or is damaged.
    """
    with ExitStack() as stack:
        last_state = None
        with translate_errors(path):
            file = real_path(path)
            for attempt in range(1, ATTEMPTS + 1):
                try:
                    shard = _open(path, file, stack, is_whole=is_whole, with_log=is_whole or attempt > 1)
                    break
                except (StoreError, sqlite3.Error, OSError, UnicodeDecodeError):
                    state = read_state(file)
                    if attempt == ATTEMPTS or state == last_state:  # the job has written nothing since the last attempt
                        raise
                    last_state = state
                time.sleep(PAUSE)
        yield shard


def _open(path: Path, file: Path, stack: ExitStack, *, is_whole: bool, with_log: bool) -> Store | None:
    """Open the file of a shard alone, or a copy of the file and its log."""
    if not file.stat().st_size:
        return None
    uri = f"{file.as_uri()}?immutable=1"
    if with_log and has_log(file):
        copy = Path(stack.enter_context(TemporaryDirectory(prefix="peekbench-"))) / file.name
        shutil.copyfile(file, copy)
        shutil.copyfile(log_path(file), log_path(copy))
        refuse_foreign_log(path, copy)
        uri = f"{copy.as_uri()}?mode=ro"
    shard = Store(path, sqlite3.connect(uri, uri=True, isolation_level=None), uri=uri)
    stack.callback(shard._connection.close)
    if is_empty(shard._connection):
        return None
    refuse_other_versions(path, shard._connection)
    if is_whole:
        shard.verify()
        for damage in find_damaged_predictions(shard._connection):
            raise damage_error(path, damage)
    else:
        shard.verify(JOB_TABLES)
    shard.shard()  # refuses the store of a run
    if not shard.sessions():
        return None
    return shard


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """What became of the trials of shards."""

    added: int = 0
    """Finished trials that the store did not have."""
    repeated: int = 0
    """Finished trials that the store had, with the same bits."""
    failed: int = 0
    """Failures of trials of which the store had neither a result nor a failure."""

    def __add__(self, other: MergeCounts) -> MergeCounts:
        """Return the sums."""
        return MergeCounts(self.added + other.added, self.repeated + other.repeated, self.failed + other.failed)


def merge_shard(store: StoreWriter, shard: Store) -> MergeCounts:
    """Add the trials of a shard to the store of a run in one transaction, as a session.

    A failure gives way to a result of the same trial, in either order.

    Parameters
    ----------
    store
        The store of the run.
    shard
        A whole store of a shard, of the same experiment.

    Returns
    -------
    MergeCounts
        Numbers of trials.

    Raises
    ------
    StoreError
        If a result differs from the stored one. The store is then unchanged.
    """
    with translate_errors(store.path):
        store._connection.execute("ATTACH ? AS shard", (shard.uri,))
        try:
            with store._transaction():
                return _copy(store, shard)
        finally:
            store._connection.execute("DETACH shard")


def _copy(store: StoreWriter, shard: Store) -> MergeCounts:
    execute = store._connection.execute
    execute(COPY_DRAWS)
    _refuse_differences(store, shard)
    ((num_new, num_results),) = execute(COUNT_TRIALS)
    if num_new:
        number = _session_of(execute, shard)
        execute(COPY_HOSTS, (number,))
        execute(COPY_TRIALS, {"session": number})
    ((last,),) = execute("SELECT coalesce(max(id), 0) FROM arms")
    execute(COPY_ARMS)
    execute(COPY_PREDICTIONS, (last,))
    finished, _ = shard.count()
    return MergeCounts(num_results, finished - num_results, num_new - num_results)


def _session_of(execute: Callable[..., sqlite3.Cursor], shard: Store) -> int:
    """Return the session of a shard. It is not new if some trials of the shard have been merged before."""
    (session,) = shard.sessions()
    store_id = shard.store_id()
    known = "SELECT id FROM sessions WHERE json_extract(provenance, '$.shard_store') = ?"
    for (number,) in execute(known, (store_id,)).fetchall():
        return int(number)
    origin = {"shard": str(shard.shard()), "shard_store": store_id, "shard_file": shard.path.name}
    text = json.dumps({**session, **origin}, sort_keys=True)
    return int(execute("INSERT INTO sessions (provenance) VALUES (?)", (text,)).lastrowid or 0)


def _refuse_differences(store: StoreWriter, shard: Store) -> None:
    """Refuse a shard with other test rows, predictions or scores of a trial than the store."""
    rows = "the test rows or labels of task {}, num_train {}, num_test {}, subsample {}"
    differences = [rows.format(*draw) for draw in store._connection.execute(DIFFERENT_DRAWS)]
    for row in store._connection.execute(DIFFERENT_ARMS).fetchall():
        values = row[6:]
        compared = zip(COMPARED, values[: len(COMPARED)], values[len(COMPARED) :], strict=True)
        names = [name.removesuffix("_checksum") for name, here, there in compared if here != there]
        differences.append(f"{', '.join(names)} of {describe_arm(Draw(*row[:4]), *row[4:6])}")
    if differences:
        raise StoreError(
            f"store {shard.path}: {differences[0]} differ from those in the store {store.path}. The same trial must "
            "have the same numbers on every machine: look for another version of a library, another kind of "
            "processor, or a method whose results depend on more than its inputs and its seed. Then remove one of "
            "the two"
        )
