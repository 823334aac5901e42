"""Training loop in plain torch, which uses smaller micro-batches if a device is out of memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from peekbench.records import IntArray
from peekbench_lm.forward_context import forward_context
from peekbench_lm.layout import Part, Step
from peekbench_lm.network import PackedNetwork
from peekbench_lm.options import Recipe
from peekbench_lm.provision import check_bitsandbytes
from peekbench_lm.seeds import derive_seed


class EmbeddingSubset(nn.Module):
    """Rows of an embedding for the tokens that occur in some texts, as weights of their own.

    Parameters
    ----------
    whole
        Embedding of all tokens.
    texts
        Token ids of each text.
    """

    def __init__(self, whole: nn.Embedding, texts: Sequence[Sequence[int]]) -> None:
        super().__init__()
        ids = sorted({token for text in texts for token in text})
        self.ids = torch.tensor(ids, device=whole.weight.device)
        """Token ids of the rows; shape (num_rows,)."""
        self.weight = nn.Parameter(whole.weight.detach()[self.ids])
        self._rows = torch.zeros(whole.num_embeddings, dtype=torch.long, device=whole.weight.device)
        self._rows[self.ids] = torch.arange(len(ids), device=whole.weight.device)
        self._padding = ids.index(whole.padding_idx) if whole.padding_idx in ids else None

    def forward(self, ids: Tensor) -> Tensor:
        """Look up token ids of shape (n,); return embeddings of shape (n, size)."""
        return embedding(self._rows[ids], self.weight, self._padding)


class TiedEmbedding(nn.Module):
    """Embedding that is also the language-model head. The gradient of looked-up rows is added to that of the head.

    Parameters
    ----------
    whole
        Embedding of all tokens.
    """

    def __init__(self, whole: nn.Embedding) -> None:
        super().__init__()
        self._whole = [whole]  # a list, so that torch does not register the weights twice

    def forward(self, ids: Tensor) -> Tensor:
        """Look up token ids of shape (n,); return embeddings of shape (n, size)."""
        (whole,) = self._whole
        rows = embedding(ids, whole.weight.detach())
        if torch.is_grad_enabled():

            def add_gradient(rows: Tensor) -> None:
                assert rows.grad is not None
                if whole.weight.grad is None:
                    whole.weight.grad = torch.zeros_like(whole.weight)
                if whole.padding_idx is not None:  # without a selection of rows, for which the program would wait
                    rows.grad.masked_fill_((ids == whole.padding_idx)[:, None], 0.0)
                whole.weight.grad.index_add_(0, ids, rows.grad)

            rows.requires_grad_().register_post_accumulate_grad_hook(add_gradient)  # type: ignore[no-untyped-call]
        return rows


@contextmanager
def train_tied_embedding(model: PackedNetwork, head: nn.Module | None = None) -> Iterator[None]:
    """Use `TiedEmbedding` during training if the word embedding is also the head and is trained.

    Parameters
    ----------
    model
        Model to train.
    head
        Last layer of the language-model head; by default that of the model's network.
    """
    whole = model.network.get_input_embeddings()
    head = model.network.get_output_embeddings() if head is None else head
    if _is_replaceable(model, whole) and head is not None and head.weight is whole.weight:
        model.embedding_override = TiedEmbedding(whole)
    try:
        yield
    finally:
        model.embedding_override = None


@contextmanager
def train_embedding_subset(
    model: PackedNetwork, texts: Sequence[Sequence[int]], recipe: Recipe, num_steps: int
) -> Iterator[None]:
    """Use `EmbeddingSubset` during training, and update the whole embedding at the end.

    The result is that of training all rows: the other rows receive the weight decay of all steps at once.

    Parameters
    ----------
    model
        Model to train.
    texts
        Token ids of the training texts.
    recipe
        Hyperparameters of the training.
    num_steps
        Number of optimizer steps.
    """
    whole = model.network.get_input_embeddings()
    if not _is_replaceable(model, whole):
        yield
        return
    whole.weight.requires_grad_(False)
    subset = model.embedding_override = EmbeddingSubset(whole, texts)
    try:
        yield
        decay = 1.0
        for step in range(num_steps):
            decay *= 1 - recipe.rate(step / num_steps) * recipe.weight_decay
        with torch.no_grad():
            whole.weight.mul_(decay)
            whole.weight[subset.ids] = subset.weight
    finally:
        model.embedding_override = None
        whole.weight.requires_grad_(True)


def _is_replaceable(model: PackedNetwork, embedding: nn.Module | None) -> bool:
    """Return whether an embedding is a plain lookup and is trained."""
    return (
        model.is_packed
        and type(embedding) is nn.Embedding
        and embedding.max_norm is None
        and bool(embedding.weight.requires_grad)
    )


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
    check_bitsandbytes("eight-bit optimizers", "`optimizer: adamw`")
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
    optimizer = make_optimizer(weights, recipe)
    for module in modules:
        module.train()
    result = TrainingResult()
    started = time.perf_counter()
    for batches in epochs.batches:
        total = torch.zeros((), device=model.device)  # scalar, so that only the end of an epoch waits for a GPU
        for batch in batches:
            total += backward(model, batch, derive_seed(seed, result.num_steps), optimizer.zero_grad)
            if recipe.max_gradient_norm:
                nn.utils.clip_grad_norm_(weights, recipe.max_gradient_norm)
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(result.num_steps / epochs.num_steps)
            optimizer.step()
            result.num_steps += 1
            result.num_tokens += batch.step.num_tokens
            on_step()
        result.losses.append(total.item() / max(1, sum(batch.num_targets for batch in batches)))
    optimizer.zero_grad()
    result.seconds = time.perf_counter() - started
    return result


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
        num_texts = len(batch.step.texts)
        return model.micro_batch.run_whole(num_texts, lambda size: attempt(batch.step.parts(size, model.device)))
    return model.run_in_parts(batch.step, attempt)
