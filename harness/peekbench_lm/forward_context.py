"""Context of the current forward pass, which attention and dropout layers inside a network read.

Dropout masks depend only on the seed of the fit, the step and the layer. Each layer draws its mask for all texts of a
step at once, and each micro-batch uses its part of the mask. Results therefore do not depend on the micro-batch size.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from peekbench_lm.layout import Part
from peekbench_lm.options import Precision

MASK_LEVELS = 2**16  # resolution of dropout probabilities: 0.1 becomes 6554 / 65536


class ForwardContext:
    """Part of a step that a forward pass computes, and the random generator of its dropout masks.

    Parameters
    ----------
    part
        Part of a step that the forward pass computes.
    seed
        Seed of the step.
    """

    def __init__(self, part: Part, seed: int) -> None:
        self.part = part
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
        return self.keep(probability, num_heads * sum(group.num_cells for group in self.part.groups))


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
        _active(ForwardContext(part, seed)),
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
        yield
    finally:
        _current = previous


class _Drop(torch.autograd.Function):
    """Product of hidden states, a boolean mask and a factor: one operation on a GPU, and one for the gradient."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, keep: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        ctx.save_for_backward(keep)
        product: Tensor = torch.ops.aten.native_dropout_backward(hidden, keep, factor)
        return product

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        return torch.ops.aten.native_dropout_backward(gradients[0], keep, ctx.factor), None, None


class Dropout(nn.Module):
    """Dropout that draws one mask for all texts of a step. It replaces `torch.nn.Dropout` in packed models.

    Parameters
    ----------
    p
        Dropout probability.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, hidden: Tensor) -> Tensor:
        """Apply dropout to hidden states of shape (1, num_packed, size)."""
        if not self.training or not self.p:
            return hidden
        context = current_context()
        keep = context.keep(self.p, context.part.step.num_packed * hidden.shape[-1])
        assert keep is not None
        part_keep = context.part.take(keep.view(-1, hidden.shape[-1]))  # (num_packed, size)
        dropped: Tensor = _Drop.apply(hidden, part_keep[None], 1 / (1 - self.p))  # type: ignore[no-untyped-call]
        return dropped


def replace_dropout(module: nn.Module) -> None:
    """Replace each `torch.nn.Dropout` in a module by `Dropout`."""
    for name, child in module.named_children():
        if isinstance(child, nn.Dropout):
            setattr(module, name, Dropout(child.p))
        else:
            replace_dropout(child)


def set_checkpointing(network: nn.Module, enabled: bool) -> None:
    """Enable or disable gradient checkpointing of the layers that support it.

    Parameters
    ----------
    network
        Network of a model.
    enabled
        Whether the backward pass recomputes the layers.
    """
    layers: list[Any] = [module for module in network.modules() if isinstance(module, GradientCheckpointingLayer)]
    for layer in layers:
        layer.gradient_checkpointing = enabled
        layer._gradient_checkpointing_func = partial(checkpoint, use_reentrant=False, context_fn=_contexts)


def _contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts of a layer's first computation and of its recomputation."""
    return nullcontext(), replay_context()
