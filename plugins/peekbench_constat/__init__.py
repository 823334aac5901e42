"""ConStat: tests whether models score higher on a benchmark than their scores on another benchmark predict."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl


class Comparison(Options):
    """A benchmark that models may have seen, and another that predicts their scores on it."""

    original: str = Field(min_length=1)
    """Task whose scores may be contaminated, such as 'gsm8k'."""
    reference: str = Field(min_length=1)
    """Task that measures the same ability and is less likely to be contaminated, such as 'gsm8k-rephrased'."""
    kind: Literal["", "syntax", "sample", "benchmark"] = ""
    """What a contaminated score does not generalize beyond: the 'syntax' of the texts, if the reference has the same
    texts in other words; the 'sample', if it has other texts of the same distribution; the 'benchmark', if it is
    another benchmark for the same ability."""


class ConStat(Options):
    """Options of the analysis `constat`."""

    comparisons: tuple[Comparison, ...] = ()
    """Pairs of benchmarks to compare; required."""
    suspects: tuple[str, ...] = ()
    """Models to test. Default: all models except `references`; without both options, each model against all others."""
    references: tuple[str, ...] = ()
    """Models that are assumed not to be contaminated. Default: all models except `suspects`."""
    model_families: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Models that resemble each other, such as those of one developer, by the name of their family; a model that is not
    listed is a family of its own. Default: all are, so intervals are too short if some do resemble each other."""
    level: float = Field(default=0.95, gt=0, lt=1)
    """One minus the false discovery rate of all verdicts; for a single test, the coverage of its interval."""
    region: float = Field(default=0.01, ge=0)
    """Half-width of the region of practical equivalence: a smaller excess is negligible. 0.01 is one accuracy point."""
    num_resamples: int = Field(default=1000, ge=100)
    """Resamples of the reference models and of the test texts."""
    seed: int = Field(default=0, ge=0)
    """Seed of the resamples."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analysis."""
    return [
        AnalyzerEntry(
            name="constat",
            options=ConStat,
            analyze="peekbench_constat.analysis:analyze_contamination",
            arms=("base",),
            summary="models whose score on a benchmark exceeds what their score on another predicts (ConStat)",
        )
    ]
