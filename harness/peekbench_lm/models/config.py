"""Configuration of a model: its ``config.json`` and its training objective."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peekbench import DataError
from peekbench_lm.types import Kind


def read_config(folder: Path) -> Mapping[str, Any]:
    """Return the configuration of a model.

    Parameters
    ----------
    folder
        Folder of the model.

    Raises
    ------
    DataError
        If the configuration cannot be read.
    """
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder / 'config.json'}: {error}; give a folder in the format that transformers saves"
        ) from error
    return config


def model_kind(folder: Path) -> Kind:
    """Return whether a model predicts masked tokens or the next token.

    Parameters
    ----------
    folder
        Folder of the model.

    Raises
    ------
    DataError
        If the model does neither.
    """
    config = read_config(folder)
    architecture = str((config.get("architectures") or [""])[0])
    if architecture.endswith(("ForMaskedLM", "ForPreTraining")):
        return "masked"
    if architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return "causal"
    from transformers.models.auto import modeling_auto  # noqa: PLC0415 - imports torch, which most models do not need

    model_type = config.get("model_type")
    if model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return "masked"
    if model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return "causal"
    raise DataError(
        f"{folder}: {architecture or model_type} is neither a masked nor a causal language model; choose a model such "
        "as bert-base-uncased or gpt2"
    )
