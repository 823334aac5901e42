"""Losses and log probabilities of tokens under a linear head, without tables of all tokens by all words in fp32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from peekbench_lm.devices import matrix_dtype

ROWS_PER_CHUNK = 1024
"""Tokens whose scores of all words are in memory at once, if no gradient is computed."""
BLOCK_CELLS = {"cpu": 2**22, "cuda": 2**28, "mps": 2**28}
"""Scores that are in memory in fp32 at once, for each type of device: as many as the cache of a processor holds."""
MIN_FACTOR = 1e-30  # of a block of words that are impossible beside those of another block


class _SummedLoss(torch.autograd.Function):
    """Sum of the cross-entropies of (n, size) hidden states under a head with a (vocabulary, size) weight.

    The vocabulary is computed in blocks (as in Wijmans et al. 2024, arXiv 2411.09009), so that passes over scores read
    the cache of a processor, and weights are rounded there. Only one table of tokens by words is kept, in the data type
    of matrix products: the exponentials of the scores, less the largest score of a token in a block. The gradient of a
    score is its exponential times a factor of the token and the block, which products apply to hidden states.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, counts: Tensor | None
    ) -> Tensor:
        num_tokens, num_words = len(hidden), len(weight)
        size = max(1, min(num_words, BLOCK_CELLS[hidden.device.type] // max(1, num_tokens)))
        table = hidden.new_empty(num_tokens * num_words)  # block after block
        largest, sums, chosen = [], [], []
        for start in range(0, num_words, size):
            words = weight[start : start + size].to(hidden.dtype)
            cells = _take_block(table, num_tokens, start, len(words))  # (n, words)
            scores = torch.mm(hidden, words.T, out=cells).float()
            if bias is not None:
                scores += bias[start : start + size]
            chosen.append(scores.gather(1, (targets - start).clamp_(0, len(words) - 1)[:, None])[:, 0])
            largest.append(scores.amax(1))
            sums.append(scores.sub_(largest[-1][:, None]).exp_().sum(1))
            cells.copy_(scores)
        maxima = torch.stack(largest)  # (num_blocks, n)
        logarithms = (maxima + torch.stack(sums).log_()).logsumexp(0)
        blocks = (targets // size)[None]  # of the targets
        losses = logarithms - torch.stack(chosen).gather(0, blocks)[0]
        factors = (maxima - logarithms).exp_().clamp_(min=MIN_FACTOR)
        # The gradient of a target's score is its probability less one, which rounding to bf16 must not separate.
        starts = blocks[0] * size
        rows = torch.arange(num_tokens, device=hidden.device) * (num_words - starts).clamp_(max=size)
        gradients = (-losses).expm1_() / factors.gather(0, blocks)[0]
        table.scatter_(0, num_tokens * starts + rows + targets - starts, gradients.to(table.dtype))
        if counts is not None:
            losses, factors = losses * counts, factors * counts
        ctx.save_for_backward(hidden, weight, bias, table)
        ctx.factors, ctx.block_size = factors, size
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, table = ctx.saved_tensors
        hidden_gradient = torch.zeros_like(hidden, dtype=torch.float32)
        weight_gradient = torch.empty_like(weight) if ctx.needs_input_grad[1] else None
        bias_gradient = torch.empty_like(bias) if ctx.needs_input_grad[2] else None
        starts = range(0, len(weight), ctx.block_size)
        for start, factor in zip(starts, (ctx.factors * gradients[0])[..., None], strict=True):
            block = slice(start, start + ctx.block_size)
            words = weight[block].to(hidden.dtype)
            cells = _take_block(table, len(hidden), start, len(words))
            hidden_gradient.addcmul_((cells @ words).float(), factor)
            if weight_gradient is not None:
                weight_gradient[block] = cells.T @ (hidden * factor).to(hidden.dtype)
            if bias_gradient is not None:
                bias_gradient[block] = cells.T @ factor[:, 0].to(cells.dtype)
        return hidden_gradient.to(hidden.dtype), weight_gradient, bias_gradient, None, None


def _take_block(table: Tensor, num_tokens: int, start: int, num_words: int) -> Tensor:
    """Return the cells of consecutive words in a table of blocks; shape (num_tokens, num_words)."""
    return table[num_tokens * start : num_tokens * (start + num_words)].view(num_tokens, num_words)


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
    size = ROWS_PER_CHUNK
    for chunk, chunk_targets in zip(torch.split(hidden, size), torch.split(targets, size), strict=True):
        scores = head(chunk).float()  # (rows, vocabulary)
        chunks.append(scores.gather(1, chunk_targets[:, None])[:, 0] - scores.logsumexp(-1))
    return torch.cat(chunks)
