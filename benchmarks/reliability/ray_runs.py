"""Runs of the executor `ray` on clusters of three nodes, simulated on this machine. Exits with 1 if a bar is missed.

    python benchmarks/reliability/ray_runs.py [failures] [driver] [--trials 10000]

failures   kills a random worker or node every `interval` seconds, and replaces the node; all numbers must be equal to
           those of one local worker
driver     kills the main process at a random moment; the next run must do only what is missing
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import yaml

sys.path.append(str(Path(__file__).parents[2] / "tests" / "fixtures"))
os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[-1], os.environ.get("PYTHONPATH", "")])

from kills import read
from ray_nodes import RayNodes

from peekbench.execution.runner import run
from peekbench.spec.experiment import ExperimentSpec, make_spec

SECONDS = 0.0065  # for which a fit sleeps; a trial has three fits, and takes about 20 ms
NODES = ("one", "two", "three")
Executor = dict[str, Any]


def make(executor: Executor, num_trials: int) -> ExperimentSpec:
    """Return a spec of trials that mostly sleep, so that more workers than cores do not disturb each other."""
    raw = {
        "name": "ray_runs",
        "seed": 18,
        "tasks": [{"use": "toy.words", "name": "a"}, {"use": "toy.words", "name": "b", "options": {"seed": 1}}],
        "methods": [{"use": "toy.vote", "options": {"seconds": SECONDS}}],
        "design": {"num_train": 12, "num_test": 30, "num_subsamples": num_trials // 2},
        "executor": executor,
        "analyses": ["toy.count"],
        "report": {"formats": ["markdown"]},
    }
    return make_spec(raw, folder=Path())


def on(nodes: RayNodes, **options: Any) -> Executor:
    return {"use": "ray", "options": {"address": nodes.address, **options}}


@contextmanager
def cluster(cpus: int = 1) -> Iterator[RayNodes]:
    """Start and end a cluster of three nodes."""
    nodes = RayNodes(dict.fromkeys(NODES, cpus))
    try:
        yield nodes
    finally:
        nodes.close()


def count(store: Path, condition: str = "") -> int:
    """Return the number of trials in a store."""
    with closing(sqlite3.connect(store)) as connection:
        (number,) = connection.execute(f"SELECT count(*) FROM trials {condition}").fetchone()
    return int(number)


def disturb(nodes: RayNodes, interval: float, is_over: threading.Event, rng: random.Random) -> dict[str, int]:
    """Kill a random worker or node every `interval` seconds until the run is over."""
    alive = list(NODES)
    killed = {"workers": 0, "nodes": 0}
    while not is_over.wait(interval):
        name = rng.choice(alive)
        if rng.random() < 0.5:
            for process in nodes.workers(name)[:1]:
                os.kill(process, signal.SIGKILL)
                killed["workers"] += 1
        else:
            nodes.kill(name)
            killed["nodes"] += 1
            alive.remove(name)
            alive.append(f"node {killed['nodes']}")
            nodes.add(alive[-1])
    return killed


def check_failures(folder: Path, arguments: argparse.Namespace) -> bool:
    expected = run(make({"use": "local"}, arguments.trials), store=folder / "local.sqlite").store
    is_over = threading.Event()
    killed: dict[str, int] = {}
    started = time.perf_counter()
    with cluster() as nodes:
        rng = random.Random(arguments.seed)
        chaos = threading.Thread(target=lambda: killed.update(disturb(nodes, arguments.interval, is_over, rng)))
        chaos.start()
        try:
            summary = run(make(on(nodes), arguments.trials), store=folder / "ray.sqlite")
        finally:
            is_over.set()
            chaos.join()
    seconds = time.perf_counter() - started
    num_stored, num_failed = count(summary.store), count(summary.store, "WHERE error IS NOT NULL")
    is_equal = read(summary.store) == read(expected)
    print(
        f"failures: {killed['workers']} workers and {killed['nodes']} nodes killed in {seconds:.0f} s; "
        f"{num_stored:,} of {arguments.trials:,} trials stored, {num_failed} failed, "
        f"{'all numbers equal' if is_equal else 'NUMBERS DIFFER'}"
    )
    return is_equal and num_stored == arguments.trials and not num_failed


def check_driver(folder: Path, arguments: argparse.Namespace) -> bool:
    num_trials = arguments.trials // 5
    expected = run(make({"use": "local"}, num_trials), store=folder / "whole.sqlite").store
    rng = random.Random(arguments.seed)
    store = folder / "killed.sqlite"
    sizes = []
    with cluster() as nodes:
        spec = make(on(nodes), num_trials)
        path = folder / "killed.yaml"
        path.write_text(yaml.safe_dump(spec.model_dump(mode="json")))
        for _ in range(3):
            command = [sys.executable, "-m", "peekbench", "run", str(path), "--store", str(store)]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
            while not store.exists() and process.poll() is None:
                time.sleep(0.1)
            time.sleep(rng.uniform(1, 10))
            process.kill()
            process.wait()
            sizes.append(count(store))
        summary = run(spec, store=store)
        left = [worker for name in NODES for worker in nodes.workers(name)]
        deadline = time.monotonic() + 10
        while any(map(psutil.pid_exists, left)) and time.monotonic() < deadline:
            time.sleep(0.1)
    is_equal = read(store) == read(expected)
    is_minimal = summary.resumed == sizes[-1] and summary.finished == num_trials - sizes[-1]
    print(
        f"driver: killed after {', '.join(f'{size:,}' for size in sizes)} of {num_trials:,} trials; the last run did "
        f"{summary.finished:,}, {'all numbers equal' if is_equal else 'NUMBERS DIFFER'}, "
        f"{sum(map(psutil.pid_exists, left))} workers left"
    )
    return is_equal and is_minimal and not any(map(psutil.pid_exists, left))


CHECKS = {
    "failures": check_failures,
    "driver": check_driver,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checks", nargs="*", metavar="CHECK", default=list(CHECKS))
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--interval", type=float, default=30.0, help="seconds between kills")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    missed = []
    for name in arguments.checks:
        with tempfile.TemporaryDirectory() as folder:
            if not CHECKS[name](Path(folder), arguments):
                missed.append(name)
    sys.exit(f"missed: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
