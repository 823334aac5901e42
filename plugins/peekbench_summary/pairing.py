"""The difference between two configurations, paired by subsample if both have the same subsamples."""

from __future__ import annotations

from dataclasses import dataclass

from peekbench.results import Configuration
from peekbench_summary.estimates import Estimate, estimate_change, estimate_these_tasks, mean_over_tasks


@dataclass(frozen=True, slots=True)
class Change:
    """The mean over tasks of a score or an effect in two configurations, and their difference."""

    before: float
    after: float
    difference: Estimate
    num_paired: int
    """Number of subsamples that were compared pairwise; 0 if the configurations were compared as independent sets."""


def compare(before: Configuration, after: Configuration, name: str, level: float) -> Change | None:
    """Compare an arm's score or an effect over the tasks that both configurations have.

    If both have at least two subsamples of every such task in common, compare these pairwise and ignore others.
    Otherwise compare the configurations as independent sets of subsamples.

    Parameters
    ----------
    before, after
        The configurations.
    name
        Name of an arm or an effect.
    level
        Nominal coverage of the interval of the difference.

    Returns
    -------
    Change or None
        None if they have no task in common.
    """
    tasks = [task for task in before.scores[name] if task in after.scores[name]]
    if not tasks:
        return None
    sides = [[_by_subsample(side, name, task) for task in tasks] for side in (before, after)]
    shared = [[number for number in old if number in new] for old, new in zip(*sides, strict=True)]
    is_paired = all(len(numbers) > 1 for numbers in shared)
    if is_paired:
        old, new = (
            [[values[number] for number in numbers] for values, numbers in zip(side, shared, strict=True)]
            for side in sides
        )
        changes = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(old, new, strict=True)]
        difference = estimate_these_tasks(changes, level)
    else:
        old, new = ([list(values.values()) for values in side] for side in sides)
        difference = estimate_change(old, new, level)
    num_paired = sum(map(len, shared)) if is_paired else 0
    return Change(mean_over_tasks(old), mean_over_tasks(new), difference, num_paired)


def _by_subsample(configuration: Configuration, name: str, task: str) -> dict[int, float]:
    return dict(zip(configuration.subsamples[task], configuration.scores[name][task], strict=True))
