"""Weights that a forward pass rounds to bf16 together, instead of layer by layer as autocast does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from peekbench_lm.devices import matrix_dtype


class _Round(torch.autograd.Function):
    """Copies of fp32 weights in bf16: one operation for all of them, and one for their gradients."""

    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        rounded = [torch.empty_like(weight, dtype=torch.bfloat16) for weight in weights]
        torch._foreach_copy_(rounded, weights)
        return tuple(rounded)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        given = [gradient for gradient in gradients if gradient is not None]
        full = [torch.empty_like(gradient, dtype=torch.float32) for gradient in given]
        torch._foreach_copy_(full, given)
        remaining = iter(full)
        return tuple(None if gradient is None else next(remaining) for gradient in gradients)


@contextmanager
def rounded_weights(body: nn.Module, device: torch.device) -> Iterator[None]:
    """In an autocast region of a GPU, compute linear layers with weights that are rounded when the block begins.

    Results are those of autocast, which rounds the weights of each layer in two operations, and their gradients in two
    more. Weights that are not trained or that another kind of layer shares are left to autocast; all of them are, if
    the backward pass recomputes layers after the block, or on a CPU, where operations cost little and memory for all
    gradients costs more.

    Parameters
    ----------
    body
        Network to compute.
    device
        Device of the computation.
    """
    layers = list(body.modules())
    is_recomputed = any(getattr(layer, "gradient_checkpointing", False) for layer in layers)
    if device.type == "cpu" or is_recomputed or matrix_dtype(device) != torch.bfloat16:
        yield
        return
    linear = [layer for layer in layers if isinstance(layer, nn.Linear | Conv1D)]
    others = [layer for layer in layers if not isinstance(layer, nn.Linear | Conv1D)]
    kept = {id(weight) for layer in others for weight in layer.parameters(recurse=False)}
    places = [
        (layer, name, weight)
        for layer in linear
        for name, weight in layer.named_parameters(recurse=False)
        if weight.requires_grad and weight.dtype == torch.float32 and id(weight) not in kept
    ]
    rounded: Sequence[Tensor] = ()
    if places:
        rounded = _Round.apply(*(weight for _, _, weight in places))  # type: ignore[no-untyped-call]
    try:
        for (layer, name, _), copy in zip(places, rounded, strict=True):
            _place(layer, name, copy)
        yield
    finally:
        for layer, name, weight in places:
            _place(layer, name, weight)


def _place(layer: nn.Module, name: str, weight: Any) -> None:
    """Set a weight of a layer to a tensor, which need not be a parameter."""
    layer._parameters[name] = weight
