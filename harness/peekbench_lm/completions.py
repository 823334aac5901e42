"""Training of a causal model to complete texts. Tokens at the start that all texts share are computed once.

The prompts of a task begin with the same instruction. Its tokens occur once in a step, and their losses are weighted by
the number of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from peekbench_lm.devices import to_device
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part, Step, count_shared
from peekbench_lm.options import Recipe
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import Batch, Epochs, TrainingResult, shuffle_batches, train


@dataclass(frozen=True, slots=True)
class Completion:
    """A text whose last tokens the model learns to predict."""

    ids: Sequence[int]
    """Token ids of the whole text."""
    start: int = 1
    """Position of the first token to predict; at least 1, because a prediction needs a preceding token."""
    weight: float = 1.0
    """Factor of the losses of the tokens."""


def train_completions(
    model: LanguageModel, completions: Sequence[Completion], recipe: Recipe, seed: int
) -> TrainingResult:
    """Train on completions.

    Parameters
    ----------
    model
        Model to train.
    completions
        Texts, of which an optimizer step has `recipe.batch_size`. Each epoch draws a new order.
    recipe
        Hyperparameters.
    seed
        Seed of order and dropout.

    Raises
    ------
    PeekbenchError
        If the optimizer needs bitsandbytes, which is not installed.
    """
    positions = shuffle_batches(len(completions), recipe, seed)
    batches = ([make_batch(model, [completions[row] for row in rows]) for rows in epoch] for epoch in positions)
    epochs = Epochs(batches, sum(map(len, positions)))
    return train(model, [model.network], epochs, recipe, seed_for(seed, "dropout"))


def make_batch(model: LanguageModel, completions: Sequence[Completion]) -> Batch:
    """Return an optimizer step on completions.

    Parameters
    ----------
    model
        Model to train.
    completions
        Texts of the step.
    """
    texts = [completion.ids for completion in completions]
    step = Step(texts, count_shared(texts) if model.is_packed else 0)
    ordered = [completions[position] for position in step.order]

    def loss(part: Part) -> Tensor:
        indices, targets, counts = find_targets(part, ordered[part.texts])
        if not len(indices):
            return model.hidden(part).sum() * 0.0
        indices, targets, counts = (to_device(tensor, model.device) for tensor in (indices, targets, counts))
        return model.loss(part, indices, part.ids[targets], counts)

    num_targets = sum(max(0, len(completion.ids) - completion.start) for completion in completions)
    return Batch(step, num_targets, loss)


def find_targets(part: Part, completions: Sequence[Completion]) -> tuple[Tensor, Tensor, Tensor]:
    """Find the tokens to predict in a part.

    Parameters
    ----------
    part
        Part of a step.
    completions
        Texts of the part.

    Returns
    -------
    indices, targets, weights
        Indices of the tokens that predict, indices of the tokens to predict, and weights; all of shape (n,).
    """
    shared = part.step.num_shared
    shared_indices = torch.arange(1, max(1, shared))
    starts = torch.tensor([completion.start for completion in completions])
    text_weights = torch.tensor([completion.weight for completion in completions])
    predicts = starts[:, None] <= shared_indices  # (num_texts, num_shared - 1)
    is_target = predicts.any(0)
    indices, targets = [(shared_indices - 1)[is_target]], [shared_indices[is_target]]
    weights = [(text_weights[:, None] * predicts).sum(0)[is_target]]
    for (first, end), completion in zip(part.spans, completions, strict=True):
        own = torch.arange(first + max(completion.start, shared, 1) - shared, end)
        targets.append(own)
        indices.append(torch.where(own > first, own - 1, shared - 1))
        weights.append(torch.full((len(own),), completion.weight))
    return torch.cat(indices), torch.cat(targets), torch.cat(weights)
