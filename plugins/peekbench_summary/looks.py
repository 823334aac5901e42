"""What repeated looks at a run mean for its verdicts: the level of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peekbench.records import Looks, LooksTaken
from peekbench.results import Configuration
from peekbench_stats import NominalAlpha, fixed_design, level_after, level_at

NO_LOOKS = Looks()


@dataclass(frozen=True, slots=True)
class LookLevels:
    """The levels of the present look at a configuration, and of a later one."""

    now: NominalAlpha
    later: Callable[[float], NominalAlpha]
    """Function of the number of trials at the later look, as a multiple of those now."""


ONE_LOOK = LookLevels(fixed_design, lambda _: fixed_design)


def levels_of(configuration: Configuration, looks: Looks) -> LookLevels:
    """Return the levels of a configuration; see `peekbench_stats.level_at`."""
    num_trials, earlier = _num_trials(configuration), _earlier(configuration, looks)
    return LookLevels(
        level_at(looks, num_trials, earlier), lambda ratio: level_after(looks, ratio, num_trials, earlier)
    )


def describe_looks(configuration: Configuration, looks: Looks) -> LooksTaken:
    """Return the looks that the verdict on a configuration accounts for."""
    if earlier := _earlier(configuration, looks):
        return LooksTaken(are_known=True, earlier=earlier)
    if looks.method:
        return LooksTaken(are_known=True, number=len(looks.fractions), share=looks.fractions[-1], maximum=looks.maximum)
    return LooksTaken(looks.are_known)


def _num_trials(configuration: Configuration) -> int:
    return sum(map(len, configuration.scores["bias"].values()))


def _earlier(configuration: Configuration, looks: Looks) -> tuple[int, ...]:
    """Return the trials of a configuration at earlier looks that no design planned."""
    method, _, num_train, num_test = configuration.key
    return looks.earlier_of(
        str(method),
        num_train if isinstance(num_train, int) else None,
        num_test if isinstance(num_test, int) else None,
    )
