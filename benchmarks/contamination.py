"""What the audit `prompting.exchangeability` finds in a model that has read a task's texts so many times.

    python benchmarks/contamination.py [--texts 200] [--permutations 10]

Texts of a docstrings task are put into a random order, which is taken for the published one. builtin:gpt2-nano, which
has never seen them, is trained on the texts in that order, one after the other, and is audited with that order, as a
leaked file would be, and with another random order, as if somebody had leaked the texts alone. In its own order the
task's texts are sorted by module, which is no random order: the first line has that too.
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
from peekbench_lm.folder import find_model
from peekbench_lm.model import LanguageModel
from peekbench_lm.pretraining import pretrain
from peekbench_lm.training import Recipe
from peekbench_prompting.exchangeability import Exchangeability, exchangeability

TASK = "docstrings.numpy"
EPOCHS = (0, 1, 3, 10, 30)
STRETCH, BATCH = 128, 8  # tokens read at once, stretches a step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--permutations", type=int, default=10)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folders = Folders(Path(), cache_folder())
    task = load_dataset(TASK)
    published, other, own = _orders(task, arguments.texts)
    model = LanguageModel(find_model("builtin:gpt2-nano", "", folders).path, torch.device("cpu"))
    stretches = _stretches(model, [f"{text}\n" for text in published.inputs])
    print(f"{arguments.texts} texts of {TASK}, {sum(map(len, stretches))} tokens; p, exact (p, t test)")
    done = 0
    for epochs in EPOCHS:
        started = time.process_time()
        if epochs > done:
            pretrain(model, stretches, Recipe(epochs - done, BATCH, 1e-3, "constant", 0.0, 1.0), 0.15, seed=epochs)
        trained, done = time.process_time() - started, epochs
        tasks = {"published": published, "other": other} | ({} if epochs else {"own": own})
        with tempfile.TemporaryDirectory() as folder:
            model.tokenizer.save_pretrained(folder)
            model.network.save_pretrained(folder)
            options = Exchangeability(model=folder, shards=20, permutations=arguments.permutations)
            found = exchangeability(tasks, options=options, context=Context(0, 1, folders))
        cells = [
            f"{name}: gain {gain:+.2f}, p {exact:.4f} ({t:.4g}), {finding}"
            for name, _, _, gain, t, exact, _, finding in found.tables[0].rows
        ]
        seconds = time.process_time() - started - trained
        print(
            f"{epochs:>3} epochs; {'; '.join(cells)}; {trained:.0f} s of training, {seconds:.0f} s of audit", flush=True
        )


def _orders(task: Dataset, number: int) -> tuple[Dataset, Dataset, Dataset]:
    """Texts in a random order, the same ones in another, and as many in the task's own order."""
    generator = np.random.default_rng(0)
    chosen = generator.permutation(len(task.labels))[:number]
    return _rows(task, chosen), _rows(task, generator.permutation(chosen)), _rows(task, np.arange(number))


def _rows(task: Dataset, rows: IntArray) -> Dataset:
    return Dataset([task.inputs[row] for row in rows], [int(task.labels[row]) for row in rows], task.class_names)


def _stretches(model: LanguageModel, rows: list[str]) -> list[list[int]]:
    """The rows, one after the other, as a model is trained on files."""
    flat = [token for ids in model.tokenizer(rows)["input_ids"] for token in ids]
    return [flat[start : start + STRETCH] for start in range(0, len(flat) - 1, STRETCH)]


if __name__ == "__main__":
    main()
