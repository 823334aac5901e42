"""Speed of task-adaptive pretraining (three arms), compared with the reference implementation and the machine's peak.

Prints figures and checks nothing. Models have random weights of the published shapes; texts are real.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from straightforward import run_arm
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel

from peekbench import Context, Folders, Labeled, Task, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import SourceRef
from peekbench_finetune.fit import tapt
from peekbench_finetune.options import Pretraining, Tapt
from peekbench_lm.builtin_models import build_model
from peekbench_lm.devices import deterministic, peak_memory
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.options import Precision
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokenizer import encode, load_tokenizer

NUM_TRAIN = NUM_TEST = 50


@dataclass(frozen=True)
class Shape:
    """Size of a model."""

    name: str
    tokenizer: str
    config: dict[str, Any]
    matrices: int
    """Number of weights in the matrices of its layers."""


SHAPES = {
    "bert-6x384": Shape(
        "bert-6x384",
        "bert-nano",
        {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536},
        6 * 12 * 384**2,
    ),
    "bert-base": Shape("bert-base", "bert-nano", {}, 12 * 12 * 768**2),
    "gpt2": Shape("gpt2", "gpt2-nano", {}, 12 * 12 * 768**2),
}


def make_model(shape: Shape, folder: Path) -> None:
    """Save a model with random weights and a tokenizer that gives about as many tokens as the published one."""
    tokenizer = AutoTokenizer.from_pretrained(build_model(shape.tokenizer, cache_folder()))
    tokenizer.model_max_length = 512
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    with quiet_transformers():
        if shape.name == "gpt2":
            GPT2LMHeadModel(GPT2Config(**shape.config)).save_pretrained(folder)
        else:
            BertForMaskedLM(BertConfig(**shape.config)).save_pretrained(folder)


def draw(seed: int) -> tuple[Task, Labeled, list[str], list[str]]:
    """Return task, train, extra and test texts of a subsample of real texts."""
    source = SourceRef("docstrings.stdlib", {}, Path.cwd())
    dataset = load_dataset(source)
    rows = np.random.default_rng(seed).permutation(len(dataset.inputs))[: NUM_TRAIN + 2 * NUM_TEST]
    texts, labels = [dataset.inputs[row] for row in rows], np.asarray(dataset.labels)[rows]
    task = Task("stdlib", "classification", dataset.class_names, "", source)
    train = Labeled(tuple(texts[:NUM_TRAIN]), labels[:NUM_TRAIN])
    return task, train, texts[NUM_TRAIN : NUM_TRAIN + NUM_TEST], texts[NUM_TRAIN + NUM_TEST :]


def run_trial(folder: Path, threads: int, seed: int, precision: str) -> dict[str, float]:
    """Run all arms with peekbench; return the seconds of the trial, and the tokens of training and of predictions."""
    task, train, extra, test = draw(seed)
    options = Tapt.model_validate(
        {"model": str(folder), "threads": threads, "precision": precision, "pretraining": {"epochs": epochs(folder)}}
    )
    context = Context(seed, threads, Folders(Path.cwd(), cache_folder()))
    started = time.perf_counter()
    trained = 0.0
    for unlabeled in (None, extra, test):
        predictor = tapt(unlabeled, train, task, options=options, context=context)
        predictor.predict(test)
        for stage in ("pretraining", "classification"):
            trained += predictor.metrics.get(f"{stage}_tokens", 0)
        del predictor  # a worker that keeps it during the next fit needs a second copy of the model
    seconds = time.perf_counter() - started
    tokenizer = load_tokenizer(folder)
    predicted = 3 * sum(map(len, encode(tokenizer, test, options.context_length)))
    return {"trial": seconds, "trained": trained, "predicted": predicted}


def epochs(folder: Path) -> int:
    """Return the epochs of pretraining, as in the paper."""
    return 1 if "gpt2" in folder.name else 2


def run_straightforward(folder: Path, seed: int) -> float:
    """Run all arms with the reference implementation; return the seconds of the trial."""
    torch.set_num_threads(os.cpu_count() or 1)
    task, train, extra, test = draw(seed)
    options = Tapt.model_validate({"model": str(folder), "pretraining": {"epochs": epochs(folder)}})
    started = time.perf_counter()
    for unlabeled in (None, extra, test):
        texts, labels = list(train.inputs), train.labels.astype(int).tolist()
        run_arm(folder, unlabeled, (texts, labels), test, task.num_classes, options, seed)
    return time.perf_counter() - started


def in_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a separate process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def second_trial(folder: Path, threads: int, precision: str) -> dict[str, float]:
    """Measure a trial after one that has loaded the model; add the peak memory in MB."""
    run_trial(folder, threads, 0, precision)
    figures = run_trial(folder, threads, 1, precision)
    return {**figures, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def worker_memory(folder: Path, precision: str, arms: Sequence[str]) -> list[tuple[str, float, float]]:
    """Run arms one after another with one thread; return each arm, the peak memory in MB so far, and its seconds."""
    task, train, extra, test = draw(1)
    options = Tapt.model_validate(
        {"model": str(folder), "threads": 1, "precision": precision, "pretraining": {"epochs": epochs(folder)}}
    )
    context = Context(1, 1, Folders(Path.cwd(), cache_folder()))
    unlabeled = {"base": None, "extra": extra, "test": test}
    figures = []
    for arm in arms:
        started = time.process_time()
        predictor = tapt(unlabeled[arm], train, task, options=options, context=context)
        predictor.predict(test)
        del predictor
        figures.append((arm, peak_memory(torch.device("cpu")), time.process_time() - started))
    return figures


def measure_memory(shape: Shape, precision: Precision, arms: Sequence[str]) -> None:
    """Print the peak memory of a new process after each arm, and the processor time of the arm."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / shape.name
        in_process(make_model, shape, folder)
        for arm, memory, seconds in in_process(worker_memory, folder, precision, arms):
            print(f"{shape.name}, {precision}, arm {arm:5}  peak so far {memory:6.0f} MB  {seconds:6.1f} s", flush=True)


def matrix_peak(threads: int) -> float:
    """Return the operations per second of the fastest bf16 matrix product on this machine."""
    torch.set_num_threads(threads)
    best = 0.0
    for rows, inner, columns in ((1024, 768, 3072), (2048, 2048, 2048), (4096, 1024, 4096)):
        left, right = (torch.randn(size, dtype=torch.bfloat16) for size in ((rows, inner), (inner, columns)))
        for _ in range(8):
            started = time.perf_counter()
            left @ right
            best = max(best, 2 * rows * inner * columns / (time.perf_counter() - started))
    return best


def step_speed(folder: Path, shape: Shape, precision: Precision) -> tuple[float, float]:
    """Return the best speeds of a pretraining step of 16 real texts and of a matrix product, with one thread."""
    extra = draw(0)[2]
    best = peak = 0.0
    with deterministic(torch.device("cpu"), 1):
        model = LanguageModel(folder, torch.device("cpu"))
        model.precision = precision
        texts = encode(model.tokenizer, extra, model.context_limit(256))[:16]
        for _ in range(6):
            peak = max(peak, matrix_peak(1))
            result = pretrain(model, texts, Pretraining(epochs=1).recipe(model.kind), 0.15, 0)
            best = max(best, 6 * shape.matrices * result.num_tokens / result.seconds)
    return best, peak


def measure(shape: Shape, precision: Precision) -> None:
    """Print the figures of a model."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / shape.name
        in_process(make_model, shape, folder)
        cores = os.cpu_count() or 1
        single = in_process(second_trial, folder, cores, precision)
        with multiprocessing.get_context("spawn").Pool(cores) as pool:
            peak = sum(pool.map(matrix_peak, [1] * cores))
            parallel = pool.starmap(second_trial, [(folder, 1, precision)] * cores)
        speed, step_peak = in_process(step_speed, folder, shape, precision)
        reference = in_process(run_straightforward, folder, 1)
    seconds = max(figures["trial"] for figures in parallel) / cores
    print(f"{shape.name}, {precision}, {NUM_TRAIN} train and {NUM_TEST} test texts, {cores} cores")
    print(f"  reference implementation     {reference:8.1f} s per trial")
    print(f"  peekbench, one fit at a time {single['trial']:8.1f} s per trial  {reference / single['trial']:5.1f}x")
    print(f"  peekbench, one fit per core  {seconds:8.1f} s per trial  {reference / seconds:5.1f}x")
    print(f"  a step, one thread: {speed / step_peak:6.0%} of the bf16 matrix peak ({step_peak / 1e9:.0f} G/s)")
    operations = shape.matrices * (6 * single["trained"] + 2 * single["predicted"])
    print(
        f"  whole trials, one fit per core: {operations / seconds / peak:6.0%} of {peak / 1e9:.0f} G/s, "
        f"{single['trained']:,.0f} real tokens in training and {single['predicted']:,.0f} in predictions"
    )
    print(f"  peak memory of a worker      {max(figures['memory'] for figures in parallel):8.0f} MB", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument(
        "--memory", nargs="+", choices=("base", "extra", "test"), help="only print the peak memory of arms"
    )
    arguments = parser.parse_args()
    for name in arguments.shapes:
        if arguments.memory:
            measure_memory(SHAPES[name], arguments.precision, arguments.memory)
        else:
            measure(SHAPES[name], arguments.precision)
