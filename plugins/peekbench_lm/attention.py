"""Attention among texts laid end to end, for every model that takes its attention from transformers' registry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from peekbench_lm.layout import Block
from peekbench_lm.situation import current

NAME = "peekbench_packed"
UNKNOWN = ("softcap", "s_aux", "position_bias")  # what some models ask of attention besides


def register() -> None:
    """Make the attention known to transformers under `NAME`."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, packed_attention)
    AttentionMaskInterface.register(NAME, no_mask)


def no_mask(*args: Any, **kwargs: Any) -> None:
    """The layout says what may see what."""


class _Pad(torch.autograd.Function):
    """(num_tokens, ...) to (num_texts * width, ...), zeros between; the gradient goes back the same way."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, places: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(places)
        return packed.new_zeros(size, *packed.shape[1:]).index_copy_(0, places, packed)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return gradients[0].index_select(0, places), None, None


class _Unpad(torch.autograd.Function):
    """(num_texts * width, ...) to (num_tokens, ...)."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.shape = padded.shape
        return padded.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return gradients[0].new_zeros(ctx.shape).index_copy_(0, places, gradients[0]), None


def packed_attention(
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
    """Attend within each text.

    Parameters
    ----------
    query, key, value
        (1, num_heads, num_tokens, head_size); keys and values may have fewer heads.

    Returns
    -------
    Tensor
        (1, num_tokens, num_heads, head_size).

    Raises
    ------
    ValueError
        Where the model asks for a kind of attention that this is not.
    """
    if any(kwargs.get(name) is not None for name in UNKNOWN):
        raise ValueError(f"packed attention knows none of {', '.join(UNKNOWN)}")
    situation = current()
    window, width = kwargs.get("sliding_window"), max(situation.part.lengths)
    if window is not None and width > window:
        raise ValueError(
            f"a text of {width} tokens is longer than the window of {window} that this model attends to, and packed "
            "attention has none; choose a smaller context_length"
        )
    causal = bool(getattr(module, "is_causal", False)) if is_causal is None else is_causal
    scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    num_heads = query.shape[1]
    heads = [projected[0].transpose(0, 1) for projected in (query, key, value)]  # (num_tokens, heads, size)
    keep = situation.keep_cells(dropout, num_heads)
    outputs = [_attend(block, heads, causal, scale, dropout, keep) for block in situation.part.blocks]
    return torch.cat(outputs)[None], None


def _attend(
    block: Block,
    heads: Sequence[Tensor],
    causal: bool,
    scale: float,
    dropout: float,
    keep: Tensor | None,
) -> Tensor:
    q, k, v = (_padded(block, projected[block.tokens]) for projected in heads)
    if k.shape[1] != q.shape[1]:
        k, v = (shared.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for shared in (k, v))
    scores = (q * scale) @ k.transpose(-1, -2)
    if block.is_ragged:
        scores = scores.masked_fill(block.padding, -math.inf)
    if causal:
        scores = scores.masked_fill(block.later, -math.inf)
    weights = scores.softmax(-1)
    if keep is not None:
        cells = keep[block.offset * q.shape[1] :][: block.group.num_cells * q.shape[1]]
        cells = cells.view(block.group.end - block.group.first, q.shape[1], block.width, block.width)[block.rows]
        weights = weights * cells * (1 / (1 - dropout))
    mixed = (weights @ v).transpose(1, 2)  # (num_texts, width, heads, size)
    if not block.is_ragged:
        return mixed.reshape(-1, *mixed.shape[2:])
    unpadded: Tensor = _Unpad.apply(mixed.reshape(-1, *mixed.shape[2:]), block.places)  # type: ignore[no-untyped-call]
    return unpadded


def _padded(block: Block, packed: Tensor) -> Tensor:
    """(num_tokens, heads, size) to (num_texts, heads, width, size)."""
    if block.is_ragged:
        packed = _Pad.apply(packed, block.places, block.num_texts * block.width)  # type: ignore[no-untyped-call]
    return packed.reshape(block.num_texts, block.width, *packed.shape[1:]).transpose(1, 2)
