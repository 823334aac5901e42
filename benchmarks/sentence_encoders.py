"""Speed of training sentence encoders, compared with the trainer of sentence-transformers.

Prints figures and checks nothing. Both train on the same texts with the same batches, epochs, lengths and optimizer, in
one process with one thread. The library trains in fp32, its default, and under autocast in bf16. Seconds are processor
time. They alternate, and the best of several rounds counts, because other programs disturb a measurement but never
speed it up.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import InputExample, SentenceTransformer
from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss, MultipleNegativesRankingLoss
from torch.utils.data import DataLoader

from peekbench import Context, Folders, Labeled, Task, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import SourceRef
from peekbench_embedding.options import Simcse, Tsdae
from peekbench_embedding.trained_encoder import encoders
from peekbench_embedding.training_methods import simcse, train_simcse, tsdae
from peekbench_embedding.tsdae import split_words, train_tsdae
from peekbench_lm.devices import deterministic
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.model_files import find_model
from peekbench_lm.options import Precision

NUM_TRAIN, NUM_TEST = 50, 200
MODEL = "builtin:minilm"


def draw(name: str, seed: int) -> tuple[Task, Labeled, list[str], list[str]]:
    """Return task, train, extra and test texts of a subsample of a docstrings task."""
    source = SourceRef(f"docstrings.{name}", {}, Path.cwd())
    dataset = load_dataset(source)
    rows = np.random.default_rng(seed).permutation(len(dataset.inputs))[: NUM_TRAIN + 2 * NUM_TEST]
    texts, labels = [dataset.inputs[row] for row in rows], np.asarray(dataset.labels)[rows]
    task = Task(name, "classification", dataset.class_names, "", source)
    train = Labeled(tuple(texts[:NUM_TRAIN]), labels[:NUM_TRAIN])
    return task, train, texts[NUM_TRAIN : NUM_TRAIN + NUM_TEST], texts[NUM_TRAIN + NUM_TEST :]


def delete_words(text: str, probability: float, generator: np.random.Generator) -> str:
    """Delete words that are separated by spaces, but never all of them."""
    words = text.split()
    draws = generator.random(len(words))
    return " ".join(word for word, drawn in zip(words, draws, strict=True) if drawn >= min(probability, draws.max()))


def train_with_library(texts: Sequence[str], options: Simcse | Tsdae, precision: Precision) -> float:
    """Train with sentence-transformers; return the seconds of making the loss, tokenization and training."""
    training = options.training
    model = SentenceTransformer(str(find_model(MODEL, "", folders()).path), device="cpu", local_files_only=True)
    model.max_seq_length = training.context_length
    generator = np.random.default_rng(0)
    started = time.process_time()
    if isinstance(options, Simcse):
        pairs = [(text, text) for text in texts]
        loss: Any = MultipleNegativesRankingLoss(model, scale=1 / options.training.temperature)
    else:
        pairs = [(delete_words(text, options.training.deletion_probability, generator), text) for text in texts]
        loss = DenoisingAutoEncoderLoss(model, tie_encoder_decoder=True)
    examples: Any = [InputExample(texts=list(pair)) for pair in pairs]
    loader: Any = DataLoader(examples, batch_size=training.batch_size, shuffle=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        model.old_fit(  # `fit` calls a Trainer, which needs one more library and takes the same steps
            [(loader, loss)],
            epochs=training.epochs,
            scheduler="WarmupLinear" if training.schedule == "linear" else "constantlr",
            warmup_steps=0,
            optimizer_params={"lr": training.learning_rate, "fused": True},
            weight_decay=training.weight_decay,
            max_grad_norm=training.max_gradient_norm,
            show_progress_bar=False,
        )
    return time.process_time() - started


def run_arm(
    method: Callable[..., Any], subsample: tuple[Task, Labeled, list[str], list[str]], arm: str, options: Any
) -> float:
    """Run an arm with peekbench, predictions included; return its seconds."""
    task, train, extra, test = subsample
    unlabeled = {"base": None, "extra": extra, "test": test}[arm]
    started = time.process_time()
    method(unlabeled, train, task, options=options, context=Context(0, 1, folders())).predict(test)
    return time.process_time() - started


def train_with_peekbench(texts: Sequence[str], options: Simcse | Tsdae) -> float:
    """Train with peekbench; return the seconds of tokenization and training."""
    lease = encoders.acquire(find_model(MODEL, "", folders()), torch.device("cpu"))
    encoder, limit = lease.model, options.training.context_length
    encoder.precision = options.training.precision
    started = time.process_time()
    if isinstance(options, Simcse):
        train_simcse(encoder, encoder.tokenize(texts, None, limit)["input_ids"], options.training, 0)
    else:
        train_tsdae(encoder, split_words(encoder, texts, None, limit), options.training, 0)
    return time.process_time() - started


def folders() -> Folders:
    """Return the folders of the fits."""
    return Folders(Path.cwd(), cache_folder())


def measure(method: Callable[..., Any], options: Simcse | Tsdae, task: str, rounds: int) -> None:
    """Print the figures of a method."""
    subsample = draw(task, 0)
    arms: dict[str, list[float]] = {"base": [], "extra": [], "test": []}
    library: dict[Precision, list[float]] = {"fp32": [], "bf16": []}
    own = []
    with deterministic(torch.device("cpu"), 1), quiet_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_arm(method, subsample, "extra", options)  # loads the model
        for _ in range(rounds):
            for precision, seconds in library.items():
                seconds.append(train_with_library(subsample[2], options, precision))
            own.append(train_with_peekbench(subsample[2], options))
            for arm, seconds in arms.items():
                seconds.append(run_arm(method, subsample, arm, options))
    trial = sum(map(min, arms.values()))
    figures = " ".join(f"{arm} {min(seconds):.2f}" for arm, seconds in arms.items())
    print(f"{method.__name__}, {NUM_TEST} texts of docstrings.{task}, {options.training.epochs} epochs")
    for precision, seconds in library.items():
        ratio = min(seconds) / min(own)
        print(f"  sentence-transformers, training in {precision} {min(seconds):8.2f} s  {ratio:5.1f} times peekbench")
    print(f"  peekbench, training in {options.training.precision}             {min(own):8.2f} s")
    print(f"  peekbench, trial of three arms          {trial:8.2f} s  ({figures})", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=("simcse", "tsdae"), default=["simcse", "tsdae"])
    parser.add_argument("--task", default="stdlib")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    arguments = parser.parse_args()
    settings = {"model": MODEL, "device": "cpu", "training": {"precision": arguments.precision}}
    if "simcse" in arguments.methods:
        measure(simcse, Simcse.model_validate(settings), arguments.task, arguments.rounds)
    if "tsdae" in arguments.methods:
        measure(tsdae, Tsdae.model_validate(settings), arguments.task, arguments.rounds)
