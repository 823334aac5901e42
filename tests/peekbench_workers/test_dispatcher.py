"""The dispatcher of work items, with workers that are simulated."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from peekbench.records import TrialFailure, WorkItem
from peekbench.records.trials import Draw, Trial
from peekbench_workers.dispatcher import Dispatcher, News
from peekbench_workers.reports import Report


class OneSlot:
    """A pool with a single worker, for one of two groups of items. The worker does a batch at once."""

    num_workers = 1

    def __init__(self) -> None:
        self._reports: list[Report] = []

    def group(self, item: WorkItem) -> Hashable:
        return item.trials[0].method

    def find_free(self, group: Hashable) -> OneSlot | None:
        return self if group == "cpu" and not self._reports else None

    def send(self, items: Sequence[WorkItem]) -> None:
        outcomes = [TrialFailure(item.trials[0], "", "") for item in items]
        self._reports.append(Report(outcomes, num_done=len(items)))

    def wait(self, timeout: float) -> Sequence[News]:
        reports, self._reports = self._reports, []
        return [(self, report) for report in reports]

    def close(self) -> None:
        pass


def test_items_that_no_worker_can_do_yet_do_not_delay_others() -> None:
    items = [
        WorkItem((Trial(Draw("a", 1, 1, number), method),), has_base=False)
        for number in range(100)
        for method in ("gpu", "cpu")
    ]
    done: list[Any] = []
    for batch in Dispatcher(items, OneSlot(), 0).run():
        done += batch
        if len(done) == 100:  # the others wait for a worker
            break
    assert [outcome.trial.draw.subsample for outcome in done] == list(range(100))
    assert {outcome.trial.method for outcome in done} == {"cpu"}
