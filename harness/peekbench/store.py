"""One SQLite file a run: what was asked for, what came of it, and on which machine.

A trial goes in whole, or not at all; those that an executor hands over together share a transaction. The journal is a
write-ahead log without a sync at each commit: a killed process loses nothing that was committed, and a power cut at
most the last commits, never the file.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from peekbench.errors import StoreError
from peekbench.extension import changes
from peekbench.records import ArmResult, Draw, FloatArray, IntArray, Trial, TrialFailure, TrialResult

if TYPE_CHECKING:
    from typing import Self

    from peekbench.spec import ExperimentSpec

APPLICATION_ID = 0x7065656B  # "peek"
VERSION = 3

SCHEMA = """
CREATE TABLE run (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (id INTEGER PRIMARY KEY, provenance TEXT NOT NULL);
CREATE TABLE tasks (name TEXT PRIMARY KEY, position INTEGER NOT NULL, data TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE texts (task TEXT PRIMARY KEY REFERENCES tasks, description TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE methods (
    name TEXT PRIMARY KEY, position INTEGER NOT NULL, model TEXT NOT NULL, base_key TEXT NOT NULL
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

RESULTS = """
SELECT draws.task, trials.method, methods.model, draws.num_train, draws.num_test, draws.subsample, arms.arm,
       arms.num_correct, arms.score, arms.log_loss, arms.brier, arms.macro_f1, arms.fit_seconds, arms.predict_seconds
"""
METRICS = "SELECT trials.method, arms.arm, arms.metrics"
ARMS = """
FROM trials
JOIN draws ON draws.id = trials.draw
JOIN tasks ON tasks.name = draws.task
JOIN methods ON methods.name = trials.method
JOIN arms ON arms.draw = trials.draw
     AND arms.owner = CASE arms.arm WHEN 'base' THEN methods.base_key ELSE methods.name END
WHERE trials.error IS NULL
"""
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
IN_ORDER = """
ORDER BY tasks.position, methods.position, draws.num_train, draws.num_test, draws.subsample,
         CASE arms.arm WHEN 'base' THEN 0 WHEN 'extra' THEN 1 WHEN 'test' THEN 2 ELSE 3 END, arms.arm
"""
RESULT_COLUMNS = (
    "task", "method", "model", "num_train", "num_test", "subsample", "arm",
    "num_correct", "score", "log_loss", "brier", "macro_f1", "fit_seconds", "predict_seconds",
)  # fmt: skip


@contextmanager
def _explained(path: Path) -> Iterator[None]:
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


class Store:
    """An open store. `Store.open` to read one, `Store.for_run` to fill one."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None = None) -> None:
        self.path = path
        self._connection = connection
        self._lock = lock
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
        with _explained(path):
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
        with _explained(path):
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
            with _explained(path):
                connection = sqlite3.connect(path, isolation_level=None)
                store = cls(path, connection, lock)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute("PRAGMA wal_autocheckpoint = 8000")  # pages: 32 MB between waits for the disk
                with store._transaction():
                    if store._is_empty():
                        store._create()
                    store._check_identity()
                    store._adopt(spec, tasks)
        except BaseException:
            if connection is not None:
                connection.close()
            lock.release()
            raise
        return store

    def close(self) -> None:
        with _explained(self.path):
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

    def _adopt(self, spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the spec as the store's own, where it is the same as before or an extension of that."""
        from peekbench.spec import canonical

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
            self._hand_on_bases(
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
            row = (method.name, position, method.model, self._base_keys[method.name])
            execute("INSERT OR REPLACE INTO methods VALUES (?, ?, ?, ?)", row)

    def _hand_on_bases(self, keys: set[tuple[str, str]]) -> None:
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

    def _get(self, key: str) -> str | None:
        row = self._connection.execute("SELECT value FROM run WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    # Reading

    def spec(self) -> dict[str, Any]:
        """The spec as plain JSON values, every default filled in."""
        with _explained(self.path):
            spec: dict[str, Any] = json.loads(self._get("spec") or "{}")
        return spec

    def folder(self) -> Path:
        """The folder that relative paths in the spec started from when it was last run."""
        with _explained(self.path):
            return Path(self._get("folder") or ".")

    def tasks(self) -> dict[str, dict[str, Any]]:
        """What is known of each task's data, by name, in the spec's order."""
        with _explained(self.path):
            rows = self._connection.execute("SELECT name, data FROM tasks ORDER BY position").fetchall()
        return {name: json.loads(data) for name, data in rows}

    def texts(self) -> dict[str, dict[str, Any]]:
        """What `peekbench.texts.describe_texts` said of the tasks that have been described."""
        with _explained(self.path):
            query = "SELECT task, description FROM texts JOIN tasks ON tasks.name = texts.task ORDER BY position"
            return {task: json.loads(description) for task, description in self._connection.execute(query)}

    def save_texts(self, task: str, description: Mapping[str, Any]) -> None:
        """Keep what was said of a task's texts."""
        with _explained(self.path), self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO texts VALUES (?, ?)", (task, json.dumps(dict(description), sort_keys=True))
            )

    def sessions(self) -> list[dict[str, Any]]:
        """Provenance of each session that added to the store, oldest first."""
        with _explained(self.path):
            rows = self._connection.execute("SELECT provenance FROM sessions ORDER BY id").fetchall()
        return [json.loads(row[0]) for row in rows]

    def session_sizes(self) -> list[int]:
        """How many of the trials each session made, in the order of `sessions`."""
        with _explained(self.path):
            query = (
                "SELECT count(trials.draw) FROM sessions LEFT JOIN trials ON trials.session = sessions.id "
                "GROUP BY sessions.id ORDER BY sessions.id"
            )
            return [int(size) for (size,) in self._connection.execute(query)]

    def done(self) -> set[Trial]:
        """Finished trials."""
        with _explained(self.path):
            rows = self._connection.execute(
                "SELECT draws.task, draws.num_train, draws.num_test, draws.subsample, trials.method "
                "FROM trials JOIN draws ON draws.id = trials.draw WHERE trials.error IS NULL"
            )
            return {Trial(Draw(*draw), method) for *draw, method in rows}

    def bases(self) -> set[tuple[Draw, str]]:
        """(draw, base key) of every stored base arm."""
        with _explained(self.path):
            rows = self._connection.execute(
                "SELECT draws.task, draws.num_train, draws.num_test, draws.subsample, arms.owner "
                "FROM arms JOIN draws ON draws.id = arms.draw WHERE arms.arm = 'base'"
            )
            return {(Draw(*draw), owner) for *draw, owner in rows}

    def failures(self) -> list[TrialFailure]:
        """Trials that failed and have not been repeated with success."""
        with _explained(self.path):
            rows = self._connection.execute(
                "SELECT draws.task, draws.num_train, draws.num_test, draws.subsample, method, error, traceback "
                "FROM trials JOIN draws ON draws.id = trials.draw JOIN tasks ON tasks.name = draws.task "
                "JOIN methods ON methods.name = trials.method WHERE error IS NOT NULL "
                "ORDER BY tasks.position, methods.position, num_train, num_test, subsample"
            ).fetchall()
        return [TrialFailure(Trial(Draw(*row[:4]), row[4]), row[5], row[6]) for row in rows]

    def result_columns(self) -> dict[str, list[Any]]:
        """The results table, column by column, in an order that does not depend on the order of work."""
        with _explained(self.path):
            rows = self._connection.execute(RESULTS + ARMS + IN_ORDER).fetchall()
        columns = list(zip(*rows, strict=True)) or [()] * len(RESULT_COLUMNS)
        return {name: list(columns[position]) for position, name in enumerate(RESULT_COLUMNS)}

    def majorities(self) -> dict[tuple[str, int, int, int], float]:
        """Share of the commonest class among a draw's test labels, by (task, num_train, num_test, subsample)."""
        import numpy as np

        classified = [name for name, data in self.tasks().items() if data["class_names"]]
        with _explained(self.path):
            rows = self._connection.execute(
                "SELECT task, num_train, num_test, subsample, test_labels FROM draws WHERE test_labels IS NOT NULL"
            ).fetchall()
        return {
            row[:4]: float(np.bincount(np.frombuffer(row[4], dtype="<i4")).max() / row[2])
            for row in rows
            if row[0] in classified
        }

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Mean of each number that methods recorded: method to arm to metric."""
        sums: dict[tuple[str, str, str], tuple[float, int]] = {}
        with _explained(self.path):
            found = self._connection.execute(METRICS + ARMS + "AND arms.metrics <> '{}'" + IN_ORDER)
            for method, arm, metrics in found:
                for metric, value in json.loads(metrics).items():
                    total, count = sums.get((method, arm, metric), (0.0, 0))
                    sums[method, arm, metric] = (total + value, count + 1)
        means: dict[str, dict[str, dict[str, float]]] = {}
        for (method, arm, metric), (total, count) in sums.items():
            means.setdefault(method, {}).setdefault(arm, {})[metric] = total / count
        return means

    def predictions(self, trial: Trial) -> dict[str, FloatArray]:
        """Predictions of a finished trial by arm: float32 (n_test, n_classes), or float64 (n_test,) for regression."""
        import numpy as np

        draw = trial.draw
        key = (draw.task, draw.num_train, draw.num_test, draw.subsample, trial.method)
        with _explained(self.path):
            rows = self._connection.execute(
                "SELECT arms.arm, predictions.numbers FROM trials JOIN draws ON draws.id = trials.draw "
                "JOIN methods ON methods.name = trials.method JOIN arms ON arms.draw = trials.draw "
                "AND arms.owner = CASE arms.arm WHEN 'base' THEN methods.base_key ELSE methods.name END "
                "JOIN predictions ON predictions.arm = arms.id WHERE trials.error IS NULL AND draws.task = ? AND "
                "draws.num_train = ? AND draws.num_test = ? AND draws.subsample = ? AND trials.method = ?",
                key,
            ).fetchall()
        num_classes = len(self.tasks()[draw.task]["class_names"]) if rows else 0
        shape, kind = ((draw.num_test, num_classes), "<f4") if num_classes else ((draw.num_test,), "<f8")
        return {arm: np.frombuffer(blob, kind).reshape(shape) for arm, blob in rows}

    # Writing

    def add_session(self, provenance: Mapping[str, Any]) -> None:
        """Note who is about to add trials, on what machine."""
        with _explained(self.path), self._transaction():
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
        with _explained(self.path), self._transaction():
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


def is_store(path: Path) -> bool:
    """Whether the file begins as every SQLite file does."""
    try:
        with closing(path.open("rb")) as file:
            return file.read(16) == b"SQLite format 3\x00"
    except OSError:
        return False
