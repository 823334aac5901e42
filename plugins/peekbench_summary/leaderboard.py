"""The leaderboard: methods ranked by their score with unlabeled texts that are not the test texts, and their ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from string import ascii_letters

import pandas as pd

from peekbench import Analysis, Column, Table, Verdict
from peekbench.formatting import pluralize
from peekbench.records import Cell, Looks, Predictions
from peekbench.results import Configuration, Configurations
from peekbench_stats import holm
from peekbench_summary import Summary
from peekbench_summary.biased_rule import NO_LOOKS
from peekbench_summary.comparison import compare
from peekbench_summary.estimates import mean_over_tasks
from peekbench_summary.families import judge_all
from peekbench_summary.scores import (
    EFFECTS,
    choose_configurations,
    effect_cells,
    effect_columns,
    name_score,
    probabilistic_scores,
    resolve_options,
    same_texts_note,
    shared_note,
    verdict_note,
)

NOTE = (
    "Ranked by the score of extra, which is uncontaminated: no text is predicted by a fit that adapted to it. Methods "
    "that share a letter under 'tie' cannot be distinguished by this score: their difference, paired over the "
    "subsamples that both have, is not significant after adjustment for the number of pairs. boost = extra - base, "
    "bias = test - extra, with {level} intervals for new subsamples of the same data. All tasks have equal weight. "
    "Each row is based on {basis}."
)
TIE = "Methods that share a letter (tie) cannot be told apart."
BOOST = "Boost: extra - base."
ALONE = "Alone: the fits of extra predict each text by itself."
UNPAIRED_NOTE = (
    " Methods without two common subsamples of each task, by their numbers ({pairs} here), were compared as "
    "independent samples, which detects fewer differences."
)


def rank(
    results: pd.DataFrame, *, options: Summary, looks: Looks = NO_LOOKS, predictions: Predictions | None = None
) -> Analysis:
    """Rank the methods.

    Parameters
    ----------
    results
        The results table.
    options
        Level and region.
    looks
        Looks at the run that the results are from.
    predictions
        Answers to single texts.

    Returns
    -------
    Analysis
        The leaderboard and a verdict on each configuration.
    """
    options = resolve_options(results, options)
    paired = choose_configurations(results, options, "summary.leaderboard", predictions)
    methods = paired.without_controls()
    verdicts = judge_all(paired, options, probabilistic_scores(results, methods), looks, predictions)
    judged = [verdict for verdict in verdicts if not verdict.control]
    return Analysis("leaderboard", (leaderboard(methods, judged, options),), verdicts=verdicts)


@dataclass(frozen=True, slots=True)
class _Entrant:
    configuration: Configuration
    verdict: Verdict
    sizes: tuple[Cell, ...]
    """Train and test sizes; only configurations of equal sizes are ranked against each other."""

    def mean(self, arm: str) -> float:
        """Return the mean score of an arm over tasks."""
        return mean_over_tasks(list(self.configuration.scores[arm].values()))


def leaderboard(results: Configurations, verdicts: Sequence[Verdict], options: Summary) -> Table:
    """Tabulate all configurations with scores, boost, bias, verdict and ties, best first.

    Parameters
    ----------
    results
        Paired scores by configuration.
    verdicts
        One verdict for each configuration, in their order.
    options
        Level of the intervals, and the score.
    """
    level = options.level
    entrants = [
        _Entrant(
            configuration,
            verdict,
            tuple(
                cell
                for cell, column in zip(configuration.cells, results.columns, strict=True)
                if column.unit == "count"
            ),
        )
        for configuration, verdict in zip(results.configurations, verdicts, strict=True)
    ]
    order = {sizes: position for position, sizes in enumerate(dict.fromkeys(entrant.sizes for entrant in entrants))}
    entrants.sort(key=lambda entrant: (order[entrant.sizes], -entrant.mean("extra")))
    effects = [effect for effect in EFFECTS if effect in results.effects]
    arms = [arm for arm in results.arms if arm != "extra"]
    rows: list[tuple[Cell, ...]] = []
    num_unpaired = 0
    for _, group in groupby(entrants, key=lambda entrant: entrant.sizes):
        ranked = list(group)
        different = find_differences([entrant.configuration for entrant in ranked], level)
        num_unpaired += different.num_unpaired
        for entrant, tie in zip(ranked, tie_letters(len(ranked), different.pairs), strict=True):
            cells = (*entrant.configuration.cells, entrant.mean("extra"), tie, entrant.verdict.decision)
            intervals = effect_cells(entrant.configuration, effects, level, entrant.verdict)
            rows.append((*cells, *intervals, *(entrant.mean(arm) for arm in arms)))
    score = results.units.score
    columns = (
        *results.columns,
        Column("extra", score),
        Column("tie"),
        Column("verdict"),
        *effect_columns(effects, results.units.difference),
        *(Column(arm, score) for arm in arms),
    )
    title = f"Leaderboard, by {name_score(results, options)} of extra"
    note = NOTE.format(level=f"{level:.0%}", basis=_describe_basis(results)) + verdict_note(verdicts, level)
    if num_unpaired:
        note += UNPAIRED_NOTE.format(pairs=pluralize(num_unpaired, "pair"))
    note += shared_note(results) + same_texts_note(results)
    keys = (column.name for column in results.columns)
    others = [effect for effect in effects if effect != "bias"]
    overview = [*keys, "extra", "tie", "verdict", *others, *arms]
    captions = [TIE, *(BOOST for _ in others)]
    if "alone" in arms:
        captions.append(ALONE)
    if len(rows) == 1:
        overview.remove("tie")
        captions.remove(TIE)
    ranked_by = "extra" if len(order) == 1 else ""
    caption = " ".join(captions)
    return Table(title, columns, tuple(rows), note, overview=tuple(overview), caption=caption, ranked_by=ranked_by)


def _describe_basis(results: Configurations) -> str:
    """Return the range of the numbers of tasks and trials over rows: '3 tasks and 60 to 90 trials'."""
    tasks = [len(configuration.scores["test"]) for configuration in results.configurations]
    trials = [sum(map(len, configuration.scores["test"].values())) for configuration in results.configurations]
    return " and ".join(
        pluralize(largest, noun) if smallest == largest else f"{smallest:,} to {pluralize(largest, noun)}"
        for smallest, largest, noun in ((min(tasks), max(tasks), "task"), (min(trials), max(trials), "trial"))
    )


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
