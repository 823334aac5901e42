"""Adds the outcomes of fragments to a store, and compares those that it has already.

A trial that several jobs have computed must have the same bits each time. Only times may differ, and the numbers that a
method records besides its predictions.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from peekbench.errors import StoreError
from peekbench.records.hosts import Host
from peekbench.records.trials import ArmResult, Trial, TrialFailure, TrialResult
from peekbench.store.arrays import labels_to_store, predictions_to_store, rows_to_store
from peekbench.store.checksums import hash_bytes
from peekbench.store.fragments import Fragment
from peekbench.store.schema import SCORE_COLUMNS, translate_errors
from peekbench.store.writer import Store

BATCH = 256
"""Lines of a fragment in one transaction."""

SELECT_DRAW = (
    "SELECT id, test_labels, test_rows FROM draws WHERE task = ? AND num_train = ? AND num_test = ? AND subsample = ?"
)
SELECT_TRIAL = "SELECT error IS NULL FROM trials WHERE draw = ? AND method = ?"
SELECT_RESULT = """
SELECT 1 FROM draws JOIN trials ON trials.draw = draws.id
WHERE task = ? AND num_train = ? AND num_test = ? AND subsample = ? AND method = ? AND error IS NULL
"""
SELECT_ARM = f"""
SELECT predictions_checksum, {", ".join(SCORE_COLUMNS)} FROM arms WHERE draw = ? AND owner = ? AND arm = ?
"""  # noqa: S608 - constants only
SELECT_ORIGIN = """
SELECT sessions.provenance FROM trials
JOIN methods ON methods.name = trials.method JOIN sessions ON sessions.id = trials.session
WHERE trials.draw = ? AND ? IN (methods.name, methods.base_key) AND trials.error IS NULL ORDER BY sessions.id LIMIT 1
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """What became of the outcomes of fragments."""

    added: int = 0
    """Finished trials that the store did not have."""
    repeated: int = 0
    """Finished trials that the store had, with the same bits."""
    failed: int = 0
    """Failures of trials of which the store had neither a result nor a failure."""

    def __add__(self, other: MergeCounts) -> MergeCounts:
        """Return the sums."""
        return MergeCounts(self.added + other.added, self.repeated + other.repeated, self.failed + other.failed)


class DifferentOutcomeError(StoreError):
    """A trial of a fragment that has other numbers than the same trial in the store."""


class MergingStore(Store):
    """An open store to which fragments are added."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: FileLock | None = None) -> None:
        super().__init__(path, connection, lock)
        self.added: Counter[str] = Counter()
        """Finished trials that were added, by name of their fragment; also those of a fragment refused later."""
        self._fragments: dict[str, int] | None = None  # sessions of the fragments in the store when it was opened

    def merge(self, fragment: Fragment) -> MergeCounts:
        """Add the outcomes of a fragment.

        Each fragment is a session. A failure gives way to a result of the same trial, in either order.

        Parameters
        ----------
        fragment
            A fragment with a complete header, whose experiment is that of the store.

        Returns
        -------
        MergeCounts
            Numbers of outcomes.

        Raises
        ------
        StoreError
            If the fragment is damaged, or a result differs from the stored one. The lines before remain stored.
        """
        header = fragment.read_header()
        assert header is not None
        has_session = self._resume_session(fragment)
        hosts: dict[str, Host] = {}
        counts = MergeCounts()
        for batch in _batches(fragment.events(), BATCH):
            hosts |= {event.name: event for event in batch if isinstance(event, Host)}
            outcomes = [event for event in batch if not isinstance(event, Host)]
            new = [kept for outcome in outcomes if (kept := self._find_new(fragment, outcome)) is not None]
            if new and not has_session:
                has_session = True
                origin = {"fragment": fragment.path.name, "shard": str(header.shard)}
                self.add_session({**header.session, **origin}, header.host)
            for name in dict.fromkeys(outcome.host for outcome in new):
                if name in hosts:
                    self.add_host(hosts[name])
            self.save(*new)
            num_failed = sum(isinstance(outcome, TrialFailure) for outcome in new)
            num_results = sum(isinstance(outcome, TrialResult) for outcome in outcomes)
            num_added = len(new) - num_failed
            if num_added:
                self.added[fragment.path.name] += num_added
            counts += MergeCounts(num_added, num_results - num_added, num_failed)
        return counts

    def has_result(self, trial: Trial) -> bool:
        """Return whether a trial is finished."""
        draw = trial.draw
        key = (draw.task, draw.num_train, draw.num_test, draw.subsample, trial.method)
        with translate_errors(self.path):
            return self._connection.execute(SELECT_RESULT, key).fetchone() is not None

    def count_failures(self) -> int:
        """Return the number of trials that failed and have not been repeated successfully."""
        with translate_errors(self.path):
            query = "SELECT count(*) FROM trials WHERE error IS NOT NULL"
            return int(self._connection.execute(query).fetchone()[0])

    def _resume_session(self, fragment: Fragment) -> bool:
        """Continue the session of a fragment of which earlier lines are stored. Return whether there is one."""
        with translate_errors(self.path):
            if self._fragments is None:
                query = "SELECT json_extract(provenance, '$.fragment'), id FROM sessions"
                self._fragments = dict(self._connection.execute(query))
            number = self._fragments.get(fragment.path.name)
            if number is None:
                return False
            query = "SELECT provenance FROM sessions WHERE id = ?"
            (provenance,) = self._connection.execute(query, (number,)).fetchone()
            hosts = self._connection.execute("SELECT name, id FROM hosts WHERE session = ?", (number,))
            self._session, self._packages, self._hosts = number, json.loads(provenance)["packages"], dict(hosts)
        return True

    def _find_new(self, fragment: Fragment, outcome: TrialResult | TrialFailure) -> TrialResult | TrialFailure | None:
        """Return the part of an outcome that the store does not have, or None. Refuse an outcome that differs."""
        trial, draw = outcome.trial, outcome.trial.draw
        with translate_errors(self.path):
            key = (draw.task, draw.num_train, draw.num_test, draw.subsample)
            stored_draw = self._connection.execute(SELECT_DRAW, key).fetchone()
            if stored_draw is None:
                return outcome
            draw_id, labels, rows = stored_draw
            stored = self._connection.execute(SELECT_TRIAL, (draw_id, trial.method)).fetchone()
            if isinstance(outcome, TrialFailure):
                return outcome if stored is None else None
            if labels is not None and labels != labels_to_store(outcome.test_labels).tobytes():
                raise self._difference(fragment, trial, draw_id, trial.method, "the test labels")
            if rows is not None and rows != rows_to_store(outcome.test_rows).tobytes():
                raise self._difference(fragment, trial, draw_id, trial.method, "the test rows")
            arms = tuple(arm for arm in outcome.arms if not self._has_arm(fragment, trial, draw_id, arm))
        return replace(outcome, arms=arms) if arms or stored is None or not stored[0] else None

    def _has_arm(self, fragment: Fragment, trial: Trial, draw_id: int, arm: ArmResult) -> bool:
        """Return whether the store has an arm. Refuse one that differs."""
        owner = self._base_keys[trial.method] if arm.arm == "base" else trial.method
        stored = self._connection.execute(SELECT_ARM, (draw_id, owner, arm.arm)).fetchone()
        if stored is None:
            return False
        checksum, *scores = stored
        if checksum != hash_bytes(predictions_to_store(arm.predictions).tobytes()):
            raise self._difference(fragment, trial, draw_id, owner, f"the predictions of the arm {arm.arm}")
        for name, before in zip(SCORE_COLUMNS, scores, strict=True):
            if before != arm.scores[name]:
                what = f"the {name} of the arm {arm.arm} ({before!r} there, {arm.scores[name]!r} here)"
                raise self._difference(fragment, trial, draw_id, owner, what)
        return True

    def _difference(
        self, fragment: Fragment, trial: Trial, draw_id: int, owner: str, what: str
    ) -> DifferentOutcomeError:
        row = self._connection.execute(SELECT_ORIGIN, (draw_id, owner)).fetchone()
        session = {} if row is None else json.loads(row[0])
        origin = f"the fragment {session['fragment']}" if "fragment" in session else f"the store {self.path}"
        return DifferentOutcomeError(
            f"fragment {fragment.path}: {what} of {trial} differ from those in {origin}. The same trial must have the "
            "same numbers on every machine: look for another version of a library, another kind of processor, or a "
            "method whose results depend on more than its inputs and its seed. Then remove one of the two"
        )


def _batches(events: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(events)
    while batch := list(islice(iterator, size)):
        yield batch
