"""Means, standard errors, intervals and verdicts; a leaderboard; and the comparison of two runs."""

from __future__ import annotations

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench_summary.region import RegionUnit


class Summary(Options):
    """Options of the analyses `summary`, `summary.leaderboard` and `summary.changes`."""

    level: float = Field(default=0.95, gt=0, lt=1)
    """Nominal coverage of the intervals."""
    region: float | None = Field(default=None, ge=0)
    """Half-width of the region of practical equivalence: a bias within it is negligible. By default 0.005, half an
    accuracy point, or 0.04 log-odds."""
    region_unit: RegionUnit = "score"
    """Unit of `region`: 'score' (accuracy as a fraction, or R^2), or 'log_odds' of accuracies."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the three analyses."""
    return [
        AnalyzerEntry(
            name="summary",
            options=Summary,
            analyze="peekbench_summary.summary:summarize",
            sees_controls=True,
            sees_looks=True,
            summary="means and standard errors of boost and bias, over tasks and per task, with a verdict",
        ),
        AnalyzerEntry(
            name="leaderboard",
            options=Summary,
            analyze="peekbench_summary.leaderboard:rank",
            role="ranking",
            summary="methods ranked by their uncontaminated score, with boost, bias, verdict and ties",
        ),
        AnalyzerEntry(
            name="changes",
            options=Summary,
            analyze="peekbench_summary.changes:compare_runs",
            role="comparison",
            sees_controls=True,
            summary="differences between two runs, method by method; used by `peekbench compare`",
        ),
    ]
