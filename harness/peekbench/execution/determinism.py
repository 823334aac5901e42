"""Controls threads, global random generators and the state of the process, so that every fit gives the same results."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

POOL_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


ONE_FIT = RLock()
"""Held during a fit, because the generators and the state of a process are those of one fit at a time."""
_lock, _users, _limits = RLock(), set[object](), ExitStack()


@contextmanager
def one_thread_pools() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread: loaded libraries directly, libraries loaded later by the environment.

    The limits end when no thread of this process needs them any more.
    """
    user = object()
    with _lock:
        _users.add(user)
        before = {name: os.environ.get(name) for name in POOL_VARIABLES}
        pools = _pools(len(sys.modules))
        if set(before.values()) != {"1"} or any(pool.num_threads != 1 for pool in pools.lib_controllers):
            os.environ.update(dict.fromkeys(POOL_VARIABLES, "1"))
            _limits.callback(_restore, before)
            _limits.enter_context(pools.limit(limits=1))
    try:
        yield
    finally:
        with _lock:
            _users.remove(user)
            if not _users:
                _limits.close()


def _restore(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@lru_cache(maxsize=1)
def _pools(num_modules: int) -> ThreadpoolController:
    """Return the thread pools of the loaded libraries. More loaded modules cause a new search."""
    return ThreadpoolController()


@contextmanager
def preserve_global_generators() -> Iterator[None]:
    """Restore the caller's state of the global generators of `random`, numpy and torch after the block."""
    state, numpy_state = random.getstate(), np.random.get_state()
    torch = _find_torch()
    if torch is not None:
        torch_state = torch.get_rng_state()
    try:
        yield
    finally:
        with ONE_FIT:  # of another thread
            random.setstate(state)
            np.random.set_state(numpy_state)
            if torch is not None:
                torch.set_rng_state(torch_state)


def _find_torch() -> Any:
    """Return torch if it has been imported; otherwise None."""
    torch = sys.modules.get("torch")
    if hasattr(torch, "manual_seed"):  # not while another thread imports it
        return torch
    return None


def seed_generators(seed: int) -> None:
    """Seed the global generators of `random`, numpy and torch, the last on all devices, if it has been imported."""
    random.seed(seed)
    np.random.seed(seed)
    if (torch := _find_torch()) is not None:
        torch.manual_seed(seed)


class TorchWatch:
    """Notices that code has imported torch and used its global generator, which could not be seeded before."""

    def __init__(self) -> None:
        self._was_imported = _find_torch() is not None

    def was_used_unseeded(self) -> bool:
        """Return whether the generator was used since this object was made, and torch was imported since then."""
        torch = _find_torch()
        if self._was_imported or torch is None:
            return False
        is_new = torch.equal(torch.get_rng_state(), torch.Generator().get_state())
        return not is_new or bool(torch.cuda.is_initialized())


class ProcessState:
    """The working directory, the environment variables and numpy's error handling at the time of construction."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._errors = np.geterr()
        self._folder: Path | None = None
        with suppress(OSError):  # the directory has been deleted
            self._folder = Path.cwd()

    def restore(self) -> None:
        """Restore the state, so that a fit does not depend on what earlier fits have changed."""
        if self._folder is not None:
            with suppress(OSError):
                os.chdir(self._folder)
        np.seterr(**self._errors)
        if os.environ != self._environment:
            for name in os.environ.keys() - self._environment.keys():
                del os.environ[name]
            os.environ.update(self._environment)
