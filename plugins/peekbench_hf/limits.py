"""Limits on the unpacked sizes of compressed files, so that a small file cannot fill the memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import pyarrow as pa
import pyarrow.parquet as pq

from peekbench import DataError
from peekbench.data import size_limit

GIGABYTE = 10**9
REMEDY = "if you trust the file, set the option `max_gigabytes` to a larger number"
BYTES_PER_ROW = 16  # at least, in memory, even if all rows have the same value


def check_unpacked_sizes(paths: Sequence[Path], max_gigabytes: float | None) -> None:
    """Refuse files that would be much larger when unpacked, from the sizes that they declare.

    Parameters
    ----------
    paths
        Files to check. Those of formats without compression are not opened.
    max_gigabytes
        Largest unpacked size of a file. By default 50 times its size, but at least 0.25 and at most 16.

    Raises
    ------
    DataError
        If a file declares a larger size.
    """
    for path in paths:
        try:
            declared = _declared_size(path)
            size = path.stat().st_size
        except (OSError, ValueError, BadZipFile, NotImplementedError, pa.ArrowException):
            continue  # reading the file reports the problem
        limit = size_limit(size, max_gigabytes)
        if declared > limit:
            raise DataError(
                f"{path}: its {size:,} bytes unpack to {declared / GIGABYTE:,.2f} GB, more than the limit of "
                f"{limit / GIGABYTE:,.2f} GB; {REMEDY}"
            )


def _declared_size(path: Path) -> int:
    """Return the size in bytes that a file declares for its unpacked content; 0 for formats without compression."""
    if path.suffix == ".zip":
        with ZipFile(path) as archive:
            return sum(member.file_size for member in archive.infolist())
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            metadata = file.metadata
            groups = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
            return int(groups + metadata.num_rows * BYTES_PER_ROW)
    return 0
