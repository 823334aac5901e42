"""Low-rank adapters of the linear layers of a network (Hu et al. 2021, arXiv 2106.09685)."""

from __future__ import annotations

import warnings

from peft import LoraConfig, inject_adapter_in_model
from torch import nn

ADAPTER_MARK = "lora_"
"""Text that the names of all adapter weights contain."""


def add_adapters(body: nn.Module, rank: int, alpha: int, dropout: float) -> None:
    """Add new adapters to every linear layer. Torch's random generator draws their weights.

    Parameters
    ----------
    body
        Network without its language-model head.
    rank
        Rank of each adapter.
    alpha
        The output of each adapter is scaled by alpha / rank.
    dropout
        Dropout probability at the input of each adapter.
    """
    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules="all-linear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft handles the transposed weights of GPT-2 and warns about them
        inject_adapter_in_model(config, body)


def remove_adapters(module: nn.Module) -> None:
    """Replace each layer that has an adapter by the original layer."""
    for name, child in module.named_children():
        if hasattr(child, "base_layer"):
            setattr(module, name, child.base_layer)
        else:
            remove_adapters(child)
