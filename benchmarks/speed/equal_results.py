"""Equivalence of the accuracies of peekbench and of the reference implementation, for each arm and for their mean.

Prints the mean differences and paired equivalence tests with a margin of one point. Checks nothing. Ctrl-C ends it
early, with the trials that are finished. More texts are classified than used as unlabeled text, because the classes of
single texts vary more than the accuracy of models.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy import stats
from straightforward import run_arm

from peekbench import Context, Folders, Labeled, Task, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import SourceRef
from peekbench_finetune.fit import tapt
from peekbench_finetune.options import Tapt
from peekbench_lm.builtin_models import build_model

MARGIN = 0.01
TASKS = ("stdlib", "numpy", "scipy", "pandas", "sklearn")
NUM_TRAIN, NUM_UNLABELED, NUM_TEST = 50, 200, 600
ARMS = ("base", "extra", "test")


def run_trial(
    number: int, model: str, precision: str, context_length: int, learning_rates: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return the accuracies of each arm, by peekbench and by the reference implementation, on one subsample."""
    torch.set_num_threads(1)
    name = TASKS[number % len(TASKS)]
    source = SourceRef(f"docstrings.{name}", {}, Path.cwd())
    dataset = load_dataset(source)
    rows = np.random.default_rng(number).permutation(len(dataset.inputs))[: NUM_TRAIN + NUM_UNLABELED + NUM_TEST]
    texts, labels = [dataset.inputs[row] for row in rows], np.asarray(dataset.labels)[rows]
    train, extra, test = (texts[:NUM_TRAIN], texts[NUM_TRAIN:-NUM_TEST], texts[-NUM_TEST:])
    task = Task(name, "classification", dataset.class_names, "", source)
    options = Tapt.model_validate(
        {
            "model": model,
            "precision": precision,
            "context_length": context_length,
            "pretraining": {"epochs": 2, "learning_rate": learning_rates[0]},
            "classification": {"pooling": "mean", "epochs": 5, "learning_rate": learning_rates[1]},
        }
    )
    context = Context(number, 1, Folders(Path.cwd(), cache_folder()))
    folder = build_model(model.removeprefix("builtin:"), cache_folder())
    accuracies = []
    for unlabeled in (None, extra, test[:NUM_UNLABELED]):
        predictor = tapt(unlabeled, Labeled(tuple(train), labels[:NUM_TRAIN]), task, options=options, context=context)
        ours = np.asarray(predictor.predict(tuple(test))).argmax(1)
        labeled = (train, labels[:NUM_TRAIN].tolist())
        reference = run_arm(folder, unlabeled, labeled, test, task.num_classes, options, number).argmax(1)
        accuracies.append(tuple(float(np.mean(classes == labels[-NUM_TEST:])) for classes in (ours, reference)))
    return accuracies  # type: ignore[return-value]


def main() -> None:
    """Run the trials and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=120)
    parser.add_argument("--model", default="builtin:bert-nano")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--context-length", type=int, default=64, help="maximum number of tokens of each text")
    parser.add_argument(
        "--learning-rates",
        type=float,
        nargs=2,
        default=(1e-3, 2e-3),
        metavar=("PRETRAINING", "CLASSIFICATION"),
        help="default: for builtin:bert-nano; 3e-4 5e-4 suit builtin:minilm-mlm",
    )
    arguments = parser.parse_args()
    build_model(arguments.model.removeprefix("builtin:"), cache_folder())
    work = partial(
        run_trial,
        model=arguments.model,
        precision=arguments.precision,
        context_length=arguments.context_length,
        learning_rates=arguments.learning_rates,
    )
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        trials = []
        with suppress(KeyboardInterrupt):
            for trial in pool.imap(work, range(arguments.trials)):
                trials.append(trial)
                print(f"{len(trials)} of {arguments.trials} trials", end="\r", file=sys.stderr, flush=True)
    if len(trials) < 2:
        sys.exit("A comparison needs two or more trials.")
    accuracies = np.array(trials)  # (trials, arms, 2)
    accuracies = np.concatenate([accuracies, accuracies.mean(1, keepdims=True)], axis=1)
    print(f"{arguments.model}, {arguments.precision}, {len(trials)} trials on docstrings, {NUM_TEST} test texts")
    for arm, name in enumerate((*ARMS, "mean")):
        ours, reference = accuracies[:, arm].T
        difference = ours - reference
        error = difference.std(ddof=1) / len(difference) ** 0.5
        p = max(
            stats.t.sf((difference.mean() + MARGIN) / error, len(difference) - 1),
            stats.t.cdf((difference.mean() - MARGIN) / error, len(difference) - 1),
        )
        print(
            f"  {name:5}  peekbench {ours.mean():6.2%}  reference {reference.mean():6.2%}  difference "
            f"{100 * difference.mean():+.2f} points, standard error {100 * error:.2f}; equal within 1 point: p {p:.4f}"
        )


if __name__ == "__main__":
    main()
