"""CPU seconds of training steps of language models on one thread, of this checkout and of another one.

Prints figures and checks nothing. Models have random weights of the published shapes; texts are real. CPU time counts
instead of wall time, so other programs on the machine disturb little.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
)

from peekbench import load_dataset
from peekbench.cache import cache_folder
from peekbench.records import SourceRef
from peekbench_finetune.options import Pretraining
from peekbench_lm.builtin_models import build_model
from peekbench_lm.devices import deterministic, peak_memory
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokenizer import encode

SHAPES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bert-nano": (
        BertForMaskedLM,
        BertConfig,
        {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 256},
    ),
    "bert-6x384": (
        BertForMaskedLM,
        BertConfig,
        {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536},
    ),
    "bert-base": (BertForMaskedLM, BertConfig, {}),
    "gpt2": (GPT2LMHeadModel, GPT2Config, {}),
    "gemma-270m": (
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        {
            "vocab_size": 262_144, "hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18,
            "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256, "sliding_window": 512,
            "max_position_embeddings": 32_768,
        },
    ),
}  # fmt: skip
"""Classes and settings of each model."""
BATCH_SIZE = 16


def make_model(name: str, folder: Path) -> None:
    """Save a model with random weights, and the tokenizer of MiniLM, which gives about as many tokens as its own."""
    tokenizer = AutoTokenizer.from_pretrained(build_model("minilm", cache_folder()), model_max_length=512)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    network, config, settings = SHAPES[name]
    with quiet_transformers():
        network(config(**settings)).to(torch.bfloat16).save_pretrained(folder)


def measure(folder: Path, steps: int, precision: Any) -> dict[str, Any]:
    """Train for some steps of 16 texts; return CPU seconds of each, its system share, losses and memory."""
    dataset = load_dataset(SourceRef("docstrings.stdlib", {}, Path.cwd()))
    rows = np.random.default_rng(1).permutation(len(dataset.inputs))[: BATCH_SIZE * (steps + 1)]
    device = torch.device("cpu")
    with deterministic(device, 1):
        model = LanguageModel(folder, device)
        model.precision = precision
        texts = encode(model.tokenizer, [dataset.inputs[row] for row in rows], 256)
        recipe = Pretraining(epochs=1, batch_size=BATCH_SIZE).recipe(model.kind)
        pretrain(model, texts[:BATCH_SIZE], recipe, 0.15, 0)  # the first step is slower
        before = resource.getrusage(resource.RUSAGE_SELF)
        result = pretrain(model, texts[BATCH_SIZE:], recipe, 0.15, 0)
        after = resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    return {
        "seconds": (user + system) / steps,
        "system": system / (user + system),
        "loss": result.losses[-1],
        "tokens": result.num_tokens,
        "memory": peak_memory(device),
    }


def run(name: str, folder: Path, checkout: Path, steps: int, precision: str) -> dict[str, Any]:
    """Measure the code of a checkout in a process of its own."""
    paths = os.pathsep.join([str(checkout / "harness"), str(checkout / "plugins")])
    command = [
        sys.executable,
        __file__,
        name,
        "--measure",
        str(folder),
        "--steps",
        str(steps),
        "--precision",
        precision,
    ]
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if finished.returncode:
        raise SystemExit(finished.stderr)
    figures: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Print the figures of each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", choices=SHAPES)
    parser.add_argument("--against", type=Path, help="folder of another checkout, measured in turn with this one")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.steps, arguments.precision)))
        return
    checkouts = {"this": Path(__file__).parents[2]}
    if arguments.against:
        checkouts["other"] = arguments.against.resolve()
    for name in arguments.models:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            make_model(name, folder)
            for _ in range(arguments.repeats):
                for label, checkout in checkouts.items():
                    figures = run(name, folder, checkout, arguments.steps, arguments.precision)
                    print(
                        f"{name:<12} {label:<6} {figures['seconds']:8.3f} s a step, {figures['system']:4.0%} system, "
                        f"loss {figures['loss']:.6f}, {figures['tokens']:,} tokens, {figures['memory']:,.0f} MB",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
