"""Optimizers of the training loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from peekbench_lm.installed import check_bitsandbytes
from peekbench_lm.recipe import Recipe


def make_optimizer(weights: Sequence[nn.Parameter], recipe: Recipe) -> torch.optim.Optimizer:
    """Return the optimizer of a recipe. Weight decay applies to matrices only.

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
    return _eight_bit_adamw(groups, recipe.learning_rate)


def _eight_bit_adamw(groups: Sequence[Mapping[str, Any]], learning_rate: float) -> torch.optim.Optimizer:
    """Return AdamW with 8-bit moments (Dettmers et al. 2022, arXiv 2110.02861), paged if the weights are on a GPU."""
    check_bitsandbytes("eight-bit optimizers", "`optimizer: adamw`")
    from bitsandbytes.optim import AdamW8bit, PagedAdamW8bit  # noqa: PLC0415 - only the extra `qlora` installs it

    is_on_gpu = any(weight.device.type == "cuda" for group in groups for weight in group["params"])
    optimizer: torch.optim.Optimizer = (PagedAdamW8bit if is_on_gpu else AdamW8bit)(groups, lr=learning_rate)
    return optimizer
