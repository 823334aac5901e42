"""The seeds of a run: every random number comes from the seed of the spec and the names of what it is for.

A seed never depends on the order of work, so any executor and any number of workers give the same numbers.
"""

from __future__ import annotations

import hashlib


def derive_seed(*parts: object, bits: int = 32) -> int:
    """Hash values to a seed below 2**bits that is the same on every machine and in every process.

    Examples
    --------
    >>> derive_seed(7, "news", 0) == derive_seed(7, "news", 0) != derive_seed(7, "news", 1)
    True
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[: bits // 8], "big")


def seed_of_subsample(seed: int, task: str, subsample: int) -> int:
    """Return the seed that shuffles a task's rows: all methods and sizes share their draws."""
    return derive_seed(seed, task, subsample, bits=128)


def seed_of_fit(seed: int, task: str, num_train: int, num_test: int, subsample: int) -> int:
    """Return the seed of the fits of a trial: it names neither method nor arm, which reduces the noise of effects."""
    return derive_seed(seed, "fit", task, num_train, num_test, subsample)
