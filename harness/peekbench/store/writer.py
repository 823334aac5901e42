"""One SQLite file a run: what was asked for, what came of it, and on which machine.

A trial goes in whole, or not at all; those that an executor hands over together share a transaction.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from peekbench.errors import StoreError
from peekbench.records.data import FloatArray, IntArray
from peekbench.records.trials import ArmResult, Draw, TrialFailure, TrialResult
from peekbench.spec.compatibility import changes
from peekbench.store.reader import Reader
from peekbench.store.schema import explained, is_store

if TYPE_CHECKING:
    from typing import Self

    from peekbench.spec.experiment import ExperimentSpec

__all__ = ["Store", "is_store"]

COPY_BASES = """
INSERT INTO arms (
    draw, owner, arm, num_correct, score, log_loss, brier, macro_f1, fit_seconds, predict_seconds, metrics
)
SELECT draw, ?, arm, num_correct, score, log_loss, brier, macro_f1, fit_seconds, predict_seconds, metrics
FROM arms WHERE owner = ? AND arm = 'base'
"""
COPY_PREDICTIONS = """
INSERT INTO predictions
SELECT copies.id, predictions.numbers FROM arms AS copies
JOIN arms AS originals ON originals.draw = copies.draw AND originals.arm = copies.arm
JOIN predictions ON predictions.arm = originals.id
WHERE copies.arm = 'base' AND copies.owner = ? AND originals.owner = ?
"""


class Store(Reader):
    """An open store. `Store.open` to read one, `Store.for_run` to fill one."""

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
            Where there is none, or it is damaged, foreign, or of another version.
        """
        path = Path(path)
        if not path.is_file():
            raise StoreError(f"store {path}: no such file; `peekbench run SPEC` makes one")
        # To read a write-ahead log SQLite makes a file beside the store. Where it cannot, it can do without, if the log
        # holds nothing.
        log = path.with_name(path.name + "-wal")
        can_do_without = not os.access(path.parent, os.W_OK) and not (log.exists() and log.stat().st_size)
        mode = "immutable=1" if can_do_without else "mode=ro"
        with explained(path):
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
            store = cls(path, connection)
            try:
                if store._is_empty():
                    raise StoreError(
                        f"store {path} holds nothing yet; wait for its run to begin, or run the spec again"
                    )
                store._check_identity()
            except BaseException:
                connection.close()
                raise
        return store

    @classmethod
    def for_run(cls, path: str | Path, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> Self:
        """Open a store to fill it, making it where there is none.

        Parameters
        ----------
        tasks
            By name, what is known of each task's data; `fingerprint` must be what it was.

        Raises
        ------
        StoreError
            Where it cannot be written, is damaged, foreign, of another version or in use, or belongs to another spec.
        """
        path = Path(path)
        with explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{path}.lock", timeout=0)
            try:
                lock.acquire()
            except Timeout:
                raise StoreError(
                    f"store {path} is in use by another run; wait for it, or give this one another name"
                ) from None
        connection: sqlite3.Connection | None = None
        try:
            with explained(path):
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
        """Take the spec as the store's own, where it is the same as before or an extension of that."""
        from peekbench.spec.experiment import canonical

        new = canonical(spec)
        old = self._get("spec")
        if old is not None:
            keys = dict(self._connection.execute("SELECT name, base_key FROM methods"))
            same = {method.name: method.base_key(self.tasks()) for method in spec.methods if method.name in keys}
            changed = changes(json.loads(old), new) + [
                f"base arm of method {name}: {keys[name]} before, {key} now (by its plugin)"
                for name, key in same.items()
                if keys[name] != key
            ]
            changed += [
                f"data of task {name}: fingerprint {known['fingerprint'][:12]} before, "
                f"{tasks[name]['fingerprint'][:12]} now"
                for name, known in self.tasks().items()
                if name in tasks and known["fingerprint"] != tasks[name]["fingerprint"]
            ]
            if changed:
                raise StoreError(
                    f"store {self.path} holds another experiment named {spec.name!r}. Changed:\n  "
                    + "\n  ".join(changed)
                    + "\nTasks, methods and subsamples may be added under the same name. For anything else give the "
                    "spec another name, or move the store away"
                )
            self._rekey_base_arms(
                {(keys[method.name], method.base_key()) for method in spec.methods if method.name in keys}
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

    def _rekey_base_arms(self, keys: set[tuple[str, str]]) -> None:
        """Give base arms to the keys that follow theirs: exceptions for new tasks are part of a key."""
        execute = self._connection.execute
        for old in {before for before, _ in keys}:
            heirs = sorted(after for before, after in keys if before == old)
            keeper = old if old in heirs else heirs[0]
            execute("UPDATE arms SET owner = ? WHERE owner = ? AND arm = 'base'", (keeper, old))
            for heir in heirs:
                if heir != keeper:  # methods that shared their base arms no longer do, in the new tasks
                    execute(COPY_BASES, (heir, keeper))
                    execute(COPY_PREDICTIONS, (heir, keeper))

    def save_texts(self, task: str, description: Mapping[str, Any]) -> None:
        """Keep what was said of a task's texts."""
        with explained(self.path), self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO texts VALUES (?, ?)", (task, json.dumps(dict(description), sort_keys=True))
            )

    def add_session(self, provenance: Mapping[str, Any]) -> None:
        """Note who is about to add trials, on what machine."""
        with explained(self.path), self._transaction():
            self._session = self._connection.execute(
                "INSERT INTO sessions (provenance) VALUES (?)", (json.dumps(dict(provenance), sort_keys=True),)
            ).lastrowid

    def save(self, *outcomes: TrialResult | TrialFailure) -> None:
        """Store trials, whole, as made by the session that was added last.

        Raises
        ------
        StoreError
            Where they cannot be written; the store is then as it was.
        """
        with explained(self.path), self._transaction():
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
        """The number of a draw that is now there, with its labels where they are known."""
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
        number = self._connection.execute(
            "SELECT id FROM draws WHERE task = ? AND num_train = ? AND num_test = ? AND subsample = ?", key
        ).fetchone()[0]
        if labels is not None:
            self._connection.execute("UPDATE draws SET test_labels = ? WHERE id = ?", (labels, number))
        return int(number)

    def _save_arm(self, draw: int, method: str, arm: ArmResult) -> None:
        owner = self._base_keys[method] if arm.arm == "base" else method
        cursor = self._connection.execute(
            "INSERT INTO arms (draw, owner, arm, num_correct, score, log_loss, brier, macro_f1, fit_seconds, "
            "predict_seconds, metrics) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                draw, owner, arm.arm, arm.num_correct, arm.score, arm.log_loss, arm.brier, arm.macro_f1,
                arm.fit_seconds, arm.predict_seconds, json.dumps(dict(arm.metrics), sort_keys=True),
            ),
        )  # fmt: skip
        blob = arm.predictions.astype("<f8" if arm.predictions.dtype.itemsize == 8 else "<f4").tobytes()
        self._connection.execute("INSERT INTO predictions VALUES (?, ?)", (cursor.lastrowid, blob))
