"""Differences between configurations."""

from __future__ import annotations

import math
from dataclasses import dataclass

from peekbench.results import Configuration
from peekbench_stats import cross_p_value, independent_units, stratified_sign_flip_test
from peekbench_summary.estimates import MeanEstimate, estimate_change, estimate_these_tasks, mean_over_tasks
from peekbench_summary.text_noise import PairedSubsamples, cross_change


@dataclass(frozen=True, slots=True)
class Change:
    """The mean over tasks of a score or an effect in two configurations, and their difference."""

    before: float
    after: float
    difference: MeanEstimate
    num_paired: int
    """Number of subsamples that were compared pairwise; 0 if the configurations were compared as independent sets."""
    p_value: float
    """p-value of no difference: of Student's t test and of a permutation test, the larger one. For independent sets,
    the permutation test is replaced by its smallest possible p-value, because only few subsamples make it matter.
    Above 1 - level, it may be that of Student's t test alone."""
    is_constant: bool = False
    """Whether all trials of a pair are equal or, without pairs, all trials of a task in both configurations."""


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
        Nominal coverage of the interval of the difference. The interval contains zero unless the p-value is at most
        1 - `level`.

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
    step = before.step if before.step == after.step else None
    shares_draws = before.shares_draws or after.shares_draws
    if is_paired:
        old, new = (
            [[values[number] for number in numbers] for values, numbers in zip(side, shared, strict=True)]
            for side in sides
        )
        by_task = [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(old, new, strict=True)]
        is_constant = not any(map(any, by_task))
        changes = independent_units(by_task, shared, shares_draws=shares_draws)
        difference = estimate_these_tasks(changes, level, step)
        pairs = [PairedSubsamples(task, numbers, numbers) for task, numbers in zip(tasks, shared, strict=True)]
        # Sign flips cannot make a difference significant, so they are not needed if it is not.
        is_candidate = difference.p_zero <= 1 - level
        by_permutation = stratified_sign_flip_test(changes).two_sided if is_candidate else 0.0
    else:
        old, new = ([list(values.values()) for values in side] for side in sides)
        first, second = (
            independent_units(values, [list(of_task) for of_task in side], shares_draws=shares_draws)
            for values, side in zip((old, new), sides, strict=True)
        )
        is_constant = all(len({*a, *b}) == 1 for a, b in zip(old, new, strict=True))
        difference = estimate_change(first, second, level, step)
        log_patterns = sum(math.log(math.comb(len(a) + len(b), len(a))) for a, b in zip(first, second, strict=True))
        by_permutation = 2.0 * math.exp(-log_patterns)
        pairs = [
            PairedSubsamples(task, list(a)[: len(b)], list(b)[: len(a)])
            for task, a, b in zip(tasks, *sides, strict=True)
        ]
        by_position = [[b - a for a, b in zip(*pair, strict=False)] for pair in zip(old, new, strict=True)]
        numbers = [range(len(values)) for values in by_position]
        changes = independent_units(by_position, numbers, shares_draws=shares_draws)
    p_value = max(difference.p_zero, min(1.0, by_permutation))
    if p_value <= 1 - level:
        crossed = cross_change(before, after, name, pairs)
        if crossed is not None:
            p_value = max(p_value, cross_p_value(crossed, changes[0] if shares_draws else ()))
    if p_value > 1 - level:
        difference = difference.with_zero()
    num_paired = sum(map(len, shared)) if is_paired else 0
    return Change(mean_over_tasks(old), mean_over_tasks(new), difference, num_paired, p_value, is_constant)


def _by_subsample(configuration: Configuration, name: str, task: str) -> dict[int, float]:
    return dict(zip(configuration.subsamples[task], configuration.scores[name][task], strict=True))
