"""Times one trial of each method at each design point, to say beforehand what a spec will take."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peekbench.records import Draw, Trial, TrialFailure, WorkItem
from peekbench.worker import Worker

if TYPE_CHECKING:
    from peekbench.spec import ExperimentSpec


@dataclass(frozen=True, slots=True)
class Timing:
    seconds: dict[tuple[str, int, int], float]
    """Of a trial by (method, num_train, num_test), base arms shared as in the run."""
    total: float
    """Seconds that all trials of the spec take one after the other."""
    failures: tuple[TrialFailure, ...]


def time_pilot(spec: ExperimentSpec) -> Timing:
    """Run each method once at each design point on the first task; nothing is stored.

    A method's first fit is not counted, because it also imports libraries.
    """
    worker = Worker(spec)
    seconds: dict[tuple[str, int, int], float] = {}
    failures: list[TrialFailure] = []
    total = 0.0
    with_base: set[str] = set()
    for position, (num_train, num_test) in enumerate(spec.design.points()):
        draw = Draw(spec.tasks[0].name, num_train, num_test, 0)
        with_base.clear()
        for method in spec.methods:
            item = WorkItem((Trial(draw, method.name),), has_base=method.base_key() in with_base)
            with_base.add(method.base_key())
            if position == 0:
                failures += [outcome for outcome in worker(item) if isinstance(outcome, TrialFailure)]
            started = time.perf_counter()
            worker(item)
            taken = time.perf_counter() - started
            seconds[method.name, num_train, num_test] = taken
            total += taken * spec.design.repeats(num_test) * len(spec.tasks)
    return Timing(seconds, total, tuple(failures))
