"""Low-rank adapters of a network's linear layers (Hu et al. 2021, arXiv 2106.09685), put in and taken out."""

from __future__ import annotations

import warnings

from torch import nn

MARK = "lora_"
"""In the names of adapters' weights."""


def put_adapters(body: nn.Module, rank: int, alpha: int, dropout: float) -> None:
    """Put fresh adapters, drawn from torch's generator, at every linear layer of a network without its head."""
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules="all-linear")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that GPT-2's layers have their weights the other way round is seen to
        inject_adapter_in_model(config, body)


def remove_adapters(module: nn.Module) -> None:
    """Put the layers that adapters were wrapped around back in their places."""
    for name, child in module.named_children():
        if hasattr(child, "base_layer"):
            setattr(module, name, child.base_layer)
        else:
            remove_adapters(child)
