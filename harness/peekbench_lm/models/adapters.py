"""Low-rank adapters of the linear layers of a network (Hu et al. 2021, arXiv 2106.09685)."""

from __future__ import annotations

import warnings

from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
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


def keep_input_dtype(body: nn.Module) -> None:
    """Let adapters compute with the data type of their inputs, which peft otherwise copies to that of the adapters.

    The weights of adapters have fp32, as in peft: a step of the optimizer may be smaller than the rounding of bf16.
    Matrix products round them in an autocast region, so fp32 copies of hidden states would only take memory.

    Parameters
    ----------
    body
        Network with adapters, whose hidden states have the data type of matrix products.
    """
    for module in body.modules():
        if isinstance(module, LoraLayer):
            module.cast_input_dtype_enabled = False


def remove_adapters(module: nn.Module) -> None:
    """Replace each layer that has an adapter by the original layer."""
    for name, child in module.named_children():
        if hasattr(child, "base_layer"):
            setattr(module, name, child.base_layer)
        else:
            remove_adapters(child)
