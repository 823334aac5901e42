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

    def answers(self, task: str, method: str, num_train: int, num_test: int, arms: Sequence[str]) -> Answers:
        """Read the answers of one method in one task at one design point; see `peekbench.records.Predictions`."""
        with Store.open(self._path, verified=False) as store:
            return store.answers(task, method, num_train, num_test, arms)
