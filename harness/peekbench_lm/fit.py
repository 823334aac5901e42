"""Steps that the fits of different methods share: load a model, prepare it for training, record its memory."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from peekbench import Context
from peekbench_lm.checks import check_model
from peekbench_lm.devices import choose_device, deterministic, peak_memory, reset_peak_memory
from peekbench_lm.models.language_model import LanguageModel
from peekbench_lm.models.lease import Lease, ModelPool, language_models
from peekbench_lm.models.packed_network import PackedNetwork
from peekbench_lm.options import LanguageModelOptions, ModelOptions, TrainingSettings
from peekbench_lm.seeds import derive_seed
from peekbench_lm.sources.model_files import find_model
from peekbench_lm.types import WeightMode

M = TypeVar("M", bound=PackedNetwork)


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
        As for `acquire_from` and `check_model`.
    """
    lease = acquire_from(language_models, options, context, metrics, options.weight_mode)
    check_model(options, lease.model.kind, lambda: lease.model.tokenizer)
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


def prepare_training(model: LanguageModel, settings: TrainingSettings, seed: int) -> None:
    """Set the precision and the attention of training, and add adapters if they are trained instead of all weights.

    Parameters
    ----------
    model
        A model without adapters.
    settings
        Adapters, precision and attention.
    seed
        Seed of the fit.

    Raises
    ------
    SpecError
        If the model, the device or the precision does not support the attention.
    """
    model.precision = settings.precision
    model.choose_attention(settings.attention_kernel)
    if (lora := settings.lora) is not None:
        model.add_adapters(lora.rank, lora.alpha, lora.dropout, derive_seed(seed, "adapters"))


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
