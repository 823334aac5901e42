"""Files that may vanish, be damaged or not be writable at any time: the worst is that what they hold is made again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CACHE_VARIABLE = "PEEKBENCH_CACHE"


def cache_folder() -> Path:
    """Where plugins keep what is dear to compute: $PEEKBENCH_CACHE, else the user's cache folder."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    from platformdirs import user_cache_path

    return user_cache_path("peekbench")


def read_cached(path: Path) -> dict[str, Any] | None:
    """The value that `write_cached` wrote, or None where there is none or it is damaged."""
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    value: dict[str, Any] = json.loads(body)
    return value


def write_cached(path: Path, value: dict[str, Any]) -> None:
    """Keep a value; where that cannot be done, do without: a read-only or full disk costs time, not correctness."""
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    with contextlib.suppress(OSError), replacing(path) as temporary:
        temporary.write_bytes(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file to write, which then takes the place of `path` in one step: nobody ever reads half a file.

    Raises
    ------
    OSError
        Where the folder cannot be written; nothing is left behind.
    """
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
