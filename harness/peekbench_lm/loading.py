"""Networks from files, as transformers saves them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from peekbench import DataError, PeekbenchError
from peekbench_lm import attention
from peekbench_lm.devices import is_out_of_memory
from peekbench_lm.names import Held, Kind
from peekbench_lm.quantized import compute_by_precision, nf4_config


def load_network(folder: Path, kind: Kind, held: Held, device: torch.device) -> Any:
    """A network with its language-model head.

    Raises
    ------
    DataError
        Where the folder's files are no such model, lack weights, or cannot be held as asked.
    PeekbenchError
        Where bitsandbytes is needed, and not installed.
    """
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    attention.register()
    loader: Any = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
    more = {"quantization_config": nf4_config(), "device_map": {"": device}} if held == "nf4" else {}
    too_large = PeekbenchError(
        f"{folder}: does not fit into the memory of {device}; choose a smaller model, hold its weights in four bits "
        "where the method can, or let fewer workers share the device"
    )
    try:
        network, report = loader.from_pretrained(
            folder,
            dtype=torch.float32,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **more,
        )
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and is_out_of_memory(error):
            raise too_large from error
        raise DataError(
            f"{folder}: cannot be loaded as a {kind} language model: {error}; give a model whose weights are in "
            "safetensors files"
        ) from error
    if missing := sorted(report["missing_keys"]):
        raise DataError(
            f"{folder}: {len(missing)} weights are missing, {missing[0]} among them; they would start from random "
            "numbers. Give a checkpoint with its language-model head"
        )
    if held == "nf4":
        compute_by_precision(network, folder)
        return network
    try:
        return network.to(device)
    except RuntimeError as error:
        if is_out_of_memory(error):
            raise too_large from error
        raise
