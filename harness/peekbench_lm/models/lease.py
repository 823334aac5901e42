"""Leases of models: a process loads each model once and leases it to one fit at a time."""

from __future__ import annotations

import weakref
from typing import TypeAlias

import torch

from peekbench_lm.models.language_model import LanguageModel
from peekbench_lm.models.micro_batch import MicroBatch
from peekbench_lm.types import ModelFolder, WeightMode

_Key: TypeAlias = tuple[ModelFolder, torch.device, WeightMode]
_idle: dict[_Key, list[LanguageModel]] = {}
_first: dict[_Key, LanguageModel] = {}


class Lease:
    """Exclusive use of a model by one fit and by the predictor that the fit returns.

    Parameters
    ----------
    model
        Leased model.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.model = model


def acquire(folder: ModelFolder, device: torch.device, weight_mode: WeightMode = "trained") -> Lease:
    """Lease a model with the weights of its folder. The lease ends when its last reference is deleted.

    A worker that runs one fit after another always gets the same model. A worker that keeps a predictor during the next
    fit gets a copy, which shares all weights that are never trained.

    Parameters
    ----------
    folder
        Files of the model.
    device
        Device of the computation.
    weight_mode
        Weight mode of the model.

    Raises
    ------
    DataError
        If the files are not a language model, lack weights, or do not support the weight mode.
    PeekbenchError
        If the device is out of memory, or bitsandbytes is needed and not installed.
    """
    key = (folder, device, weight_mode)
    if key not in _first:
        _first[key] = LanguageModel(folder.path, device, weight_mode)
        _idle[key] = [_first[key]]
    model = _idle[key].pop() if _idle[key] else _first[key].copy()
    model.restore()
    model.micro_batch = MicroBatch(device)  # results of a fit must not depend on the memory that earlier fits used
    lease = Lease(model)
    weakref.finalize(lease, _idle[key].append, model)
    return lease
