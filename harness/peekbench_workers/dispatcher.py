"""Decides which work items are sent to which worker.

Fast items are sent and returned in batches, because a message between processes and a transaction of the store cost
about as much as a small fit. A worker returns what it has done after `BATCH_WINDOW`; the items that it has not started
are sent again, perhaps to another worker.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from operator import length_hint
from typing import Protocol, TypeAlias

from peekbench.plugins import Event
from peekbench.records import Capacity, Host, WorkItem
from peekbench_workers.crashes import Crashes
from peekbench_workers.reports import Report

POLL_INTERVAL = 1.0
"""Seconds after which an executor reports that its work continues."""
MAX_WAITING = 10_000  # items of other groups that are taken from the queue while one group has a free worker
LOOKAHEAD = 64  # items that are taken to find out which groups there are; the methods of a draw are adjacent


class Slot(Protocol):
    """A place for one worker."""

    def send(self, items: Sequence[WorkItem]) -> None:
        """Start a batch of items."""


News: TypeAlias = "tuple[Slot, Report] | Host | Capacity"
"""What a pool tells the dispatcher."""


class Pool(Protocol):
    """The workers of an executor."""

    @property
    def num_workers(self) -> int:
        """Number of workers at present, or that the pool will start."""
        ...

    def group(self, item: WorkItem) -> Hashable:
        """Return the kind of worker that an item needs."""
        ...

    def find_free(self, group: Hashable) -> Slot | None:
        """Return a slot of this kind that can take a batch now, or None if there is none at present."""
        ...

    def wait(self, timeout: float) -> Sequence[News]:
        """Wait for reports of slots and for changes of the pool; nothing after `timeout` seconds.

        Raises
        ------
        PeekbenchError
            If there will be no worker for the items.
        """
        ...

    def close(self) -> None:
        """Stop all workers at once."""
        ...


class Dispatcher:
    """Distributes items over the workers of a pool, and tries those again whose worker crashed; see `Crashes`.

    Parameters
    ----------
    items
        Items to do.
    pool
        Workers. The dispatcher closes it at the end.
    retries
        Number of times that a trial is tried again.
    """

    def __init__(self, items: Iterable[WorkItem], pool: Pool, retries: int) -> None:
        self._items = iter(items)
        self._pool = pool
        self._crashes = Crashes(retries)
        self._waiting: defaultdict[Hashable, deque[WorkItem]] = defaultdict(deque)
        self._suspects: defaultdict[Hashable, list[WorkItem]] = defaultdict(list)
        self._batch_sizes: dict[Slot, int] = {}
        self._sent: Counter[Slot] = Counter()

    def run(self) -> Generator[Sequence[Event], None, None]:
        """Yield outcomes until every item is done or has failed.

        Raises
        ------
        Exception
            The error with which work ended, after the outcomes before it.
        """
        last = time.monotonic()
        try:
            while self._send_items() or self._sent.total():
                news = self._pool.wait(POLL_INTERVAL)
                for item in news:
                    if isinstance(item, Host | Capacity):
                        yield [item]
                    else:
                        yield from self._receive(*item)
                if news:
                    last = time.monotonic()
                elif time.monotonic() - last >= POLL_INTERVAL:
                    last = time.monotonic()
                    yield []
        finally:
            self._pool.close()

    def _send_items(self) -> bool:
        """Send items to all free slots. Return whether items are left that no slot can take at present."""
        while True:
            if not self._has_items():
                item = next(self._items, None)
                if item is None:
                    return False
                self._waiting[self._pool.group(item)].append(item)
            # Also groups without an item: the queue may have some behind those of a group without a free slot.
            was_sent = [self._send_to_group(group) for group in list({**self._waiting, **self._suspects})]
            if not any(was_sent) and not self._find_group():
                return self._has_items()

    def _find_group(self) -> bool:
        """Look for an item of another group in the queue, because it may need no worker of those that are busy."""
        num_groups = len(self._waiting)
        while len(self._waiting) == num_groups and sum(map(len, self._waiting.values())) < LOOKAHEAD:
            item = next(self._items, None)
            if item is None:
                return False
            self._waiting[self._pool.group(item)].append(item)
        return len(self._waiting) > num_groups

    def _has_items(self) -> bool:
        return any(self._waiting.values()) or any(self._suspects.values())

    def _send_to_group(self, group: Hashable) -> bool:
        """Send items of a group to its free slots. Return whether a slot got some."""
        was_sent = False
        while (slot := self._pool.find_free(group)) and (batch := self._take(group, slot)):
            slot.send(batch)
            self._sent[slot] += 1
            was_sent = True
        return was_sent

    def _take(self, group: Hashable, slot: Slot) -> list[WorkItem]:
        """Return the next items of a group for a slot."""
        if self._suspects[group]:
            return [self._suspects[group].pop()]
        waiting = self._waiting[group]
        # Small batches near the end, because a slow item would delay those queued behind it.
        num_left = sum(map(len, self._waiting.values())) + length_hint(self._items)
        fair_share = max(1, num_left // (2 * self._pool.num_workers))
        size = min(self._batch_sizes.get(slot, 1), fair_share)
        num_others = sum(map(len, self._waiting.values())) - len(waiting)
        while len(waiting) < size and num_others < MAX_WAITING:
            item = next(self._items, None)
            if item is None:
                break
            other = self._pool.group(item)
            self._waiting[other].append(item)
            num_others += other != group
        return [waiting.popleft() for _ in range(min(size, len(waiting)))]

    def _receive(self, slot: Slot, report: Report) -> Iterator[Sequence[Event]]:
        if report.is_end:
            self._sent[slot] -= 1
        if report.outcomes:
            yield report.outcomes
        self._return(report.rest)
        if report.crash is not None:
            failure, items = self._crashes.judge(report.crash)
            if failure is not None:
                yield [failure]
                self._return(items)
            else:
                for item in items:
                    self._suspects[self._pool.group(item)].append(item)
        elif report.is_end and report.num_done:
            self._batch_sizes[slot] = max(1, report.num_done if report.rest else 2 * report.num_done)
        if report.error is not None:
            raise report.error

    def _return(self, items: Iterable[WorkItem]) -> None:
        """Put items back to the front."""
        for item in reversed(list(items)):
            self._waiting[self._pool.group(item)].appendleft(item)
