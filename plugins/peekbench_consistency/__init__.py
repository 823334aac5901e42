"""Checks of a results table: dependent base arms, copied rows, and equal arms."""

from __future__ import annotations

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl


class Consistency(Options):
    """Options of `consistency`."""

    level: float = Field(default=0.01, gt=0, lt=1)
    """Probability of one or more false positives, over all statistical tests, in a table without errors."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analysis."""
    return [
        AnalyzerEntry(
            name="consistency",
            options=Consistency,
            analyze="peekbench_consistency.analysis:check_consistency",
            sees_controls=True,
            summary="errors in the table: base arms that depend on num_test, copied rows, equal arms",
        ),
        AnalyzerEntry(
            name="quick",
            analyze="peekbench_consistency.analysis:check_quickly",
            sees_controls=True,
            role="check",
            summary="the checks of `consistency` as warnings, which every report runs",
        ),
    ]
