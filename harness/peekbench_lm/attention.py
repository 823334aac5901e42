"""Attention among texts laid end to end, for every model that takes its attention from transformers' registry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from peekbench_lm.forward_context import current
from peekbench_lm.layout import Block, Part

NAME = "peekbench_packed"
PLAIN_WIDTH = 256  # attention matrices of wider texts are not held in memory, where they need not be
UNKNOWN = ("softcap", "s_aux", "position_bias")  # what some models ask of attention besides


def register() -> None:
    """Make the attention known to transformers under `NAME`."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, packed_attention)
    AttentionMaskInterface.register(NAME, no_mask)


def no_mask(*args: Any, **kwargs: Any) -> None:
    """The layout says what may see what."""


class _Pad(torch.autograd.Function):
    """(heads, num_tokens, size) to (heads, num_texts * width, size).

    Padding repeats some token: it is masked as a key and dropped as a query, so that its gradient is zero.
    """

    @staticmethod
    def forward(ctx: Any, packed: Tensor, block: Block) -> Tensor:
        ctx.block = block
        return packed.index_select(1, block.sources)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0].index_select(1, ctx.block.places), None


class _Unpad(torch.autograd.Function):
    """(heads, num_texts * width, size) to (heads, num_tokens, size)."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, block: Block) -> Tensor:
        ctx.block = block
        ctx.shape = padded.shape
        return padded.index_select(1, block.places)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0].new_zeros(ctx.shape).index_copy_(1, ctx.block.places, gradients[0]), None


class _Repeat(torch.autograd.Function):
    """(heads, num_placed, size) to the places of all blocks of a part where texts share tokens."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, part: Part) -> Tensor:
        ctx.part = part
        return packed.index_select(1, part.sources)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        part = ctx.part
        total = gradient.new_zeros((len(gradient), len(part.ids), gradient.shape[-1]), dtype=torch.float32)
        return total.index_add_(1, part.sources, gradient.float()).to(gradient.dtype), None


@dataclass(frozen=True, slots=True)
class _Manner:
    """How a layer attends."""

    is_causal: bool
    window: float
    """Tokens that one sees, itself and those before it; infinite where there is no limit."""
    scale: float
    dropout: float
    keep: Tensor | None
    """Which cells of all the step's attention matrices dropout keeps, flat; None where it keeps all."""


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
    causal = bool(getattr(module, "is_causal", False)) if is_causal is None else is_causal
    window = kwargs.get("sliding_window") or math.inf
    if not causal and max(situation.part.lengths) > window:
        raise ValueError("packed attention knows windows behind a token only")
    scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    if situation.part.step.num_shared and not causal:
        raise ValueError("texts share tokens only where no token sees those behind it")
    manner = _Manner(causal, window, scale, dropout, situation.keep_cells(dropout, query.shape[1]))
    padded = zip(*(_padded(situation.part, projected.squeeze(0)) for projected in (query, key, value)), strict=True)
    outputs = [_attend(block, each, manner) for block, each in zip(situation.part.blocks, padded, strict=True)]
    return torch.cat(outputs, dim=1).transpose(0, 1)[None], None


def _attend(block: Block, heads: Sequence[Tensor], manner: _Manner) -> Tensor:
    """From query, key, value, all (heads, num_texts, width, size), to (heads, num_tokens, size) of a block's tokens."""
    q, k, v = heads
    num_heads = len(q)
    if len(k) != num_heads:
        k, v = (shared.repeat_interleave(num_heads // len(shared), dim=0) for shared in (k, v))
    if manner.is_causal and manner.keep is None and PLAIN_WIDTH < block.width <= manner.window:
        # Padding stands behind a text's tokens, which do not see it.
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True, scale=manner.scale).flatten(1, 2)
    else:
        mixed = _attend_plainly(block, (q, k, v), manner)
    return _Unpad.apply(mixed, block) if len(block.places) < mixed.shape[1] else mixed  # type: ignore[no-untyped-call]


def _attend_plainly(block: Block, heads: Sequence[Tensor], manner: _Manner) -> Tensor:
    """With attention matrices; (heads, num_texts * width, size)."""
    q, k, v = heads
    scores = (q * manner.scale) @ k.transpose(-1, -2)  # (heads, num_texts, width, width)
    if block.is_ragged:
        scores = scores.masked_fill(block.padding, -math.inf)
    if manner.is_causal:
        scores = scores.masked_fill(block.later, -math.inf)
        if block.width > manner.window:  # a token sees itself and those before it, so many in all
            scores = scores.masked_fill(torch.ones_like(block.later).tril(-int(manner.window)), -math.inf)
    weights = scores.softmax(-1)
    if manner.keep is not None:
        cells = manner.keep[block.offset * len(q) :][: block.group.num_cells * len(q)]
        cells = cells.view(len(q), -1, block.width, block.width)[:, block.rows]
        weights, v = weights * cells, v / (1 - manner.dropout)
    return (weights @ v).flatten(1, 2)


def _padded(part: Part, packed: Tensor) -> list[Tensor]:
    """(heads, num_placed, size) to (heads, num_texts, width, size) of each block."""
    if part.step.num_shared:
        packed = _Repeat.apply(packed, part)  # type: ignore[no-untyped-call]
        sizes = [block.num_texts * block.width for block in part.blocks]
    else:
        sizes = [block.num_tokens for block in part.blocks]
    # Split at once: the gradient of a slice is as large as all, and zero elsewhere.
    split = list(torch.split(packed, sizes, dim=1))
    if not part.step.num_shared:
        split = [
            _Pad.apply(own, block) if block.is_ragged else own  # type: ignore[no-untyped-call]
            for own, block in zip(split, part.blocks, strict=True)
        ]
    return [
        own.reshape(len(own), block.num_texts, block.width, own.shape[-1])
        for own, block in zip(split, part.blocks, strict=True)
    ]
