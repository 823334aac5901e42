"""Kill, stop and interrupt runs and their workers at random moments, and resume the runs.

`kills` sends one signal to the main process, a worker or both at a time; `bursts` sends several signals in quick
succession, also while the run closes. In the end, a store must equal that of an undisturbed run bit by bit: scores,
predictions and labels. Exit statuses must be right, and neither processes nor temporary files may be left.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from attack_runs import (
    REPORT,
    STORE,
    count_lines,
    errors,
    finish,
    left_files,
    left_processes,
    prepare,
    start,
    workers_of,
)
from attack_stores import differences, finished_trials, results
from attack_tally import Budget, Tally

METHODS, SUBSAMPLES = 2, 30
NUM_TRIALS = METHODS * SUBSAMPLES
Signals = list[tuple[str, str]]
"""Pairs (signal, target)."""
Choice = Callable[[int, random.Random], tuple[str, Signals]]
"""Returns a label and signals, given the number of the disturbance and a generator."""
ENOUGH = 20  # disturbances, some of which must meet a trial
MAX_DISTURBANCES = 4  # of one run, before it is left to end
TIME_LIMIT = 180.0  # seconds of a command
FORMATS = ["html", "text", "markdown", "json"]
KILL, STOP = "SIGKILL", "SIGSTOP and SIGCONT"
KINDS = (
    (KILL, "main"), (KILL, "worker"), (KILL, "both"), (KILL, "main"), (STOP, "main"), (STOP, "worker"),
    ("SIGTERM", "main"), ("SIGINT", "main"), ("SIGHUP", "main"), ("SIGTERM", "worker"),
)  # fmt: skip
BURST = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass
class Run:
    """A run in a folder, through all its disturbances."""

    folder: Path
    workers: int
    labels: list[str] = field(default_factory=list)
    problems: list[list[str]] = field(default_factory=list)
    """For each disturbance."""
    trials: set[Any] = field(default_factory=set)

    def prepare(self) -> None:
        options = [{"salt": salt, "seconds": 0.003, "log": "log"} for salt in range(METHODS)]
        prepare(
            self.folder,
            methods=[{"use": "attack.steady", "name": f"steady-{each['salt']}", "options": each} for each in options],
            design={"num_train": 10, "num_test": 20, "num_subsamples": SUBSAMPLES},
            report={"formats": FORMATS},
            executor={"use": "local", "options": {"workers": self.workers}},
        )

    def disturb(self, label: str, rng: random.Random, seconds: float, signals: Signals) -> bool:
        """Run the spec, send signals to its processes at a random moment, and examine what is left.

        Returns
        -------
        bool
            Whether the run has ended by itself.
        """
        process = start(self.folder)
        _wait(process, rng.uniform(0, seconds))
        if len(signals) > 1:  # a burst: once the run has begun
            _wait_until_begun(self.folder, process)
        for name, target in signals:
            _send(name, target, process, self.folder, rng)
            if len(signals) > 1:
                time.sleep(rng.choice([0, 0, 0.005, 0.03, 0.1]))
        status = finish(process, TIME_LIMIT)
        self.labels.append(label)
        self.problems.append([*_check_status(status, signals, self.folder), *self._check_left()])
        return status == 0

    def _check_left(self) -> list[str]:
        problems = [f"left the process {process.pid}" for process in left_processes(self.folder)]
        trials = finished_trials(self.folder / STORE)
        if not self.trials <= trials:
            problems.append("stored trials are lost")
        self.trials = trials
        return problems

    def complete(self, expected: dict[str, Any], tally: Tally) -> int:
        """Resume the run until it ends, compare its store, count its disturbances, and delete it.

        Returns
        -------
        int
            Number of trials that were computed again.
        """
        status = finish(start(self.folder), TIME_LIMIT)
        problems = [] if status == 0 else [f"resumed with exit status {status}: {errors(self.folder)[-300:]}"]
        problems += [f"left the file {name}" for name in left_files(self.folder)]
        problems += self._check_left()
        problems += differences(self.folder / STORE, expected) if status == 0 else []
        if len(list((self.folder / REPORT).glob("report.*"))) != len(FORMATS):
            problems.append("the report is incomplete")
        counts = count_lines(self.folder / "log")
        if len(counts) != NUM_TRIALS:
            problems.append(f"{len(counts)} different trials were computed instead of {NUM_TRIALS}")
        self.problems[-1] += problems
        for label, found in zip(self.labels, self.problems, strict=True):
            tally.add(label, found)
        shutil.rmtree(self.folder)
        return sum(counts.values()) - NUM_TRIALS


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _wait_until_begun(folder: Path, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None and not _has_begun(folder):
        time.sleep(0.01)


def _has_begun(folder: Path) -> bool:
    return "already done" in errors(folder)


def _send(name: str, target: str, process: subprocess.Popen[bytes], folder: Path, rng: random.Random) -> None:
    """Send a signal to the main process, to one of its workers, or to both, if they still run."""
    targets: list[psutil.Process] = []
    with suppress(psutil.Error):
        targets += [psutil.Process(process.pid)] if target in ("main", "both") else []
    if target in ("worker", "both") and (workers := workers_of(folder, process.pid)):
        targets.insert(rng.randrange(2) * len(targets), rng.choice(workers))
    for each in targets:
        with suppress(psutil.Error):
            if name == STOP:
                each.suspend()
                time.sleep(rng.uniform(0, 0.5))
                each.resume()
            else:
                each.send_signal(getattr(signal, name))


def _check_status(status: int | None, signals: Signals, folder: Path) -> list[str]:
    """Compare the exit status with the signals that the main process received, and look for tracebacks."""
    if status is None:
        return [f"took over {TIME_LIMIT:.0f} s"]
    received = [getattr(signal, name) for name, target in signals if target != "worker" and name != STOP]
    problems = []
    if _has_begun(folder) or status >= 0:
        allowed = {0} | {-number if number == signal.SIGKILL else 128 + number for number in received}
        if "Traceback" in errors(folder) or "Exception ignored" in errors(folder):
            problems.append(f"a traceback: {errors(folder)[-500:]}")
    else:  # the interpreter was still starting, and signals have their usual effects
        allowed = {-number for number in received}
    if status not in allowed:
        problems.append(f"exit status {status}: {errors(folder)[-300:]}")
    return problems


def undisturbed(folder: Path) -> tuple[dict[str, Any], float]:
    """Return the results of an undisturbed run and its seconds."""
    run = Run(folder, workers=1)
    run.prepare()
    started = time.monotonic()
    status = finish(start(folder), TIME_LIMIT)
    if status != 0:
        raise RuntimeError(f"the undisturbed run ended with exit status {status}: {errors(folder)}")
    return results(folder / STORE), time.monotonic() - started


def _attack(tally: Tally, budget: Budget, choose: Choice) -> Tally:
    """Disturb runs, several times each, until the budget is used up."""
    rng = random.Random(budget.seed)
    repeated = []
    with tempfile.TemporaryDirectory() as name:
        expected, seconds = undisturbed(Path(name, "undisturbed"))
        run = None
        for position in budget:
            if run is None:
                run = Run(Path(name, str(position)), workers=1 + position % 2)
                run.prepare()
            label, signals = choose(position, rng)
            has_ended = run.disturb(f"{label}, {run.workers} workers", rng, 1.05 * seconds, signals)
            if has_ended or len(run.labels) == MAX_DISTURBANCES:
                repeated.append(run.complete(expected, tally))
                run = None
        if run is not None:
            repeated.append(run.complete(expected, tally))
    if budget.number >= ENOUGH and not any(repeated):
        tally.add("all disturbances", ["no trial was interrupted, so the signals came before or after all runs"])
    tally.note = (
        f"{sum(repeated)} trials computed again in all, at most {max(repeated)} in a run of {NUM_TRIALS} trials, which "
        f"had up to {MAX_DISTURBANCES} disturbances"
    )
    return tally


def _choose_one(position: int, rng: random.Random) -> tuple[str, Signals]:
    name, target = KINDS[position % len(KINDS)]
    return f"{name} to {target}, number {position}", [(name, target)]


def _choose_burst(position: int, rng: random.Random) -> tuple[str, Signals]:
    names = [rng.choice(BURST) for _ in range(rng.randint(2, 10))]
    return f"burst {' '.join(names)}, number {position}", [(name, "main") for name in names]


def kills(budget: Budget) -> Tally:
    """Send one signal at a time to main processes and workers."""
    return _attack(Tally("kills"), budget, _choose_one)


def bursts(budget: Budget) -> Tally:
    """Send several signals in quick succession to main processes."""
    return _attack(Tally("bursts"), budget, _choose_burst)
