"""Training loop in plain torch, which uses smaller micro-batches if a device is out of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from peekbench.records import IntArray
from peekbench_lm.models.packed_network import PackedNetwork
from peekbench_lm.packing.forward_context import forward_context
from peekbench_lm.packing.layout import Part, Step
from peekbench_lm.recipe import Recipe
from peekbench_lm.seeds import derive_seed
from peekbench_lm.training.optimizers import make_optimizer
from peekbench_lm.training.rounded_weights import RoundedWeights


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts and loss of one optimizer step."""

    step: Step
    """Texts of the step."""
    num_targets: int
    """Number of tokens or texts to predict."""
    loss: Callable[[Part], Tensor]
    """Function that returns the sum of the losses of the targets of a part."""
    is_whole: bool = False
    """Whether the loss needs all texts of the step in one part, because it compares them with each other."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """Batches of all epochs."""

    batches: Iterable[Sequence[Batch]]
    """Batches of each epoch."""
    num_steps: int
    """Number of batches of all epochs."""

    @classmethod
    def of(cls, batches: Sequence[Sequence[Batch]]) -> Self:
        """Return epochs whose batches are all in memory.

        Parameters
        ----------
        batches
            Batches of each epoch.
        """
        return cls(batches, sum(map(len, batches)))


@dataclass(slots=True)
class TrainingResult:
    """Losses and duration of a training stage."""

    losses: list[float] = field(default_factory=list)
    """Mean loss per target, for each epoch."""
    num_tokens: int = 0
    """Number of tokens of all steps."""
    num_steps: int = 0
    """Number of optimizer steps."""
    seconds: float = 0.0
    """Duration in seconds."""

    def metrics(self, stage: str) -> dict[str, float]:
        """Return the metrics of a fit for this stage.

        Parameters
        ----------
        stage
            Name of the stage, which begins the names of the metrics.
        """
        return {
            f"{stage}_tokens": self.num_tokens,
            f"{stage}_seconds": self.seconds,
            f"{stage}_tokens_per_second": self.num_tokens / self.seconds,
        }

    def epoch_losses(self, stage: str) -> dict[str, float]:
        """Return the loss of each epoch of this stage as metrics of a fit.

        Parameters
        ----------
        stage
            Name of the stage, which begins the names of the metrics.
        """
        return {f"{stage}_loss_{epoch}": loss for epoch, loss in enumerate(self.losses, start=1)}


def shuffle_batches(num_texts: int, recipe: Recipe, seed: int) -> list[list[IntArray]]:
    """Return the positions of the texts of each batch of each epoch. Each epoch has a new random order.

    Parameters
    ----------
    num_texts
        Number of texts.
    recipe
        Number of epochs and size of a batch.
    seed
        Seed of the orders.
    """
    orders = [
        np.random.default_rng(derive_seed(seed, "order", epoch)).permutation(num_texts)
        for epoch in range(recipe.epochs)
    ]
    size = recipe.batch_size
    return [[order[start : start + size] for start in range(0, num_texts, size)] for order in orders]


def train(
    model: PackedNetwork,
    modules: Sequence[nn.Module],
    epochs: Epochs,
    recipe: Recipe,
    seed: int,
    on_step: Callable[[], None] = lambda: None,
) -> TrainingResult:
    """Train the trainable weights of some modules.

    Parameters
    ----------
    model
        Model that computes the losses.
    modules
        Modules with the weights to train.
    epochs
        Batches of all epochs.
    recipe
        Hyperparameters.
    seed
        Seed of the dropout masks.
    on_step
        Function to call after each step, such as the display of the progress.

    Raises
    ------
    PeekbenchError
        If a single text does not fit into memory, or the optimizer needs bitsandbytes, which is not installed.
    """
    weights = [weight for module in modules for weight in module.parameters() if weight.requires_grad]
    rounded = RoundedWeights(model, modules)
    optimizer = make_optimizer(weights, recipe, rounded)
    for module in modules:
        module.train()
    result = TrainingResult()
    started = time.perf_counter()
    for batches in epochs.batches:
        total = torch.zeros((), device=model.device)  # scalar, so that only the end of an epoch waits for a GPU
        for batch in batches:
            total += _backward(model, batch, derive_seed(seed, result.num_steps), weights, rounded)
            optimizer.step(recipe.rate(result.num_steps / epochs.num_steps))
            result.num_steps += 1
            result.num_tokens += batch.step.num_tokens
            on_step()
        result.losses.append(total.item() / max(1, sum(batch.num_targets for batch in batches)))
    _clear_gradients(weights, rounded)
    result.seconds = time.perf_counter() - started
    return result


def _backward(
    model: PackedNetwork, batch: Batch, seed: int, weights: Sequence[nn.Parameter], rounded: RoundedWeights
) -> Tensor:
    """Compute the gradient of the mean loss of a batch; return the sum of its losses, a scalar."""

    def attempt(parts: Sequence[Part]) -> Tensor:
        total = torch.zeros((), device=model.device)
        _clear_gradients(weights, rounded)
        for part in parts:
            with rounded.used():
                with forward_context(part, seed, model.precision):
                    loss = batch.loss(part)  # scalar
                (loss / max(1, batch.num_targets)).backward()  # type: ignore[no-untyped-call]
            if len(parts) > 1:
                rounded.collect_gradients()
            total += loss.detach()
        return total

    if batch.is_whole:
        num_texts = len(batch.step.texts)
        return model.micro_batch.run_whole(num_texts, lambda size: attempt(batch.step.parts(size, model.device)))
    return model.run_in_parts(batch.step, attempt)


def _clear_gradients(weights: Sequence[nn.Parameter], rounded: RoundedWeights) -> None:
    for weight in weights:
        weight.grad = None
    rounded.clear_gradients()
