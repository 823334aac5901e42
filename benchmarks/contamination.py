"""Results of the audit `prompting.exchangeability` for a model that was trained on a task's texts.

    python benchmarks/contamination.py [--texts 200] [--permutations 10]

The script shuffles texts of a docstrings task and treats this order as the published one. It trains builtin:gpt2-nano,
which has never seen the texts, on the texts in that order for several numbers of epochs. It audits the model with that
order, as after a leak of the published file, and with another random order, as after a leak of single texts. The first
line also audits the task's own order, which is sorted by module and therefore not random.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from peekbench import Context, Dataset, Folders, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import IntArray
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.model_files import find_model
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import pretrain
from peekbench_prompting.audit_options import Exchangeability
from peekbench_prompting.exchangeability import exchangeability

TASK = "docstrings.numpy"
EPOCHS = (0, 1, 3, 10, 30)
CHUNK_SIZE, BATCH_SIZE = 128, 8  # tokens per chunk, chunks per step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--permutations", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folders = Folders(Path(), cache_folder())
    task = load_dataset(TASK)
    published, other, own = _orders(task, arguments.texts)
    model = LanguageModel(find_model("builtin:gpt2-nano", "", folders).path, torch.device("cpu"))
    chunks = _chunks(model, [f"{text}\n" for text in published.inputs])
    print(f"{arguments.texts} texts of {TASK}, {sum(map(len, chunks))} tokens; p, exact (p, t test)")
    num_trained = 0
    for epochs in EPOCHS:
        started = time.process_time()
        if epochs > num_trained:
            pretrain(
                model, chunks, Recipe(epochs - num_trained, BATCH_SIZE, 1e-3, "constant", 0.0, 1.0), 0.15, seed=epochs
            )
        training_seconds, num_trained = time.process_time() - started, epochs
        tasks = {"published": published, "other": other} | ({} if epochs else {"own": own})
        with tempfile.TemporaryDirectory() as folder:
            model.tokenizer.save_pretrained(folder)
            model.network.save_pretrained(folder)
            options = Exchangeability(model=folder, shards=20, permutations=arguments.permutations)
            analysis = exchangeability(tasks, options=options, context=Context(0, 1, folders))
        cells = [
            f"{name}: gain {gain:+.2f}, p {exact:.4f} ({t:.4g}), {conclusion}"
            for name, _, _, gain, t, exact, _, conclusion in analysis.tables[0].rows
        ]
        audit_seconds = time.process_time() - started - training_seconds
        times = f"{training_seconds:.0f} s of training, {audit_seconds:.0f} s of audit"
        print(f"{epochs:>3} epochs; {'; '.join(cells)}; {times}", flush=True)


def _orders(task: Dataset, number: int) -> tuple[Dataset, Dataset, Dataset]:
    """Return texts in a random order, the same texts in another, and as many texts in the task's own order."""
    generator = np.random.default_rng(0)
    chosen = generator.permutation(len(task.labels))[:number]
    return _rows(task, chosen), _rows(task, generator.permutation(chosen)), _rows(task, np.arange(number))


def _rows(task: Dataset, rows: IntArray) -> Dataset:
    return Dataset([task.inputs[row] for row in rows], [int(task.labels[row]) for row in rows], task.class_names)


def _chunks(model: LanguageModel, rows: list[str]) -> list[list[int]]:
    """Cut the concatenated rows into chunks of equal length, as models are trained on files."""
    flat = [token for ids in model.tokenizer(rows)["input_ids"] for token in ids]
    return [flat[start : start + CHUNK_SIZE] for start in range(0, len(flat) - 1, CHUNK_SIZE)]


if __name__ == "__main__":
    main()
