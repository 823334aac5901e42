"""Pretraining on unlabeled texts: masked language modeling, or prediction of the next token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from peekbench_lm.devices import to_device
from peekbench_lm.forward_context import forward_context
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Part, Step
from peekbench_lm.options import Recipe
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import Batch, Epochs, TrainingResult, train

Tokens: TypeAlias = NDArray[np.int64]
NO_TARGET = -100
RANDOM_SHARE = 0.1  # of the selected tokens; the same share stays unchanged, and the rest is masked
EVALUATION_BATCH_SIZE = 64


def pretrain(
    model: LanguageModel,
    texts: Sequence[Sequence[int]],
    recipe: Recipe,
    mask_probability: float,
    seed: int,
    report: Callable[[float], None] = lambda _: None,
) -> TrainingResult:
    """Train on texts with the objective of the model. Each epoch draws new masks (Devlin et al. 2019, Liu et al. 2019).

    Parameters
    ----------
    model
        Model to train.
    texts
        Token ids of each text.
    recipe
        Hyperparameters.
    mask_probability
        Fraction of tokens that a masked model predicts.
    seed
        Seed of order, masks and dropout.
    report
        Receives the share of the steps that are done, after each.
    """
    num_steps = recipe.epochs * -(-len(texts) // recipe.batch_size)
    batches = (
        _make_batches(model, texts, recipe.batch_size, mask_probability, seed_for(seed, "epoch", epoch))
        for epoch in range(recipe.epochs)
    )
    return train(model, [model.network], Epochs(batches, num_steps), recipe, seed_for(seed, "dropout"), report)


@torch.no_grad()
def mean_loss(model: LanguageModel, texts: Sequence[Sequence[int]], mask_probability: float, seed: int) -> float:
    """Return the mean loss per target, without training.

    Parameters
    ----------
    model
        Model to evaluate.
    texts
        Token ids of each text.
    mask_probability
        Fraction of tokens that a masked model predicts.
    seed
        Seed of the masks.
    """
    model.network.eval()
    batches = _make_batches(model, texts, EVALUATION_BATCH_SIZE, mask_probability, seed)
    total = sum(model.run_in_parts(batch.step, partial(_sum_losses, model, batch)).item() for batch in batches)
    return total / max(1, sum(batch.num_targets for batch in batches))


def _sum_losses(model: LanguageModel, batch: Batch, parts: Sequence[Part]) -> Tensor:
    losses = []
    for part in parts:
        with forward_context(part, 0, model.precision):
            losses.append(batch.loss(part))
    return torch.stack(losses).sum()


def _make_batches(
    model: LanguageModel, texts: Sequence[Sequence[int]], size: int, mask_probability: float, seed: int
) -> list[Batch]:
    """Return the batches of one epoch, with texts in random order."""
    generator = np.random.default_rng(seed)
    pairs = []
    for position in generator.permutation(len(texts)):
        ids = np.array(texts[position], dtype=np.int64)
        if model.kind == "causal":
            pairs.append((ids, np.append(ids[1:], NO_TARGET)))
        else:
            pairs.append(mask_tokens(ids, model.tokenizer, mask_probability, generator))
    return [_make_batch(model, pairs[start : start + size]) for start in range(0, len(pairs), size)]


def mask_tokens(
    ids: Tokens, tokenizer: Any, probability: float, generator: np.random.Generator
) -> tuple[Tokens, Tokens]:
    """Select tokens to predict: 80% of them are masked, 10% replaced by random tokens, and 10% left unchanged.

    Parameters
    ----------
    ids
        Token ids of a text; shape (length,).
    tokenizer
        Tokenizer of the model. Its special tokens are never selected.
    probability
        Probability that a token is selected.
    generator
        Source of random numbers.

    Returns
    -------
    inputs, targets
        Inputs of the model, and token ids to predict or `NO_TARGET`; both of shape (length,).
    """
    is_special = np.isin(ids, tokenizer.all_special_ids)
    is_selected = (generator.random(len(ids)) < probability) & ~is_special
    draws = generator.random(len(ids))
    inputs = ids.copy()
    inputs[is_selected & (draws >= 2 * RANDOM_SHARE)] = tokenizer.mask_token_id
    is_random = is_selected & (draws < RANDOM_SHARE)
    inputs[is_random] = generator.integers(0, len(tokenizer), int(is_random.sum()))
    return inputs, np.where(is_selected, ids, NO_TARGET)


def _make_batch(model: LanguageModel, pairs: Sequence[tuple[Tokens, Tokens]]) -> Batch:
    """Return the batch of some pairs of inputs and targets."""
    step = Step([inputs.tolist() for inputs, _ in pairs])
    targets = torch.from_numpy(np.concatenate([pairs[position][1] for position in step.order]))  # (num_packed,)

    def loss(part: Part) -> Tensor:
        part_targets = part.take(targets)
        indices = (part_targets != NO_TARGET).nonzero()[:, 0]  # (num_targets of the part,)
        if not len(indices):
            return model.hidden(part).sum() * 0.0
        return model.loss(part, to_device(indices, model.device), to_device(part_targets[indices], model.device))

    return Batch(step, int((targets != NO_TARGET).sum()), loss)
