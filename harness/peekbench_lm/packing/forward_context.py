"""Context of the current forward pass, which attention and dropout layers inside a network read.

Dropout masks depend only on the seed of the fit, the step and the layer. Each layer draws its mask for all texts of a
step at once, and each micro-batch uses its part of the mask. Results therefore do not depend on the micro-batch size.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor

from peekbench_lm.packing.layout import Part
from peekbench_lm.products import fast_products
from peekbench_lm.types import Precision

MASK_LEVELS = 2**16  # resolution of dropout probabilities: 0.1 becomes 6554 / 65536


class ForwardContext:
    """Part of a step that a forward pass computes, and the random generator of its dropout masks.

    Parameters
    ----------
    part
        Part of a step that the forward pass computes.
    seed
        Seed of the step.
    precision
        Data type of matrix products.
    """

    def __init__(self, part: Part, seed: int, precision: Precision) -> None:
        self.part = part
        self.precision = precision
        self._seed = seed
        self._num_calls = 0
        self._generator = torch.Generator(part.device)

    def keep(self, probability: float, size: int) -> Tensor | None:
        """Draw the dropout mask of the next layer.

        Parameters
        ----------
        probability
            Dropout probability.
        size
            Number of values in the mask.

        Returns
        -------
        Tensor or None
            True for each value to keep; shape (size,). None if the layer keeps all values.
        """
        self._num_calls += 1
        if not probability:
            return None
        self._generator.manual_seed((self._seed * 1_000_003 + self._num_calls) % 2**63)
        drawn = torch.empty(-(-size // 4), dtype=torch.int64, device=self.part.device)  # four 16-bit levels in each
        levels = drawn.random_(-(2**63), None, generator=self._generator).view(torch.int16)[:size]
        return levels >= round(probability * MASK_LEVELS) - MASK_LEVELS // 2

    def keep_cells(self, probability: float, num_heads: int) -> Tensor | None:
        """Draw the dropout mask of the attention matrices of all texts of the step, flat, in the order of the groups.

        Parameters and returned value are those of `keep`.
        """
        return self.keep(probability, num_heads * sum(group.num_cells for group in self.part.step.groups))


_current: ForwardContext | None = None


def current_context() -> ForwardContext:
    """Return the context of the current forward pass."""
    assert _current is not None, "call a packed model inside `forward_context`"
    return _current


@contextmanager
def forward_context(part: Part, seed: int, precision: Precision) -> Iterator[None]:
    """Enter the context of a forward pass. A context inside another one replaces it for its duration.

    Parameters
    ----------
    part
        Part of a step that the forward pass computes.
    seed
        Seed of the step.
    precision
        Data type of matrix products.
    """
    torch.manual_seed(seed)  # for layers that draw from torch's own generator
    # Autocast caches rounded weights until its region ends, so each part needs its own region.
    with (
        torch.autocast(part.device.type, torch.bfloat16, enabled=precision == "bf16"),
        _active(ForwardContext(part, seed, precision)),
    ):
        yield


def replay_context() -> AbstractContextManager[None]:
    """Return a context manager that replays the current forward pass from here on, with the same dropout masks."""
    return _active(copy.copy(current_context()))


@contextmanager
def _active(context: ForwardContext) -> Iterator[None]:
    global _current
    previous, _current = _current, context
    try:
        with fast_products(context.part.device) if context.precision == "fp32" else nullcontext():
            yield
    finally:
        _current = previous
