"""Weights quantized to four bits with bitsandbytes: NF4 with double quantization.

Source: Dettmers et al. (2023), https://arxiv.org/abs/2305.14314
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import BitsAndBytesConfig

from peekbench import DataError
from peekbench_lm.devices import matrix_dtype
from peekbench_lm.installed import check_four_bits


def nf4_config() -> Any:
    """Return the quantization options for transformers.

    Raises
    ------
    PeekbenchError
        If bitsandbytes is not installed.
    """
    check_four_bits()
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )  # type: ignore[no-untyped-call]


def compute_in_autocast_precision(network: nn.Module, folder: Path) -> None:
    """Make quantized layers compute in the precision of the current autocast region, or in fp32 outside one.

    By default these layers always compute in one precision and round their biases to it. On some processors they also
    change the memory layout of their weights at the first prediction, which breaks later training.

    Parameters
    ----------
    network
        Network with quantized layers.
    folder
        Folder of the model, for error messages.

    Raises
    ------
    DataError
        If the network has no quantized layers.
    """
    from bitsandbytes import matmul_4bit  # noqa: PLC0415 - only the extra `qlora` installs bitsandbytes
    from bitsandbytes.nn import Linear4bit  # noqa: PLC0415 - only the extra `qlora` installs bitsandbytes

    class Nf4Linear(Linear4bit):  # type: ignore[misc]
        """Linear layer with four-bit weights that computes in the precision of the autocast region."""

        def forward(self, hidden: Tensor) -> Tensor:
            """Apply the layer to hidden states."""
            dtype = matrix_dtype(hidden.device)
            bias = None if self.bias is None else self.bias.to(dtype)
            product: Tensor = matmul_4bit(hidden.to(dtype), self.weight, quant_state=self.weight.quant_state, bias=bias)
            return product

    layers: list[Any] = [module for module in network.modules() if isinstance(module, Linear4bit)]
    if not layers:
        raise DataError(
            f"{folder}: the model has no linear layers, and only these can be quantized to four bits; choose another "
            "model, or write `weights: fp32`"
        )
    for layer in layers:
        layer.__class__ = Nf4Linear
        layer.weight.quant_state.dtype = torch.bfloat16  # halves the weights that the backward pass dequantizes
