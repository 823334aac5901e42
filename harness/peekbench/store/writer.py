"""Creates the store of a run and writes trials to it.

A trial is stored completely or not at all. Trials that an executor returns together share a transaction.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from peekbench.errors import StoreError
from peekbench.records.runs import Host, PlannedLook
from peekbench.records.trials import ArmResult, Trial, TrialFailure, TrialResult
from peekbench.spec.compatibility import Experiment, changed_experiment, describe_repeats, pins_to_plain, refuse_changes
from peekbench.spec.design import describe_look
from peekbench.spec.experiment import ExperimentSpec, canonical
from peekbench.store.files import hold_lock, identify_files, real_path, refuse_lost_log
from peekbench.store.reader import IS_DRAW, EmptyStoreError, Store
from peekbench.store.schema import (
    ARM_COLUMNS,
    DRAW_COLUMNS,
    KEEP_LABELS,
    SCORE_COLUMNS,
    TABLES,
    create_tables,
    encode_answers,
    encode_labels,
    encode_predictions,
    is_empty,
    placeholders,
    transaction,
    translate_errors,
)

CHECKPOINT_SECONDS = 1.0
"""Time after which saved trials are copied from the write-ahead log into the file, which waits for the disk."""

SAVE_DRAW = f"INSERT INTO draws ({', '.join(DRAW_COLUMNS)}) VALUES ({placeholders(DRAW_COLUMNS)}) {KEEP_LABELS}"  # noqa: S608
INSERT_ARM = f"INSERT INTO arms ({', '.join(ARM_COLUMNS)}) VALUES ({placeholders(ARM_COLUMNS)})"  # noqa: S608


class StoreWriter(Store):
    """A store that is open to fill it: with the trials of a run."""

    def __init__(self, path: Path, connection: sqlite3.Connection, file: Path) -> None:
        super().__init__(path, connection)
        self._session: int | None = None
        self._packages: dict[str, str] = {}
        self._hosts: dict[str, int | None] = {}
        self._base_keys: dict[tuple[str, str], str] = {}
        self._file = file
        self._identity: tuple[tuple[int, int] | None, ...] | None = None
        self._last_checkpoint = 0.0
        self._has_log = False

    @classmethod
    def for_run(
        cls, path: str | Path, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]], *, fresh: bool = False
    ) -> Self:
        """Open the store of a run to fill it. Create the file if it does not exist.

        Parameters
        ----------
        path
            The SQLite file.
        spec
            The spec to store. It may change nothing on which finished trials of an existing store depend.
        tasks
            Facts about each task's data by name. If it has finished trials, its `fingerprint` must not have changed.
        fresh
            Whether to delete the trials of an existing store.

        Raises
        ------
        StoreError
            If the file cannot be written, is damaged, in use, or has another version, or belongs to another program or
            experiment.
        """
        path = Path(path)
        with translate_errors(path), ExitStack() as stack:
            file = real_path(path)
            file.parent.mkdir(parents=True, exist_ok=True)
            hold_lock(path, file, stack)
            # Before the file is opened for writing, which would change it.
            refuse_lost_log(path, file)
            if file.exists():
                with suppress(EmptyStoreError), Store.open(path):  # refuses a store that cannot be extended
                    pass
            connection = sqlite3.connect(f"{file.as_uri()}?mode=rwc", uri=True, isolation_level=None)
            stack.callback(connection.close)
            store = cls(path, connection, file)
            store._begin(spec, tasks, fresh=fresh)
            store._checkpoint()
            store._identity = identify_files(file)
            stack.callback(store._end, "PRAGMA busy_timeout = 100", "PRAGMA wal_checkpoint(TRUNCATE)")
            store._closing = stack.pop_all()
        return store

    def _begin(self, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]], *, fresh: bool = False) -> None:
        """Choose the journal of an open file, create its tables if it is new, and store the spec.

        Trials are deleted only if the run is to start afresh, or if all of them have failed in another experiment.
        """
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")  # checkpoints wait for the disk, commits do not
        self._connection.execute("PRAGMA wal_autocheckpoint = 8000")  # pages
        with self._transaction():
            if is_empty(self._connection):
                create_tables(self._connection)
            is_kept = self._get("spec") is not None and not fresh
            if is_kept and not self.finished_subsamples():  # only failures, which say nothing about another experiment
                is_kept = not changed_experiment(self.experiment(), spec, tasks)
            if not is_kept:
                self._clear()
            self._apply_spec(spec, tasks)

    def _clear(self) -> None:
        """Delete all rows. The store keeps its id."""
        for table in ("predictions", *TABLES):
            if table != "run":
                self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 - constants only
        self._connection.execute("DELETE FROM run WHERE key = 'spec'")

    def _end(self, *pragmas: str) -> None:
        """Copy the write-ahead log into the file."""
        with suppress(sqlite3.Error):  # the log keeps what cannot be copied now, and the next run copies it
            if self._connection.in_transaction:  # a signal has interrupted it
                self._connection.execute("ROLLBACK")
            for pragma in pragmas:
                self._connection.execute(pragma)

    def _checkpoint(self) -> None:
        """Copy the write-ahead log into the file, so that a copy of the file alone has all trials."""
        self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._last_checkpoint = time.monotonic()
        self._has_log = False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with transaction(self._connection):
            yield
            if self._identity is not None and identify_files(self._file) != self._identity:
                raise StoreError(
                    f"store {self.path}: the file or its write-ahead log was moved, deleted or replaced during the run;"
                    " the trials saved so far are in the moved file, if it still exists. Run the spec again"
                )

    def _replace(self, table: str, **row: object) -> None:
        """Insert a row, or replace the one with the same key."""
        names, places = ", ".join(row), placeholders(tuple(row))
        self._connection.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})", tuple(row.values()))  # noqa: S608 - constants only

    def _apply_spec(self, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        """Store the spec if it changes nothing on which finished trials depend."""
        new = canonical(spec)
        if self._get("spec") is not None:
            stored = replace(self.experiment(), finished=self.finished_subsamples())
            refuse_changes(self.path, stored, spec, tasks)
            if describe_repeats(stored.finished_part().spec, new):
                self._note_lowering(stored)
            if changed_experiment(replace(stored, finished=None), spec, tasks):
                self._forget_failures()
        self._replace("run", key="spec", value=json.dumps(new))  # reports show options in the order of their model
        self._replace("run", key="folder", value=str(spec.folder))
        self._replace("run", key="pins", value=json.dumps(pins_to_plain(spec)))
        for position, task in enumerate(spec.tasks):
            data = json.dumps(dict(tasks[task.name]), sort_keys=True)
            self._replace("tasks", name=task.name, position=position, data=data)
        for position, method in enumerate(spec.methods):
            entry = method.entry
            self._replace(
                "methods",
                name=method.name,
                position=position,
                model=method.model,
                control=entry.control,
                summary=entry.summary,
                metrics=json.dumps(dict(entry.metrics), sort_keys=True),
            )
        self._base_keys = spec.base_keys()
        for (name, task_name), key in self._base_keys.items():
            self._replace("bases", method=name, task=task_name, key=key)

    def _note_lowering(self, stored: Experiment) -> None:
        """Store a look at the present trials: whoever lowers their number may know the results, such as from a log."""
        counts = self._query(
            "SELECT method, num_train, num_test, count(*) FROM trials JOIN draws ON draws.id = trials.draw "
            "WHERE error IS NULL GROUP BY 1, 2, 3"
        )
        look = describe_look(stored.spec, self.looks(), {tuple(key): count for *key, count in counts})
        _insert_look(self._connection, {"is_planned": False, "is_lowering": True, **look})

    def _forget_failures(self) -> None:
        """Delete failed trials, and all that no finished trial depends on."""
        for condition in (
            "trials WHERE error IS NOT NULL",
            "draws WHERE id NOT IN (SELECT draw FROM trials)",
            "hosts WHERE session NOT IN (SELECT session FROM trials)",
            "sessions WHERE id NOT IN (SELECT session FROM trials)",
            "bases",
            "tasks WHERE name NOT IN (SELECT task FROM draws)",
            "methods WHERE name NOT IN (SELECT method FROM trials)",
        ):
            self._connection.execute(f"DELETE FROM {condition}")  # noqa: S608 - constants only

    def add_look(self, look: PlannedLook) -> None:
        """Store a planned look."""
        with translate_errors(self.path), self._transaction():
            _insert_look(self._connection, {"is_planned": True, **asdict(look)})

    def add_session(self, provenance: Mapping[str, Any], host: str) -> None:
        """Start a session: store the provenance of the trials that follow.

        Parameters
        ----------
        provenance
            JSON values, with `machine` and `packages` of the main process.
        host
            Name of the main process's machine.
        """
        self._packages = dict(provenance.get("packages", {}))
        self._hosts = {}
        with translate_errors(self.path), self._transaction():
            self._session = self._connection.execute(
                "INSERT INTO sessions (provenance) VALUES (?)", (json.dumps(dict(provenance), sort_keys=True),)
            ).lastrowid
        self.add_host(Host(host, provenance.get("machine", {}), self._packages))

    def add_host(self, host: Host) -> None:
        """Store a machine that does work in the current session, unless the session has it already."""
        if host.name in self._hosts:
            return
        other = {name: version for name, version in host.packages.items() if self._packages.get(name) != version}
        description = json.dumps({"machine": dict(host.machine), "packages": other}, sort_keys=True)
        with translate_errors(self.path), self._transaction():
            inserted = self._connection.execute(
                "INSERT INTO hosts (session, name, host) VALUES (?, ?, ?)", (self._session, host.name, description)
            )
        self._hosts[host.name] = inserted.lastrowid

    def save(self, *outcomes: TrialResult | TrialFailure) -> None:
        """Store trials of the current session in one transaction.

        At most once a second, they are copied from the write-ahead log into the file. Without trials, earlier ones are.

        Raises
        ------
        StoreError
            If they cannot be written. The store is then unchanged. Also if the file was moved, deleted or replaced.
        """
        with translate_errors(self.path):
            if outcomes:
                with self._transaction():
                    for outcome in outcomes:
                        self._save_one(outcome)
                self._has_log = True
            if self._has_log and time.monotonic() - self._last_checkpoint >= CHECKPOINT_SECONDS:
                self._checkpoint()

    def _save_one(self, outcome: TrialResult | TrialFailure) -> None:
        trial = outcome.trial
        labels = rows = groups = error = traceback = repeats = None
        arms: Sequence[ArmResult] = ()
        if isinstance(outcome, TrialFailure):
            error, traceback = outcome.error, outcome.traceback
        else:
            arms = outcome.arms
            # The same bytes on every machine: classes as int32, targets and numbers of bytes as float64.
            labels = encode_labels(outcome.test_labels)
            rows = outcome.test_rows.astype("<i4").tobytes()
            if outcome.test_groups is not None:
                groups = outcome.test_groups.astype("<i4").tobytes()
            if outcome.repeats:
                repeats = json.dumps([asdict(repeat) for repeat in outcome.repeats], sort_keys=True)
        self._connection.execute(SAVE_DRAW, (*trial.draw, labels, rows, groups))
        ((draw,),) = self._connection.execute(f"SELECT id FROM draws WHERE {IS_DRAW}", trial.draw)  # noqa: S608
        self._replace(
            "trials",
            draw=draw,
            method=trial.method,
            session=self._session,
            host=self._hosts.get(outcome.host),
            error=error,
            traceback=traceback,
            repeats=repeats,
        )
        for arm in arms:
            self._save_arm(draw, trial, arm)

    def _save_arm(self, draw: int, trial: Trial, arm: ArmResult) -> None:
        owner = trial.method
        if arm.arm == "base":
            owner = self._base_keys[trial.method, trial.draw.task]
        scores = [arm.scores[name] for name in SCORE_COLUMNS]
        metrics = json.dumps(dict(arm.metrics), sort_keys=True)
        blobs = *encode_predictions(arm.predicted), encode_answers(arm.answers)
        times = arm.fit_seconds, arm.predict_seconds
        row = (draw, owner, arm.arm, len(arm.predicted), *scores, *times, metrics)
        cursor = self._connection.execute(INSERT_ARM, row)
        self._connection.execute("INSERT INTO predictions VALUES (?, ?, ?, ?)", (cursor.lastrowid, *blobs))


def append_look(path: Path, look: Mapping[str, Any]) -> bool:
    """Store a look that is not planned, at the results of a store that is not open here, also during its run.

    SQLite itself serializes this with the transactions of a run, so the lock of the run is not needed.

    Returns
    -------
    bool
        False if the store cannot be written. Then no run can extend it either.
    """
    with translate_errors(path):
        file = real_path(path)
        if not os.access(file, os.W_OK) or not os.access(file.parent, os.W_OK):
            return False
        with Store.open(path, verified=False):  # refuses a file that is not a store
            pass
        connection = sqlite3.connect(f"{file.as_uri()}?mode=rw", uri=True, isolation_level=None)
        with closing(connection), transaction(connection):
            _insert_look(connection, {"is_planned": False, **look})
    return True


def _insert_look(connection: sqlite3.Connection, look: Mapping[str, Any]) -> None:
    timed = {**look, "time": datetime.now(UTC).isoformat(timespec="seconds")}
    connection.execute("INSERT INTO looks (look) VALUES (?)", (json.dumps(timed, sort_keys=True),))
