"""Work for contract checks of executors: trials that are quick, slow, hang, or end their process."""

from __future__ import annotations

import os
import platform
import signal
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np

from peekbench.errors import ContractError, PeekbenchError
from peekbench.execution.determinism import one_thread_pools
from peekbench.execution.hosts import host_name
from peekbench.plugins.work_protocols import Outcome
from peekbench.records.hosts import Host, Resources
from peekbench.records.trials import ArmResult, Draw, Trial, TrialResult, WorkItem

SLOW = 2.5
"""Seconds of a slow trial."""
LONG = 20.0
"""Seconds of a trial that an executor has to end."""
BROKEN = "this is the error of the sample work"
NUM_TEST, NUM_CLASSES = 40, 3


@dataclass(frozen=True, slots=True)
class Origin:
    """The process that made the work, which no trial may end."""

    machine: str
    process: int

    @classmethod
    def here(cls) -> Origin:
        """Return this process."""
        return cls(platform.node(), os.getpid())


class SampleWork:
    """Work whose trials do what the names of their methods say; see `make_items`.

    Parameters
    ----------
    folder
        Folder in which a trial that ends its process once notes this.
    timeout
        Time limit of a trial in seconds.
    """

    def __init__(self, folder: str, timeout: float | None = None, origin: Origin | None = None) -> None:
        self._folder = folder
        self._timeout = timeout
        self._origin = origin or Origin.here()
        self._is_busy = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments."""
        return SampleWork, (self._folder, self._timeout, self._origin)

    @property
    def timeout(self) -> float | None:
        """Time limit of a trial in seconds."""
        return self._timeout

    def needs(self, item: WorkItem) -> Resources:
        """Return what every trial needs."""
        return Resources()

    def prepare(self, data: Mapping[str, bytes] = MappingProxyType({})) -> Host:
        """Return this machine."""
        return Host(host_name())

    def pack_data(self, task: str) -> bytes:
        """Return no data, because the trials read none."""
        return b""

    def __call__(self, item: WorkItem) -> Iterator[Outcome]:
        """Return an iterator over the outcomes of an item.

        Raises
        ------
        PeekbenchError
            If the method is 'broken'.
        ContractError
            If another item is not finished.
        """
        if not self._is_busy.acquire(blocking=False):
            raise ContractError("it called the work while it was still working on another item")
        if item.trials[0].method == "broken":
            self._is_busy.release()
            raise PeekbenchError(BROKEN)
        return self._do(item)

    def _do(self, item: WorkItem) -> Iterator[Outcome]:
        try:
            needs_base = not item.has_base
            for trial in item.trials:
                self._act(trial)
                with one_thread_pools():
                    yield self._make_result(trial, needs_base=needs_base)
                needs_base = False
        finally:
            self._is_busy.release()

    def _act(self, trial: Trial) -> None:
        """Do what the name of a method says."""
        marker = Path(self._folder) / str(trial.draw.subsample)
        match trial.method:
            case "slow":
                time.sleep(SLOW)
            case "hangs":
                time.sleep(LONG)
            case "dies":
                self._die()
            case "dies once" if not marker.exists():
                marker.touch()
                self._die()

    def _die(self) -> None:
        if self._origin == Origin.here():
            raise ContractError("a trial that ends its process ran in the calling process")
        os.kill(os.getpid(), signal.SIGKILL)

    def _make_result(self, trial: Trial, *, needs_base: bool) -> TrialResult:
        arms = tuple(self._make_arm(trial, arm) for arm in ("base", "extra", "test") if arm != "base" or needs_base)
        rows = np.arange(NUM_TEST)
        return TrialResult(trial, rows % NUM_CLASSES, rows, arms, host_name())

    def _make_arm(self, trial: Trial, arm: str) -> ArmResult:
        """Return predictions that depend on the draw and the arm, from a matrix product that rounds."""
        method = "" if arm == "base" else trial.method
        rng = np.random.default_rng([trial.draw.subsample, zlib.crc32(f"{method} {arm}".encode())])
        logits = rng.normal(size=(NUM_TEST, 300)) @ rng.normal(size=(300, NUM_CLASSES)) / 10
        predictions = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        is_here = platform.node() == self._origin.machine
        metrics = {"process": float(os.getpid()), "is here": float(is_here)}
        return ArmResult(arm, {"score": float(predictions[0, 0])}, 0.0, 0.0, metrics, predictions.astype(np.float32))


def make_items(methods: Sequence[str], *, per_item: int = 1) -> list[WorkItem]:
    """Return items whose trials have these methods, in this order, each item on a draw of its own.

    Parameters
    ----------
    methods
        'slow' takes `SLOW` seconds, 'hangs' much longer, 'dies' kills its process, 'dies once' does so at the first
        try, and 'broken' raises an error that ends the run. Others are quick.
    per_item
        Number of trials in an item; the methods of the others get a number.
    """
    items = []
    for number, method in enumerate(methods):
        draw = Draw("sample", 10, NUM_TEST, number)
        names = [method, *(f"{method} {position}" for position in range(2, per_item + 1))]
        items.append(WorkItem(tuple(Trial(draw, name) for name in names), has_base=False))
    return items
