"""Models in GGUF files, the format of llama.cpp, converted to the format of transformers."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from peekbench import DataError
from peekbench_lm.loading import quiet_transformers

BYTES_PER_QUANTIZED_WEIGHT = 1.5
"""A file with fewer bytes per weight has quantized weights, whose error is greater than that of rounding to bf16."""


def convert(model: str, file: Path, folder: Path) -> dict[str, Any]:
    """Convert a model and show the progress.

    Parameters
    ----------
    model
        Name of the model in the spec.
    file
        GGUF file.
    folder
        Empty folder for the model, in the format of transformers.

    Returns
    -------
    dict
        Description of the model: versions and data type of the weights.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    source = folder / "source"
    source.mkdir()
    link = source / "model.gguf"
    link.symlink_to(file.resolve())  # alone in a folder, because transformers also reads files beside a GGUF file
    tokenizer_class: Any = AutoTokenizer
    model_class: Any = AutoModelForCausalLM
    common: dict[str, Any] = {"gguf_file": link.name, "local_files_only": True, "trust_remote_code": False}
    try:
        with quiet_transformers(), redirect_stderr(io.StringIO()):  # bars of single stages
            tokenizer_class.from_pretrained(source, **common).save_pretrained(folder)
            network, report = model_class.from_pretrained(
                source,
                dtype=torch.float32,
                quantization_config=GgufConfig(dequantize=True),
                output_loading_info=True,
                **common,
            )
    except Exception as error:  # of many types, if a file is damaged or has an unknown model or data type
        raise DataError(
            f"model {model}: transformers {transformers.__version__} cannot convert {file}: "
            f"{str(error) or repr(error)}; copy or download the file again, or give a folder with the weights in "
            "safetensors from which it was made"
        ) from error
    if missing := sorted(report["missing_keys"]):
        raise DataError(
            f"model {model}: {file} lacks {len(missing)} of the weights, such as {missing[0]}; give a file with a "
            "whole model"
        )
    num_weights = sum(weight.numel() for weight in network.parameters())
    dtype = torch.float32
    if file.stat().st_size < BYTES_PER_QUANTIZED_WEIGHT * num_weights:
        dtype = torch.bfloat16
    with quiet_transformers():
        _save(network, dtype, folder)
    link.unlink()
    source.rmdir()
    return {"converted_with": f"transformers {transformers.__version__}", "weights": str(dtype).removeprefix("torch.")}


def _save(network: Any, dtype: torch.dtype, folder: Path) -> None:
    """Save a network as if it had never been quantized: transformers refuses to save one that was read from GGUF."""
    config = network.config
    make_plain: Any = AutoModelForCausalLM.from_config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    plain = make_plain(config, dtype=dtype)
    plain.load_state_dict(network.state_dict())
    plain.save_pretrained(folder)
