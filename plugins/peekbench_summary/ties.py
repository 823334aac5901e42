"""Letters that say which methods of a leaderboard tie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from string import ascii_letters

from peekbench.results import Configuration
from peekbench_stats import holm
from peekbench_summary.pairing import compare


@dataclass(frozen=True, slots=True)
class Differences:
    """What a comparison of all pairs of configurations found."""

    pairs: set[tuple[int, int]]
    """Positions of configurations whose scores differ significantly."""
    num_unpaired: int
    """Number of pairs that were compared as independent sets, because they have no subsamples in common."""


def find_differences(configurations: Sequence[Configuration], level: float) -> Differences:
    """Find the pairs of positions whose scores of extra differ significantly.

    Parameters
    ----------
    configurations
        The configurations to compare pairwise.
    level
        One minus the probability of any wrong difference (Holm's procedure).
    """
    pairs = list(combinations(range(len(configurations)), 2))
    changes = [compare(configurations[first], configurations[second], "extra", level) for first, second in pairs]
    p_values = holm([1.0 if change is None else change.p_value for change in changes])
    return Differences(
        {pair for pair, p in zip(pairs, p_values, strict=True) if p <= 1 - level},
        sum(change is not None and not change.num_paired for change in changes),
    )


def tie_letters(count: int, different: set[tuple[int, int]]) -> list[str]:
    """Assign letters to items so that two of them share a letter if and only if they are not different.

    Start with one letter for all items. For each different pair, split every letter that both share, and drop letters
    that another letter covers.

    Parameters
    ----------
    count
        Number of items.
    different
        Pairs of positions (first, second) with first < second.

    Returns
    -------
    list of str
        Letters of each item.

    References
    ----------
    Piepho (2004), https://doi.org/10.1198/1061860043515

    Examples
    --------
    >>> tie_letters(3, {(0, 2)})
    ['a', 'ab', 'b']
    """
    groups = [frozenset(range(count))]
    for first, second in sorted(different):
        split = []
        for group in groups:
            split += [group - {first}, group - {second}] if {first, second} <= group else [group]
        groups = [
            group
            for position, group in enumerate(split)
            if not any(
                group < other or (group == other and position > other_position)
                for other_position, other in enumerate(split)
            )
        ]
    groups.sort(key=sorted)
    letters = [_letter(number) for number in range(len(groups))]
    return [
        "".join(letter for letter, group in zip(letters, groups, strict=True) if item in group) for item in range(count)
    ]


def _letter(number: int) -> str:
    return ascii_letters[number % 52] + (str(number // 52) if number >= 52 else "")
