"""Attention within each text of a packed sequence by the flash attention of torch, for training in bf16 on a GPU.

The kernel reads texts of different lengths where they are, without padding, and stores no attention matrix. It has no
masks, so layers with dropout use `packed_attention`, and so do predictions, which are computed in fp32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface

from peekbench_lm.packing.attention import check_arguments, packed_attention, repeat_tokens
from peekbench_lm.packing.forward_context import current_context
from peekbench_lm.packing.layout import Part

VARLEN_ATTENTION = "peekbench_varlen"
MIN_CAPABILITY = (8, 0)
"""Compute capability of the oldest GPUs on which flash attention runs."""
MAX_HEAD_SIZE, HEAD_SIZE_STEP = 256, 8  # of the kernel


def register_varlen_attention() -> None:
    """Register the attention with transformers under `VARLEN_ATTENTION`."""
    AttentionInterface.register(VARLEN_ATTENTION, varlen_attention)


def has_varlen_kernel(device: torch.device) -> bool:
    """Return whether a device has the kernel: a GPU of NVIDIA with compute capability 8.0 or higher.

    Parameters
    ----------
    device
        Device of the computation.
    """
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.cuda.get_device_capability(device) >= MIN_CAPABILITY
    )


def varlen_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend within each text, with the flash attention of torch where it applies and `packed_attention` elsewhere.

    Parameters, returned values and errors are those of `packed_attention`.
    """
    head_size = query.shape[-1]
    is_supported = (
        not dropout
        and torch.is_autocast_enabled(query.device.type)
        and value.shape[2] == query.shape[2]
        and head_size <= MAX_HEAD_SIZE
        and head_size % HEAD_SIZE_STEP == 0
    )
    if not is_supported:
        return packed_attention(module, query, key, value, attention_mask, dropout, scaling, is_causal, **kwargs)
    part = current_context().part
    causal, window = check_arguments(module, part, is_causal, kwargs)
    left = -1 if window == math.inf else int(window) - 1  # tokens before a token that it attends to
    dtype = torch.get_autocast_dtype(query.device.type)
    # On a GPU there are no fillers: each is (heads, num_packed, size).
    packed = (projected.squeeze(0).to(dtype) for projected in (query, key, value))
    output = attend_to_texts(part, *packed, window_size=(left, 0 if causal else -1), scale=scaling)
    current_context().keep(0.0, 0)  # counts the call, as `packed_attention` does for the masks of later layers
    return output[None], None


def attend_to_texts(
    part: Part, query: Tensor, key: Tensor, value: Tensor, *, window_size: tuple[int, int], scale: float | None
) -> Tensor:
    """Attend within the texts of a part, whose shared tokens come first.

    Parameters
    ----------
    part
        Part of a step.
    query, key, value
        Projections of shape (num_heads, num_packed, head_size); keys and values may have fewer heads.
    window_size
        Numbers of tokens before and after a token that it attends to; -1 for no limit.
    scale
        Factor of the attention scores; None for 1 / sqrt(head_size).

    Returns
    -------
    Tensor
        Outputs of shape (num_packed, num_heads, head_size).
    """
    if part.step.num_shared:  # the keys of a text include those of the shared tokens
        key, value = (repeat_tokens(heads, part.whole_sources) for heads in (key, value))
    arguments = {
        "cu_seq_q": part.own_bounds,
        "cu_seq_k": part.whole_bounds,
        "max_q": max(end - start for start, end in part.all_spans),
        "max_k": max(part.lengths),
        "window_size": window_size,
        "scale": scale,
        "enable_gqa": len(key) != len(query),
    }
    projections = (heads.transpose(0, 1).contiguous() for heads in (query, key, value))
    output: Tensor = _Attention.apply(*projections, arguments)  # type: ignore[no-untyped-call]
    return output


class _Attention(torch.autograd.Function):
    """Attention whose gradients are deterministic.

    The kernel of the gradient is deterministic only if torch raises errors for other operations that are not. The
    backward pass therefore computes the attention again, within a region where torch does so.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        ctx.save_for_backward(query, key, value)
        ctx.arguments = arguments
        output: Any = varlen_attn(query, key, value, **arguments)
        return output  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        with torch.enable_grad():
            inputs = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
            output: Any = varlen_attn(*inputs, **ctx.arguments)
        with _strictly_deterministic():
            return (*torch.autograd.grad(output, inputs, gradients[0].contiguous()), None)


@contextmanager
def _strictly_deterministic() -> Iterator[None]:
    """Raise errors for operations that are not deterministic."""
    was_enabled = torch.are_deterministic_algorithms_enabled()
    was_warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(was_enabled, warn_only=was_warn_only)
