"""Search settings of pretraining with which the hidden states of a language model separate classes better.

    python benchmarks/atlas/pretraining_settings.py library '{learning_rate: 1.0e-3, batch_size: 4}' --lora

The tasks are those of tuning.py, which the atlas does not report. A linear classifier of mean hidden states replaces
finetuning, which takes most of the time and varies more: it is trained on ten draws of 50 texts, the same after each
setting.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import numpy as np
import torch
import typer
import yaml
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from tuning import make_tasks

from peekbench.cache import cache_folder
from peekbench.records import FloatArray
from peekbench_finetune.classification import pool
from peekbench_finetune.options import Pretraining
from peekbench_lm.builtin_models import build_model
from peekbench_lm.devices import choose_device, deterministic
from peekbench_lm.forward_context import forward_context
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.layout import Step
from peekbench_lm.options import WeightMode
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokenizer import encode

NUM_TEST, NUM_POOL, NUM_TRAIN, NUM_DRAWS = 200, 200, 50, 10
PENALTY = 0.05  # C of the linear classifier
RANK = 16


@torch.no_grad()
def mean_states(model: LanguageModel, texts: list[list[int]]) -> FloatArray:
    """Return the mean hidden state of each text; shape (len(texts), hidden_size)."""
    model.network.eval()
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    states = np.empty((len(texts), model.hidden_size))

    def attempt(parts: Any) -> torch.Tensor:
        means = []
        for part in parts:
            with forward_context(part, 0, model.precision):
                means.append(pool(model.hidden(part).float(), part, "mean").float())
        return torch.cat(means)

    for start in range(0, len(order), 32):
        rows = order[start : start + 32]
        step = Step([texts[row] for row in rows])
        states[[rows[position] for position in step.order]] = model.run_in_parts(step, attempt).cpu().numpy()
    return states


def search(
    task: Annotated[str, typer.Argument(help="Task of tuning.py, such as library.")],
    settings: Annotated[list[str], typer.Argument(help="Options `pretraining` of finetune.tapt, in YAML.")],
    name: Annotated[str, typer.Option("--model", help="Built-in causal model.")] = "gemma-270m",
    lora: Annotated[bool, typer.Option(help="Train adapters instead of all weights.")] = False,
    num_texts: Annotated[int, typer.Option(help="Number of unlabeled texts.")] = 100,
    context_length: Annotated[int, typer.Option(help="Tokens of each text.")] = 24,
) -> None:
    """Print the accuracy without pretraining, and the gain of each setting with its standard error, in points."""
    rows = make_tasks()[task]
    labels = rows["label"].astype("category").cat.codes.to_numpy()
    order = np.random.default_rng(1).permutation(len(rows))[: NUM_TEST + NUM_POOL + num_texts]
    test, train, unlabeled = np.split(order, [NUM_TEST, NUM_TEST + NUM_POOL])
    mode: WeightMode = "frozen" if lora else "trained"
    model = LanguageModel(build_model(name, cache_folder()), choose_device("auto"), mode)
    model.precision = "bf16"
    texts = encode(model.tokenizer, rows["text"].tolist(), context_length)

    def accuracies() -> FloatArray:
        """Return the accuracy of each draw of train texts in percent."""
        test_states, states = (mean_states(model, [texts[row] for row in part]) for part in (test, train))
        scaler = StandardScaler().fit(states)
        scores = []
        for draw in range(NUM_DRAWS):
            chosen = np.random.default_rng((7, draw)).permutation(len(train))[:NUM_TRAIN]
            classifier = LogisticRegression(C=PENALTY, max_iter=300)
            classifier.fit(scaler.transform(states[chosen]), labels[train[chosen]])
            scores.append(100 * classifier.score(scaler.transform(test_states), labels[test]))
        return np.array(scores)

    with deterministic(model.device, 1):
        base = accuracies()
        print(f"without pretraining: {base.mean():.1f}")
        for setting in settings:
            options = Pretraining(**yaml.safe_load(setting))
            model.restore()
            if lora:
                model.add_adapters(RANK, 2 * RANK, 0.0, seed=3)
            started = time.process_time()
            pretrain(
                model, [texts[row] for row in unlabeled], options.recipe(model.kind), options.mask_probability, seed=5
            )
            seconds = time.process_time() - started
            gain = accuracies() - base
            print(f"{setting}: {gain.mean():+.1f} ({gain.std(ddof=1) / NUM_DRAWS**0.5:.1f}), {seconds:.0f} CPU seconds")


if __name__ == "__main__":
    typer.run(search)
