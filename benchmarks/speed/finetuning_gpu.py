"""Trials per hour, share of the peak and memory of `finetune.tapt` on a GPU, beside the Trainer of transformers.

The models have the shapes of BERT-base and GPT-2; a trial has three arms, 50 train and 50 test texts. The script checks
nothing. Without a GPU it prints that it was skipped; `--dry-run` runs all of it with tiny models on any machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from finetuning import SHAPES, in_process, make_model, run_straightforward, run_trial
from gpu_table import Row, matrix_peak, peak_memory, print_table

SPEC_TRIALS = 13_500  # of each model in specs/paper/few_shot_bert_gpt2.yaml with 50 train texts
MODELS = ("bert-base", "gpt2")
TINY: dict[str, dict[str, Any]] = {
    "bert-base": {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128,
        "vocab_size": 8192,
    },
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 8192, "bos_token_id": 0, "eos_token_id": 0},
}  # fmt: skip
TINY_MATRICES = {"bert-base": 2 * 8 * 64**2, "gpt2": 2 * 12 * 64**2}


def work(folder: Path, first_seed: int, num_trials: int) -> tuple[float, float, float]:
    """Return the seconds and the trained tokens of some trials after one that loads the model, and the memory in MB."""
    run_trial(folder, 1, first_seed, "bf16")
    started, tokens = time.perf_counter(), 0.0
    for seed in range(first_seed + 1, first_seed + 1 + num_trials):
        tokens += run_trial(folder, 1, seed, "bf16")["tokens"]
    return time.perf_counter() - started, tokens, peak_memory()


def reference(folder: Path, num_trials: int) -> tuple[float, float]:
    """Return the seconds of some trials with the Trainer of transformers after a first one, and the memory in MB."""
    run_straightforward(folder, 0)
    return sum(run_straightforward(folder, seed) for seed in range(1, 1 + num_trials)), peak_memory()


def measure(name: str, workers: list[int], num_trials: int, is_tiny: bool) -> None:
    """Print the table of a model."""
    shape = SHAPES[name]
    if is_tiny:
        shape = replace(shape, config=TINY[name], matrices=TINY_MATRICES[name])
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / name
        in_process(make_model, shape, folder)
        for number in workers:
            with multiprocessing.get_context("spawn").Pool(number) as pool:
                figures = pool.starmap(work, [(folder, 1000 * worker, num_trials) for worker in range(number)])
            seconds, tokens, memory = zip(*figures, strict=True)
            operations = 6 * shape.matrices * sum(tokens)
            label = f"peekbench, {number} worker{'s' * (number > 1)}"
            rows.append(Row(label, number * num_trials, max(seconds), operations, sum(memory)))
        elapsed, memory_of_reference = in_process(reference, folder, num_trials)
        operations = rows[0].operations * num_trials / rows[0].trials  # on the same tokens
        rows.insert(0, Row("Trainer, fp32, padded", num_trials, elapsed, operations, memory_of_reference))
        print_table(f"{name}, three arms", rows, in_process(matrix_peak), SPEC_TRIALS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 4, 8])
    parser.add_argument("--trials", type=int, default=10, help="measured trials of each worker")
    parser.add_argument("--dry-run", action="store_true", help="run a trial of tiny models with one worker")
    arguments = parser.parse_args()
    if not (torch.cuda.is_available() or arguments.dry_run):
        print("skipped: no GPU is available; --dry-run tries the script with tiny models")
    else:
        for model in MODELS:
            if arguments.dry_run:
                measure(model, [1], 1, is_tiny=True)
            else:
                measure(model, arguments.workers, arguments.trials, is_tiny=False)
