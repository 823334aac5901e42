"""What should not be in a results table: rows that repeat, arms that cannot be what they are called, odd counts."""

from __future__ import annotations

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench_consistency.consistency import look


class Consistency(Options):
    level: float = Field(default=0.01, gt=0, lt=1)
    """Chance of one or more false alarms, over all statistical tests, in a table with nothing wrong."""
    shared_base: bool | None = None
    """Whether all methods have the same base arm; by default, those that name the same model are taken to."""
    majority: dict[str, float] = Field(default_factory=dict)
    """Share of the commonest class, or 1 / classes, by task; for tables without a column `majority`."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    return [
        AnalyzerEntry(
            name="consistency",
            options=Consistency,
            analyze=look,
            sees_controls=True,
            summary="what should not be in the table: base arms that depend on n, repeated or shifted rows, odd counts",
        )
    ]
