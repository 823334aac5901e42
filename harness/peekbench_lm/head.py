"""The loss at a language model's head, without holding more than one table of all words' scores.

Written out as layers, a table of tokens by vocabulary is held five times over: scores, the same in fp32, their log
probabilities, and both gradients. For GPT-2's 50,257 words that is most of a step's memory. Here the scores' gradient
takes the place of the scores, some rows after the other (as in Hsu et al. 2024, arXiv 2410.10989).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

ROWS = 64
"""Tokens at a time, so that what is computed for them stays in a processor's cache."""
ROWS_WITHOUT_GRADIENT = 1024
"""Tokens at a time where nothing is kept of their scores."""


class _SummedLoss(torch.autograd.Function):
    """Sum of the cross entropies of (n, size) hidden states, by the (vocabulary, size) weight of the head."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, counts: Tensor | None
    ) -> Tensor:
        scores = linear(hidden, weight, bias)
        total = torch.zeros((), device=hidden.device)
        for start in range(0, len(scores), ROWS):
            some, wanted = scores[start : start + ROWS], targets[start : start + ROWS, None]
            table = some.float().log_softmax(-1)
            said = table.gather(1, wanted)
            table.exp_()
            table.scatter_add_(1, wanted, table.new_full((len(wanted), 1), -1.0))
            if counts is not None:
                often = counts[start : start + ROWS, None]
                said, table = said * often, table.mul_(often)
            total -= said.sum()
            some.copy_(table)
        ctx.save_for_backward(hidden, weight, scores)
        ctx.has_bias = bias is not None
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, scores = ctx.saved_tensors
        scale = gradients[0]
        for_hidden, for_weight, for_bias, _, _ = ctx.needs_input_grad
        return (
            (scores @ weight) * scale.to(scores.dtype) if for_hidden else None,
            scores.T @ (hidden * scale.to(hidden.dtype)) if for_weight else None,
            scores.sum(0, dtype=torch.float32).mul_(scale).to(scores.dtype) if for_bias and ctx.has_bias else None,
            None,
            None,
        )


def summed_loss(head: nn.Linear, hidden: Tensor, targets: Tensor, counts: Tensor | None = None) -> Tensor:
    """Sum of the cross entropies of tokens, in the precision of the autocast region it is called in.

    Parameters
    ----------
    head
        From hidden states to a score for each word.
    hidden
        (n, size).
    targets
        The words that should have been said; (n,).
    counts
        How often each counts, by default once; (n,), of the type float.
    """
    kind = hidden.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
    bias: Tensor | None = head.bias
    bias = bias if bias is None else bias.to(dtype)
    arguments = hidden.to(dtype), head.weight.to(dtype), bias, targets, counts
    total: Tensor = _SummedLoss.apply(*arguments)  # type: ignore[no-untyped-call]
    return total


def log_probabilities(head: nn.Linear, hidden: Tensor, targets: Tensor) -> Tensor:
    """Natural logarithms of the probabilities of some words, (n,); parameters as `summed_loss`. Sums are fp32."""
    found = []
    rows = ROWS_WITHOUT_GRADIENT
    for some, wanted in zip(torch.split(hidden, rows), torch.split(targets, rows), strict=True):
        scores = head(some).float()
        found.append(scores.gather(1, wanted[:, None])[:, 0] - scores.logsumexp(-1))
    return torch.cat(found)
