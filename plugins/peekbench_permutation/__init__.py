"""Paired permutation tests of the bias for each task, and a paired t test over tasks."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl


class Permutation(Options):
    """Options of the analysis `permutation`."""

    num_resamples: int = Field(default=9999, ge=99)
    """Number of random sign flips for scores other than accuracies, such as R^2. Tests of accuracies are exact."""
    seed: int = Field(default=0, ge=0)
    """Seed of the random sign flips."""
    measure: Literal["score", "log_loss"] = "score"
    """Quantity to test: 'score' (accuracy or R^2), or 'log_loss' (the negative log loss), which requires results with
    log losses."""
    level: float = Field(default=0.05, gt=0, lt=1)
    """False discovery rate at which the bias of a task counts as different from zero."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analysis."""
    return [
        AnalyzerEntry(
            name="permutation",
            options=Permutation,
            analyze="peekbench_permutation.permutation:analyze_permutations",
            summary="paired permutation tests of the bias by task, Benjamini-Hochberg over tasks; paired t over tasks",
        )
    ]
