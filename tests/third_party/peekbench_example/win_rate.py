"""How often a method that saw the test texts beats itself with extra texts: a sign test in plain sight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from peekbench import Analysis, AnalyzerEntry, Column, Options, Table, Verdict, hookimpl
from peekbench.results import configurations

if TYPE_CHECKING:
    import pandas as pd


class WinRate(Options):
    level: float = Field(default=0.95, gt=0, lt=1)
    """Coverage of the intervals."""


def win_rate(results: pd.DataFrame, *, options: WinRate) -> Analysis:
    """Wins of the arm test over the arm extra among the trials in which their scores differ.

    The interval of the win rate is Clopper and Pearson's (1934); it takes trials for independent.
    """
    from scipy.stats import binomtest

    found = configurations(results)
    rows, verdicts = [], []
    for one in found.configurations:
        biases = [bias for task in one.scores["bias"].values() for bias in task]
        wins, losses = sum(bias > 0 for bias in biases), sum(bias < 0 for bias in biases)
        low, high = 0.0, 1.0  # all that is known where every trial is a tie
        if wins + losses:
            low, high = map(float, binomtest(wins, wins + losses).proportion_ci(options.level))
        rows.append((*one.cells, len(biases), wins, losses, low, high))
        verdicts.append(
            Verdict(
                method=one.label,
                effect="bias",
                decision="biased up" if low > 0.5 else "biased down" if high < 0.5 else "inconclusive",
                estimate=None,
                low=None,
                high=None,
                level=options.level,
                sentence=f"{one.label}: test beats extra in {wins} of {len(biases)} trials and loses in {losses}; "
                f"its win rate is between {low:.0%} and {high:.0%} ({options.level:.0%} interval).",
            )
        )
    counts = tuple(Column(name, "count") for name in ("trials", "wins", "losses"))
    limits = (Column("win rate from", "fraction"), Column("to", "fraction"))
    note = "A win is a trial in which the arm test scores higher than the arm extra; ties count for neither."
    table = Table(found.title("Win rate"), (*found.columns, *counts, *limits), tuple(rows), note)
    return Analysis("win_rate", (table,), verdicts=tuple(verdicts))


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    return [AnalyzerEntry(name="win_rate", options=WinRate, analyze=win_rate, summary="how often test beats extra")]
