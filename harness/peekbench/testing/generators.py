"""The contract check on global random generators: `random`, `numpy.random`, and torch's where torch is imported."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from peekbench.errors import ContractError
from peekbench.records.data import Inputs
from peekbench.testing.case import Case, in_both_arms


@in_both_arms
def check_random_state(case: Case, unlabeled: Inputs | None) -> None:
    """Global random generators are neither used nor changed."""
    import numpy as np

    seen = []
    with _put_back():
        for seed in (1, 2, 1):
            _seed(seed)
            before = _states()
            seen.append(case.predict(unlabeled))
            after = _states()
            changed = [name for name, state in before.items() if after[name] != state]
            if changed:
                raise ContractError(
                    f"it changes the state of {' and '.join(changed)}; use a generator of its own, "
                    "numpy.random.default_rng(context.seed) say, or torch.random.fork_rng() around torch's"
                )
    # Where one state gives two results, it is not these generators that make the difference.
    if np.array_equal(seen[0], seen[2]) and not np.array_equal(seen[0], seen[1]):
        raise ContractError(
            "its numbers depend on the state of a global generator, `random`, `numpy.random` or torch's; "
            "use context.seed instead"
        )


def _states() -> dict[str, object]:
    """The state of each generator, to compare."""
    import numpy as np

    of_numpy: Any = np.random.get_state()
    _, keys, *rest = of_numpy
    states: dict[str, object] = {"random": random.getstate(), "numpy.random": (keys.tobytes(), *rest)}
    if torch := _torch():
        states["torch"] = torch.get_rng_state().tolist()
    return states


def _seed(seed: int) -> None:
    import numpy as np

    random.seed(seed)
    np.random.seed(seed)
    if torch := _torch():
        torch.manual_seed(seed)


@contextmanager
def _put_back() -> Iterator[None]:
    """Leave the generators as they were found: whoever asks for the check may use them."""
    import numpy as np

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
    """The module, if something has imported it already."""
    return sys.modules.get("torch")
