"""The leaderboard: methods ranked by their score with unlabeled texts that are not the test texts, and their ties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from peekbench import Analysis, Column, Table, Verdict
from peekbench.formatting import difference_unit, pluralize, score_unit
from peekbench.records import Cell, Looks, Predictions
from peekbench.results import Configuration, Configurations
from peekbench_summary import Summary
from peekbench_summary.choice import choose_configurations, resolve_options
from peekbench_summary.columns import EFFECTS, effect_cells, effect_columns
from peekbench_summary.estimates import mean_over_tasks
from peekbench_summary.looks import NO_LOOKS
from peekbench_summary.probabilistic_scores import probabilistic_scores
from peekbench_summary.rules import rule_arms
from peekbench_summary.ties import find_differences, tie_letters
from peekbench_summary.verdict import judge_all

NOTE = (
    "Ranked by the score of extra, which is uncontaminated: its unlabeled texts are not the test texts. Methods that "
    "share a letter under 'tie' cannot be distinguished by this score: their difference, paired over the subsamples "
    "that both have, is not significant after adjustment for the number of pairs. boost = extra - base, "
    "bias = test - extra, with {level} intervals for new subsamples of the same data. All tasks have equal weight. "
    "Each row is based on {basis}."
)
UNPAIRED_NOTE = (
    " Methods without two common subsamples of each task, by their numbers ({pairs} here), were compared as "
    "independent samples, which detects fewer differences."
)
FAMILY_NOTE = (
    " Verdicts and the intervals of the bias are adjusted for {size} configurations: on average, at most {rate} of the "
    "verdicts 'biased' are wrong, and at most {rate} of the verdicts 'equivalent'. The unadjusted verdict is meant for "
    "a single configuration that was chosen before the run."
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
    paired = choose_configurations(results, options, "summary.leaderboard")
    probabilistic = probabilistic_scores(results, paired.without_controls())
    verdicts = judge_all(paired, options, probabilistic, looks, predictions)
    return Analysis("leaderboard", (leaderboard(paired, verdicts, options.level),), verdicts=verdicts)


@dataclass(frozen=True, slots=True)
class _Entrant:
    configuration: Configuration
    verdict: Verdict
    sizes: tuple[Cell, ...]
    """Train and test sizes; only configurations of equal sizes are ranked against each other."""

    def mean(self, arm: str) -> float:
        """Return the mean score of an arm over tasks."""
        return mean_over_tasks(list(self.configuration.scores[arm].values()))


def leaderboard(results: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """Tabulate all configurations with scores, boost, bias, verdict and ties, best first.

    Parameters
    ----------
    results
        Paired scores by configuration.
    verdicts
        One verdict for each configuration, in their order.
    level
        Nominal coverage of the intervals.
    """
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
    arms = [arm for arm in results.arms if arm != "extra" and arm not in rule_arms(results)]
    is_adjusted = any(verdict.family.unadjusted is not None for verdict in verdicts)
    rows: list[tuple[Cell, ...]] = []
    num_unpaired = 0
    for _, group in groupby(entrants, key=lambda entrant: entrant.sizes):
        ranked = list(group)
        different = find_differences([entrant.configuration for entrant in ranked], level)
        num_unpaired += different.num_unpaired
        for entrant, tie in zip(ranked, tie_letters(len(ranked), different.pairs), strict=True):
            decisions = [entrant.verdict.decision, *([entrant.verdict.family.unadjusted] if is_adjusted else [])]
            cells = (*entrant.configuration.cells, entrant.mean("extra"), tie, *decisions)
            intervals = effect_cells(entrant.configuration, effects, level, entrant.verdict)
            rows.append((*cells, *intervals, *(entrant.mean(arm) for arm in arms)))
    score = score_unit(results.is_accuracy)
    columns = (
        *results.columns,
        Column("extra", score),
        Column("tie"),
        Column("verdict"),
        *([Column("unadjusted verdict")] if is_adjusted else []),
        *effect_columns(effects, difference_unit(results.is_accuracy)),
        *(Column(arm, score) for arm in arms),
    )
    title = results.title(f"Leaderboard, by {'accuracy' if results.is_accuracy else 'score'} of extra")
    note = NOTE.format(level=f"{level:.0%}", basis=_describe_basis(results))
    if num_unpaired:
        note += UNPAIRED_NOTE.format(pairs=pluralize(num_unpaired, "pair"))
    if is_adjusted:
        note += FAMILY_NOTE.format(size=max(verdict.family.size for verdict in verdicts), rate=f"{1 - level:.0%}")
    keys = (column.name for column in results.columns)
    others = [effect for effect in effects if effect != "bias"]
    overview = (*keys, "extra", "tie", "verdict", "bias", *others, *arms)
    return Table(title, columns, tuple(rows), note, overview=overview)


def _describe_basis(results: Configurations) -> str:
    """Return the range of the numbers of tasks and trials over rows: '3 tasks and 60 to 90 trials'."""
    tasks = [len(configuration.scores["test"]) for configuration in results.configurations]
    trials = [sum(map(len, configuration.scores["test"].values())) for configuration in results.configurations]
    return " and ".join(
        pluralize(largest, noun) if smallest == largest else f"{smallest:,} to {pluralize(largest, noun)}"
        for smallest, largest, noun in ((min(tasks), max(tasks), "task"), (min(trials), max(trials), "trial"))
    )
