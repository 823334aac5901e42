"""Creates the store of a run and writes trials to it.

A trial is stored completely or not at all. Trials that an executor returns together share a transaction.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from peekbench.errors import StoreError
from peekbench.records.data import FloatArray, IntArray
from peekbench.records.trials import ArmResult, Draw, TrialFailure, TrialResult
from peekbench.spec.compatibility import incompatible_changes
from peekbench.spec.experiment import ExperimentSpec, canonical
from peekbench.store.reader import Reader
from peekbench.store.schema import ARM_COLUMNS, SCORE_COLUMNS, translate_errors

_COPIED = ", ".join(name for name in ARM_COLUMNS if name != "owner")
INSERT_ARM = f"INSERT INTO arms ({', '.join(ARM_COLUMNS)}) VALUES ({', '.join('?' * len(ARM_COLUMNS))})"  # noqa: S608
COPY_BASES = f"INSERT INTO arms (owner, {_COPIED}) SELECT ?, {_COPIED} FROM arms WHERE owner = ? AND arm = 'base'"  # noqa: S608
COPY_PREDICTIONS = """
INSERT INTO predictions
SELECT copies.id, predictions.numbers FROM arms AS copies
JOIN arms AS originals ON originals.draw = copies.draw AND originals.arm = copies.arm
JOIN predictions ON predictions.arm = originals.id
WHERE copies.arm = 'base' AND copies.owner = ? AND originals.owner = ?
"""


class Store(Reader):
    """An open store. Use `Store.open` to read a store and `Store.for_run` to fill one."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None = None) -> None:
        super().__init__(path, connection, lock)
        self._session: int | None = None
        self._base_keys: dict[str, str] = {}

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open an existing store for reading.

        Raises
        ------
        StoreError
            If the file does not exist, is damaged, belongs to another program, or has another version.
        """
        path = Path(path)
        if not path.is_file():
            raise StoreError(f"store {path}: no such file; `peekbench run SPEC` creates one")
        # To read a write-ahead log, SQLite creates a file beside the store. It cannot do so in a read-only folder, and
        # need not if the log is empty.
        log = path.with_name(path.name + "-wal")
        is_log_empty = not log.exists() or not log.stat().st_size
        mode = "immutable=1" if is_log_empty and not os.access(path.parent, os.W_OK) else "mode=ro"
        with translate_errors(path):
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
            store = cls(path, connection)
            try:
                if store._is_empty():
                    raise StoreError(f"store {path} is still empty; wait for its run to start, or run the spec again")
                store._check_identity()
            except BaseException:
                connection.close()
                raise
        return store

    @classmethod
    def for_run(cls, path: str | Path, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> Self:
        """Open a store to fill it. Create the file if it does not exist.

        Parameters
        ----------
        path
            The SQLite file.
        spec
            The spec to store. An existing store must have the same spec, or one that this spec extends.
        tasks
            Facts about each task's data by name. The `fingerprint` of a stored task must not have changed.

        Raises
        ------
        StoreError
            If the file cannot be written, is damaged, in use, or has another version, or belongs to another program or
            experiment.
        """
        path = Path(path)
        with translate_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{path}.lock", timeout=0)
            try:
                lock.acquire()
            except Timeout:
                raise StoreError(
                    f"store {path} is in use by another run; wait for that run, or give this one another name"
                ) from None
        connection: sqlite3.Connection | None = None
        try:
            with translate_errors(path):
                connection = sqlite3.connect(path, isolation_level=None)
                store = cls(path, connection, lock)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA wal_autocheckpoint = 8000")  # pages: 32 MB between waits for the disk
                with store._transaction():
                    if store._is_empty():
                        store._create()
                    store._check_identity()
                    store._apply_spec(spec, tasks)
        except BaseException:
            if connection is not None:
                connection.close()
            lock.release()
            raise
        return store

    def _apply_spec(self, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        """Store the spec if it equals or extends the stored one."""
        new = canonical(spec)
        old = self._get("spec")
        if old is not None:
            stored_keys = dict(self._connection.execute("SELECT name, base_key FROM methods"))
            self._refuse_changes(spec, incompatible_changes(json.loads(old), new), tasks, stored_keys)
            self._rekey_base_arms(
                {(stored_keys[method.name], method.base_key()) for method in spec.methods if method.name in stored_keys}
            )
        execute = self._connection.execute
        execute("INSERT OR REPLACE INTO run VALUES ('spec', ?)", (json.dumps(new, sort_keys=True),))
        execute("INSERT OR REPLACE INTO run VALUES ('folder', ?)", (str(spec.folder),))
        for position, task in enumerate(spec.tasks):
            data = json.dumps(dict(tasks[task.name]), sort_keys=True)
            execute("INSERT OR REPLACE INTO tasks VALUES (?, ?, ?)", (task.name, position, data))
        for position, method in enumerate(spec.methods):
            self._base_keys[method.name] = method.base_key()
            row = (method.name, position, method.model, self._base_keys[method.name], method.entry.control)
            execute("INSERT OR REPLACE INTO methods VALUES (?, ?, ?, ?, ?)", row)

    def _refuse_changes(
        self,
        spec: ExperimentSpec,
        changed: list[str],
        tasks: Mapping[str, Mapping[str, Any]],
        stored_keys: Mapping[str, str],
    ) -> None:
        """Refuse a spec, base arms or data that differ from those of the stored trials."""
        stored_tasks = self.tasks()
        for method in spec.methods:
            key = stored_keys.get(method.name)
            if key is not None and key != (new_key := method.base_key(stored_tasks)):
                changed.append(f"base arm of method {method.name}: {key} before, {new_key} now (by its plugin)")
        for name, stored in stored_tasks.items():
            if name in tasks and stored["fingerprint"] != tasks[name]["fingerprint"]:
                before, now = stored["fingerprint"][:12], tasks[name]["fingerprint"][:12]
                changed.append(f"data of task {name}: fingerprint {before} before, {now} now")
        if changed:
            raise StoreError(
                f"store {self.path} contains another experiment named {spec.name!r}. Changed:\n  "
                + "\n  ".join(changed)
                + "\nOnly tasks, methods and subsamples may be added under the same name. For other changes, give the "
                "spec another name or move the store away"
            )

    def _rekey_base_arms(self, keys: set[tuple[str, str]]) -> None:
        """Rename the keys of stored base arms. A key changes if a method gets its own options for a new task.

        Parameters
        ----------
        keys
            (old key, new key) of each stored method.
        """
        execute = self._connection.execute
        for old in {before for before, _ in keys}:
            new_keys = sorted(after for before, after in keys if before == old)
            kept = old if old in new_keys else new_keys[0]
            execute("UPDATE arms SET owner = ? WHERE owner = ? AND arm = 'base'", (kept, old))
            for new in new_keys:
                if new != kept:  # the methods no longer share their base arms in the new tasks
                    execute(COPY_BASES, (new, kept))
                    execute(COPY_PREDICTIONS, (new, kept))

    def save_texts(self, task: str, description: Mapping[str, Any]) -> None:
        """Store the description of a task's texts."""
        with translate_errors(self.path), self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO texts VALUES (?, ?)", (task, json.dumps(dict(description), sort_keys=True))
            )

    def add_session(self, provenance: Mapping[str, Any]) -> None:
        """Start a session: store the provenance of the trials that follow."""
        with translate_errors(self.path), self._transaction():
            self._session = self._connection.execute(
                "INSERT INTO sessions (provenance) VALUES (?)", (json.dumps(dict(provenance), sort_keys=True),)
            ).lastrowid

    def save(self, *outcomes: TrialResult | TrialFailure) -> None:
        """Store trials of the current session in one transaction.

        Raises
        ------
        StoreError
            If they cannot be written. The store is then unchanged.
        """
        with translate_errors(self.path), self._transaction():
            for outcome in outcomes:
                self._save_one(outcome)

    def _save_one(self, outcome: TrialResult | TrialFailure) -> None:
        trial = outcome.trial
        if isinstance(outcome, TrialFailure):
            draw = self._draw_id(trial.draw, None)
            self._save_trial(draw, trial.method, outcome.error, outcome.traceback)
            return
        draw = self._draw_id(trial.draw, outcome.test_labels)
        self._save_trial(draw, trial.method, None, None)
        for arm in outcome.arms:
            self._save_arm(draw, trial.method, arm)

    def _save_trial(self, draw: int, method: str, error: str | None, traceback: str | None) -> None:
        row = (draw, method, self._session, error, traceback)
        self._connection.execute("INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?)", row)

    def _draw_id(self, draw: Draw, test_labels: IntArray | FloatArray | None) -> int:
        """Return the id of a draw. Insert the draw, or add its labels if they were unknown."""
        key = (draw.task, draw.num_train, draw.num_test, draw.subsample)
        labels = None
        if test_labels is not None:
            labels = test_labels.astype("<f8" if test_labels.dtype.kind == "f" else "<i4").tobytes()
        added = self._connection.execute(
            "INSERT OR IGNORE INTO draws (task, num_train, num_test, subsample, test_labels) VALUES (?, ?, ?, ?, ?)",
            (*key, labels),
        )
        if added.rowcount:
            return int(added.lastrowid or 0)
        draw_id = self._connection.execute(
            "SELECT id FROM draws WHERE task = ? AND num_train = ? AND num_test = ? AND subsample = ?", key
        ).fetchone()[0]
        if labels is not None:
            self._connection.execute("UPDATE draws SET test_labels = ? WHERE id = ?", (labels, draw_id))
        return int(draw_id)

    def _save_arm(self, draw: int, method: str, arm: ArmResult) -> None:
        owner = self._base_keys[method] if arm.arm == "base" else method
        scores = [arm.scores[name] for name in SCORE_COLUMNS]
        metrics = json.dumps(dict(arm.metrics), sort_keys=True)
        row = (draw, owner, arm.arm, *scores, arm.fit_seconds, arm.predict_seconds, metrics)
        cursor = self._connection.execute(INSERT_ARM, row)
        blob = arm.predictions.astype("<f8" if arm.predictions.dtype.itemsize == 8 else "<f4").tobytes()
        self._connection.execute("INSERT INTO predictions VALUES (?, ?)", (cursor.lastrowid, blob))
