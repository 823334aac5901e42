"""Planned designs: the bias that each detects, and the cheapest design that detects a given bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from peekbench_power.detection import Criterion, equivalence_power, minimum_detectable
from peekbench_power.noise import Noise

MAX_SUBSAMPLES = 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The smallest design of one test size that detects a given bias."""

    num_test: int | None
    subsamples: int
    trials: int
    seconds: float | None


def detectable_bias(
    noise: Noise, num_tasks: int, subsamples: int, num_test: int | None, criterion: Criterion
) -> float | None:
    """Return the minimum detectable bias of a design, as a mean over these tasks."""
    return minimum_detectable(*noise.error_for_these_tasks(num_tasks, subsamples, num_test), criterion)


def plan_subsamples(
    noise: Noise, num_tasks: int, num_test: int | None, bias: float, criterion: Criterion
) -> Plan | None:
    """Return the design with the fewest subsamples per task that detects a bias.

    Returns
    -------
    Plan or None
        None if not even `MAX_SUBSAMPLES` subsamples per task are enough.
    """

    def detects(subsamples: int) -> bool:
        detected = detectable_bias(noise, num_tasks, subsamples, num_test, criterion)
        return detected is not None and detected <= bias

    return _plan(detects, noise, num_tasks, num_test)


def equivalence_probability(
    noise: Noise, num_tasks: int, subsamples: int, num_test: int | None, criterion: Criterion
) -> float:
    """Return the probability that the verdict of a design is 'equivalent' if there is no bias."""
    error, degrees = noise.error_for_these_tasks(num_tasks, subsamples, num_test)
    return equivalence_power(error, degrees, criterion.region, criterion.alpha)


def plan_equivalence(noise: Noise, num_tasks: int, num_test: int | None, criterion: Criterion) -> Plan | None:
    """Return the design with the fewest subsamples per task whose verdict is probably 'equivalent' without a bias.

    Returns
    -------
    Plan or None
        None if not even `MAX_SUBSAMPLES` subsamples per task are enough.
    """

    def settles(subsamples: int) -> bool:
        return equivalence_probability(noise, num_tasks, subsamples, num_test, criterion) >= criterion.power

    return _plan(settles, noise, num_tasks, num_test)


def fewest(suffices: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number from 2 that suffices; None if it exceeds a limit."""
    enough = 2
    while not suffices(enough):
        enough *= 2
        if enough > most:
            return None
    too_few = enough // 2  # or 1, which was not tried
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if suffices(middle) else (middle, enough)
    return enough


def _plan(suffices: Callable[[int], bool], noise: Noise, num_tasks: int, num_test: int | None) -> Plan | None:
    enough = fewest(suffices, MAX_SUBSAMPLES)
    if enough is None:
        return None
    seconds = noise.trial_seconds(num_test)
    trials = num_tasks * enough
    return Plan(num_test, enough, trials, None if seconds is None else trials * seconds)


def find_cheapest(plans: Sequence[Plan]) -> Plan | None:
    """Return the plan with the lowest time, or the fewest trials if a time is unknown; if equal, the smaller test size.

    None if there are no plans.
    """
    is_timed = all(plan.seconds is not None for plan in plans)

    def cost(plan: Plan) -> tuple[float, int]:
        return (plan.seconds if is_timed and plan.seconds is not None else plan.trials, plan.num_test or 0)

    return min(plans, key=cost, default=None)
