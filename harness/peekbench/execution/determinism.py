"""What must be the same around every fit for its numbers to be the same: threads, and the global generators."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

POOL_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@contextmanager
def one_thread_pools() -> Iterator[None]:
    """Give BLAS and OpenMP one thread each: libraries loaded by now directly, those loaded later by the environment."""
    before = {name: os.environ.get(name) for name in POOL_VARIABLES}
    pools = _pools(len(sys.modules))
    if set(before.values()) == {"1"} and all(pool.num_threads == 1 for pool in pools.lib_controllers):
        yield  # as within another such context, or in a process that was started in one: nothing to do, at little cost
        return
    os.environ.update(dict.fromkeys(POOL_VARIABLES, "1"))
    try:
        with pools.limit(limits=1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@lru_cache(maxsize=1)
def _pools(num_modules: int) -> ThreadpoolController:
    """The pools of the libraries that are loaded; looked for again once more modules are."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def own_generators() -> Iterator[None]:
    """Put the global generators of `random` and numpy back to where the caller had them."""
    import numpy as np

    state, numpy_state = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)
