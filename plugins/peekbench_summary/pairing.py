"""What two configurations differ by, draw by draw where they have the same draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from peekbench.results import Configuration
from peekbench_summary.estimates import Estimate, of_change, of_these_tasks


@dataclass(frozen=True, slots=True)
class Change:
    """What a mean over tasks is in two configurations."""

    before: float
    after: float
    difference: Estimate
    num_paired: int
    """Draws that both have and that were compared one by one; 0 where they were compared as independent sets."""


def compare(before: Configuration, after: Configuration, what: str, level: float) -> Change | None:
    """Compare an arm's score or an effect over the tasks that both have; None where there is none.

    Paired where every task has two or more draws in common, and then over these alone; else as independent sets.
    """
    tasks = [task for task in before.scores[what] if task in after.scores[what]]
    if not tasks:
        return None
    sides = [[_by_number(one, what, task) for task in tasks] for one in (before, after)]
    shared = [[number for number in old if number in new] for old, new in zip(*sides, strict=True)]
    is_paired = all(len(numbers) > 1 for numbers in shared)
    if is_paired:
        old, new = ([[of[n] for n in numbers] for of, numbers in zip(side, shared, strict=True)] for side in sides)
        changes = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(old, new, strict=True)]
        difference = of_these_tasks(changes, level)
    else:
        old, new = ([list(values.values()) for values in side] for side in sides)
        difference = of_change(old, new, level)
    return Change(_mean(old), _mean(new), difference, sum(map(len, shared)) if is_paired else 0)


def _by_number(one: Configuration, what: str, task: str) -> dict[int, float]:
    return dict(zip(one.subsamples[task], one.scores[what][task], strict=True))


def _mean(tasks: Sequence[Sequence[float]]) -> float:
    return math.fsum(math.fsum(task) / len(task) for task in tasks) / len(tasks)
