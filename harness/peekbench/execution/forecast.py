"""Forecasts the time, the memory and the price of a run from a pilot."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from peekbench.data.text_statistics import describe_texts
from peekbench.execution.code import code_hashes
from peekbench.execution.hardware import CORE_SHARES, HERE, SHARES, Hardware, available_cores
from peekbench.execution.pilot import Key, Pilot, count_trials
from peekbench.execution.provenance import describe_session
from peekbench.execution.usage import peak_memory
from peekbench.execution.versions import relevant_versions
from peekbench.spec.experiment import ExperimentSpec

STORE_SECONDS = 0.0015
"""Processor time of the main process per trial, measured by `benchmarks/overhead.py`."""
REPORT_SECONDS = 2.0
"""Processor time of the main process for the analyses and the report, measured with the quickstart."""


@dataclass(frozen=True, slots=True)
class MainProcess:
    """What the main process of a run needs apart from trials: imports, data, models."""

    seconds: float
    """Processor time."""
    memory: int
    """Peak of the resident memory in bytes."""

    @classmethod
    def rehearse(cls, spec: ExperimentSpec) -> MainProcess:
        """Do what a run does before its first trial, without storing it, and return what this process has then used."""
        code = code_hashes(method.use for method in spec.methods)
        describe_session(spec.folder)
        relevant_versions(code)
        for task in spec.tasks:
            describe_texts(spec, task)
        return cls(time.process_time(), peak_memory())


@dataclass(frozen=True, slots=True)
class Forecast:
    """Time and memory of a run on some hardware."""

    hardware: Hardware
    workers: int
    """Trials at a time on cores; 0 on a GPU, where `seconds` does not depend on it."""
    seconds: tuple[float, float, float]
    """Wall time in seconds: shortest, expected and longest. They are equal on this machine."""
    processor: float
    """Processor time in seconds on cores; 0 on a GPU."""
    operations: float
    """Operations of matrix products of all trials; 0 on cores."""
    memory: int
    """Memory of all processes in bytes; 0 on a GPU, because a pilot on other hardware does not tell."""
    uncounted: tuple[str, ...] = ()
    """Methods whose operations are not counted. On a GPU, `seconds` has their time on a core of this machine."""

    def price(self, per_hour: float) -> tuple[float, float, float]:
        """Return the price at a price per hour: lowest, expected and highest."""
        low, middle, high = (seconds / 3600 * per_hour for seconds in self.seconds)
        return low, middle, high


def forecast_run(spec: ExperimentSpec, pilot: Pilot, hardware: Hardware, workers: int, main: MainProcess) -> Forecast:
    """Forecast a run from a pilot on this machine.

    On cores, trials take the mean time of the pilot's trials, without the time in which these waited for a core, and
    workers start and import libraries. On a GPU, counted matrix products take their operations, divided by the peak
    rate and by an assumed share of it; all else takes the time of a core.

    Parameters
    ----------
    spec
        The spec.
    pilot
        Its pilot, with counted operations for a GPU.
    hardware
        Hardware of the run.
    workers
        Trials at a time.
    main
        What the main process needs.
    """
    trials = {key: number for key, number in count_trials(spec).items() if key in pilot.usages}
    overhead = main.seconds + REPORT_SECONDS + STORE_SECONDS * sum(trials.values())
    if hardware.peak:
        return _on_gpu(pilot, hardware, trials, overhead)
    seconds, processor = pilot.seconds, pilot.processor
    num_workers = min(workers, max(1, sum(trials.values())))
    parallel = min(num_workers, hardware.cores)
    longest = max((seconds[key] for key in trials), default=0.0)
    total = sum(number * seconds[key] for key, number in trials.items())
    total_processor = sum(number * processor[key] for key, number in trials.items())
    starts = pilot.start * num_workers / parallel
    shares = (1.0, 1.0, 1.0) if hardware.cores <= available_cores() else CORE_SHARES
    low, middle, high = (
        overhead + (starts + max(total / parallel, longest)) / share for share in sorted(shares, reverse=True)
    )
    return Forecast(
        hardware,
        num_workers,
        (low, middle, high),
        overhead + num_workers * pilot.start + total_processor,
        0.0,
        main.memory + num_workers * pilot.memory,
    )


def _on_gpu(pilot: Pilot, hardware: Hardware, trials: dict[Key, int], overhead: float) -> Forecast:
    seconds = pilot.seconds
    operations = math.fsum(number * pilot.operations(key) for key, number in trials.items())
    uncounted = sorted({key[0] for key in trials if not pilot.operations(key)})
    rest = overhead + sum(number * seconds[key] for key, number in trials.items() if key[0] in uncounted)
    low, middle, high = (rest + operations / (share * hardware.peak) for share in sorted(SHARES, reverse=True))
    return Forecast(hardware, 0, (low, middle, high), 0.0, operations, 0, tuple(uncounted))


def default_workers(spec: ExperimentSpec, hardware: Hardware, wanted: int | None) -> int:
    """Return the trials at a time: as the user says, as the spec says, or one per core of named hardware."""
    if wanted is not None:
        return wanted
    if hardware.name != HERE:
        return max(1, hardware.cores)
    return int(getattr(spec.executor.options, "workers", None) or 1)
