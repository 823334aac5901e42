"""A cache of files that are expensive to compute.

A cached file may be missing, damaged or not writable at any time; the caller then computes its content again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CACHE_VARIABLE = "PEEKBENCH_CACHE"


def cache_folder() -> Path:
    """Return the folder of peekbench's cache: `$PEEKBENCH_CACHE`, or the user's cache folder."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    from platformdirs import user_cache_path

    return user_cache_path("peekbench")


def read_cached(path: Path) -> dict[str, Any] | None:
    """Return the value that `write_cached` wrote, or None if the file is missing or damaged."""
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
    """
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    with contextlib.suppress(OSError), replacing(path) as temporary:
        temporary.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file atomically: yield a temporary file that replaces `path` on exit.

    Raises
    ------
    OSError
        If the folder cannot be written; the temporary file is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
