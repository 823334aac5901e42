"""The user's own CSV, TSV, JSON Lines or Parquet file as a text classification task."""

from __future__ import annotations

from peekbench import DataSourceEntry, hookimpl
from peekbench.plugins import TaskGroupEntry
from peekbench_files.options import FileOptions
from peekbench_files.source import load


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:
    """One data source, told apart by options."""
    return [
        DataSourceEntry(
            name="files",
            options=FileOptions,
            load=load,
            summary="texts and labels in a CSV, TSV, JSON Lines or Parquet file",
        )
    ]
