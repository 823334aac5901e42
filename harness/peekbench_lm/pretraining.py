"""Trains a language model on unlabeled texts with its own objective."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from peekbench_lm.forward_context import computing
from peekbench_lm.layout import Part, Step
from peekbench_lm.model import LanguageModel
from peekbench_lm.training import Batch, Recipe, Trained, derive, fitting, train
from peekbench_lm.vocabulary import tied_rows

Tokens: TypeAlias = NDArray[np.int64]
NO_TARGET = -100
RANDOM_SHARE = 0.1  # of the tokens to guess: replaced by a random one; as many are left as they are, the rest masked


def pretrain(
    model: LanguageModel, texts: Sequence[Sequence[int]], recipe: Recipe, mask_probability: float, seed: int
) -> Trained:
    """Train on texts; masks are drawn anew in each epoch (Devlin et al. 2019, Liu et al. 2019)."""
    num_steps = recipe.epochs * -(-len(texts) // recipe.batch_size)
    epochs = (
        _batches(model, texts, recipe.batch_size, mask_probability, derive(seed, "epoch", epoch))
        for epoch in range(recipe.epochs)
    )
    with tied_rows(model):
        return train(model, [model.network], epochs, num_steps, recipe, derive(seed, "dropout"))


@torch.no_grad()
def mean_loss(model: LanguageModel, texts: Sequence[Sequence[int]], mask_probability: float, seed: int) -> float:
    """Mean loss of a target, without training."""
    model.network.eval()
    batches = _batches(model, texts, 64, mask_probability, seed)
    total = sum(fitting(model, partial(_sum, model, batch), batch.step).item() for batch in batches)
    return total / max(1, sum(batch.num_targets for batch in batches))


def _sum(model: LanguageModel, batch: Batch, parts: Sequence[Part]) -> Tensor:
    losses = []
    for part in parts:
        with computing(part, 0, model.precision):
            losses.append(batch.loss(part))
    return torch.stack(losses).sum()


def _batches(
    model: LanguageModel, texts: Sequence[Sequence[int]], size: int, mask_probability: float, seed: int
) -> list[Batch]:
    generator = np.random.default_rng(seed)
    pairs = []
    for position in generator.permutation(len(texts)):
        ids = np.array(texts[position], dtype=np.int64)
        if model.kind == "causal":
            pairs.append((ids, np.append(ids[1:], NO_TARGET)))
        else:
            pairs.append(mask(ids, model.tokenizer, mask_probability, generator))
    return [_batch(model, pairs[start : start + size]) for start in range(0, len(pairs), size)]


def mask(ids: Tokens, tokenizer: Any, probability: float, generator: np.random.Generator) -> tuple[Tokens, Tokens]:
    """Choose tokens to guess: 80% of them are masked, 10% replaced by random ones, 10% left as they are.

    Returns
    -------
    inputs, targets
        Of shape (length,); a target is `NO_TARGET` where there is nothing to guess. Special tokens are never chosen.
    """
    special = np.isin(ids, tokenizer.all_special_ids)
    chosen = (generator.random(len(ids)) < probability) & ~special
    fate = generator.random(len(ids))
    inputs = ids.copy()
    inputs[chosen & (fate >= 2 * RANDOM_SHARE)] = tokenizer.mask_token_id
    random = chosen & (fate < RANDOM_SHARE)
    inputs[random] = generator.integers(0, len(tokenizer), int(random.sum()))
    return inputs, np.where(chosen, ids, NO_TARGET)


def _batch(model: LanguageModel, pairs: Sequence[tuple[Tokens, Tokens]]) -> Batch:
    step = Step([inputs.tolist() for inputs, _ in pairs])
    targets = torch.from_numpy(np.concatenate([pairs[position][1] for position in step.order]))

    def loss(part: Part) -> Tensor:
        mine = part.take(targets)
        places = (mine != NO_TARGET).nonzero()[:, 0]
        if not len(places):
            return model.hidden(part).sum() * 0.0
        return model.loss(part, places.to(model.device), mine[places].to(model.device))

    return Batch(step, int((targets != NO_TARGET).sum()), loss)
