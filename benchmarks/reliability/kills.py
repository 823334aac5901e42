"""Kill, stop and interrupt runs and their workers at random moments, and resume them. Exits with 1 if anything is lost.

A store must equal that of an undisturbed run bit by bit in the end: scores, predictions and labels. Exit statuses must
be right, no stored trial may be lost, and neither tracebacks nor processes nor temporary files may be left.

    python benchmarks/reliability/kills.py [--kills 100] [--bursts 50]

A kill is one signal to the main process, a worker or both; a burst is 2 to 10 signals in quick succession to the main
process, also while the run closes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

from peekbench.errors import StoreError
from peekbench.records.trials import Trial
from peekbench.store.reader import Store

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"
MARKER = "PEEKBENCH_KILLS"
"""Environment variable that all processes of a run inherit; its value is the folder of the run."""
SECONDS = 0.02  # for which a fit sleeps
NUM_TRIALS = 60
WORK_SECONDS = 3 * SECONDS * NUM_TRIALS
NAME = "attacked"
STORE = Path("runs", f"{NAME}.sqlite")
KEPT = {
    f"{NAME}.yaml",
    "runs",
    "reports",
    "cache",
    "out.txt",
    "err.txt",
    STORE.name,
    f"{STORE.name}.lock",
}
MAX_DISTURBANCES = 4  # of one run, before it is left to end
TIME_LIMIT = 180.0  # seconds of a command
KILL, STOP = "SIGKILL", "SIGSTOP and SIGCONT"
KINDS = (
    (KILL, "main"), (KILL, "worker"), (KILL, "both"), (KILL, "main"), (STOP, "main"), (STOP, "worker"),
    ("SIGTERM", "main"), ("SIGINT", "main"), ("SIGHUP", "main"), ("SIGTERM", "worker"),
)  # fmt: skip
BURST = ("SIGINT", "SIGTERM", "SIGHUP")
Signals = list[tuple[str, str]]
"""Pairs (signal, target)."""


QUERY = """
SELECT draws.task, num_train, num_test, subsample, test_labels, test_rows, trials.method, trials.error, arms.*, numbers
FROM trials JOIN draws ON draws.id = trials.draw JOIN bases USING (task, method)
JOIN arms ON arms.draw = draws.id AND arms.owner IN (trials.method, bases.key)
JOIN predictions ON predictions.arm = arms.id
ORDER BY draws.task, num_train, num_test, subsample, trials.method, arms.arm
"""
LEFT_OUT = ("id", "draw", "fit_seconds", "predict_seconds", "metrics")
"""Columns that depend on the order of work, or may depend on its time."""

MEASURED = ("_seconds", "_per_second", "_memory_mb")
"""Ends of the names of recorded numbers that depend on the machine."""


def read(store: Path) -> list[dict[str, Any]]:
    """Return what a store keeps about each arm of each trial, without the columns `LEFT_OUT`."""
    with closing(sqlite3.connect(store)) as connection:
        cursor = connection.execute(QUERY)
        names = [description[0] for description in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
    for row in rows:
        recorded = json.loads(row["metrics"])
        row["metrics"] = {name: value for name, value in recorded.items() if not name.endswith(MEASURED)}
    return [{name: value for name, value in row.items() if name not in LEFT_OUT} for row in rows]


@dataclass
class Run:
    """A run in a folder, through all its disturbances."""

    folder: Path
    workers: int
    problems: list[str] = field(default_factory=list)
    trials: set[Trial] = field(default_factory=set)
    num_disturbances: int = 0
    num_interrupted: int = 0
    """Disturbances after which some trials were stored, and others were not."""

    def __post_init__(self) -> None:
        self.folder.mkdir()
        vote = {"use": "toy.vote", "options": {"seconds": SECONDS}}
        spec = {
            "name": NAME,
            "tasks": ["toy.words"],
            "methods": [vote, {**vote, "name": "bold", "options": {"seconds": SECONDS, "boldness": 2}}],
            "design": {"num_train": 12, "num_test": 30, "num_subsamples": NUM_TRIALS // 2},
            "analyses": ["toy.count"],
            "report": {"formats": ["json"]},
            "executor": {"use": "local", "options": {"workers": self.workers}},
        }
        (self.folder / f"{NAME}.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(FIXTURES), os.environ.get("PYTHONPATH", "")])
        own = {"PYTHONPATH": path, MARKER: str(self.folder), "PEEKBENCH_CACHE": str(self.folder / "cache")}
        with (self.folder / "out.txt").open("wb") as out, (self.folder / "err.txt").open("wb") as err:
            return subprocess.Popen(
                [sys.executable, "-m", "peekbench", "run", f"{NAME}.yaml"],
                cwd=self.folder, env={**os.environ, **own}, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells ignore it in the background
            )  # fmt: skip

    def errors(self) -> str:
        return (self.folder / "err.txt").read_text(errors="replace")

    def has_begun(self) -> bool:
        return "already done" in self.errors()

    def disturb(self, signals: Signals, rng: random.Random, seconds: float) -> bool:
        """Run the spec, send signals at a random moment, and return whether the run has ended by itself."""
        process = self.start()
        if rng.random() < 0.5:  # the other half comes at any moment, also before the first trial
            while process.poll() is None and finished_trials(self.folder / STORE) <= self.trials:
                time.sleep(0.05)
            seconds = WORK_SECONDS
        with suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, seconds))
        for name, target in signals:
            self.send(name, target, process.pid, rng)
            if len(signals) > 1:
                time.sleep(rng.choice([0, 0, 0.005, 0.03, 0.1]))
        status = finish(process)
        self.num_disturbances += 1
        self.problems += self.check_status(status, signals) + self.check_left()
        self.num_interrupted += 0 < len(self.trials) < NUM_TRIALS
        return status == 0

    def send(self, name: str, target: str, main: int, rng: random.Random) -> None:
        """Send a signal to the main process, to one of its workers, or to both, if they still run."""
        workers = [process for process in self.processes() if process.pid != main and parent(process) == main]
        with suppress(psutil.Error):
            targets = [psutil.Process(main)] if target != "worker" else []
            if target != "main" and workers:
                targets.insert(rng.randrange(2) * len(targets), rng.choice(workers))
            for each in targets:
                if name != STOP:
                    each.send_signal(getattr(signal, name))
                    continue
                each.suspend()
                time.sleep(rng.uniform(0, 0.5))
                each.resume()

    def processes(self) -> Iterator[psutil.Process]:
        """Iterate over the processes whose environment names the folder, which they inherit from its commands."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                is_zombie = process.status() == psutil.STATUS_ZOMBIE
                if not is_zombie and process.environ().get(MARKER) == str(self.folder):
                    yield process

    def check_status(self, status: int | None, signals: Signals) -> list[str]:
        received = [getattr(signal, name) for name, target in signals if target != "worker" and name != STOP]
        allowed = {-number for number in received}  # usual effects, while the interpreter starts
        if self.has_begun() or (status is not None and status >= 0):
            allowed = {0} | {-number if number == signal.SIGKILL else 128 + number for number in received}
            if "Traceback" in self.errors() or "Exception ignored" in self.errors():
                return [f"{signals}: {self.errors()[-500:]}"]
        return [] if status in allowed else [f"{signals}: exit status {status}: {self.errors()[-300:]}"]

    def check_left(self) -> list[str]:
        end = time.monotonic() + 5
        while (left := list(self.processes())) and time.monotonic() < end:
            time.sleep(0.05)
        before, self.trials = self.trials, finished_trials(self.folder / STORE)
        return [f"left the process {each.pid}" for each in left] + ["stored trials are lost"] * (
            not before <= self.trials
        )

    def complete(self, expected: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        """Resume the run until it ends, compare its store, and return its contents."""
        status = finish(self.start())
        contents = read(self.folder / STORE)
        if status != 0:
            self.problems.append(f"resumed with exit status {status}: {self.errors()[-300:]}")
        if expected is not None and contents != expected:
            self.problems.append("the store differs from that of an undisturbed run")
        if not (self.folder / "reports" / NAME / "report.json").exists():
            self.problems.append("the report is incomplete")
        files = [
            *self.folder.iterdir(),
            *self.folder.glob("runs/*"),
            *self.folder.rglob(".*"),
            *self.folder.rglob("*.part"),
        ]
        self.problems += [f"left the file {path}" for path in files if path.name not in KEPT] + self.check_left()
        return contents


def finish(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit status of a command; None if it takes too long and was killed."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(TIME_LIMIT)
    process.kill()
    process.wait()
    return None


def parent(process: psutil.Process) -> int | None:
    with suppress(psutil.Error):
        return process.ppid()
    return None


def finished_trials(path: Path) -> set[Trial]:
    """Return the finished trials of a store, which may be missing or still empty."""
    if not path.is_file() or not path.stat().st_size:
        return set()
    try:
        with Store.open(path) as store:
            return store.done()
    except StoreError as error:
        if "still empty" in str(error):
            return set()
        raise


def attack(num_kills: int, num_bursts: int, seed: int = 0) -> list[str]:
    """Disturb runs, several times each, and return all problems."""
    rng = random.Random(seed)
    choices: list[Signals] = [[KINDS[position % len(KINDS)]] for position in range(num_kills)]
    choices += [[(rng.choice(BURST), "main") for _ in range(rng.randint(2, 10))] for _ in range(num_bursts)]
    problems, num_interrupted = [], 0
    with tempfile.TemporaryDirectory() as name:
        started = time.monotonic()
        run = Run(Path(name, "undisturbed"), workers=1)
        expected = run.complete()
        problems += run.problems
        seconds = time.monotonic() - started
        while choices:
            run = Run(Path(name, str(len(choices))), workers=1 + len(choices) % 2)
            has_ended = False
            while choices and not has_ended and run.num_disturbances < MAX_DISTURBANCES:
                has_ended = run.disturb(choices.pop(0), rng, 1.05 * seconds)
            run.complete(expected)
            problems += run.problems
            num_interrupted += run.num_interrupted
            shutil.rmtree(run.folder)
    if num_kills + num_bursts >= 20 and not num_interrupted:
        problems.append("no trial was interrupted, so the signals came before or after all runs")
    print(f"{num_kills} kills and {num_bursts} bursts, {num_interrupted} of them between the first and last trial")
    return problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--bursts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    problems = attack(arguments.kills, arguments.bursts, arguments.seed)
    print("\n".join(problems) or "nothing was lost")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
