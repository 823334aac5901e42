"""Print the processor time of each installed tracker for a run of 1,250 trials, as many as the quickstart has.

Usage: pip install -c constraints.txt '.[trackio,mlflow,wandb]' && python benchmarks/trackers.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from peekbench import Folders
from peekbench.execution.observers import make_observer
from peekbench.records import ArmScores, Draw, Trial, TrialFinished
from peekbench.spec.components import ObserverSpec, make_component
from peekbench.testing import sample_events

TRACKERS = ("tracking.trackio", "tracking.mlflow", "tracking.wandb")
NUM_TRIALS = 1_250


def measure(use: str, folder: Path) -> str:
    """Return the seconds for importing the library and starting the run, for all trials, and for the end of the run."""
    (_, started), *_, analyzed, finished = sample_events(folder)
    arms = {name: ArmScores({"score": 0.5}, {"parameters": 10.0}, 0.1, 0.01) for name in ("base", "extra", "test")}
    times = [time.process_time()]
    observer = make_observer(make_component(ObserverSpec, use), Folders(folder, folder))
    observer.run_started(started)  # type: ignore[attr-defined]
    times.append(time.process_time())
    for number in range(1, NUM_TRIALS + 1):
        trial = Trial(Draw(f"task {number % 5}", 50, 200, number), f"method {number % 5}")
        observer.trial_finished(TrialFinished(trial, number, NUM_TRIALS, arms))  # type: ignore[attr-defined]
    times.append(time.process_time())
    for event, argument in (analyzed, finished):
        getattr(observer, event)(argument)
    times.append(time.process_time())
    start, trials, end = (after - before for before, after in pairwise(times))
    return f"start {start:.2f} s, trials {trials:.2f} s, end {end:.2f} s, in total {times[-1] - times[0]:.2f} s"


def main() -> None:
    """Measure each tracker in a process of its own, which imports the library."""
    if len(sys.argv) > 1:
        print(f"{sys.argv[1]}: {measure(sys.argv[1], Path.cwd())}")
        return
    for use in TRACKERS:
        with TemporaryDirectory() as folder:
            environment = {**os.environ, "TRACKIO_DIR": folder, "DO_NOT_TRACK": "true"}
            command = [sys.executable, str(Path(__file__).resolve()), use]
            subprocess.run(command, cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
