"""Optimizers of the training loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from peekbench_lm.installed import check_bitsandbytes
from peekbench_lm.recipe import Recipe
from peekbench_lm.training.rounded_weights import RoundedWeights

BETAS, EPSILON = (0.9, 0.999), 1e-8
CHUNK_SIZE = 2**17
"""Weights per chunk; their values, gradients and moments fit into the cache of a core."""
NORM_EPSILON = 1e-6  # of `torch.nn.utils.clip_grad_norm_`

_moments: MutableMapping[Tensor, tuple[Tensor, Tensor]] = WeakTensorKeyDictionary()
"""Memory of the moments of the weights that are trained, by weight. All trainings of a model use it."""


class Optimizer(Protocol):
    """Updates weights."""

    def step(self, rate: float) -> None:
        """Scale the gradients down to the maximal norm of the recipe, and update the weights.

        Parameters
        ----------
        rate
            Learning rate.
        """
        ...


def make_optimizer(weights: Sequence[nn.Parameter], recipe: Recipe, rounded: RoundedWeights) -> Optimizer:
    """Return the optimizer of a recipe. Weight decay applies to matrices only.

    Parameters
    ----------
    weights
        Weights to train.
    recipe
        Hyperparameters.
    rounded
        Rounded copies of weights, which have the gradients.

    Raises
    ------
    PeekbenchError
        If the optimizer needs bitsandbytes, which is not installed.
    """
    if recipe.optimizer == "adamw" and all(weight.device.type == "cpu" for weight in weights):
        return ChunkedAdamW(weights, recipe, rounded)
    return LibraryOptimizer(weights, recipe)


class ChunkedAdamW:
    """AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101) on a CPU, one chunk of a weight after another.

    Steps of short texts spend much of their time on reading and writing weights, gradients and moments. Here, each
    chunk passes through the cache once: its gradient is converted to fp32, scaled and applied, and the weight rounded.

    Parameters
    ----------
    weights
        Weights to train.
    recipe
        Hyperparameters.
    rounded
        Rounded copies of weights. If a copy has a gradient, it is that of the weight.
    """

    def __init__(self, weights: Sequence[nn.Parameter], recipe: Recipe, rounded: RoundedWeights) -> None:
        self._weights = weights
        self._recipe = recipe
        self._rounded = rounded
        self._num_steps = torch.zeros(())
        self._scratch = torch.empty(CHUNK_SIZE)
        for weight in weights:
            weight.data = weight.data.contiguous()
            if weight not in _moments:
                _moments[weight] = torch.empty_like(weight), torch.empty_like(weight)
            for moment in _moments[weight]:
                moment.zero_()

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Scale the gradients down to the maximal norm of the recipe, and update the weights."""
        found = ((weight, self._gradient(weight)) for weight in self._weights)
        gradients = {weight: _split(gradient.contiguous()) for weight, gradient in found if gradient is not None}
        divisor = self._divisor(gradients.values()) if gradients and self._recipe.max_gradient_norm else None
        self._num_steps += 1
        for weight, parts in gradients.items():
            chunks = zip(_split(weight), *map(_split, _moments[weight]), parts, strict=True)
            copy = self._rounded.copy(weight)
            copies = None if copy is None else _split(copy)
            decay = self._recipe.weight_decay if weight.ndim > 1 else 0.0
            for number, (values, first, second, part) in enumerate(chunks):
                torch._fused_adamw_(
                    [values], [self._exact(part)], [first], [second], [], [self._num_steps], lr=rate, beta1=BETAS[0],
                    beta2=BETAS[1], weight_decay=decay, eps=EPSILON, amsgrad=False, maximize=False, grad_scale=divisor,
                )  # fmt: skip
                if copies is not None:
                    copies[number].copy_(values)

    def _gradient(self, weight: nn.Parameter) -> Tensor | None:
        copy = self._rounded.copy(weight)
        return weight.grad if copy is None or copy.grad is None else copy.grad

    def _exact(self, part: Tensor) -> Tensor:
        """Return a chunk of a gradient in fp32, until the next call."""
        return part if part.dtype == torch.float32 else self._scratch[: len(part)].copy_(part)

    def _divisor(self, gradients: Iterable[Sequence[Tensor]]) -> Tensor:
        """Return the number by which gradients are divided: 1, or more if their norm is too large; a scalar."""
        norms = [torch.linalg.vector_norm(self._exact(part)) for parts in gradients for part in parts]
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms))
        return torch.clamp((norm + NORM_EPSILON) / self._recipe.max_gradient_norm, min=1)


def _split(tensor: Tensor) -> Sequence[Tensor]:
    """Return the values of a contiguous tensor in chunks that share its memory."""
    return torch.split(tensor.view(-1), CHUNK_SIZE)


class LibraryOptimizer:
    """An optimizer of torch or of bitsandbytes.

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

    def __init__(self, weights: Sequence[nn.Parameter], recipe: Recipe) -> None:
        self._weights, self._max_norm = weights, recipe.max_gradient_norm
        matrices = [weight for weight in weights if weight.ndim > 1]
        others = [weight for weight in weights if weight.ndim <= 1]
        groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self._optimizer = (
            torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=BETAS, eps=EPSILON, fused=True)
            if recipe.optimizer == "adamw"
            else _eight_bit_adamw(groups, recipe.learning_rate)
        )

    def step(self, rate: float) -> None:
        """Scale the gradients down to the maximal norm of the recipe, and update the weights."""
        if self._max_norm:
            nn.utils.clip_grad_norm_(self._weights, self._max_norm)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()


def _eight_bit_adamw(groups: Sequence[Mapping[str, Any]], learning_rate: float) -> torch.optim.Optimizer:
    """Return AdamW with 8-bit moments (Dettmers et al. 2022, arXiv 2110.02861), paged if the weights are on a GPU."""
    check_bitsandbytes("eight-bit optimizers", "`optimizer: adamw`")
    from bitsandbytes.optim import AdamW8bit, PagedAdamW8bit  # noqa: PLC0415 - only the extra `qlora` installs it

    is_on_gpu = any(weight.device.type == "cuda" for group in groups for weight in group["params"])
    optimizer: torch.optim.Optimizer = (PagedAdamW8bit if is_on_gpu else AdamW8bit)(groups, lr=learning_rate)
    return optimizer
