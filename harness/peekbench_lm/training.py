"""The training loop: plain torch, one step after the other, a smaller micro-batch where memory runs out."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from peekbench_lm.devices import is_out_of_memory
from peekbench_lm.forward_context import computing
from peekbench_lm.layout import Part, Step
from peekbench_lm.names import Optimizer, Schedule
from peekbench_lm.quantized import eight_bit_adamw

if TYPE_CHECKING:
    from peekbench_lm.model import LanguageModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recipe:
    """How weights are trained."""

    epochs: int
    batch_size: int
    learning_rate: float
    schedule: Schedule
    """Linear to zero over all steps, or constant."""
    weight_decay: float
    """Of weight matrices; biases and normalization weights have none."""
    max_gradient_norm: float
    """Larger gradients are scaled down to it; 0 for no limit."""
    warmup: float = 0.0
    """Share of the steps in which the learning rate rises from zero."""
    optimizer: Optimizer = "adamw"

    def rate(self, progress: float) -> float:
        """The learning rate after a share of the steps."""
        share = 1 - progress if self.schedule == "linear" else 1.0
        return self.learning_rate * min(share, progress / self.warmup if self.warmup else 1.0)


@dataclass(frozen=True, slots=True)
class Batch:
    """What an optimizer step is computed from."""

    step: Step
    num_targets: int
    loss: Callable[[Part], Tensor]
    """Sum of the losses of a part's targets."""


@dataclass(slots=True)
class Trained:
    """What came of training."""

    losses: list[float] = field(default_factory=list)
    """Mean loss of a target, by epoch."""
    num_tokens: int = 0
    num_steps: int = 0
    seconds: float = 0.0

    def metrics(self, stage: str) -> dict[str, float]:
        """How much a stage took, for a fit's metrics."""
        return {
            f"{stage}_tokens": self.num_tokens,
            f"{stage}_seconds": self.seconds,
            f"{stage}_tokens_per_second": self.num_tokens / self.seconds,
        }


def derive(seed: int, *keys: object) -> int:
    """A seed for one purpose, below 2**63."""
    digest = hashlib.blake2b(repr((seed, *keys)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def train(
    model: LanguageModel,
    modules: Sequence[nn.Module],
    epochs: Iterable[Sequence[Batch]],
    num_steps: int,
    recipe: Recipe,
    seed: int,
) -> Trained:
    """Train what the modules have to train.

    Parameters
    ----------
    model
        Whose device and precision to use.
    epochs
        The batches of each epoch.
    num_steps
        Their number in all epochs.
    """
    weights = [weight for module in modules for weight in module.parameters() if weight.requires_grad]
    optimizer = _optimizer(weights, recipe)
    for module in modules:
        module.train()
    trained = Trained()
    started = time.perf_counter()
    for batches in epochs:
        total = torch.zeros((), device=model.device)
        for batch in batches:
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(trained.num_steps / num_steps)
            total += _backward(model, batch, derive(seed, trained.num_steps), weights)
            if recipe.max_gradient_norm:
                nn.utils.clip_grad_norm_(weights, recipe.max_gradient_norm)
            optimizer.step()
            trained.num_steps += 1
            trained.num_tokens += batch.step.num_tokens
        trained.losses.append(total.item() / max(1, sum(batch.num_targets for batch in batches)))
    for weight in weights:
        weight.grad = None
    trained.seconds = time.perf_counter() - started
    return trained


def _optimizer(weights: Sequence[nn.Parameter], recipe: Recipe) -> torch.optim.Optimizer:
    matrices = [weight for weight in weights if weight.ndim > 1]
    others = [weight for weight in weights if weight.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
    return eight_bit_adamw(groups, recipe.learning_rate)


def _backward(model: LanguageModel, batch: Batch, seed: int, weights: Sequence[nn.Parameter]) -> Tensor:
    """Leave the gradient of the batch's mean loss in the weights; return the sum of its losses."""

    def attempt(parts: Sequence[Part]) -> Tensor:
        total = torch.zeros((), device=model.device)
        for weight in weights:
            weight.grad = None
        for part in parts:
            with computing(part, seed, model.precision):
                loss = batch.loss(part)
            (loss / max(1, batch.num_targets)).backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total

    return fitting(model, attempt, batch.step)


def fitting(model: LanguageModel, attempt: Callable[[Sequence[Part]], Tensor], step: Step) -> Tensor:
    """Compute a step in parts that fit into memory.

    Raises
    ------
    PeekbenchError
        Where a single text does not fit.
    """
    return in_parts(model, len(step.texts), lambda size: attempt(step.parts(size, model.device)))


def in_parts(model: LanguageModel, num_texts: int, attempt: Callable[[int], T]) -> T:
    """Do something with so many texts, so many of them at a time that they fit into memory.

    Raises
    ------
    PeekbenchError
        Where a single text does not fit.
    """
    while True:
        size = model.micro_batch.size(num_texts)
        try:
            return attempt(size)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            reason = error.with_traceback(None)  # the frames hold the tensors that memory is short of
        model.micro_batch.shrink(size, model.device, reason)
