"""Measure boost and bias of test-time learning on generated sums, by the number of unlabeled prompts.

A GPT-2 of two layers is trained from random weights on sums, until it answers about half of new ones. Each method then
adapts to unlabeled sums. Print a table, assert nothing; intervals are 95%, in points; times are CPU seconds of one
trial, which is two fits and the predictions of both sets. With --rules, compare the arms cross-10 and swap-in-10 with
the theorem of membership (docs/explanation/bias.md).

    python benchmarks/generation/test_time.py FOLDER [--sizes 10 30 100 300] [--methods NAME ...] [--subsamples M]
    python benchmarks/generation/test_time.py FOLDER --rules [--sizes 30] [--methods majority_vote]
    python benchmarks/generation/test_time.py FOLDER --model MODEL [--all-weights] [--adaptation JSON] [--known]

FOLDER keeps the model. MODEL is a pretrained one, as the option `model` of the methods, such as builtin:gemma-270m,
which answers after five examples; its adapters are trained by default. Its settings are searched with --known, on other
sums than those of the table. With --levels, print its accuracy on arithmetic of several difficulties instead.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import peekbench as pb
from peekbench import Folders, Task
from peekbench.plugins.graders import number
from peekbench.records import SourceRef
from peekbench.results import pair_arms
from peekbench_generation.options import Prompting
from peekbench_generation.prompts import PromptEncoder
from peekbench_lm.completions import Completion, train_completions
from peekbench_lm.devices import deterministic
from peekbench_lm.generation import Decoding, generate
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.model_files import find_model
from peekbench_lm.nano import train_tokenizer
from peekbench_lm.options import Recipe
from peekbench_summary.estimates import estimate_these_tasks

CPU = torch.device("cpu")
LARGEST = (200, 10)  # of the two numbers of a sum, exclusive
NUM_KNOWN = 1000  # sums that the model is trained on; the others are the population
ENOUGH, STEPS = 0.5, 100  # accuracy at which training ends, and steps between two looks at it
MAX_ROUNDS = 20
NUM_TRAIN = 5  # no method of this script trains on references
TRAINING: dict[str, Any] = {"epochs": 3, "batch_size": 16, "learning_rate": 1e-3}
GENTLE = {**TRAINING, "learning_rate": 1e-4}  # higher rates destroy the answers of these methods
METHODS: dict[str, dict[str, Any]] = {
    "majority_vote": {"sampling": {"num_samples": 8}, "adaptation": TRAINING},
    "policy_gradient": {"sampling": {"num_samples": 8}, "adaptation": GENTLE},
    "entropy_minimization": {"sampling": {"num_samples": 4}, "adaptation": GENTLE},
    "perplexity": {"adaptation": GENTLE},
}
NUM_PROMPTS = 1500  # of all subsamples of a size together
MIN_SUBSAMPLES, MAX_SUBSAMPLES = 8, 60
NANO = {"precision": "fp32", "context_length": 32, "answers": {"max_tokens": 5, "batch_size": 512}}
PRETRAINED = {"num_examples": NUM_TRAIN, "context_length": 128, "answers": {"max_tokens": 5}}
PRETRAINED_TRAINING = {"epochs": 1, "learning_rate": 5e-5}  # of adapters; lost least of four settings on known sums
LEVELS: list[tuple[str, dict[str, Any]]] = [
    ("sums", {}),
    ("sums", {"digits": [1, 1], "rows": 150}),
    ("problems", {}),
    ("problems", {"steps": 2, "largest": 20, "template": "{story}"}),
]
NUM_ANSWERED = 100  # prompts of a level
COLUMNS = [
    "task", "method", "num_train", "num_test", "num_scored", "subsample", "arm", "score", "fit_seconds",
    "predict_seconds",
]  # fmt: skip


def make_sums() -> list[tuple[str, str]]:
    """Return all sums and their results in random order."""
    pairs = [(first, second) for first in range(LARGEST[0]) for second in range(LARGEST[1])]
    order = np.random.default_rng(0).permutation(len(pairs))
    return [(f"{pairs[row][0]} + {pairs[row][1]} =", str(sum(pairs[row]))) for row in order]


def train_model(folder: Path) -> None:
    """Train a model on known sums, and save it."""
    tokenizer = train_tokenizer("causal", ["0 1 2"], 257, 32)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=32, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0,
        attn_pdrop=0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    with quiet_transformers(), deterministic(CPU, 1):
        GPT2LMHeadModel(config).save_pretrained(folder)
        model = LanguageModel(folder, CPU)
        known, new = make_sums()[:NUM_KNOWN], make_sums()[NUM_KNOWN:]
        prompts = [tokenizer(prompt)["input_ids"] for prompt, _ in known]
        texts = [
            [Completion([*ids, *tokenizer(f" {result}")["input_ids"], tokenizer.eos_token_id], len(ids))]
            for ids, (_, result) in zip(prompts, known, strict=True)
        ]
        rng = np.random.default_rng(0)
        for number in range(MAX_ROUNDS):
            chosen = rng.integers(len(texts), size=STEPS * 64)
            rate = 3e-3 * (1 - number / MAX_ROUNDS)
            recipe = Recipe(1, 64, rate, "constant", 0.01, 1.0, warmup=0.0 if number else 0.2)
            train_completions(model, [texts[row] for row in chosen], recipe, seed=number)
            answers = generate(model, [tokenizer(prompt)["input_ids"] for prompt, _ in new], Decoding(5), 512)
            share = np.mean([row[0].text.strip() == result for row, (_, result) in zip(answers, new, strict=True)])
            print(f"{(number + 1) * STEPS} steps: accuracy on new sums {share:.3f}", flush=True)
            if share >= ENOUGH:
                break
        model.network.save_pretrained(folder)


def measure(
    method: str, options: dict[str, Any], sums: list[tuple[str, str]], size: int, arms: list[Any], num_subsamples: int
) -> tuple[pd.DataFrame, float]:
    """Return the results of the arms, and the CPU seconds of a trial."""
    prompts, references = zip(*sums, strict=True)
    data = pb.Dataset(prompts, list(references), kind="generation", grader="number")
    design = {"num_train": NUM_TRAIN, "num_test": size, "num_subsamples": num_subsamples}
    started = time.process_time()
    run = pb.measure(
        f"generation.{method}", {"sums": data}, options=options, design=design, arms=arms, progress=False, fresh=True,
        name=f"{method}-{size}-{'-'.join(str(len(str(arm))) for arm in arms)}",
    )  # fmt: skip
    return run.results, (time.process_time() - started) / num_subsamples


def print_levels(name: str) -> None:
    """Print the accuracy of a pretrained model on arithmetic of several difficulties, with and without examples."""
    found = find_model(name, "", Folders(Path.cwd(), Path.home() / ".cache" / "peekbench"))
    model = LanguageModel(found.path, CPU, "frozen")
    print("| task | options | examples | accuracy |\n|---|---|---|---|")
    for source, choices in LEVELS:
        data = pb.load_dataset(f"arithmetic.{source}", choices)
        task = Task(source, "generation", (), data.instruction, SourceRef(f"arithmetic.{source}"))
        rows = list(zip(data.inputs, data.labels, strict=True))
        asked = rows[NUM_TRAIN:][:NUM_ANSWERED]
        for examples in ((), rows[:NUM_TRAIN]):
            encoder = PromptEncoder(model.tokenizer, task, Prompting(model=name), 512, examples)
            with deterministic(CPU, 1):
                prompts = encoder.encode([prompt for prompt, _ in asked])
                answers = generate(model, prompts, Decoding(5, stop=("\n",)), 64)
            grades = [number(answer.text, result) for (answer,), (_, result) in zip(answers, asked, strict=True)]
            print(f"| {source} | {json.dumps(choices)} | {len(examples)} | {np.mean(grades):.0%} |", flush=True)


def interval(differences: pd.Series) -> str:
    """Return the mean of differences with its interval."""
    estimate = estimate_these_tasks([differences.tolist()], 0.95)
    return f"{estimate.mean:+.2f} [{estimate.low:+.2f}, {estimate.high:+.2f}]"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 30, 100, 300])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--subsamples", type=int, help="of every size; by default more of small sizes")
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--model", help="a pretrained model instead of one that is trained on sums")
    parser.add_argument("--adaptation", type=json.loads, default={}, help="other hyperparameters of the adaptation")
    parser.add_argument("--all-weights", action="store_true", help="train all weights of --model, not adapters")
    parser.add_argument("--known", action="store_true", help="measure on the sums that the table leaves out")
    parser.add_argument("--levels", action="store_true", help="print the accuracy of --model on arithmetic")
    parser.add_argument("--scores", type=Path, help="file of the scores to write")
    arguments = parser.parse_args()
    if arguments.levels:
        if arguments.model is None:
            parser.error("--levels needs --model")
        print_levels(arguments.model)
        return
    folder = arguments.folder.resolve()
    shared, training = {"model": arguments.model, **PRETRAINED}, PRETRAINED_TRAINING
    if not arguments.all_weights:
        shared["lora"] = {}
    if arguments.model is None:
        shared, training = {"model": str(folder), **NANO}, {}
        if not (folder / "model.safetensors").is_file():
            train_model(folder)
    sums = make_sums()[NUM_KNOWN:]
    if arguments.known:
        sums = make_sums()[:NUM_KNOWN]
    pairs = [("extra", "base"), ("test", "extra")]
    heads = ["base", "boost", "bias"]
    arms: list[Any] = ["base", "extra", "test"]
    if arguments.rules:
        pairs = [("test", "extra"), ("cross-10", "extra"), ("swap-in-10", "extra")]
        heads = ["base", *(f"{one} - {other}" for one, other in pairs)]
        arms += [{"cross": 10}, {"swap-in": 10}]
    print(f"| method | n | subsamples | {' | '.join(heads)} | CPU s |\n|{'---|' * (len(heads) + 4)}")
    results: list[pd.DataFrame] = []
    for method in arguments.methods:
        for size in arguments.sizes:
            num_subsamples = arguments.subsamples or min(MAX_SUBSAMPLES, max(MIN_SUBSAMPLES, NUM_PROMPTS // size))
            options = {**shared, **METHODS[method]}
            options["adaptation"] = {**options["adaptation"], **training, **arguments.adaptation}
            found, seconds = measure(method, options, sums, size, arms, num_subsamples)
            results.append(found[COLUMNS].round({"fit_seconds": 1, "predict_seconds": 1}))
            scores = 100 * pair_arms(found)
            cells = [f"{scores['base'].mean():.1f}", *(interval(scores[one] - scores[other]) for one, other in pairs)]
            print(f"| {method} | {size} | {len(scores)} | {' | '.join(cells)} | {seconds:.2f} |", flush=True)
            if arguments.scores:
                pd.concat(results).to_csv(arguments.scores, index=False)


if __name__ == "__main__":
    main()
