"""Planned designs: what they detect, and which of them detects what is wanted at least cost."""

from __future__ import annotations

from dataclasses import dataclass

from peekbench_power.detection import Wanted, minimum_detectable
from peekbench_power.noise import Noise

MOST_SUBSAMPLES = 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The smallest design of one test size that detects what is wanted."""

    num_test: int | None
    subsamples: int
    trials: int
    seconds: float | None


def detectable(noise: Noise, num_tasks: int, subsamples: int, num_test: int | None, wanted: Wanted) -> float | None:
    """Minimum detectable bias, as a mean over these tasks."""
    return minimum_detectable(*noise.these_tasks(num_tasks, subsamples, num_test), wanted)


def enough(noise: Noise, num_tasks: int, num_test: int | None, bias: float, wanted: Wanted) -> Plan | None:
    """The fewest subsamples of each task that detect a bias; None where no number that can be drawn does."""

    def detects(subsamples: int) -> bool:
        found = detectable(noise, num_tasks, subsamples, num_test, wanted)
        return found is not None and found <= bias

    most = 2
    while not detects(most):
        most *= 2
        if most > MOST_SUBSAMPLES:
            return None
    least = most // 2  # does not detect it, or is 1
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if detects(middle) else (middle, most)
    seconds = noise.trial_seconds(num_test)
    trials = num_tasks * most
    return Plan(num_test, most, trials, None if seconds is None else trials * seconds)


def cheapest(plans: list[Plan]) -> Plan | None:
    """By time where it is known of all, else by trials; among equals the smaller test size."""
    timed = all(plan.seconds is not None for plan in plans)

    def cost(plan: Plan) -> tuple[float, int]:
        return (plan.seconds if timed and plan.seconds is not None else plan.trials, plan.num_test or 0)

    return min(plans, key=cost, default=None)
