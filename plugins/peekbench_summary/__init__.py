"""Means, standard errors and intervals of boost and bias, and a verdict on each method."""

from __future__ import annotations

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench_summary.region import RegionUnit


class Summary(Options):
    level: float = Field(default=0.95, gt=0, lt=1)
    """Coverage that the intervals are meant to have."""
    region: float | None = Field(default=None, ge=0)
    """Half-width of the region of practical equivalence: a bias surely inside it does not matter. By default 0.005,
    half an accuracy point, or 0.04 log-odds."""
    region_unit: RegionUnit = "score"
    """What `region` is measured in: 'score' (accuracy as a fraction, or R^2), or 'log_odds' of accuracies."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    return [
        AnalyzerEntry(
            name="summary",
            options=Summary,
            analyze="peekbench_summary.summary:summarize",
            sees_controls=True,
            summary="means and standard errors of boost and bias, over tasks and per task, with a verdict",
        ),
        AnalyzerEntry(
            name="leaderboard",
            options=Summary,
            analyze="peekbench_summary.leaderboard:rank",
            role="ranking",
            summary="methods by their honest score, with boost, bias, verdict, and which of them tie",
        ),
        AnalyzerEntry(
            name="changes",
            options=Summary,
            analyze="peekbench_summary.changes:contrast",
            role="comparison",
            sees_controls=True,
            summary="what two runs differ by, method by method; `peekbench compare` asks for it",
        ),
    ]
