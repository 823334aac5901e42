"""Methods in the order of their score with unlabeled texts that are not the test set's, and which of them tie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from string import ascii_letters
from typing import TYPE_CHECKING

from peekbench import Analysis, Column, Table, Verdict
from peekbench.formatting import pluralize
from peekbench.records import Cell, Unit
from peekbench.results import Configuration, Configurations, configurations
from peekbench_summary.controls import judge_control
from peekbench_summary.estimates import of_these_tasks
from peekbench_summary.pairing import compare
from peekbench_summary.probabilistic_scores import LOG_LIKELIHOOD, finer_scores
from peekbench_summary.region import region_of
from peekbench_summary.verdict import beside_likelihood, judge

if TYPE_CHECKING:
    import pandas as pd

    from peekbench_summary import Summary

NOTE = (
    "Ordered by the score of extra, the honest one, whose unlabeled texts are not the test set's. Methods that share a "
    "letter under 'tie' cannot be told apart by it: the interval of their difference holds 0, paired over the draws "
    "that both have and widened for the number of pairs. boost = extra - base, bias = test - extra, with {level} "
    "intervals for further subsamples of the same data. Every task counts alike. Each row rests on {basis}."
)


def rank(results: pd.DataFrame, *, options: Summary) -> Analysis:
    """The leaderboard alone, with verdicts."""
    found = configurations(results)
    verdicts = judge_all(found, options, finer_scores(results, found.without_controls()))
    return Analysis("leaderboard", (leaderboard(found, verdicts, options.level),), verdicts=verdicts)


def judge_all(found: Configurations, options: Summary, finer: Mapping[str, Configurations]) -> tuple[Verdict, ...]:
    """A verdict on the bias of each configuration.

    Parameters
    ----------
    finer
        The same configurations in finer scores, by name, as far as there are any.
    """
    likelihoods = (
        {one.key: one.scores["bias"] for one in finer[LOG_LIKELIHOOD].configurations} if LOG_LIKELIHOOD in finer else {}
    )
    verdicts = []
    for one in found.configurations:
        region = region_of(one.scores, options.region_unit, options.region, found.is_accuracy)
        tasks = list(one.scores["bias"].values())
        verdict = judge(one.label, tasks, level=options.level, region=region, is_accuracy=found.is_accuracy)
        if one.control:
            verdict = judge_control(verdict, one.control)
        elif one.key in likelihoods:
            verdict = beside_likelihood(verdict, list(likelihoods[one.key].values()), options.level)
        verdicts.append(verdict)
    return tuple(verdicts)


@dataclass(frozen=True, slots=True)
class _Entrant:
    one: Configuration
    verdict: Verdict
    sizes: tuple[Cell, ...]
    """Only methods of the same sizes are ranked among each other."""

    def mean(self, arm: str) -> float:
        tasks = self.one.scores[arm].values()
        return math.fsum(math.fsum(task) / len(task) for task in tasks) / len(tasks)


def leaderboard(found: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """All configurations with scores, boost, bias, verdict and ties, best first.

    Parameters
    ----------
    verdicts
        One for each configuration, in their order.
    """
    entrants = [
        _Entrant(
            one,
            verdict,
            tuple(cell for cell, column in zip(one.cells, found.columns, strict=True) if column.unit == "count"),
        )
        for one, verdict in zip(found.configurations, verdicts, strict=True)
    ]
    places = {sizes: place for place, sizes in enumerate(dict.fromkeys(entrant.sizes for entrant in entrants))}
    entrants.sort(key=lambda entrant: (places[entrant.sizes], -entrant.mean("extra")))
    rows = [
        row
        for _, group in groupby(entrants, key=lambda entrant: entrant.sizes)
        for row in _rows(list(group), found, level)
    ]
    effects = [effect for effect in ("bias", "boost") if effect in found.effects]
    score: Unit = "fraction" if found.is_accuracy else "number"
    difference: Unit = "difference" if found.is_accuracy else "change"
    columns = [*found.columns, Column("extra", score), Column("tie"), Column("verdict")]
    for effect in effects:
        columns += [Column(name, difference) for name in (effect, f"{effect}, low", f"{effect}, high")]
    columns += [Column(arm, score) for arm in found.arms if arm != "extra"]
    title = found.title(f"Leaderboard, by {'accuracy' if found.is_accuracy else 'score'} of extra")
    return Table(title, tuple(columns), tuple(rows), NOTE.format(level=f"{level:.0%}", basis=_basis(found)))


def _basis(found: Configurations) -> str:
    """How many tasks and trials, of whatever row."""
    tasks = [len(one.scores["test"]) for one in found.configurations]
    trials = [sum(map(len, one.scores["test"].values())) for one in found.configurations]
    return " and ".join(
        pluralize(most, noun) if least == most else f"{least:,} to {pluralize(most, noun)}"
        for least, most, noun in ((min(tasks), max(tasks), "task"), (min(trials), max(trials), "trial"))
    )


def _rows(entrants: Sequence[_Entrant], found: Configurations, level: float) -> list[tuple[Cell, ...]]:
    letters = tie_letters(len(entrants), _told_apart(entrants, level))
    rows = []
    for entrant, tie in zip(entrants, letters, strict=True):
        cells: list[Cell] = [*entrant.one.cells, entrant.mean("extra"), tie, entrant.verdict.decision]
        for effect in ("bias", "boost"):
            if effect in found.effects:
                estimate = of_these_tasks(list(entrant.one.scores[effect].values()), level)
                ends = (estimate.low, estimate.high) if estimate.has_interval else (None, None)
                cells += [estimate.mean, *ends]
        cells += [entrant.mean(arm) for arm in found.arms if arm != "extra"]
        rows.append(tuple(cells))
    return rows


def _told_apart(entrants: Sequence[_Entrant], level: float) -> set[tuple[int, int]]:
    """Pairs of positions whose scores of extra surely differ, all pairs together at `level` (Bonferroni)."""
    pairs = list(combinations(range(len(entrants)), 2))
    each = 1 - (1 - level) / max(1, len(pairs))
    apart = set()
    for first, second in pairs:
        change = compare(entrants[first].one, entrants[second].one, "extra", each)
        if change is not None and (change.difference.low > 0 or change.difference.high < 0):
            apart.add((first, second))
    return apart


def tie_letters(count: int, apart: set[tuple[int, int]]) -> list[str]:
    """Letters for `count` things in their order: two share one if, and only if, they are not in `apart`.

    Begins with one letter for all, splits each letter that two of a pair share, and drops those that another covers.
    Source: Piepho (2004), https://doi.org/10.1198/1061860043515
    """
    groups = [frozenset(range(count))]
    for first, second in sorted(apart):
        split = []
        for group in groups:
            split += [group - {first}, group - {second}] if {first, second} <= group else [group]
        groups = [
            group
            for position, group in enumerate(split)
            if not any(group < other or (group == other and position > place) for place, other in enumerate(split))
        ]
    groups.sort(key=sorted)
    names = [_letter(number) for number in range(len(groups))]
    return [
        "".join(name for name, group in zip(names, groups, strict=True) if member in group) for member in range(count)
    ]


def _letter(number: int) -> str:
    return ascii_letters[number % 52] + (str(number // 52) if number >= 52 else "")
