"""How often a method with the test texts beats the same method with extra texts: a sign test."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from peekbench import Analysis, AnalyzerEntry, Column, Options, Table, Verdict, hookimpl

if TYPE_CHECKING:
    import pandas as pd


class WinRate(Options):
    level: float = Field(default=0.95, gt=0, lt=1)
    """Nominal coverage of the intervals."""


def win_rate(results: pd.DataFrame, *, options: WinRate) -> Analysis:
    """Count the trials in which the `test` score is higher, and those in which the `extra` score is higher.

    The interval of the win rate is that of Clopper and Pearson (1934), which assumes independent trials.
    """
    from scipy.stats import binomtest

    from peekbench.results import configurations  # which imports pandas

    effects = configurations(results)
    rows, verdicts = [], []
    for configuration in effects.configurations:
        biases = [bias for task in configuration.scores["bias"].values() for bias in task]
        wins, losses = sum(bias > 0 for bias in biases), sum(bias < 0 for bias in biases)
        low, high = 0.0, 1.0  # the whole range if all trials are ties
        if wins + losses:
            low, high = map(float, binomtest(wins, wins + losses).proportion_ci(options.level))
        rows.append((*configuration.cells, len(biases), wins, losses, low, high))
        verdicts.append(
            Verdict(
                method=configuration.label,
                effect="bias",
                decision="biased up" if low > 0.5 else "biased down" if high < 0.5 else "inconclusive",
                estimate=None,
                low=None,
                high=None,
                level=options.level,
                sentence=f"{configuration.label}: test beats extra in {wins} of {len(biases)} trials, "
                f"loses in {losses}; its win rate is between {low:.0%} and {high:.0%} ({options.level:.0%} interval).",
            )
        )
    counts = tuple(Column(name, "count") for name in ("trials", "wins", "losses"))
    limits = (Column("win rate from", "fraction"), Column("to", "fraction"))
    note = "A win is a trial in which the test arm scores higher than the extra arm. Ties count for neither arm."
    table = Table(effects.title("Win rate"), (*effects.columns, *counts, *limits), tuple(rows), note)
    return Analysis("win_rate", (table,), verdicts=tuple(verdicts))


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    return [AnalyzerEntry(name="win_rate", options=WinRate, analyze=win_rate, summary="how often test beats extra")]
