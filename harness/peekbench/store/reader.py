"""Reads the contents of a store."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path
from sys import intern
from typing import Any, Self

import numpy as np

from peekbench.errors import StoreError
from peekbench.records.answers import Predicted, find_grades, join_predicted, number_label_sets
from peekbench.records.data import Answers, FloatArray, IntArray, Reference
from peekbench.records.runs import PlannedLook, StoredMethod
from peekbench.records.trials import Draw, Repeat, Trial, TrialFailure
from peekbench.records.verdicts import RowName
from peekbench.spec.compatibility import Experiment
from peekbench.store.differences import run_identifier
from peekbench.store.files import read_only_uri, real_path, refuse_foreign_log, refuse_lost_log, remove_empty_log
from peekbench.store.schema import (
    SCORE_COLUMNS,
    damage_error,
    decode_answers,
    decode_labels,
    decode_predictions,
    find_damage,
    is_empty,
    placeholders,
    refuse_other_versions,
    translate_errors,
)

_ARM_RESULTS = ("num_scored", *SCORE_COLUMNS, "fit_seconds", "predict_seconds")
RESULT_COLUMNS = (
    "task", "method", "control", "model", "num_train", "num_test", "subsample", "arm", *_ARM_RESULTS,
)  # fmt: skip
SELECT_RESULTS = f"""
SELECT draws.task, trials.method, methods.control, methods.model, draws.num_train, draws.num_test, draws.subsample,
       arms.arm, {", ".join(f"arms.{name}" for name in _ARM_RESULTS)}
"""
JOIN_ARMS = """
JOIN methods ON methods.name = trials.method
JOIN bases ON bases.method = trials.method AND bases.task = draws.task
JOIN arms ON arms.draw = trials.draw
     AND arms.owner = CASE arms.arm WHEN 'base' THEN bases.key ELSE trials.method END
"""
FROM_FINISHED = f"""
FROM trials
JOIN draws ON draws.id = trials.draw
JOIN tasks ON tasks.name = draws.task
{JOIN_ARMS}
WHERE trials.error IS NULL
"""
IN_ORDER = """
ORDER BY tasks.position, methods.position, draws.num_train, draws.num_test, draws.subsample,
         CASE arms.arm WHEN 'base' THEN 0 WHEN 'extra' THEN 1 WHEN 'test' THEN 2 ELSE 3 END, arms.arm
"""
SELECT_ANSWERS = """
SELECT arms.arm, draws.subsample, draws.test_labels, draws.test_rows,
       (SELECT numbers FROM predictions WHERE predictions.arm = arms.id),
       (SELECT labels FROM predictions WHERE predictions.arm = arms.id),
       (SELECT answers FROM predictions WHERE predictions.arm = arms.id), draws.test_groups
"""
SELECT_DRAW = "SELECT draws.task, draws.num_train, draws.num_test, draws.subsample"
IS_DRAW = "draws.task = ? AND draws.num_train = ? AND draws.num_test = ? AND draws.subsample = ?"


class EmptyStoreError(StoreError):
    """A store whose run has just started, or was killed at its start."""


class Store:
    """An open store. `Store.open` opens one to read it; `StoreWriter` fills one.

    What is read does not change while the store is open, even if a run adds trials.

    Parameters
    ----------
    path
        The SQLite file.
    connection
        An open connection.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._closing = ExitStack()

    @classmethod
    def open(cls, path: str | Path, *, verified: bool = True) -> Store:
        """Open an existing store for reading, and let SQLite check it.

        Parameters
        ----------
        path
            The SQLite file.
        verified
            Whether SQLite checks the whole file.

        Raises
        ------
        StoreError
            If the file does not exist, is damaged, belongs to another program, or has another version.
        """
        path = Path(path)
        with translate_errors(path), ExitStack() as stack:
            file = real_path(path)
            if not file.exists():
                raise StoreError(f"store {path}: no such file; `peekbench run SPEC` creates one")
            refuse_lost_log(path, file)
            refuse_foreign_log(path, file)
            connection = sqlite3.connect(read_only_uri(file), uri=True, isolation_level=None)
            stack.callback(remove_empty_log, file)
            stack.callback(connection.close)
            connection.execute("BEGIN")
            store = Store(path, connection)
            if is_empty(connection):
                raise EmptyStoreError(f"store {path} is still empty; wait for its run to start, or run the spec again")
            refuse_other_versions(path, connection)
            if verified and (damage := find_damage(connection)):
                raise damage_error(path, damage)
            store._closing = stack.pop_all()
        return store

    def close(self) -> None:
        """Close the file."""
        with translate_errors(self.path):
            self._closing.close()

    def __enter__(self) -> Self:
        """Return the open store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def _get(self, key: str) -> str | None:
        for (value,) in self._query("SELECT value FROM run WHERE key = ?", key):
            return str(value)
        return None

    def _query(self, query: str, *values: object) -> list[Any]:
        """Return all rows that a query finds."""
        with translate_errors(self.path):
            return self._connection.execute(query, values).fetchall()

    def store_id(self) -> str:
        """Return the random id that the store was given when it was created, 32 hexadecimal digits."""
        return str(self._get("id"))

    def spec(self) -> dict[str, Any]:
        """Return the spec as plain JSON values with all defaults filled in."""
        spec: Any = None
        with suppress(ValueError):
            spec = json.loads(self._get("spec") or "{}")
        if not isinstance(spec, dict):
            raise damage_error(self.path, "its spec is not that of a run")
        return spec

    def experiment(self) -> Experiment:
        """Return the facts on which the numbers of the stored trials depend."""
        rows = self._query("SELECT method, task, key FROM bases")
        return Experiment(self.spec(), self.tasks(), {(method, task): key for method, task, key in rows})

    def finished_subsamples(self) -> dict[tuple[str, str, int], int]:
        """Return the subsamples up to the last one with a finished trial, by method, task and num_test."""
        rows = self._query(
            "SELECT method, task, num_test, max(subsample) + 1 FROM trials JOIN draws ON draws.id = trials.draw "
            "WHERE error IS NULL GROUP BY 1, 2, 3"
        )
        return {(method, task, num_test): subsamples for method, task, num_test, subsamples in rows}

    def identifier(self) -> str:
        """Return the identifier of the run; see `run_identifier`."""
        return run_identifier(self.spec(), self.tasks(), self.sessions())

    def folder(self) -> Path:
        """Return the folder from which relative paths in the spec started when it was last run."""
        return Path(self._get("folder") or ".")

    def pins(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return options with pinned versions, by group ('tasks', 'methods') and name of the component."""
        return {(group, name): options for group, name, options in json.loads(self._get("pins") or "[]")}

    def tasks(self) -> dict[str, dict[str, Any]]:
        """Return the facts about each task's data by name, in the spec's order."""
        rows = self._query("SELECT name, data FROM tasks ORDER BY position")
        return {name: json.loads(data) for name, data in rows}

    def methods(self) -> dict[str, StoredMethod]:
        """Return the facts of the methods' entries that reports need by name, in the spec's order."""
        rows = self._query("SELECT name, control, summary, metrics FROM methods ORDER BY position")
        return {name: StoredMethod(control, summary, json.loads(metrics)) for name, control, summary, metrics in rows}

    def row_name(self) -> RowName:
        """Return the name of the rows of the tasks in reports."""
        if all(data["row_name"] != "rows" for data in self.tasks().values()):
            return "texts"
        return "rows"

    def sessions(self) -> list[dict[str, Any]]:
        """Return the provenance of each session that added to the store, oldest first."""
        return [json.loads(session) for (session,) in self._query("SELECT provenance FROM sessions ORDER BY id")]

    def hosts(self) -> list[dict[str, Any]]:
        """Return the machines of all sessions: session, name, machine, packages that differ, and number of trials.

        Sessions are counted from 0, as in `sessions`. Trials whose machine was lost belong to none.
        """
        rows = self._query(
            "SELECT (SELECT count(*) FROM sessions WHERE id < hosts.session), hosts.name, hosts.host, "
            "count(trials.draw) FROM hosts LEFT JOIN trials ON trials.host = hosts.id "
            "GROUP BY hosts.id ORDER BY hosts.id"
        )
        return [
            {"session": session, "name": name, **json.loads(host), "trials": trials}
            for session, name, host, trials in rows
        ]

    def session_sizes(self) -> list[int]:
        """Return the number of trials that each session made, in the order of `sessions`."""
        rows = self._query(
            "SELECT count(trials.draw) FROM sessions LEFT JOIN trials ON trials.session = sessions.id "
            "GROUP BY sessions.id ORDER BY sessions.id"
        )
        return [int(size) for (size,) in rows]

    def seconds_of_subsample(self) -> float:
        """Return the mean seconds of all fits and predictions of one more subsample of each task and size."""
        ((seconds,),) = self._query(
            "SELECT total(seconds) FROM (SELECT sum(fit_seconds + predict_seconds) / count(DISTINCT draw) AS seconds "
            "FROM arms JOIN draws ON draws.id = draw GROUP BY task, num_train, num_test)"
        )
        return float(seconds)

    def sessions_of_trials(self) -> dict[Trial, int]:
        """Return the position, in `sessions`, of the session that made each finished trial."""
        sessions = self._query("SELECT id FROM sessions ORDER BY id")
        positions = {session: position for position, (session,) in enumerate(sessions)}
        draws = self._draws()
        rows = self._query("SELECT draw, method, session FROM trials WHERE error IS NULL")
        return {Trial(draws[draw], intern(method)): positions[session] for draw, method, session in rows}

    def looks(self) -> list[dict[str, Any]]:
        """Return the looks at the results, oldest first, as `add_look` stored them."""
        return [json.loads(look) for (look,) in self._query("SELECT look FROM looks ORDER BY id")]

    def planned_looks(self) -> list[PlannedLook]:
        """Return the planned looks, oldest first."""
        names = [field.name for field in fields(PlannedLook)]
        return [PlannedLook(**{name: look[name] for name in names}) for look in self.looks() if look["is_planned"]]

    def stopped_at(self) -> int | None:
        """Return the subsamples of the planned look at which the run stopped; None if it did not."""
        for look in self.planned_looks()[-1:]:
            if look.stops:
                return look.subsamples
        return None

    def done(self) -> set[Trial]:
        """Return the finished trials."""
        return set(self.sessions_of_trials())

    def _draws(self) -> dict[int, Draw]:
        """Return all draws by their numbers, so that the trials of a draw share one object."""
        rows = self._query("SELECT id, task, num_train, num_test, subsample FROM draws")
        return {number: Draw(intern(task), *sizes) for number, task, *sizes in rows}

    def bases(self) -> set[tuple[Draw, str]]:
        """Return (draw, base key) of every stored base arm."""
        draws = self._draws()
        rows = self._query("SELECT draw, owner FROM arms WHERE arm = 'base'")
        return {(draws[draw], intern(owner)) for draw, owner in rows}

    def failures(self) -> list[TrialFailure]:
        """Return the trials that failed and have not been repeated successfully."""
        rows = self._query(
            f"{SELECT_DRAW}, method, error, traceback "
            "FROM trials JOIN draws ON draws.id = trials.draw JOIN tasks ON tasks.name = draws.task "
            f"JOIN methods ON methods.name = trials.method WHERE error IS NOT NULL "
            "ORDER BY tasks.position, methods.position, num_train, num_test, subsample"
        )
        return [TrialFailure(Trial(Draw(*draw), method), error, text) for *draw, method, error, text in rows]

    def repeats(self) -> list[tuple[Trial, Repeat]]:
        """Return the fits that were made twice, with their trials."""
        rows = self._query(
            f"{SELECT_DRAW}, method, repeats FROM trials JOIN draws ON draws.id = trials.draw "
            "WHERE repeats IS NOT NULL ORDER BY draw, method"
        )
        return [
            (Trial(Draw(*draw), method), Repeat(**repeat))
            for *draw, method, repeats in rows
            for repeat in json.loads(repeats)
        ]

    def result_columns(self) -> dict[str, list[Any]]:
        """Return the results table column by column, in an order that does not depend on the order of work."""
        rows = self._query(SELECT_RESULTS + FROM_FINISHED + IN_ORDER)
        columns = list(zip(*rows, strict=True)) or [()] * len(RESULT_COLUMNS)
        return {name: list(columns[position]) for position, name in enumerate(RESULT_COLUMNS)}

    def majorities(self) -> dict[tuple[str, int, int, int], float]:
        """Return the share of the most frequent class, or set of labels, among the test labels of each draw."""
        tasks = self.tasks()
        rows = self._query(f"{SELECT_DRAW}, test_labels FROM draws WHERE test_labels IS NOT NULL")
        shares = {}
        for task, *sizes, blob in rows:
            if task in tasks and tasks[task]["class_names"]:
                labels = number_label_sets(decode_labels(blob, tasks[task]))
                shares[(task, *sizes)] = float(np.bincount(labels).max() / len(labels))
        return shares

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the mean of each number that methods recorded, by method, arm and name of the number."""
        sums: dict[tuple[str, str, str], tuple[float, int]] = {}
        for method, arm, metrics in self._query(
            f"SELECT trials.method, arms.arm, arms.metrics {FROM_FINISHED} AND arms.metrics <> '{{}}' {IN_ORDER}"
        ):
            for metric, value in json.loads(metrics).items():
                total, count = sums.get((method, arm, metric), (0.0, 0))
                sums[method, arm, metric] = (total + value, count + 1)
        means: dict[str, dict[str, dict[str, float]]] = {}
        for (method, arm, metric), (total, count) in sums.items():
            means.setdefault(method, {}).setdefault(arm, {})[metric] = total / count
        return means

    def answers(self, task: str, method: str, num_train: int, num_test: int, arms: Sequence[str]) -> Answers:
        """Read the answers of all finished trials of one method in one task with grades at one design point."""
        rows = self._query(
            f"{SELECT_ANSWERS} {FROM_FINISHED} AND draws.task = ? AND trials.method = ? "
            f"AND draws.num_train = ? AND draws.num_test = ? AND arms.arm IN ({placeholders(arms)}) "
            "ORDER BY draws.subsample",
            *(task, method, num_train, num_test, *arms),
        )
        by_arm = {arm: [row for row in rows if row[0] == arm] for arm in arms}
        draws = by_arm[arms[0]]
        facts = self.tasks()[task]
        labels = decode_labels(b"".join(row[2] for row in draws), facts).astype(np.int64)  # of all draws
        numbers = np.frombuffer(b"".join(row[3] for row in draws), "<i4").reshape(len(draws), -1)
        by_draw = labels.reshape(*numbers.shape, *labels.shape[1:])
        scores = {}
        for arm, of_arm in by_arm.items():
            found = join_predicted([decode_predictions(row[4], row[5], facts) for row in of_arm])
            num_fits = len(found) // max(1, len(labels))  # that predict each text
            truth = np.repeat(by_draw, num_fits, axis=0).reshape(len(found), *labels.shape[1:])
            grades = find_grades(facts["kind"], found, truth)
            scores[arm] = grades.reshape(len(draws), num_fits, -1).mean(axis=1)
        groups = known = None
        if facts["class_names"]:
            known = number_label_sets(labels).reshape(numbers.shape)
        if any(row[7] for row in draws):
            groups = np.frombuffer(b"".join(row[7] for row in draws), "<i4").reshape(numbers.shape).astype(np.int64)
        return Answers(
            subsamples=np.array([row[1] for row in draws], dtype=np.int64),
            rows=numbers.astype(np.int64),
            scores=scores,
            labels=known,
            groups=groups,
            are_equal=np.array([len(set(map(_parts_of, same))) == 1 for same in zip(*by_arm.values(), strict=True)]),
        )

    def test_rows(self, draw: Draw) -> tuple[IntArray | FloatArray, IntArray]:
        """Return the labels of the test rows of a draw with a finished trial, and their numbers, (n_rows,)."""
        ((labels, rows),) = self._query(f"SELECT test_labels, test_rows FROM draws WHERE {IS_DRAW}", *draw)  # noqa: S608
        return decode_labels(labels, self.tasks()[draw.task]), np.frombuffer(rows, "<i4").astype(np.int64)

    def test_groups(self, draw: Draw) -> IntArray | None:
        """Return the number of the group of each test row of a draw, (n_rows,); None if its task has no groups."""
        ((groups,),) = self._query(f"SELECT test_groups FROM draws WHERE {IS_DRAW}", *draw)  # noqa: S608
        if groups is None:
            return None
        return np.frombuffer(groups, "<i4").astype(np.int64)

    def predictions(self, trial: Trial) -> dict[str, Predicted]:
        """Return the predictions of a finished trial by arm."""
        task = self.tasks()[trial.draw.task]
        return {arm: decode_predictions(numbers, labels, task) for arm, numbers, labels, _ in self._blobs(trial)}

    def generated(self, trial: Trial) -> dict[str, list[Reference]]:
        """Return the answer to each prompt of a trial, or a tuple of several, by arm; empty without prompts."""
        return {arm: decode_answers(answers) for arm, _, _, answers in self._blobs(trial) if answers is not None}

    def _blobs(self, trial: Trial) -> list[tuple[str, bytes, bytes | None, bytes | None]]:
        """Return the arms of a finished trial with their predictions and answers as they are stored."""
        draw = trial.draw
        return self._query(
            "SELECT arms.arm, predictions.numbers, predictions.labels, predictions.answers "  # noqa: S608 - constants only
            f"FROM trials JOIN draws ON draws.id = trials.draw {JOIN_ARMS} "
            "JOIN predictions ON predictions.arm = arms.id "
            f"WHERE trials.error IS NULL AND trials.method = ? AND {IS_DRAW}",
            trial.method,
            *draw,
        )


def _parts_of(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a value that is equal for equal predictions of two arms; compressed answers may differ in form."""
    _, _, _, _, numbers, labels, answers, _ = row
    return numbers, labels, answers and zlib.decompress(answers)
