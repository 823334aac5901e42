"""What a store says of its run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from peekbench.records.data import FloatArray
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench.store.schema import Database, explained

RESULTS = """
SELECT draws.task, trials.method, methods.control, methods.model, draws.num_train, draws.num_test, draws.subsample,
       arms.arm, arms.num_correct, arms.score, arms.log_loss, arms.brier, arms.macro_f1, arms.fit_seconds,
       arms.predict_seconds
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
IN_ORDER = """
ORDER BY tasks.position, methods.position, draws.num_train, draws.num_test, draws.subsample,
         CASE arms.arm WHEN 'base' THEN 0 WHEN 'extra' THEN 1 WHEN 'test' THEN 2 ELSE 3 END, arms.arm
"""
RESULT_COLUMNS = (
    "task", "method", "control", "model", "num_train", "num_test", "subsample", "arm",
    "num_correct", "score", "log_loss", "brier", "macro_f1", "fit_seconds", "predict_seconds",
)  # fmt: skip


class Reader(Database):
    """Asks an open file."""

    def spec(self) -> dict[str, Any]:
        """The spec as plain JSON values, every default filled in."""
        with explained(self.path):
            spec: dict[str, Any] = json.loads(self._get("spec") or "{}")
        return spec

    def folder(self) -> Path:
        """The folder that relative paths in the spec started from when it was last run."""
        with explained(self.path):
            return Path(self._get("folder") or ".")

    def tasks(self) -> dict[str, dict[str, Any]]:
        """What is known of each task's data, by name, in the spec's order."""
        with explained(self.path):
            rows = self._connection.execute("SELECT name, data FROM tasks ORDER BY position").fetchall()
        return {name: json.loads(data) for name, data in rows}

    def texts(self) -> dict[str, dict[str, Any]]:
        """What `peekbench.texts.describe_texts` said of the tasks that have been described."""
        with explained(self.path):
            query = "SELECT task, description FROM texts JOIN tasks ON tasks.name = texts.task ORDER BY position"
            return {task: json.loads(description) for task, description in self._connection.execute(query)}

    def sessions(self) -> list[dict[str, Any]]:
        """Provenance of each session that added to the store, oldest first."""
        with explained(self.path):
            rows = self._connection.execute("SELECT provenance FROM sessions ORDER BY id").fetchall()
        return [json.loads(row[0]) for row in rows]

    def session_sizes(self) -> list[int]:
        """How many of the trials each session made, in the order of `sessions`."""
        with explained(self.path):
            query = (
                "SELECT count(trials.draw) FROM sessions LEFT JOIN trials ON trials.session = sessions.id "
                "GROUP BY sessions.id ORDER BY sessions.id"
            )
            return [int(size) for (size,) in self._connection.execute(query)]

    def done(self) -> set[Trial]:
        """Finished trials."""
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT draws.task, draws.num_train, draws.num_test, draws.subsample, trials.method "
                "FROM trials JOIN draws ON draws.id = trials.draw WHERE trials.error IS NULL"
            )
            return {Trial(Draw(*draw), method) for *draw, method in rows}

    def bases(self) -> set[tuple[Draw, str]]:
        """(draw, base key) of every stored base arm."""
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT draws.task, draws.num_train, draws.num_test, draws.subsample, arms.owner "
                "FROM arms JOIN draws ON draws.id = arms.draw WHERE arms.arm = 'base'"
            )
            return {(Draw(*draw), owner) for *draw, owner in rows}

    def failures(self) -> list[TrialFailure]:
        """Trials that failed and have not been repeated with success."""
        with explained(self.path):
            rows = self._connection.execute(
                "SELECT draws.task, draws.num_train, draws.num_test, draws.subsample, method, error, traceback "
                "FROM trials JOIN draws ON draws.id = trials.draw JOIN tasks ON tasks.name = draws.task "
                "JOIN methods ON methods.name = trials.method WHERE error IS NOT NULL "
                "ORDER BY tasks.position, methods.position, num_train, num_test, subsample"
            ).fetchall()
        return [TrialFailure(Trial(Draw(*row[:4]), row[4]), row[5], row[6]) for row in rows]

    def result_columns(self) -> dict[str, list[Any]]:
        """The results table, column by column, in an order that does not depend on the order of work."""
        with explained(self.path):
            rows = self._connection.execute(RESULTS + ARMS + IN_ORDER).fetchall()
        columns = list(zip(*rows, strict=True)) or [()] * len(RESULT_COLUMNS)
        return {name: list(columns[position]) for position, name in enumerate(RESULT_COLUMNS)}

    def majorities(self) -> dict[tuple[str, int, int, int], float]:
        """Share of the commonest class among a draw's test labels, by (task, num_train, num_test, subsample)."""
        import numpy as np

        classified = [name for name, data in self.tasks().items() if data["class_names"]]
        with explained(self.path):
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
        with explained(self.path):
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
        with explained(self.path):
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
