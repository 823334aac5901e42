"""Checks of a results table: dependent base arms, duplicated rows, and unexpected counts."""

from __future__ import annotations

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl


class Consistency(Options):
    """Options of `consistency`."""

    level: float = Field(default=0.01, gt=0, lt=1)
    """Probability of one or more false positives, over all statistical tests, in a table without errors."""
    shared_base: bool | None = None
    """Whether all methods have the same base arm; by default, methods that name the same model do."""
    majority: dict[str, float] = Field(default_factory=dict)
    """Share of the majority class, or 1 / classes, by task; for tables without a column `majority`."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analysis."""
    return [
        AnalyzerEntry(
            name="consistency",
            options=Consistency,
            analyze="peekbench_consistency.analysis:check_consistency",
            sees_controls=True,
            summary="errors in the table: base arms that depend on num_test, duplicated rows, odd counts",
        ),
        AnalyzerEntry(
            name="quick",
            analyze="peekbench_consistency.analysis:check_quickly",
            sees_controls=True,
            role="check",
            summary="the checks of `consistency` as warnings, which every report runs",
        ),
    ]
