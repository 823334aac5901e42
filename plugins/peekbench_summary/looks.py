"""What repeated looks at a run mean for its verdicts: the level of each, and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from peekbench import Verdict
from peekbench.records import Looks
from peekbench.results import Configuration, Configurations
from peekbench_stats import NominalAlpha, fixed_design, level_after, level_at

NO_LOOKS = Looks()
UNKNOWN = (
    "The looks at a table of scores are unknown: its verdicts hold for a number of subsamples that was fixed before "
    "any result was seen."
)


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


def mention_looks(verdicts: Sequence[Verdict], results: Configurations, looks: Looks) -> tuple[Verdict, ...]:
    """Return the verdicts, those on methods with a sentence on the looks that they account for."""
    pairs = zip(verdicts, results.configurations, strict=True)
    return tuple(
        verdict if configuration.control else _mention(verdict, configuration, looks)
        for verdict, configuration in pairs
    )


def _mention(verdict: Verdict, configuration: Configuration, looks: Looks) -> Verdict:
    if earlier := _earlier(configuration, looks):
        counts = " and ".join(filter(None, (", ".join(f"{count:,}" for count in earlier[:-1]), f"{earlier[-1]:,}")))
        sentence = (
            f"This run was extended to {_num_trials(configuration):,} trials after reports on {counts}. The verdict "
            "and its interval account for all earlier and later reports."
        )
    elif looks.method:
        share = looks.fractions[-1]
        planned = "of at most" if share <= 1 else "of the first maximum of"  # the design was extended
        sentence = (
            f"This is look {len(looks.fractions)}, at {share:.0%} {planned} {looks.maximum:,} subsamples; the interval "
            "accounts for all looks."
        )
    else:
        return verdict if looks.are_known else replace(verdict, looks=UNKNOWN)
    return replace(verdict, looks=sentence, sentence=f"{verdict.sentence} {sentence}")


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
