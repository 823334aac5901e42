"""Compares forecasts of `peekbench plan` with the runs that they forecast: processor time, wall time and memory.

Each spec is planned and then run with its analyses and its report, in new processes and an empty folder. On a busy
machine, only processor time and memory can be compared: the forecast of the wall time is that of an idle machine. The
memory is the sum of the resident memory of all processes of the run. The script asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import yaml

from peekbench.data.preflight import describe_tasks
from peekbench.execution.forecast import MainProcess, default_workers, forecast_run
from peekbench.execution.hardware import HERE, find_hardware
from peekbench.execution.pilot import run_pilot
from peekbench.spec.experiment import load_spec

SPECS = Path(__file__).parent.parent / "specs"
SUBSAMPLES = {"quickstart": 25, "transductive_encoder": 10, "quickstart_lm": 2}
"""Subsamples of each spec, so that the script takes minutes."""
POLL_INTERVAL = 0.2  # seconds between two measurements of memory


def plan(path: Path) -> None:
    """Print a forecast as JSON; run in a process of its own."""
    spec = load_spec(path)
    describe_tasks(spec)
    pilot = run_pilot(spec)
    hardware = find_hardware(HERE)
    workers = default_workers(spec, hardware, None)
    forecast = forecast_run(spec, pilot, hardware, workers, MainProcess.rehearse(spec))
    print(json.dumps({**asdict(forecast), "busy": pilot.busy, "trials": pilot.num_trials}))


def run(path: Path, folder: Path) -> tuple[float, float, int]:
    """Run a spec; return wall seconds, processor seconds, and the peak of the memory in bytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    command = [sys.executable, "-m", "peekbench", "run", str(path), "--quiet"]
    process = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, _memory(process))
        time.sleep(POLL_INTERVAL)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{path}: `peekbench run` ended with exit status {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, processor, peak


def _memory(process: psutil.Popen) -> int:
    total = 0
    try:
        for member in [process, *process.children(recursive=True)]:
            total += member.memory_info().rss
    except psutil.Error:  # it has just ended
        return 0
    return total


def compare(name: str) -> None:
    """Print forecast, measurement and their ratio for one spec."""
    raw = yaml.safe_load((SPECS / f"{name}.yaml").read_text())
    raw["design"]["num_subsamples"] = SUBSAMPLES[name]
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / f"{name}.yaml"
        path.write_text(yaml.safe_dump(raw))
        planned = subprocess.run([sys.executable, __file__, "--plan", str(path)], stdout=subprocess.PIPE, check=True)
        forecast = json.loads(planned.stdout)
        load = os.getloadavg()[0]
        seconds, processor, memory = run(path, Path(temporary))
    print(
        f"{name}, {SUBSAMPLES[name]} subsamples, {forecast['workers']} workers; pilot of {forecast['trials']} trials, "
        f"which waited {forecast['busy']:.0%} of their time for a core; load {load:.1f} before the run"
    )
    rows = (
        ("processor time, s", forecast["processor"], processor),
        ("wall time, s (forecast: idle machine)", forecast["seconds"][1], seconds),
        ("memory, MB", forecast["memory"] / 1e6, memory / 1e6),
    )
    for what, expected, measured in rows:
        print(
            f"  {what:38} forecast {expected:8.1f}  measured {measured:8.1f}  ratio {expected / measured:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", help=f"names of specs: {', '.join(SUBSAMPLES)}; default: all")
    parser.add_argument("--plan", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plan:
        plan(arguments.plan)
    else:
        for spec_name in arguments.specs or SUBSAMPLES:
            compare(spec_name)
