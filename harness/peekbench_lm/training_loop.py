"""Training loop in plain torch, which uses smaller micro-batches if a device is out of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from peekbench.records import IntArray
from peekbench_lm.extras import check_extra
from peekbench_lm.forward_context import forward_context
from peekbench_lm.layout import Part, Step
from peekbench_lm.network import PackedNetwork
from peekbench_lm.options import Recipe
from peekbench_lm.seeds import seed_for

CLIP_OFFSET = 1e-6  # as in `torch.nn.utils.clip_grad_norm_`


def make_optimizer(weights: Sequence[nn.Parameter], recipe: Recipe) -> torch.optim.Optimizer:
    """Return the optimizer of a recipe. Weight decay applies to matrices only.

    The moments of AdamW have fp32, or eight bits (Dettmers et al. 2022, arXiv 2110.02861), paged if they are on a GPU.

    Parameters
    ----------
    weights
        Weights to train.
    recipe
        Hyperparameters.

    Raises
    ------
    PeekbenchError
        If the optimizer needs bitsandbytes, which is not installed.
    """
    matrices = [weight for weight in weights if weight.ndim > 1]
    others = [weight for weight in weights if weight.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
    check_extra("qlora", "eight-bit optimizers", "`optimizer: adamw`")
    from bitsandbytes.optim import AdamW8bit, PagedAdamW8bit  # noqa: PLC0415 - only the extra `qlora` installs it

    is_on_gpu = any(weight.device.type == "cuda" for weight in weights)
    optimizer: torch.optim.Optimizer = (PagedAdamW8bit if is_on_gpu else AdamW8bit)(groups, lr=recipe.learning_rate)
    return optimizer


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
        np.random.default_rng(seed_for(seed, "order", epoch)).permutation(num_texts) for epoch in range(recipe.epochs)
    ]
    size = recipe.batch_size
    return [[order[start : start + size] for start in range(0, num_texts, size)] for order in orders]


def train(
    model: PackedNetwork,
    modules: Sequence[nn.Module],
    epochs: Epochs,
    recipe: Recipe,
    seed: int,
    report: Callable[[float], None] = lambda _: None,
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
    report
        Receives the share of the steps that are done, after each.

    Raises
    ------
    PeekbenchError
        If the optimizer needs bitsandbytes, which is not installed.
    """
    weights = [weight for module in modules for weight in module.parameters() if weight.requires_grad]
    optimizer = make_optimizer(weights, recipe)
    for module in modules:
        module.train()
    result = TrainingResult()
    started = time.perf_counter()
    for batches in epochs.batches:
        total = torch.zeros((), device=model.device)  # scalar, so that only the end of an epoch waits for a GPU
        for batch in batches:
            total += backward(model, batch, seed_for(seed, result.num_steps), optimizer.zero_grad)
            if recipe.max_gradient_norm:
                clip_gradients(optimizer, weights, recipe.max_gradient_norm)
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(result.num_steps / epochs.num_steps)
            optimizer.step()
            result.num_steps += 1
            result.num_tokens += batch.step.num_tokens
            report(result.num_steps / epochs.num_steps)
        result.losses.append(total.item() / max(1, sum(batch.num_targets for batch in batches)))
    optimizer.zero_grad()
    result.seconds = time.perf_counter() - started
    return result


def clip_gradients(optimizer: Any, weights: Sequence[nn.Parameter], max_norm: float) -> None:
    """Limit the norm of all gradients together, in the next step of the optimizer if it can scale them.

    Parameters
    ----------
    optimizer
        Optimizer of the weights.
    weights
        Weights with gradients.
    max_norm
        Largest norm.
    """
    if not getattr(optimizer, "_step_supports_amp_scaling", False):
        nn.utils.clip_grad_norm_(weights, max_norm)
        return
    norm = nn.utils.get_total_norm([weight.grad for weight in weights if weight.grad is not None])
    # A step divides gradients by this number, so they are not read and written once more.
    optimizer.grad_scale = ((norm + CLIP_OFFSET) / max_norm).clamp(min=1.0)


def backward(model: PackedNetwork, batch: Batch, seed: int, clear_gradients: Callable[[], None]) -> Tensor:
    """Compute the gradient of the mean loss of a batch; return the sum of its losses, a scalar.

    Parameters
    ----------
    model
        Model that computes the losses.
    batch
        Texts and loss of the step.
    seed
        Seed of the dropout masks.
    clear_gradients
        Function that deletes the gradients of earlier steps, and of an attempt that ran out of memory.
    """

    def attempt(parts: Sequence[Part]) -> Tensor:
        total = torch.zeros((), device=model.device)
        clear_gradients()
        for part in parts:
            with forward_context(part, seed, model.precision):
                loss = batch.loss(part)  # scalar
            (loss / max(1, batch.num_targets)).backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total

    if batch.is_whole:
        return attempt(batch.step.parts(len(batch.step.texts), model.device))
    return model.run_in_parts(batch.step, attempt)
