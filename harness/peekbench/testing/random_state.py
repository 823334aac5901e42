"""Contract check of the global random generators: `random`, `numpy.random`, and torch's if torch is imported."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np

from peekbench.errors import ContractError
from peekbench.records.data import Inputs
from peekbench.testing.case import Case, in_both_arms
from peekbench.testing.prediction_checks import observe

GENERATORS = "a global generator, `random`, `numpy.random` or torch's"
T = TypeVar("T")
SEEDS = (20_001, 20_002)  # no seeds of fits, because a method that seeds a generator would change nothing


@in_both_arms
def check_random_state(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a method neither uses nor changes the global random generators."""
    predict = partial(case.predict, unlabeled)
    first = call_with_seed(SEEDS[0], predict)
    if np.array_equal(observe(case, unlabeled).predictions, first):
        return
    second, third = (call_with_seed(seed, predict) for seed in reversed(SEEDS))
    # If one state gives two results, the difference does not come from these generators.
    if np.array_equal(first, third) and not np.array_equal(first, second):
        raise ContractError(f"its predictions depend on the state of {GENERATORS}; use context.seed instead")


def call_with_seed(seed: int, function: Callable[[], T]) -> T:
    """Seed the generators, call a function, and check that it does not change the generators.

    Parameters
    ----------
    seed
        Seed of all generators.
    function
        Function to call.

    Raises
    ------
    ContractError
        If the function changes the state of a generator.
    """
    with _restored_state():
        _seed(seed)
        before = _states()
        value = function()
        after = _states()
    changed = [name for name, state in before.items() if after[name] != state]
    if changed:
        raise ContractError(
            f"it changes the state of {' and '.join(changed)}; use a generator of its own, such as "
            "numpy.random.default_rng(context.seed), or torch.random.fork_rng() around torch's"
        )
    return value


def _states() -> dict[str, object]:
    """Return the state of each generator in a form that can be compared."""
    numpy_state: Any = np.random.get_state()
    _, keys, *rest = numpy_state
    states: dict[str, object] = {"random": random.getstate(), "numpy.random": (keys.tobytes(), *rest)}
    if torch := _torch():
        states["torch"] = torch.get_rng_state().tolist()
    return states


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    if torch := _torch():
        torch.manual_seed(seed)


@contextmanager
def _restored_state() -> Iterator[None]:
    """Restore the state of the generators on exit, because the caller may use them."""
    torch = _torch()
    states = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if torch:
            torch.set_rng_state(states[2])


def _torch() -> Any:
    """Return the module if it is imported already."""
    return sys.modules.get("torch")
