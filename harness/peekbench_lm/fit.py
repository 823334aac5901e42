"""Steps that fits share: lease a model, prepare it for training, record its memory."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import torch

from peekbench import Context
from peekbench_lm.devices import MicroBatch, choose_device, deterministic, peak_memory, reset_peak_memory
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.model_files import find_model
from peekbench_lm.network import PackedNetwork
from peekbench_lm.options import LanguageModelOptions, ModelFolder, ModelOptions, TrainedModelOptions, WeightMode
from peekbench_lm.precision import choose_precision
from peekbench_lm.provision import check_requirement
from peekbench_lm.seeds import seed_for

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
        Function that loads a model from a folder.
    """

    def __init__(self, load: Callable[[Path, torch.device, WeightMode], M]) -> None:
        self._load = load
        self._idle: dict[_Key, list[M]] = {}

    def acquire(self, folder: ModelFolder, device: torch.device, weight_mode: WeightMode = "trained") -> Lease[M]:
        """Lease a model with the weights of its folder. The lease ends when its last reference is deleted.

        A worker that runs one fit after another always gets the same model. One that keeps a predictor during the next
        fit gets another one.

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
            If bitsandbytes is needed and not installed.
        """
        key = (folder, device, weight_mode)
        idle = self._idle.setdefault(key, [])
        model = idle.pop() if idle else self._load(folder.path, device, weight_mode)
        model.restore()
        model.micro_batch = MicroBatch(device)  # results of a fit must not depend on the memory that earlier fits used
        lease = Lease(model)
        weakref.finalize(lease, idle.append, model)
        return lease


language_models = ModelPool(LanguageModel)
"""Language models that this process has loaded."""


@contextmanager
def load_for_fit(
    options: LanguageModelOptions, context: Context, metrics: dict[str, float]
) -> Iterator[Lease[LanguageModel]]:
    """Load the language model for one fit, and compute reproducibly inside the `with` block.

    Parameters
    ----------
    options
        Model, what the method requires of it, and device.
    context
        Folders of the spec and the cache.
    metrics
        Metrics of the fit; `loading_seconds` is added.

    Yields
    ------
    Lease
        The model, which is reserved until the last reference to the lease is dropped.

    Raises
    ------
    SpecError, DataError, PeekbenchError
        As for `computing` and `acquire_language_model`.
    """
    with computing(options):
        yield acquire_language_model(options, context, metrics)


@contextmanager
def computing(options: ModelOptions) -> Iterator[None]:
    """Compute reproducibly on the device and with the threads of the options, and measure the peak memory from here.

    Parameters
    ----------
    options
        Options of the method.

    Raises
    ------
    SpecError
        If this machine has no such device.
    """
    device = choose_device(options.device)
    reset_peak_memory(device)
    with deterministic(device, options.threads):
        yield


def acquire_language_model(
    options: LanguageModelOptions, context: Context, metrics: dict[str, float]
) -> Lease[LanguageModel]:
    """Lease the language model for one fit, and check that the method can use it.

    Parameters
    ----------
    options
        Model, what the method requires of it, and device.
    context
        Folders of the spec and the cache.
    metrics
        Metrics of the fit; `loading_seconds` is added.

    Raises
    ------
    SpecError, DataError, PeekbenchError
        As for `acquire_from` and `check_requirement`.
    """
    lease = acquire_from(language_models, options, context, metrics, options.weight_mode)
    check_requirement(options.model, lease.model.kind, options.requirement, lease.model.tokenizer)
    return lease


def acquire_from(
    pool: ModelPool[M],
    options: ModelOptions,
    context: Context,
    metrics: dict[str, float],
    weight_mode: WeightMode = "trained",
) -> Lease[M]:
    """Lease the model of the options for one fit.

    Parameters
    ----------
    pool
        Models of a class.
    options
        Model and device.
    context
        Folders of the spec and the cache.
    metrics
        Metrics of the fit; `loading_seconds` is added.
    weight_mode
        Weight mode of the model.

    Raises
    ------
    SpecError
        If this machine has no such device.
    DataError, PeekbenchError
        As for `ModelPool.acquire`; or if the model does not exist or is unavailable.
    """
    device = choose_device(options.device)
    started = time.perf_counter()
    lease = pool.acquire(find_model(options.model, options.revision, context.folders), device, weight_mode)
    metrics["loading_seconds"] = time.perf_counter() - started
    return lease


def prepare_training(model: LanguageModel, settings: TrainedModelOptions, seed: int) -> None:
    """Set the precision of training, and add adapters if they are trained instead of all weights.

    Parameters
    ----------
    model
        A model without adapters.
    settings
        Adapters and precision.
    seed
        Seed of the fit.
    """
    model.precision = choose_precision(settings.precision, model.device)
    if (lora := settings.lora) is not None:
        model.add_adapters(lora.rank, lora.alpha, lora.dropout, seed_for(seed, "adapters"))


def record_memory(model: PackedNetwork, metrics: dict[str, float]) -> None:
    """Add the peak memory to metrics, and the size of micro-batches if memory ran out.

    Parameters
    ----------
    model
        The model of the fit.
    metrics
        Metrics of the fit.
    """
    metrics["peak_memory_mb"] = peak_memory(model.device)
    if model.micro_batch.limit is not None:
        metrics["micro_batch_size"] = model.micro_batch.limit
