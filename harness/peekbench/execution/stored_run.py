"""Reads what a store knows about a run before the run is resumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peekbench.errors import StoreError
from peekbench.records.trials import Trial
from peekbench.store.files import FileState
from peekbench.store.writer import Store


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The stored part of a run, which is compared with a spec before the store is opened to extend it.

    A refused spec therefore does not extend the stored one.
    """

    path: Path
    sessions: tuple[Mapping[str, Any], ...] = ()
    """Provenance of the sessions, oldest first."""
    session_of: Mapping[Trial, int] = field(default_factory=dict)
    """Finished trials, with the positions of their sessions."""
    tasks: frozenset[str] = frozenset()
    """Names of the tasks."""
    stopped_at: int | None = None
    """Subsamples of the planned look at which the run stopped; None if it did not."""
    verified: FileState | None = None
    """State of the files of the store when its checksums were verified; None without a store that can be used."""

    def sessions_with_trials(self) -> list[Mapping[str, Any]]:
        """Return the sessions that finished trials, oldest first."""
        positions = set(self.session_of.values())
        return [session for position, session in enumerate(self.sessions) if position in positions]

    @classmethod
    def read(cls, path: Path) -> StoredRun:
        """Read a store. A run is empty without a store, or if it cannot be used, which opening it for the run reports.

        Parameters
        ----------
        path
            Store of the run, which need not exist.
        """
        try:
            with Store.open(path) as store:
                return cls(
                    path,
                    tuple(store.sessions()),
                    store.sessions_of_trials(),
                    frozenset(store.tasks()),
                    store.stopped_at(),
                    store.verified,
                )
        except StoreError:
            return cls(path)
