"""Loss of a language-model head, with a single table of scores in memory.

Computed layer by layer, five tables of tokens by vocabulary would be in memory: the scores, their copy in fp32, the log
probabilities, and two gradients. With the 50,257 words of GPT-2 they take most of the memory of a step. Here the
gradient overwrites the scores, some rows at a time (as in Hsu et al. 2024, arXiv 2410.10989).
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.utils.weak import WeakTensorKeyDictionary

from peekbench_lm.devices import matrix_dtype
from peekbench_lm.products import multiply

CELLS_PER_CHUNK = 2**19
"""Scores per chunk, few enough for the cache of a processor."""
CELLS_PER_CHUNK_ON_GPU = 2**24
"""Scores per chunk on a GPU, enough to keep it busy."""
ROWS_PER_CHUNK_WITHOUT_GRADIENT = 1024
"""Tokens per chunk if no gradient is needed."""
ROWS_MULTIPLE = 16
"""A table on a CPU has a multiple of so many rows, so that its products are compiled for few shapes (as in
`packing.layout`, but a row costs more here)."""
WORDS_PER_CHUNK = 4096
"""Words of the vocabulary per chunk of the gradient."""


class _Buffers:
    """Memory of a head for its rounded weight and its gradient, which every step uses again.

    They are as large as the vocabulary. New memory of this size for each step costs more than the products, because
    the operating system zeroes each page, and the heap would grow by a gap for each of them.

    Parameters
    ----------
    weight
        Weight of the head.
    """

    def __init__(self, weight: Tensor) -> None:
        self._rounded = weight.new_empty(0)
        self._gradient = weight.new_empty(0)

    def round(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Return a weight in a data type, until the next call."""
        if weight.dtype == dtype:
            return weight
        if self._rounded.dtype != dtype:
            self._rounded = torch.empty_like(weight, dtype=dtype)
        return self._rounded.copy_(weight)

    def add_gradient(self, weight: Tensor, scores: Tensor, hidden: Tensor) -> None:
        """Add a product to the gradient of a weight, in chunks that fit into the cache of a processor."""
        is_first = weight.grad is None
        if is_first:
            if self._gradient.shape != weight.shape:
                self._gradient = torch.empty_like(weight)
            weight.grad = self._gradient
        assert weight.grad is not None
        size = WORDS_PER_CHUNK if weight.device.type == "cpu" else len(weight)
        for target, columns in zip(torch.split(weight.grad, size), torch.split(scores, size, dim=1), strict=True):
            product = multiply(columns.T, hidden)
            target.copy_(product) if is_first else target.add_(product)


_buffers: MutableMapping[Tensor, _Buffers] = WeakTensorKeyDictionary()
"""Buffers of the heads that are trained, by weight."""


class _SummedLoss(torch.autograd.Function):
    """Sum of the cross-entropies of (n, size) hidden states under a head with a (vocabulary, size) weight.

    The gradient of the weight is added to its attribute `grad` and not returned, so the weight must be a leaf.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, counts: Tensor | None
    ) -> Tensor:
        ctx.weight, ctx.num_targets = weight, len(hidden)
        ctx.buffers = _buffers.setdefault(weight, _Buffers(weight))
        if hidden.device.type == "cpu":
            hidden = pad(hidden, (0, 0, 0, -len(hidden) % ROWS_MULTIPLE))
        ctx.rounded = ctx.buffers.round(weight, hidden.dtype)
        scores = multiply(hidden, ctx.rounded.T)  # (num_rows, vocabulary), without the bias
        total = torch.zeros((), device=hidden.device)
        num_cells = CELLS_PER_CHUNK if scores.device.type == "cpu" else CELLS_PER_CHUNK_ON_GPU
        num_rows = max(1, num_cells // scores.shape[1])
        for start in range(0, ctx.num_targets, num_rows):
            rows = slice(start, min(start + num_rows, ctx.num_targets))
            chunk = scores[rows]  # (rows, vocabulary)
            chunk_targets = targets[rows, None]  # (rows, 1)
            logits = chunk.float() if bias is None else chunk.float().add_(bias)
            table = logits.log_softmax(-1)
            log_probabilities = table.gather(1, chunk_targets)
            table.exp_()
            table.scatter_add_(1, chunk_targets, table.new_full((len(chunk_targets), 1), -1.0))
            if counts is not None:
                chunk_counts = counts[rows, None]
                log_probabilities, table = log_probabilities * chunk_counts, table.mul_(chunk_counts)
            total -= log_probabilities.sum()
            chunk.copy_(table)
        scores[ctx.num_targets :].zero_()
        ctx.save_for_backward(hidden, scores)
        ctx.has_bias = bias is not None
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, scores = ctx.saved_tensors
        scale = gradients[0]
        needs_hidden, needs_weight, needs_bias, _, _ = ctx.needs_input_grad
        bias_gradient = None
        if needs_bias and ctx.has_bias:
            ones = scores.new_ones(1, len(scores))
            bias_gradient = (ones @ scores)[0].float().mul_(scale)  # `sum` would copy the scores to sum them in fp32
        if needs_weight:
            ctx.buffers.add_gradient(ctx.weight, scores, hidden * scale.to(hidden.dtype))
        return (
            multiply(scores, ctx.rounded)[: ctx.num_targets] * scale.to(scores.dtype) if needs_hidden else None,
            None,
            bias_gradient,
            None,
            None,
        )


def summed_loss(head: nn.Linear, hidden: Tensor, targets: Tensor, counts: Tensor | None = None) -> Tensor:
    """Return the sum of the cross-entropies of tokens, in the precision of the current autocast region.

    Parameters
    ----------
    head
        Layer that maps hidden states to a score for each word of the vocabulary.
    hidden
        Hidden states; shape (n, size).
    targets
        Token ids to predict; shape (n,).
    counts
        Weight of each token as a float, by default 1; shape (n,).
    """
    dtype = matrix_dtype(hidden.device)
    total: Tensor = _SummedLoss.apply(hidden.to(dtype), head.weight, head.bias, targets, counts)  # type: ignore[no-untyped-call]
    return total


def log_probabilities(head: nn.Linear, hidden: Tensor, targets: Tensor) -> Tensor:
    """Return natural logarithms of the probabilities of tokens, computed in fp32; shape (n,).

    Parameters
    ----------
    head
        Layer that maps hidden states to a score for each word of the vocabulary.
    hidden
        Hidden states; shape (n, size).
    targets
        Token ids; shape (n,).
    """
    chunks = []
    size = ROWS_PER_CHUNK_WITHOUT_GRADIENT
    for chunk, chunk_targets in zip(torch.split(hidden, size), torch.split(targets, size), strict=True):
        scores = head(chunk).float()  # (rows, vocabulary)
        chunks.append(scores.gather(1, chunk_targets[:, None])[:, 0] - scores.logsumexp(-1))
    return torch.cat(chunks)


def token_moments(scores: Tensor, targets: Tensor) -> Tensor:
    """Return the log probability of each target, and the mean and the variance of the log probability of a random word.

    The mean and the variance are those of the distribution that the model predicts, as in Min-K%++ (Zhang et al. 2024,
    arXiv 2404.02936, equation 3).

    Parameters
    ----------
    scores
        Scores of the words of the vocabulary; shape (n, vocabulary).
    targets
        Token ids; shape (n,).

    Returns
    -------
    Tensor
        Log probability, mean and variance in nats; shape (n, 3).
    """
    log_table = scores.float().log_softmax(-1)  # (n, vocabulary)
    table = log_table.exp()
    finite = log_table.masked_fill(table == 0, 0)  # an impossible word has the log probability -inf, and counts 0 times
    means = (table * finite).sum(-1)
    variances = (table * (finite - means[:, None]).square()).sum(-1)
    return torch.stack([log_table.gather(1, targets[:, None])[:, 0], means, variances], 1)
