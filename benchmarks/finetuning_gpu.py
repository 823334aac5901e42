"""Trials an hour on a GPU with BERT-base and GPT-2 shapes, and what the study's few-shot experiment would take.

Prints figures, asserts nothing; without a GPU it says that it skips.
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
TRIALS_EACH = 10


def work(folder: Path, first_seed: int) -> float:
    """Seconds of some trials, after one that has loaded the model."""
    run_trial(folder, 1, first_seed, "bf16")
    started = time.perf_counter()
    for seed in range(first_seed + 1, first_seed + 1 + TRIALS_EACH):
        run_trial(folder, 1, seed, "bf16")
    return time.perf_counter() - started


def utilization() -> float:
    """Share of the last second in which the GPU computed, as nvidia-smi says."""
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(said.split()[0]) / 100


def measure(name: str, workers: int) -> None:
    """Print one model's figures with a number of workers on the device."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / name
        in_process(make_model, SHAPES[name], folder)
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            running = pool.starmap_async(work, [(folder, 1000 * worker) for worker in range(workers)])
            used = []
            while not running.ready():
                running.wait(1)
                used.append(utilization())
            seconds = max(running.get())
    an_hour = 3600 * workers * TRIALS_EACH / seconds
    busy = sum(used[len(used) // 2 :]) / max(1, len(used) - len(used) // 2)
    print(
        f"{name}, {workers} workers: {an_hour:,.0f} trials an hour, GPU busy {busy:.0%}; "
        f"its {SPEC_TRIALS[name]:,} trials at n=50 would take {SPEC_TRIALS[name] / an_hour:.1f} h",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 4, 8])
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU here: skipped")
    else:
        for shape in SPEC_TRIALS:
            for number in arguments.workers:
                measure(shape, number)
