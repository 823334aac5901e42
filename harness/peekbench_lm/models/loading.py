"""Networks from files in the format of transformers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.utils import logging as untyped_logging

from peekbench import DataError, PeekbenchError
from peekbench_lm.devices import is_out_of_memory
from peekbench_lm.models.activations import fuse_activations
from peekbench_lm.models.half_precision import store_in_bf16
from peekbench_lm.models.quantized import compute_in_autocast_precision, nf4_config
from peekbench_lm.types import Kind, WeightMode

transformers_logging: Any = untyped_logging


def load_network(folder: Path, kind: Kind, weight_mode: WeightMode, device: torch.device) -> Any:
    """Return a network with its language-model head.

    Parameters
    ----------
    folder
        Folder of the model.
    kind
        Training objective of the model.
    weight_mode
        Weight mode of the network.
    device
        Device of the weights.

    Raises
    ------
    DataError
        If the files are not a language model of this kind, lack weights, or do not support the weight mode.
    PeekbenchError
        If the device is out of memory, or bitsandbytes is needed and not installed.
    """
    loader: Any = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    quantization = {"quantization_config": nf4_config(), "device_map": {"": device}} if weight_mode == "nf4" else {}
    too_large = PeekbenchError(
        f"{folder}: the model does not fit into the memory of {device}; choose a smaller model, quantize its weights "
        "to four bits if the method supports it, or let fewer workers share the device"
    )
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
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and is_out_of_memory(error):
            raise too_large from error
        raise DataError(
            f"{folder}: cannot load a {kind} language model: {error}; give a model whose weights are in safetensors "
            "files"
        ) from error
    if missing := sorted(report["missing_keys"]):
        raise DataError(
            f"{folder}: {len(missing)} weights are missing, such as {missing[0]}, and would be initialized at random; "
            "give a checkpoint that includes the language-model head"
        )
    fuse_activations(network)
    if weight_mode == "nf4":
        compute_in_autocast_precision(network, folder)
        store_in_bf16(network)
        return network
    try:
        return network.to(device)
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise too_large from error
        raise


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
