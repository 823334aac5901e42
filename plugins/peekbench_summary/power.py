"""The analysis `power`: the bias that a design detects, and how many subsamples a verdict takes."""

from __future__ import annotations

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench.records.scores import ScoreName


class Power(Options):
    """Options of the analysis `power`."""

    score: ScoreName = "score"
    """Score of which a bias is to be detected: 'score' (accuracy, R^2 or, in language modeling, the log-likelihood),
    'macro_f1', 'log_loss', 'brier' or 'bits_per_byte', if all results have it."""
    level: float = Field(default=0.95, gt=0.5, lt=1)
    """Nominal coverage, as in `summary`, for all configurations that are judged together and all looks."""
    region: float | None = Field(default=None, gt=0)
    """Half-width of the region of practical equivalence, as in `summary`."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analysis and its forecast."""
    return [
        AnalyzerEntry(
            name="power",
            options=Power,
            analyze="peekbench_summary.forecast:analyze_power",
            forecast="peekbench_summary.forecast:forecast",
            summary="the bias that this design detects, and the chance that its subsamples settle a verdict",
        )
    ]
