"""Plugin ``files``: a CSV, TSV, JSON Lines or Parquet file as a text classification task."""

from __future__ import annotations

from peekbench import DataSourceEntry, hookimpl
from peekbench.plugins import TaskGroupEntry
from peekbench_files.options import FileOptions


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:
    """Register the data source."""
    return [
        DataSourceEntry(
            name="files",
            options=FileOptions,
            load="peekbench_files.source:load",
            summary="texts and labels in a CSV, TSV, JSON Lines, Parquet or Arrow file",
        )
    ]
