"""Sends the data of tasks to machines that cannot read them, such as a file that only the main process has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from peekbench.cache import atomic_write
from peekbench.data.loading import fingerprint
from peekbench.records.data import Dataset

FOLDER = "shipped"
"""Folder in the cache with data that another machine has sent, one file for each fingerprint."""
FORM = b"2"
"""Form of packed data. Increase it if `unpack_dataset` cannot read what an earlier version has kept in a cache."""


def pack_dataset(dataset: Dataset) -> bytes:
    """Return all rows of a data set as bytes, compressed and without pickled objects.

    Parameters
    ----------
    dataset
        Rows, from any data source.

    Returns
    -------
    bytes
        SHA-256 of form and content, and the content; `unpack_dataset` reads both.
    """
    values = {field.name: getattr(dataset, field.name) for field in fields(dataset)}
    arrays: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    facts = {name: value for name, value in values.items() if name not in arrays}
    buffer = BytesIO()
    plain = json.dumps(facts, default=_plain)
    np.savez_compressed(buffer, facts=np.frombuffer(plain.encode(), dtype=np.uint8), **arrays)
    content = buffer.getvalue()
    return _checksum(content) + content


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(FORM + content).digest()


def _plain(value: object) -> Any:
    """Return a value that JSON has no form for: a label, details, or texts that are not in a list."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"the rows of a {type(value).__name__} cannot be sent to other machines")


def unpack_dataset(packed: bytes) -> Dataset | None:
    """Return the data set that `pack_dataset` has packed, or None if the bytes are damaged or of another form."""
    content = packed[32:]
    if _checksum(content) != packed[:32]:
        return None
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        facts = json.loads(arrays["facts"].tobytes())
        facts |= {name: arrays[name] for name in arrays.files if name != "facts"}
    return Dataset(**{**facts, "class_names": tuple(facts["class_names"])})


def keep_shipped(packed: bytes, identifier: str, cache: Path) -> None:
    """Keep the rows that another machine has sent, for all processes of this machine.

    Parameters
    ----------
    packed
        Return value of `pack_dataset`.
    identifier
        Fingerprint of the data.
    cache
        Folder of the cache.

    Raises
    ------
    OSError
        If the cache cannot be written.
    """
    with atomic_write(_path(identifier, cache)) as temporary:
        temporary.write_bytes(packed)


def read_shipped(identifier: str, cache: Path) -> Dataset | None:
    """Return the rows of a fingerprint that another machine has sent, or None if there are none."""
    try:
        dataset = unpack_dataset(_path(identifier, cache).read_bytes())
    except OSError:
        return None
    if dataset is None or fingerprint(dataset) != identifier:
        return None
    return dataset


def _path(identifier: str, cache: Path) -> Path:
    return cache / FOLDER / hashlib.sha256(identifier.encode()).hexdigest()
