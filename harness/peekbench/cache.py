"""A cache of files that are expensive to compute.

A cached file may be missing, damaged or not writable at any time; the caller then computes its content again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

CACHE_VARIABLE = "PEEKBENCH_CACHE"


def cache_folder() -> Path:
    """Return the folder of peekbench's cache: `$PEEKBENCH_CACHE`, or the user's cache folder.

    Returns
    -------
    pathlib.Path
        The folder, which need not exist.

    Examples
    --------
    >>> (cache_folder() / "my_plugin" / "model.safetensors").name
    'model.safetensors'
    """
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "peekbench"
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path.home() / ".cache"
    return base / "peekbench"


def read_cached(path: Path) -> dict[str, Any] | None:
    """Return the value that `write_cached` wrote, or None if the file is missing or damaged.

    Parameters
    ----------
    path
        File to read.

    Returns
    -------
    dict or None
        JSON values.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "facts.json"
    ...     write_cached(path, {"num_rows": 600})
    ...     read_cached(path), read_cached(Path(folder) / "other.json")
    ({'num_rows': 600}, None)
    """
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    value: dict[str, Any] = json.loads(body)
    return value


def write_cached(path: Path, value: dict[str, Any]) -> None:
    """Write a value with its checksum, or do nothing if the folder is not writable or the disk is full.

    Parameters
    ----------
    path
        File to write; its folder is created.
    value
        JSON values.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tickets" / "facts.json"
    ...     write_cached(path, {"num_rows": 600, "teams": ["billing"]})
    ...     read_cached(path)["teams"]
    ['billing']
    """
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    with contextlib.suppress(OSError), atomic_write(path) as temporary:
        temporary.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


def describe_file(path: Path) -> dict[str, Any]:
    """Return the size, the time of the last change and the SHA-256 of a file, for `is_unchanged`.

    Parameters
    ----------
    path
        File to read.

    Returns
    -------
    dict
        JSON values: size in bytes, time in nanoseconds, and hash.

    Raises
    ------
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.csv"
    ...     _ = path.write_text("text,label")
    ...     description = describe_file(path)
    >>> description["size"], description["sha256"][:8]
    (10, '64c5ac78')
    """
    status = path.stat()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": digest}


def is_unchanged(path: Path, description: dict[str, Any]) -> bool:
    """Return whether a file is the one that was described. It is read only if its time of change differs.

    Parameters
    ----------
    path
        File to check; it may be missing.
    description
        Result of `describe_file` when the file was written.

    Returns
    -------
    bool
        False also if the file cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.arrow"
    ...     _ = path.write_text("rows")
    ...     description = describe_file(path)
    ...     before = is_unchanged(path, description)
    ...     _ = path.write_text("ROWS")
    ...     (before, is_unchanged(path, description))
    (True, False)
    """
    try:
        status = path.stat()
        if status.st_size != description["size"]:
            return False
        is_as_old = status.st_mtime_ns == description["mtime_ns"]
        return bool(is_as_old or describe_file(path)["sha256"] == description["sha256"])
    except OSError:
        return False


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Write a file completely or not at all, so that no reader ever sees half a file.

    Parameters
    ----------
    path
        The file to write. Missing folders are created.

    Yields
    ------
    pathlib.Path
        A path with the same suffix in a temporary folder beside `path`, which nobody else can write, so that the path
        cannot be a link. After the block the file replaces `path` in one step; a link at `path` is not followed.

    Raises
    ------
    OSError
        If the folder cannot be written, or the disk is full. No temporary file is left behind.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "report.md") as temporary:
    ...         _ = temporary.write_text("complete")
    ...     (Path(folder) / "report.md").read_text()
    'complete'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".", dir=path.parent, ignore_cleanup_errors=True) as folder:
        temporary = Path(folder) / f"new{path.suffix}"
        yield temporary
        temporary.replace(path)
