"""What each part of the language-model engine is worth: time without it, as a multiple of the time with all of them.

One epoch of masked and of causal pretraining, and three of classification, on 50 real texts, with one thread. Prints
figures, asserts nothing.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from finetuning import SHAPES, draw, in_process, make_model

from peekbench_finetune import classification as classifications
from peekbench_finetune.classification import Classifier
from peekbench_lm import model as models
from peekbench_lm.model import LanguageModel
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokens import encode
from peekbench_lm.training import Recipe

CPU = torch.device("cpu")


def nothing() -> None:
    """Leave all parts in place."""


def pad() -> None:
    """Pad each batch to its longest text, and use the model's own attention."""
    usual = LanguageModel._gives

    def gives(self: LanguageModel, part: Any, hidden: Any, logits: Any) -> bool:
        return not self.is_packed and usual(self, part, hidden, logits)

    LanguageModel._gives = gives  # type: ignore[method-assign]


def head_everywhere() -> None:
    """Compute the language-model head at every token, not only where something is to be guessed."""

    def loss(self: LanguageModel, part: Any, places: Any, targets: Any, counts: Any = None) -> Any:
        logits = self.network(**self._inputs(part)).logits[0][places]
        return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum")

    LanguageModel.loss = loss  # type: ignore[method-assign]


def plain_loss() -> None:
    """Compute the loss at the head layer by layer, each with a table of all words' scores."""
    LanguageModel._ends_in_its_head = lambda self, part: False  # type: ignore[method-assign]


def all_rows() -> None:
    """Train all rows of the word embedding in classification."""
    classifications.used_rows = lambda *_: nullcontext()  # type: ignore[assignment, attr-defined]


def plain_optimizer() -> None:
    """Update weights tensor by tensor."""
    usual = torch.optim.AdamW

    def make(groups: Any, lr: float, fused: bool) -> torch.optim.Optimizer:
        return usual(groups, lr=lr, foreach=False)

    torch.optim.AdamW = make  # type: ignore[assignment,misc]


def usual_memory() -> None:
    """Give freed memory back to the system."""
    models.keep_freed_memory = nothing  # type: ignore[attr-defined]


def seconds_of(folder: Path, change: Callable[[], None], precision: Any) -> tuple[float, float, float, float]:
    """Seconds of pretraining and of classification; of loading the model, and of restoring it."""
    torch.set_num_threads(1)
    change()
    started = time.perf_counter()
    model = LanguageModel(folder, CPU)
    loading = time.perf_counter() - started
    model.precision = precision
    task, train, extra, _ = draw(1)
    texts, given = encode(model.tokenizer, extra, 256), encode(model.tokenizer, train.inputs, 256)
    recipe = Recipe(1, 16, 1e-4, "linear", 0.0, 1.0)
    pretrain(model, texts, recipe, 0.15, seed=0)
    started = time.perf_counter()
    model.restore()
    restoring = time.perf_counter() - started
    pretraining = min(pretrain(model, texts, recipe, 0.15, seed=0).seconds for _ in range(3))
    classifier = Classifier(model, task.num_classes, "cls", 0)
    three = Recipe(3, 16, 5e-5, "linear", 0.01, 1.0)
    classification = classifier.fit(given, train.labels, three, 0).seconds
    return pretraining, classification, loading, restoring


PARTS: dict[str, tuple[Callable[[], None], str]] = {
    "texts end to end, not padded": (pad, "bf16"),
    "bf16, not fp32": (nothing, "fp32"),
    "head only where it is needed": (head_everywhere, "bf16"),
    "loss at the head in place": (plain_loss, "bf16"),
    "rows of words that occur": (all_rows, "bf16"),
    "fused AdamW": (plain_optimizer, "bf16"),
    "freed memory kept": (usual_memory, "bf16"),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["bert-6x384", "bert-base", "gpt2"])
    for name in parser.parse_args().shapes:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            in_process(make_model, SHAPES[name], folder)
            measure = partial(in_process, seconds_of, folder)
            pretraining, classification, loading, restoring = measure(nothing, "bf16")
            print(
                f"{name}: pretraining {pretraining:.2f} s an epoch, classification {classification / 3:.2f} s an epoch"
            )
            print(f"  weights restored, not loaded   {loading:.2f} s to load, {restoring:.2f} s to restore")
            for part, (change, precision) in PARTS.items():
                without = measure(change, precision)
                ratios = without[0] / pretraining, without[1] / classification
                print(f"  {part:30} pretraining {ratios[0]:5.2f}x, classification {ratios[1]:5.2f}x", flush=True)
