"""Contract check of the global random generators: `random`, `numpy.random`, and torch's if torch is imported."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from peekbench.errors import ContractError
from peekbench.records.data import Inputs
from peekbench.testing.case import Case, in_both_arms


@in_both_arms
def check_random_state(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a method neither uses nor changes the global random generators."""
    predictions = []
    with _restored_state():
        for seed in (1, 2, 1):
            _seed(seed)
            before = _states()
            predictions.append(case.predict(unlabeled))
            after = _states()
            changed = [name for name, state in before.items() if after[name] != state]
            if changed:
                raise ContractError(
                    f"it changes the state of {' and '.join(changed)}; use a generator of its own, such as "
                    "numpy.random.default_rng(context.seed), or torch.random.fork_rng() around torch's"
                )
    # If one state gives two results, the difference does not come from these generators.
    if np.array_equal(predictions[0], predictions[2]) and not np.array_equal(predictions[0], predictions[1]):
        raise ContractError(
            "its predictions depend on the state of a global generator, `random`, `numpy.random` or torch's; "
            "use context.seed instead"
        )


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
