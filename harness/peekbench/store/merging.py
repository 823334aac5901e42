"""Stores of shards: each attempt of a job of a batch system writes one, which is merged into the store of the run.

A trial that several jobs have computed must have the same bits each time. Only times may differ, and the numbers that a
method records besides its predictions.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from peekbench.errors import PeekbenchError, StoreError
from peekbench.records.trials import Draw
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.files import has_log, identify, log_path, read_state, refuse_foreign_log, resolve
from peekbench.store.reader import Reader, describe_arm, find_damaged_predictions
from peekbench.store.schema import ARM_COLUMNS, TABLES, Database, damage_error, shorten, translate_errors
from peekbench.store.writer import Store

SUFFIX = ".sqlite"
NO_LOCKS = "unix-none"
"""Part of SQLite that opens files without locks."""
HEADER = ("run", "sessions", "tasks", "methods")
"""Tables that do not change after the start of a job."""
ATTEMPTS, PAUSE = 20, 0.2
"""Attempts to read a store while its job writes it, and seconds between them."""

MEASURED = ("fit_seconds", "predict_seconds", "metrics")
"""Columns of an arm that may differ if a trial is computed again."""
COMPARED = tuple(name for name in ARM_COLUMNS if name not in ("draw", "owner", "arm", *MEASURED))


def _list(prefix: str = "", columns: Sequence[str] = COMPARED) -> str:
    return ", ".join(prefix + name for name in columns)


# `draw_ids` and `owners` translate from the shard to the store. A base arm has another key there if the spec has got
# options for a new task.
MAKE_IDS = "CREATE TEMP TABLE draw_ids (new INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE)"
COPY_DRAWS = """
INSERT INTO main.draws (task, num_train, num_test, subsample, test_labels, test_rows)
SELECT task, num_train, num_test, subsample, test_labels, test_rows FROM shard.draws WHERE true ORDER BY id
ON CONFLICT (task, num_train, num_test, subsample) DO UPDATE
SET test_labels = excluded.test_labels, test_rows = excluded.test_rows
WHERE draws.test_labels IS NULL AND excluded.test_labels IS NOT NULL
"""
MATCH_DRAWS = """
INSERT INTO draw_ids SELECT new.id, old.id FROM shard.draws AS new
JOIN main.draws AS old USING (task, num_train, num_test, subsample)
"""
DIFFERENT_DRAWS = """
SELECT old.task, old.num_train, old.num_test, old.subsample
FROM draw_ids JOIN shard.draws AS new ON new.id = draw_ids.new JOIN main.draws AS old ON old.id = draw_ids.id
WHERE old.test_labels <> new.test_labels OR old.test_rows <> new.test_rows LIMIT 1
"""
ARMS = """
FROM shard.arms AS new JOIN draw_ids ON draw_ids.new = new.draw
JOIN (
    SELECT DISTINCT theirs.base_key AS new, main.methods.base_key AS name, true AS is_base
    FROM shard.methods AS theirs JOIN main.methods USING (name)
    UNION ALL SELECT name, name, false FROM main.methods
) AS owners ON owners.new = new.owner AND owners.is_base = (new.arm = 'base')
"""
STORED_ARMS = "JOIN main.arms AS old ON old.draw = draw_ids.id AND old.owner = owners.name AND old.arm = new.arm"
DIFFERENT_ARMS = f"""
SELECT draws.task, draws.num_train, draws.num_test, draws.subsample, old.owner, old.arm,
       {_list("old.")}, {_list("new.")}
{ARMS} {STORED_ARMS} JOIN main.draws ON draws.id = old.draw
WHERE ({_list("old.")}) IS NOT ({_list("new.")}) LIMIT 1
"""
COPY_ARMS = f"""
INSERT INTO main.arms (draw, owner, arm, {_list("", MEASURED)}, {_list()})
SELECT draw_ids.id, owners.name, new.arm, {_list("new.", MEASURED)}, {_list("new.")} {ARMS} WHERE true ORDER BY new.id
ON CONFLICT (draw, owner, arm) DO NOTHING
"""
COPY_PREDICTIONS = f"""
INSERT INTO main.predictions SELECT old.id, predictions.numbers {ARMS} {STORED_ARMS}
JOIN shard.predictions ON predictions.arm = new.id WHERE old.id > ? ORDER BY old.id
"""
TRIALS = """
FROM shard.trials AS new JOIN draw_ids ON draw_ids.new = new.draw
LEFT JOIN main.trials AS old ON old.draw = draw_ids.id AND old.method = new.method
"""
IS_NEW = "WHERE old.draw IS NULL OR (old.error IS NOT NULL AND new.error IS NULL)"
COUNT_TRIALS = f"SELECT count(*), coalesce(sum(new.error IS NULL), 0) {TRIALS} {IS_NEW}"
COPY_HOSTS = "INSERT OR IGNORE INTO main.hosts (session, name, host) SELECT ?, name, host FROM shard.hosts ORDER BY id"
COPY_TRIALS = f"""
INSERT OR REPLACE INTO main.trials (draw, method, session, host, error, traceback)
SELECT draw_ids.id, new.method, :session, here.id, new.error, new.traceback {TRIALS}
LEFT JOIN shard.hosts AS there ON there.id = new.host
LEFT JOIN main.hosts AS here ON here.session = :session AND here.name = there.name
{IS_NEW} ORDER BY draw_ids.id
"""


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of the work items of a spec.

    Examples
    --------
    >>> Shard.parse("3/40")
    Shard(number=3, count=40)
    """

    number: int
    """From 1 to `count`."""
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard of a text such as '3/40'.

        Raises
        ------
        PeekbenchError
            If the text has another form, or there is no such shard.
        """
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII)
        if match is None:
            raise PeekbenchError(
                f"--shard {shorten(text)}: give the number of the shard and of all shards, such as 3/40"
            )
        number, count = map(int, match.groups())
        if not 1 <= number <= count:
            raise PeekbenchError(f"--shard {text}: {count} shards have the numbers 1 to {count}; give one of them")
        return cls(number, count)

    def __str__(self) -> str:
        """Return the form that `parse` reads."""
        return f"{self.number}/{self.count}"


class ShardStore(Store):
    """The store of one attempt of a job, until it is closed. No other process ever writes it.

    SQLite takes no locks here, because file systems that several machines share often lack them, and because the name
    of the file is new. The journal is a write-ahead log as in other stores: a rollback journal would wait for the file
    server several times for each trial. In the exclusive mode, the index of the log is in the memory of the job, and
    not in a file that only processes of one machine can share.
    """

    @classmethod
    def create(
        cls, folder: Path, shard: Shard, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]],
        session: Mapping[str, Any], host: str,
    ) -> Self:  # fmt: skip
        """Create a store in a folder, under a name that no other job uses.

        Parameters
        ----------
        folder
            Folder for the stores of all shards.
        shard
            The shard.
        spec, tasks
            As for `Store.for_run`.
        session, host
            As for `Store.add_session`.

        Raises
        ------
        StoreError
            If it cannot be written.
        """
        started = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        number = f"{shard.number:0{len(str(shard.count))}}"
        path = folder / f"shard-{number}-of-{shard.count}-{started}-{secrets.token_hex(4)}{SUFFIX}"
        with translate_errors(path):
            folder.mkdir(parents=True, exist_ok=True)
            file = resolve(path)
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            store = cls(path, sqlite3.connect(f"{file.as_uri()}?vfs={NO_LOCKS}", uri=True, isolation_level=None))
            try:
                store._file = file
                store._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                store._begin(spec, tasks)
                with store._transaction():
                    store._replace("run", key="shard", value=str(shard))
                store.add_session(session, host)
                Store._flush(store)  # other jobs compare what the file has without its log
                store._identity = identify(file)
            except BaseException:
                store.close()
                raise
        return store

    def _flush(self) -> None:
        """Let the log reach the disk, but do not copy it into the file: while it only grows, copies of both fit."""
        descriptor = os.open(log_path(self._file), os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Copy the log into the file, which then has no companions and never changes again."""
        with suppress(sqlite3.Error):  # readers read the file and the log that is left
            if self._connection.in_transaction:  # a signal has interrupted it
                self._connection.execute("ROLLBACK")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        Database.close(self)


def find_shards(folder: Path) -> list[Path]:
    """Return the stores in a folder, or a store that is given itself; sorted by name.

    Raises
    ------
    StoreError
        If there is no such folder.
    """
    try:
        if stat.S_ISDIR(folder.stat().st_mode):
            return sorted(path for path in folder.iterdir() if path.suffix == SUFFIX)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}; give a folder of `peekbench worker --out`") from error
    return [folder]


class ShardReader(Reader):
    """The store of a shard, opened to read it."""

    def __init__(self, path: Path, uri: str) -> None:
        super().__init__(path, sqlite3.connect(uri, uri=True, isolation_level=None))
        self.uri = uri

    def part(self) -> Shard:
        """Return the shard."""
        return Shard.parse(str(self.shard()))

    def check(self, *, is_whole: bool) -> None:
        """Refuse a damaged store, and one of another kind."""
        self._check_identity()
        self.verify(TABLES if is_whole else HEADER)
        for damage in find_damaged_predictions(self._connection) if is_whole else ():
            raise damage_error(self.path, damage)
        if self.shard() is None:
            raise StoreError(f"store {self.path} is not that of a shard; give the folder of `peekbench worker --out`")


@contextmanager
def open_shard(path: Path, *, is_whole: bool) -> Iterator[ShardReader | None]:
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
    ShardReader or None
        None if the job has just started, or was killed at its start.

    Raises
    ------
    StoreError
        If the file is not the store of a shard, or is damaged.
    """
    with ExitStack() as stack:
        last_state = None
        with translate_errors(path):
            file = resolve(path)
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


def _open(path: Path, file: Path, stack: ExitStack, *, is_whole: bool, with_log: bool) -> ShardReader | None:
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
    shard = stack.enter_context(ShardReader(path, uri))
    if shard._is_empty():
        return None
    shard.check(is_whole=is_whole)
    return shard if shard.sessions() else None


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


class MergingStore(Store):
    """The store of a run, to which the trials of shards are added."""

    def merge(self, shard: ShardReader) -> MergeCounts:
        """Add the trials of a shard in one transaction, as a session.

        A failure gives way to a result of the same trial, in either order.

        Parameters
        ----------
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
        (session,) = shard.sessions()
        with translate_errors(self.path):
            self._connection.execute("ATTACH ? AS shard", (shard.uri,))
            try:
                with self._transaction():
                    return self._copy(shard, session)
            finally:
                self._connection.execute("DETACH shard")

    def _copy(self, shard: ShardReader, session: Mapping[str, Any]) -> MergeCounts:
        execute = self._connection.execute
        execute("DROP TABLE IF EXISTS draw_ids")
        execute(MAKE_IDS)
        execute(COPY_DRAWS)
        execute(MATCH_DRAWS)
        self._refuse_differences(shard)
        ((num_new, num_results),) = execute(COUNT_TRIALS)
        if num_new:
            number = self._session_of(shard, session)
            execute(COPY_HOSTS, (number,))
            execute(COPY_TRIALS, {"session": number})
        ((last,),) = execute("SELECT coalesce(max(id), 0) FROM arms")
        execute(COPY_ARMS)
        execute(COPY_PREDICTIONS, (last,))
        finished, _ = shard.count()
        return MergeCounts(num_results, finished - num_results, num_new - num_results)

    def _session_of(self, shard: ShardReader, session: Mapping[str, Any]) -> int:
        """Return the session of a shard. It is not new if some trials of the shard have been merged before."""
        execute = self._connection.execute
        store_id = shard.store_id()
        known = "SELECT id FROM sessions WHERE json_extract(provenance, '$.shard_store') = ?"
        for (number,) in execute(known, (store_id,)).fetchall():
            return int(number)
        origin = {"shard": shard.shard(), "shard_store": store_id, "shard_file": shard.path.name}
        text = json.dumps({**session, **origin}, sort_keys=True)
        return int(execute("INSERT INTO sessions (provenance) VALUES (?)", (text,)).lastrowid or 0)

    def _refuse_differences(self, shard: ShardReader) -> None:
        """Refuse a shard with other test rows, predictions or scores of a trial than the store."""
        rows = "the test rows or labels of task {}, num_train {}, num_test {}, subsample {}"
        differences = [rows.format(*draw) for draw in self._connection.execute(DIFFERENT_DRAWS)]
        for row in self._connection.execute(DIFFERENT_ARMS).fetchall():
            values = row[6:]
            compared = zip(COMPARED, values[: len(COMPARED)], values[len(COMPARED) :], strict=True)
            names = [name.removesuffix("_checksum") for name, here, there in compared if here != there]
            differences.append(f"{', '.join(names)} of {describe_arm(Draw(*row[:4]), *row[4:6])}")
        if differences:
            raise StoreError(
                f"store {shard.path}: {differences[0]} differ from those in the store {self.path}. The same trial must "
                "have the same numbers on every machine: look for another version of a library, another kind of "
                "processor, or a method whose results depend on more than its inputs and its seed. Then remove one of "
                "the two"
            )
