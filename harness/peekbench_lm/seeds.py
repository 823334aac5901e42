"""Seeds for several purposes, derived from one seed."""

from __future__ import annotations

import hashlib


def seed_for(seed: int, *keys: object) -> int:
    """Return the seed for one purpose.

    Parameters
    ----------
    seed
        Seed that all purposes share.
    keys
        Purpose, such as a word and a number. Equal representations give equal seeds.

    Returns
    -------
    int
        A seed from 0 to 2**63 - 1.
    """
    digest = hashlib.blake2b(repr((seed, *keys)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
