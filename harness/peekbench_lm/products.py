"""Large products of linear layers in fp32 on a CPU by oneDNN.

Torch computes them by MKL, which does not use AVX-512 on AMD processors and takes twice as long there. Products in bf16
already use oneDNN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

HAS_ONEDNN = hasattr(torch.ops.mkldnn, "_linear_pointwise")
"""Whether this build of torch computes linear layers by oneDNN."""
MIN_SIZE = 2**22
"""Multiplications in a product above which oneDNN is faster, although it compiles each shape once."""


def multiply(left: Tensor, right: Tensor) -> Tensor:
    """Return the product of two matrices.

    Its gradient is not computed, so call this function inside of a `torch.autograd.Function` or without gradients.

    Parameters
    ----------
    left
        Matrix of shape (n, inner).
    right
        Matrix of shape (inner, m), of the same data type and device.

    Examples
    --------
    >>> import torch
    >>> multiply(torch.ones(2, 3), torch.ones(3, 1))
    tensor([[3.],
            [3.]])
    """
    return _onednn_linear(left, right.T, None) if _is_suitable(left, right.T, None) else left @ right


def fast_products(device: torch.device) -> AbstractContextManager[Any]:
    """Return a region in which large fp32 products of linear layers on a CPU, and their gradients, use oneDNN.

    These products have no second derivatives and no rules for `torch.func`. A checkpoint that recomputes layers in the
    backward pass must enter the region again, as `replay_context` does.

    Parameters
    ----------
    device
        Device of the computation; nothing changes on devices other than CPUs.
    """
    return _OneDnn() if HAS_ONEDNN and device.type == "cpu" else nullcontext()


class _OneDnn(TorchFunctionMode):
    """Replaces the products of `torch.nn.Linear` and of the `Conv1D` of transformers."""

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if not kwargs and not torch.is_autocast_enabled("cpu"):
            if func is linear and _is_suitable(*args):
                return _apply(*args) if torch.is_grad_enabled() else _onednn_linear(*args)
            if func is torch.addmm and _is_suitable(args[1], args[2].T, args[0]):
                bias, hidden, weight = args
                return _apply(hidden, weight.T, bias)
        return func(*args, **(kwargs or {}))


class _Linear(torch.autograd.Function):
    """Linear layer whose product and gradients use oneDNN."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        needs_hidden, needs_weight, *_ = ctx.needs_input_grad
        ctx.save_for_backward(hidden if needs_weight else None, weight if needs_hidden else None)
        ctx.shape = hidden.shape
        return _onednn_linear(hidden, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight = ctx.saved_tensors
        needs_hidden, needs_weight, *needs_bias = ctx.needs_input_grad
        rows = gradients[0].reshape(-1, gradients[0].shape[-1])  # (n, outputs)
        return (
            multiply(rows, weight).view(ctx.shape) if needs_hidden else None,
            multiply(rows.T, hidden.reshape(len(rows), -1)) if needs_weight else None,
            *(rows.sum(0) if needed else None for needed in needs_bias),
        )


def _apply(*tensors: Tensor | None) -> Any:
    return _Linear.apply(*tensors)  # type: ignore[no-untyped-call]


def _is_suitable(hidden: Any, weight: Any, bias: Any = None) -> bool:
    """Return whether a product of a linear layer is one of large, plain fp32 matrices on a CPU."""
    tensors = [hidden, weight] if bias is None else [hidden, weight, bias]
    return (
        HAS_ONEDNN
        and all(type(tensor) in (Tensor, nn.Parameter) for tensor in tensors)
        and all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors)
        and all(tensor.layout == torch.strided for tensor in tensors)
        and weight.ndim == 2
        and hidden.shape[-1:] == weight.shape[1:]
        and (bias is None or bias.shape == weight.shape[:1])
        and prod(hidden.shape) * len(weight) >= MIN_SIZE
    )


def _onednn_linear(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(hidden, weight, bias, "none", [], "")
    return product
