"""JSON files that may vanish, be damaged or not be writable at any time: the worst is that a value is made again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any] | None:
    """The value that was written, or None where there is none or it is damaged."""
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    value: dict[str, Any] = json.loads(body)
    return value


def write(path: Path, value: dict[str, Any]) -> None:
    """Write in one step, so that no other process reads half a file; where that cannot be done, do without."""
    import tempfile

    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    with contextlib.suppress(OSError):  # a read-only or full disk costs time, not correctness
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
            os.replace(temporary, path)  # noqa: PTH105 - both are plain paths of one folder
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
