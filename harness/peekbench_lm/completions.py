"""Trains a causal model on the next token, from some token of each text on, what texts begin with computed once.

Prompts of a task begin with the same instruction. Its tokens stand once in a step and count as often as they would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from peekbench_lm.layout import Part, Step, count_shared
from peekbench_lm.model import LanguageModel
from peekbench_lm.training import Batch, Recipe, Trained, derive, train
from peekbench_lm.vocabulary import tied_rows


@dataclass(frozen=True, slots=True)
class Completion:
    """A text of which what comes first is given."""

    ids: Sequence[int]
    start: int = 1
    """Tokens from this place on are to be said; at least 1, because something has to stand before."""


def complete(model: LanguageModel, rows: Sequence[Sequence[Completion]], recipe: Recipe, seed: int) -> Trained:
    """Train on texts.

    Parameters
    ----------
    rows
        Texts that stay together; an optimizer step has `recipe.batch_size` rows, in an order drawn anew each epoch.
    """
    size = recipe.batch_size
    orders = [
        np.random.default_rng(derive(seed, "order", epoch)).permutation(len(rows)) for epoch in range(recipe.epochs)
    ]
    epochs = (
        [
            make_batch(model, list(chain.from_iterable(rows[row] for row in order[start : start + size])))
            for start in range(0, len(order), size)
        ]
        for order in orders
    )
    num_steps = recipe.epochs * -(-len(rows) // size)
    with tied_rows(model):
        return train(model, [model.network], epochs, num_steps, recipe, derive(seed, "dropout"))


def make_batch(model: LanguageModel, completions: Sequence[Completion]) -> Batch:
    """An optimizer step on these texts."""
    texts = [completion.ids for completion in completions]
    step = Step(texts, count_shared(texts) if model.is_packed else 0)
    starts = [completions[position].start for position in step.order]

    def loss(part: Part) -> Tensor:
        places, said, counts = _targets(part, starts[part.texts])
        if not len(places):
            return model.hidden(part).sum() * 0.0
        return model.loss(part, places.to(model.device), part.ids[said.to(model.device)], counts.to(model.device))

    num_targets = sum(max(0, len(completion.ids) - completion.start) for completion in completions)
    return Batch(step, num_targets, loss)


def _targets(part: Part, starts: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
    """What is to be said where: places of tokens, of those that follow them, and how often each counts; all (n,)."""
    shared = part.step.num_shared
    inside = torch.arange(1, max(1, shared))
    counts = (torch.tensor(starts)[:, None] <= inside).sum(0)
    before, behind = [(inside - 1)[counts > 0]], [inside[counts > 0]]
    for (first, end), start in zip(part.spans, starts, strict=True):
        own = torch.arange(first + max(start, shared, 1) - shared, end)
        behind.append(own)
        before.append(torch.where(own > first, own - 1, shared - 1))
    num_own = sum(map(len, behind[1:]))
    return torch.cat(before), torch.cat(behind), torch.cat([counts[counts > 0].float(), torch.ones(num_own)])
