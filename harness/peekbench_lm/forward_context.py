"""What is being computed just now, as dropout and attention deep inside a network need to know it.

Dropout's masks depend on the fit's seed, the step and the layer alone: a mask is drawn for all texts of a step at once,
and a micro-batch takes its part of it. So numbers do not depend on how many texts fit into memory.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

from peekbench_lm.layout import Part
from peekbench_lm.names import Precision

LANES = 2**16  # a mask's resolution: dropout 0.1 is 6554 / 65536


class ForwardContext:
    """Which part of which step is being computed, and where its random numbers come from."""

    def __init__(self, part: Part, seed: int) -> None:
        self.part = part
        self._seed = seed
        self._calls = 0
        self._generator = torch.Generator(part.device)

    def keep(self, probability: float, size: int) -> Tensor | None:
        """Which of `size` numbers a layer keeps, the next layer at each call; None where it keeps all."""
        self._calls += 1
        if not probability:
            return None
        self._generator.manual_seed((self._seed * 1_000_003 + self._calls) % 2**63)
        drawn = torch.empty(-(-size // 4), dtype=torch.int64, device=self.part.device)
        lanes = drawn.random_(-(2**63), None, generator=self._generator).view(torch.int16)[:size]
        return lanes >= round(probability * LANES) - LANES // 2

    def keep_cells(self, probability: float, num_heads: int) -> Tensor | None:
        """The same for the attention matrices of all the step's texts, group after group, flat."""
        return self.keep(probability, num_heads * sum(group.num_cells for group in self.part.step.groups))


_situation: ForwardContext | None = None


def current() -> ForwardContext:
    """What is being computed."""
    assert _situation is not None, "a packed model is called through `peekbench_lm.model`"
    return _situation


@contextmanager
def computing(part: Part, seed: int, precision: Precision) -> Iterator[None]:
    """Compute a part, matrix products in a precision."""
    global _situation
    torch.manual_seed(seed)  # for layers that draw from torch's own generator
    _situation = ForwardContext(part, seed)
    try:
        # One part at a time: weights that autocast has rounded once stay so until it is left.
        with torch.autocast(part.device.type, torch.bfloat16, enabled=precision == "bf16"):
            yield
    finally:
        _situation = None


def replaying() -> AbstractContextManager[None]:
    """Compute something again, later, as it is computed from here on: with the same masks of dropout."""
    return _again(copy.copy(current()))


@contextmanager
def _again(earlier: ForwardContext) -> Iterator[None]:
    global _situation
    before, _situation = _situation, earlier
    try:
        yield
    finally:
        _situation = before
