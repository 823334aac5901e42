"""Predictions that a store keeps, for the analyses that read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from peekbench.records.predictions import Answers
from peekbench.store.writer import Store


class StoredPredictions:
    """Predictions of a run, read from its store on demand.

    Parameters
    ----------
    path
        The store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers | None:
        """Read the answers of one method in one task at one design point; see `peekbench.records.Predictions`."""
        assert num_train is not None
        assert num_test is not None
        with Store.open(self._path, verified=False) as store:
            if not store.tasks()[task]["class_names"]:
                return None
            return store.answers(task, method, num_train, num_test, arms)
