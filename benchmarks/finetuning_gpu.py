"""Trials per hour on a GPU with the shapes of BERT-base and GPT-2, and the duration of the paper's few-shot experiment.

Prints figures and checks nothing. Without a GPU it prints that it skips the measurement.
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import tempfile
import time
from pathlib import Path

import torch
from finetuning import SHAPES, in_process, make_model, run_trial

SPEC_TRIALS = {"bert-base": 13_500, "gpt2": 13_500}  # of specs/paper/few_shot_bert_gpt2.yaml
TRIALS_PER_WORKER = 10


def work(folder: Path, first_seed: int) -> float:
    """Return the seconds of some trials after one that has loaded the model."""
    run_trial(folder, 1, first_seed, "bf16")
    started = time.perf_counter()
    for seed in range(first_seed + 1, first_seed + 1 + TRIALS_PER_WORKER):
        run_trial(folder, 1, seed, "bf16")
    return time.perf_counter() - started


def utilization() -> float:
    """Return the GPU utilization of the last second that nvidia-smi reports, as a fraction."""
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(output.split()[0]) / 100


def measure(name: str, workers: int) -> None:
    """Print the figures of a model with a number of workers on the device."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / name
        in_process(make_model, SHAPES[name], folder)
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            running = pool.starmap_async(work, [(folder, 1000 * worker) for worker in range(workers)])
            utilizations = []
            while not running.ready():
                running.wait(1)
                utilizations.append(utilization())
            seconds = max(running.get())
    per_hour = 3600 * workers * TRIALS_PER_WORKER / seconds
    steady = utilizations[len(utilizations) // 2 :]
    busy = sum(steady) / max(1, len(steady))
    print(
        f"{name}, {workers} workers: {per_hour:,.0f} trials per hour, GPU busy {busy:.0%}; "
        f"its {SPEC_TRIALS[name]:,} trials at n=50 would take {SPEC_TRIALS[name] / per_hour:.1f} h",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 4, 8])
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: no GPU on this machine")
    else:
        for shape in SPEC_TRIALS:
            for number in arguments.workers:
                measure(shape, number)
