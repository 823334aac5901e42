"""Weights in four bits: NF4 with double quantization (Dettmers et al. 2023, arXiv 2305.14314), by bitsandbytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from peekbench import DataError
from peekbench_lm.installed import check_bitsandbytes, check_four_bits


def nf4_config() -> Any:
    """How transformers is told to quantize.

    Raises
    ------
    PeekbenchError
        Where bitsandbytes is not installed.
    """
    check_four_bits()
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )  # type: ignore[no-untyped-call]


def compute_by_precision(network: nn.Module, folder: Path) -> None:
    """Have quantized layers compute in the precision of the autocast region they are called in, fp32 outside of any.

    By themselves they compute in one precision for good, round their biases to it, and on some processors lay their
    weights out anew when first called for predictions, which training afterwards does not know of.

    Raises
    ------
    DataError
        Where the network has no such layers.
    """
    from bitsandbytes.nn import Linear4bit

    class Nf4Linear(Linear4bit):  # type: ignore[misc]
        def forward(self, hidden: Tensor) -> Tensor:
            from bitsandbytes import matmul_4bit

            kind = hidden.device.type
            dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
            bias = None if self.bias is None else self.bias.to(dtype)
            product: Tensor = matmul_4bit(hidden.to(dtype), self.weight, quant_state=self.weight.quant_state, bias=bias)
            return product

    layers: list[Any] = [module for module in network.modules() if isinstance(module, Linear4bit)]
    if not layers:
        raise DataError(
            f"{folder}: none of its layers can be held in four bits, which takes linear ones; choose another model, or "
            "`weights: fp32`"
        )
    for layer in layers:
        layer.__class__ = Nf4Linear
        layer.weight.quant_state.dtype = torch.bfloat16  # what a gradient's product is computed from, half as large


def eight_bit_adamw(groups: Sequence[Mapping[str, Any]], learning_rate: float) -> torch.optim.Optimizer:
    """AdamW whose running means take eight bits (Dettmers et al. 2022, arXiv 2110.02861), paged where there is a GPU.

    Raises
    ------
    PeekbenchError
        Where bitsandbytes is not installed.
    """
    check_bitsandbytes("eight-bit optimizers", "`optimizer: adamw`")
    from bitsandbytes.optim import AdamW8bit, PagedAdamW8bit

    is_on_gpu = any(weight.device.type == "cuda" for group in groups for weight in group["params"])
    optimizer: torch.optim.Optimizer = (PagedAdamW8bit if is_on_gpu else AdamW8bit)(groups, lr=learning_rate)
    return optimizer
