"""Attention within each text of a packed sequence, for models that use transformers' attention registry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from peekbench_lm.devices import matrix_dtype, to_device
from peekbench_lm.forward_context import ForwardContext, current_context
from peekbench_lm.layout import Block, Part

ATTENTION_NAME = "peekbench_packed"
MAX_MATRIX_WIDTH = 256  # if possible, attention to wider texts does not store its matrices
UNSUPPORTED_ARGUMENTS = ("softcap", "s_aux", "position_bias")  # attention variants of some models


def register_attention() -> None:
    """Register packed attention with transformers under `ATTENTION_NAME`.

    No function for masks is registered, so transformers makes no mask: the layout determines which tokens a token
    attends to. Transformers would otherwise search the positions for the starts of texts and wait for a GPU.
    """
    AttentionInterface.register(ATTENTION_NAME, packed_attention)


class _Pad(torch.autograd.Function):
    """Map (heads, num_tokens, size) to (heads, num_texts * width, size).

    Padding repeats a token. It is masked as a key and dropped as a query, so its gradient is zero. Selecting tokens
    also changes the order of dimensions in memory: heads come first in attention, and tokens outside of it.
    """

    @staticmethod
    def forward(ctx: Any, packed: Tensor, block: Block) -> Tensor:
        ctx.block = block
        return packed.index_select(1, block.sources)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0].transpose(0, 1).index_select(0, ctx.block.indices).transpose(0, 1), None


class _Unpad(torch.autograd.Function):
    """Map (heads, num_texts * width, size) to (num_tokens, heads, size)."""

    @staticmethod
    def forward(ctx: Any, padded: Tensor, block: Block) -> Tensor:
        ctx.block = block
        return padded.transpose(0, 1).index_select(0, block.indices)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        # A deterministic `index_copy_` sorts its indices on a GPU, in each layer.
        block = ctx.block
        padded = gradients[0].transpose(0, 1).index_select(1, block.places)
        if len(block.indices) < padded.shape[1]:
            padded.masked_fill_(block.is_foreign, 0)
        return padded, None


class _Attend(torch.autograd.Function):
    """Attention with explicit matrices to the texts of a block, in which no operation only scales or converts.

    Query, key and value have the shape (heads, num_texts, width, size), like the output.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, block: Block, options: _AttentionOptions
    ) -> Tensor:
        shape = query.shape
        query, key, value = (heads.flatten(0, 1) for heads in (query, key, value))  # (heads * num_texts, width, size)
        scores = torch.baddbmm(query.new_empty(()), query, key.transpose(1, 2), beta=0, alpha=options.scale)
        scores = scores.view(*shape[:2], block.width, block.width)
        hidden_cells = block.hidden_cells(options.is_causal, options.window)
        if hidden_cells is not None:
            scores.masked_fill_(hidden_cells, -math.inf)
        # In fp32 inside, whatever the data type of scores.
        weights = kept = torch.ops.aten._softmax(scores, -1, False)
        cells = None
        if options.keep is not None:
            cells = options.keep[block.offset * shape[0] :][: block.group.num_cells * shape[0]]
            cells = cells.view(shape[0], -1, block.width, block.width)[:, block.rows]
            kept = torch.ops.aten.native_dropout_backward(weights, cells, 1 / (1 - options.dropout))
        ctx.options, ctx.shape = options, shape
        ctx.save_for_backward(query, key, value, weights, kept, cells)
        return torch.bmm(kept.flatten(0, 1), value).view(shape)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights, kept, cells = ctx.saved_tensors
        gradient = gradients[0].flatten(0, 1)
        value_gradient = torch.bmm(kept.flatten(0, 1).transpose(1, 2), gradient)
        of_weights = torch.bmm(gradient, value.transpose(1, 2)).view(weights.shape)
        if cells is not None:
            of_weights = torch.ops.aten.native_dropout_backward(of_weights, cells, 1 / (1 - ctx.options.dropout))
        scores = torch.ops.aten._softmax_backward_data(of_weights, weights, -1, weights.dtype).flatten(0, 1)
        empty, scale = query.new_empty(()), ctx.options.scale
        query_gradient = torch.baddbmm(empty, scores, key, beta=0, alpha=scale)
        key_gradient = torch.baddbmm(empty, scores.transpose(1, 2), query, beta=0, alpha=scale)
        return *(grad.view(ctx.shape) for grad in (query_gradient, key_gradient, value_gradient)), None, None


class _Repeat(torch.autograd.Function):
    """Select tokens of a part whose texts share tokens, which are selected once for each text."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, sources: Tensor) -> Tensor:
        ctx.sources, ctx.num_packed = sources, packed.shape[1]
        return packed.index_select(1, sources)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        total = gradient.new_zeros((len(gradient), ctx.num_packed, gradient.shape[-1]), dtype=torch.float32)
        return total.index_add_(1, ctx.sources, gradient.float()).to(gradient.dtype), None


def repeat_tokens(packed: Tensor, sources: Tensor) -> Tensor:
    """Return tokens that may be selected several times. Their gradients are summed in fp32.

    Parameters
    ----------
    packed
        Vectors of the tokens; shape (heads, num_packed, size).
    sources
        Index of each token to return; shape (n,).

    Returns
    -------
    Tensor
        Shape (heads, n, size).
    """
    selected: Tensor = _Repeat.apply(packed, sources)  # type: ignore[no-untyped-call]
    return selected


@dataclass(frozen=True, slots=True)
class _AttentionOptions:
    """Options of one attention layer."""

    is_causal: bool
    window: float
    """Number of tokens that a token attends to, itself included; infinite for no limit."""
    scale: float
    """Factor of the attention scores."""
    dropout: float
    """Dropout probability of attention weights."""
    keep: Tensor | None
    """Flat dropout mask of all attention matrices of the step; None if dropout keeps all cells."""


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

    Transformers defines the signature.

    Parameters
    ----------
    module
        Attention layer.
    query, key, value
        Projections of shape (1, num_heads, num_tokens, head_size); keys and values may have fewer heads. In
        cross-attention, each text attends to a single vector, and keys and values have shape (1, num_heads, num_texts,
        head_size).
    attention_mask
        Ignored, because the layout determines which tokens a token attends to.
    dropout
        Dropout probability of attention weights.
    scaling
        Factor of the attention scores; by default 1 / sqrt(head_size).
    is_causal
        Whether tokens attend only to themselves and earlier tokens; by default an attribute of the layer.
    kwargs
        Other arguments of the model.

    Returns
    -------
    tuple of Tensor and None
        Outputs of shape (1, num_tokens, num_heads, head_size), without attention weights.

    Raises
    ------
    ValueError
        If the model needs a kind of attention that this function does not support.
    """
    context = current_context()
    part = context.part
    causal, window = check_arguments(module, part, is_causal, kwargs)
    if value.shape[2] != query.shape[2]:
        return _attend_to_vectors(context, query, value, dropout), None
    scale = 1 / math.sqrt(query.shape[-1]) if scaling is None else scaling
    options = _AttentionOptions(causal, window, scale, dropout, context.keep_cells(dropout, query.shape[1]))
    dtype = matrix_dtype(query.device) if torch.is_autocast_enabled(query.device.type) else query.dtype
    projections = (projected.squeeze(0).to(dtype) for projected in (query, key, value))
    padded = zip(*(_pad_blocks(part, projected) for projected in projections), strict=True)
    outputs = [_attend(block, texts, options) for block, texts in zip(part.blocks, padded, strict=True)]
    if len(outputs) > 1:
        outputs = [torch.cat(outputs)]  # (num_tokens, num_heads, head_size)
    return outputs[0][None], None


def check_arguments(
    module: nn.Module, part: Part, is_causal: bool | None, kwargs: Mapping[str, Any]
) -> tuple[bool, float]:
    """Return whether attention is causal, and the number of tokens that a token attends to, itself included.

    Parameters
    ----------
    module
        Attention layer.
    part
        Part of a step that the layer computes.
    is_causal
        Whether attention is causal; None for the attribute of the layer.
    kwargs
        Other arguments of the model.

    Raises
    ------
    ValueError
        If packed texts do not support the kind of attention.
    """
    if any(kwargs.get(name) is not None for name in UNSUPPORTED_ARGUMENTS):
        raise ValueError(f"packed attention does not support {', '.join(UNSUPPORTED_ARGUMENTS)}")
    causal = bool(getattr(module, "is_causal", False)) if is_causal is None else is_causal
    window = kwargs.get("sliding_window") or math.inf
    if not causal and max(part.lengths) > window:
        raise ValueError("packed attention supports sliding windows for causal attention only")
    if not causal and part.step.num_shared:
        raise ValueError("packed attention supports shared tokens for causal attention only")
    return causal, window


def _attend_to_vectors(context: ForwardContext, query: Tensor, value: Tensor, dropout: float) -> Tensor:
    """Attend to one vector per text. Its weight is 1 for every query, so the output is the value of the vector.

    Returns
    -------
    Tensor
        Outputs of shape (1, num_tokens, num_heads, head_size).
    """
    part = context.part
    if part.step.num_shared or value.shape[2] != len(part.lengths):
        raise ValueError("packed cross-attention supports one vector per text, and no shared tokens")
    lengths = to_device(torch.tensor(part.lengths), value.device)
    output = value.transpose(1, 2).repeat_interleave(lengths, dim=1, output_size=query.shape[2])
    # (1, num_tokens, num_heads, head_size)
    num_heads = query.shape[1]
    if (keep := context.keep(dropout, part.step.num_packed * num_heads)) is not None:
        part_keep = part.take(keep.view(-1, num_heads))  # (num_tokens, num_heads)
        output = output * part_keep[None, :, :, None].to(output.dtype).mul_(1 / (1 - dropout))
    return output


def _attend(block: Block, projections: Sequence[Tensor], options: _AttentionOptions) -> Tensor:
    """Attend within the texts of a block.

    Parameters
    ----------
    block
        Texts of the projections.
    projections
        Query, key and value; each of shape (heads, num_texts, width, size).
    options
        Options of the layer.

    Returns
    -------
    Tensor
        Outputs of the tokens of the block; shape (num_tokens, heads, size).
    """
    query, key, value = projections
    num_heads = len(query)
    if len(key) != num_heads:
        key, value = (heads.repeat_interleave(num_heads // len(heads), dim=0) for heads in (key, value))
    if options.is_causal and options.keep is None and MAX_MATRIX_WIDTH < block.width <= options.window:
        # Padding follows the tokens of a text, which therefore do not attend to it.
        output = scaled_dot_product_attention(query, key, value, is_causal=True, scale=options.scale)
    else:
        output = _Attend.apply(query, key, value, block, options)  # type: ignore[no-untyped-call]
    unpadded: Tensor = _Unpad.apply(output.flatten(1, 2), block)  # type: ignore[no-untyped-call]
    return unpadded


def _pad_blocks(part: Part, packed: Tensor) -> list[Tensor]:
    """Map (heads, num_packed, size) to one tensor of shape (heads, num_texts, width, size) for each block."""
    if part.step.num_shared:
        packed = repeat_tokens(packed, part.sources)
        sizes = [block.num_texts * block.width for block in part.blocks]
    else:
        sizes = [block.num_tokens for block in part.blocks]
    split = [packed]
    if len(sizes) > 1:
        # One split, because the gradient of each slice would be as large as the whole tensor.
        split = list(torch.split(packed, sizes, dim=1))
    if not part.step.num_shared:
        padded = zip(split, part.blocks, strict=True)
        split = [_Pad.apply(tokens, block) for tokens, block in padded]  # type: ignore[no-untyped-call]
    return [
        tokens.reshape(len(tokens), block.num_texts, block.width, tokens.shape[-1])
        for tokens, block in zip(split, part.blocks, strict=True)
    ]
