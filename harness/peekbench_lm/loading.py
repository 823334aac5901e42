"""Networks from files in the format of transformers, with weights of 32 or of four bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, BitsAndBytesConfig
from transformers.utils import logging as untyped_logging

from peekbench import DataError
from peekbench_lm.defects import check_code, check_weights
from peekbench_lm.devices import is_out_of_memory, matrix_dtype
from peekbench_lm.extras import check_extra
from peekbench_lm.options import Kind, WeightMode


class AutocastLinear(nn.Linear):
    """Linear layer with weights of any data type, which computes in that of the current autocast region or in fp32."""

    def forward(self, hidden: Tensor) -> Tensor:
        """Apply the layer to hidden states."""
        dtype = matrix_dtype(hidden.device)
        bias = self._parameters["bias"]
        return linear(hidden.to(dtype), self.weight.to(dtype), None if bias is None else bias.to(dtype))


def store_in_bf16(network: nn.Module) -> None:
    """Round the weights of linear and embedding layers to bf16, and let all layers return the same data type.

    In an autocast region, layers return bf16, also normalization, which computes in fp32. Outside of one, they return
    fp32, computed from the rounded weights. Weights of other layers, and those that they share, are not rounded.

    Parameters
    ----------
    network
        Network with fp32 weights; its quantized layers already compute in the precision of the autocast region.
    """
    rounded: list[nn.Parameter] = []
    kept: set[int] = set()
    for module in network.modules():
        weights = list(module.parameters(recurse=False))
        if type(module) is nn.Linear:
            module.__class__ = AutocastLinear
        elif weights and not _is_quantized(module):
            module.register_forward_hook(_cast_output)
        if type(module) is AutocastLinear or isinstance(module, nn.Embedding) or _is_quantized(module):
            rounded += [weight for weight in weights if weight.is_floating_point()]
        else:
            kept.update(map(id, weights))
    for weight in rounded:
        if id(weight) not in kept:
            weight.data = weight.data.to(torch.bfloat16)


def _is_quantized(module: nn.Module) -> bool:
    """Return whether a module is a linear layer with quantized weights."""
    return isinstance(module, nn.Linear) and not module.weight.is_floating_point()


def _cast_output(module: nn.Module, arguments: Any, output: Any) -> Any:
    """Return the output of an embedding or of normalization in the data type of matrix products."""
    return output.to(matrix_dtype(output.device)) if isinstance(output, Tensor) else output


def nf4_config() -> Any:
    """Return the quantization options for transformers."""
    check_extra("qlora", "four-bit weights", "`weights: fp32`")
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


transformers_logging: Any = untyped_logging


def load_network(folder: Path, kind: Kind, weight_mode: WeightMode, device: torch.device) -> Any:
    """Return a network with its language-model head."""
    check_weights(folder)
    loader: Any = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    quantization = {"quantization_config": nf4_config(), "device_map": {"": device}} if weight_mode == "nf4" else {}
    try:
        network, report = loader.from_pretrained(
            folder,
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **quantization,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        if isinstance(error, RuntimeError) and is_out_of_memory(error):
            raise
        check_code(folder)
        raise DataError(
            f"{folder}: transformers cannot load a {kind} language model: {error}; choose another model, or save it "
            "again with `save_pretrained`"
        ) from error
    if missing := sorted(report["missing_keys"]):
        raise DataError(
            f"{folder}: {len(missing)} weights are missing, such as {missing[0]}, and would be initialized at random; "
            "give a checkpoint that includes the language-model head"
        )
    if weight_mode == "nf4":
        compute_in_autocast_precision(network, folder)
        store_in_bf16(network)
        return network
    return network.to(device)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hide the warnings and progress bars of transformers, which users of peekbench cannot act on."""
    verbosity, has_bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if has_bars:
            transformers_logging.enable_progress_bar()
