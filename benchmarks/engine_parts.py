"""Speedup by each part of the language-model engine: time without the part, relative to the time with all parts.

Measures one epoch of masked or causal pretraining, three epochs of classification, and predictions, on 50 real texts
with one thread. Prints figures and checks nothing.
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

from peekbench_finetune import classification
from peekbench_finetune.classification import Classifier
from peekbench_lm import forward_context, loading
from peekbench_lm import network as packed_network
from peekbench_lm import training_loop as loop
from peekbench_lm import training_loop as rounded_weights
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokenizer import encode
from peekbench_lm.training_loop import LibraryOptimizer

CPU = torch.device("cpu")


def keep_all_parts() -> None:
    """Change nothing."""


def pad_texts() -> None:
    """Pad each batch to its longest text, and use the default attention of the model."""
    original = LanguageModel._reproduces

    def reproduces(self: Any, part: Any, expected: Any) -> bool:
        return not self.is_packed and original(self, part, expected)

    LanguageModel._reproduces = reproduces  # type: ignore[method-assign]


def compute_head_at_all_tokens() -> None:
    """Compute the language-model head at every token, not only at tokens with a target."""

    def loss(self: LanguageModel, part: Any, indices: Any, targets: Any, counts: Any = None) -> Any:
        logits = self.network(**self.network_inputs(part)).logits[0][indices]
        return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="sum")

    LanguageModel.loss = loss  # type: ignore[method-assign]


def compute_loss_by_layers() -> None:
    """Compute the loss of the head layer by layer, each with a table of scores of the whole vocabulary."""
    LanguageModel._ends_in_linear_head = lambda self: False  # type: ignore[method-assign]


def train_whole_embedding() -> None:
    """Train all rows of the word embedding in classification."""
    classification.train_embedding_subset = lambda *_: nullcontext()  # type: ignore[assignment, attr-defined]


def compute_activations_by_steps() -> None:
    """Keep the activations of transformers, which store the result of each operation."""
    loading.fuse_activations = lambda module: None  # type: ignore[attr-defined]


def update_in_separate_passes() -> None:
    """Round weights by autocast, and use the functions of torch to clip gradients and to update weights."""
    rounded_weights.PRODUCTS = ()  # type: ignore[assignment]
    loop.make_optimizer = lambda weights, recipe, _: LibraryOptimizer(weights, recipe)  # type: ignore[assignment,attr-defined]


def multiply_by_torch() -> None:
    """Leave products in fp32 to torch."""
    forward_context.fast_products = lambda device: nullcontext()  # type: ignore[attr-defined]


def release_freed_memory() -> None:
    """Return freed memory to the operating system."""
    packed_network.keep_freed_memory = keep_all_parts  # type: ignore[attr-defined]


STAGES = ("pretraining", "classification", "predictions")


def seconds_of(folder: Path, change: Callable[[], None], precision: Any) -> dict[str, float]:
    """Return the seconds of the stages, of loading the model, and of restoring it."""
    torch.set_num_threads(1)
    change()
    started = time.perf_counter()
    model = LanguageModel(folder, CPU)
    loading = time.perf_counter() - started
    model.precision = precision
    task, train, extra, test = draw(1)
    texts, train_texts, test_texts = (encode(model.tokenizer, part, 256) for part in (extra, train.inputs, test))
    recipe = Recipe(1, 16, 1e-4, "linear", 0.0, 1.0)
    pretrain(model, texts, recipe, 0.15, seed=0)
    started = time.perf_counter()
    model.restore()
    restoring = time.perf_counter() - started
    pretraining = min(pretrain(model, texts, recipe, 0.15, seed=0).seconds for _ in range(3))
    classifier = Classifier(model, task.num_classes, "cls", 0)
    recipe = Recipe(3, 16, 5e-5, "linear", 0.01, 1.0)
    classification = min(classifier.fit(train_texts, train.labels, recipe, 0).seconds for _ in range(3))
    predictions = []
    for _ in range(5):
        started = time.perf_counter()
        classifier.predict(test_texts, 16)
        predictions.append(time.perf_counter() - started)
    return {
        "pretraining": pretraining,
        "classification": classification,
        "predictions": min(predictions),
        "loading": loading,
        "restoring": restoring,
    }


PARTS: dict[str, tuple[Callable[[], None], str]] = {
    "packed texts, no padding": (pad_texts, "bf16"),
    "bf16 instead of fp32": (keep_all_parts, "fp32"),
    "head at targets only": (compute_head_at_all_tokens, "bf16"),
    "in-place loss of the head": (compute_loss_by_layers, "bf16"),
    "embedding of used tokens only": (train_whole_embedding, "bf16"),
    "fused activations": (compute_activations_by_steps, "bf16"),
    "AdamW in chunks": (update_in_separate_passes, "bf16"),
    "products in fp32 by oneDNN": (multiply_by_torch, "bf16"),
    "freed memory kept": (release_freed_memory, "bf16"),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["bert-6x384", "bert-base", "gpt2"])
    for name in parser.parse_args().shapes:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / name
            in_process(make_model, SHAPES[name], folder)
            measure = partial(in_process, seconds_of, folder)
            before = measure(keep_all_parts, "bf16")
            without = {part: measure(*arguments) for part, arguments in PARTS.items()}
            after = measure(keep_all_parts, "bf16")
            seconds = {stage: min(before[stage], after[stage]) for stage in before}
            print(
                f"{name}: pretraining {seconds['pretraining']:.2f} s per epoch, "
                f"classification {seconds['classification'] / 3:.2f} s per epoch, "
                f"predictions {seconds['predictions']:.2f} s"
            )
            print(
                "  restored instead of loaded weights   "
                f"{seconds['loading']:.2f} s to load, {seconds['restoring']:.2f} s to restore"
            )
            for part, others in without.items():
                ratios = (f"{stage} {others[stage] / seconds[stage]:5.2f}x" for stage in STAGES)
                print(f"  {part:30} {', '.join(ratios)}", flush=True)
