"""Text lengths by class: different lengths give a class away."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from peekbench import Analysis, Column, Context, Dataset, Options, Table, hookimpl
from peekbench.plugins import AuditEntry


def lengths(tasks: Mapping[str, Dataset], *, options: Options, context: Context) -> Analysis:
    """Return the median length of the texts of each class, in characters."""
    rows = []
    for task, dataset in tasks.items():
        for label, name in enumerate(dataset.class_names):
            sizes = [len(text) for text, own in zip(dataset.inputs, dataset.labels, strict=True) if own == label]
            rows.append((task, name, len(sizes), median(sizes)))
    columns = (Column("task"), Column("class"), Column("texts", "count"), Column("median length", "number"))
    return Analysis("lengths", (Table("Lengths by class, characters", columns, tuple(rows)),))


@hookimpl
def peekbench_audits() -> list[AuditEntry]:
    return [AuditEntry(name="lengths", audit=lengths, summary="text lengths by class")]
