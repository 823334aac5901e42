"""Leases of models: a process loads each model once and leases it to one fit at a time."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

import torch

from peekbench_lm.models.language_model import LanguageModel
from peekbench_lm.models.micro_batch import MicroBatch
from peekbench_lm.models.packed_network import PackedNetwork
from peekbench_lm.types import ModelFolder, WeightMode

M = TypeVar("M", bound=PackedNetwork)
_Key: TypeAlias = tuple[ModelFolder, torch.device, WeightMode]


class Lease(Generic[M]):
    """Exclusive use of a model by one fit and by the predictor that the fit returns.

    Parameters
    ----------
    model
        Leased model.
    """

    def __init__(self, model: M) -> None:
        self.model = model


class ModelPool(Generic[M]):
    """Models of one class that a process has loaded.

    Parameters
    ----------
    load
        Function that loads a model.
    """

    def __init__(self, load: Callable[[ModelFolder, torch.device, WeightMode], M]) -> None:
        self._load = load
        self._idle: dict[_Key, list[M]] = {}
        self._first: dict[_Key, M] = {}

    def acquire(self, folder: ModelFolder, device: torch.device, weight_mode: WeightMode = "trained") -> Lease[M]:
        """Lease a model with the weights of its folder. The lease ends when its last reference is deleted.

        A worker that runs one fit after another always gets the same model. A worker that keeps a predictor during the
        next fit gets a copy, which shares all weights that are never trained.

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
            If the files are not such a model, lack weights, or do not support the weight mode.
        PeekbenchError
            If the device is out of memory, or bitsandbytes is needed and not installed.
        """
        key = (folder, device, weight_mode)
        if key not in self._first:
            self._first[key] = self._load(folder, device, weight_mode)
            self._idle[key] = [self._first[key]]
        idle = self._idle[key]
        model = idle.pop() if idle else self._first[key].copy()
        model.restore()
        model.micro_batch = MicroBatch(device)  # results of a fit must not depend on the memory that earlier fits used
        lease = Lease(model)
        weakref.finalize(lease, idle.append, model)
        return lease


def _load(folder: ModelFolder, device: torch.device, weight_mode: WeightMode) -> LanguageModel:
    return LanguageModel(folder.path, device, weight_mode)


language_models = ModelPool(_load)
"""Language models that this process has loaded."""


def acquire(folder: ModelFolder, device: torch.device, weight_mode: WeightMode = "trained") -> Lease[LanguageModel]:
    """Lease a language model. Parameters and errors are those of `ModelPool.acquire`."""
    return language_models.acquire(folder, device, weight_mode)
