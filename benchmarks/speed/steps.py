"""CPU seconds of training steps of language models on one thread, beside those of their matrix products.

    python benchmarks/speed/steps.py [KIND ...] [--texts NUMBER] [--steps NUMBER]

Prints a row for each kind of training, for the instructions of this processor and for AVX2 alone, in fp32 and bf16.
Models have random weights of the published shapes; texts are docstrings of up to 256 tokens. The products of a step are
counted, and their seconds are those of plain products of 512 x 768 by 768 x 768 in the same process, right after it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, Gemma3ForCausalLM, Gemma3TextConfig

from peekbench import load_dataset
from peekbench.cache import cache_folder
from peekbench.records import SourceRef
from peekbench_embedding.options import TsdaeTraining
from peekbench_embedding.trained_encoder import SentenceEncoder
from peekbench_embedding.tsdae import split_words, train_tsdae
from peekbench_encoders.encoder import read_encoder
from peekbench_finetune.options import Pretraining
from peekbench_lm.builtin_models import build_model
from peekbench_lm.devices import deterministic
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.options import Precision
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokenizer import encode

BERT = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=6, intermediate_size=1536)
GEMMA = Gemma3TextConfig(
    vocab_size=262_144, hidden_size=640, intermediate_size=2048, num_hidden_layers=18, num_attention_heads=4,
    num_key_value_heads=1, head_dim=256, sliding_window=512, max_position_embeddings=32_768,
)  # fmt: skip
KINDS = {
    "tapt": "`finetune.tapt`, BERT, 6 layers, width 384",
    "tsdae": "`embedding.tsdae`, the same",
    "gemma": "`finetune.tapt`, Gemma 3 270M",
    "qlora": "`prompting.pretrain`, Gemma 3 270M, 4 bits",
}
INSTRUCTIONS = {"all": {}, "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2"}}
"""Environment variables that limit the instructions of products."""
CONTEXT, NUM_ROWS, SIZE = 256, 512, 768  # tokens of a text; rows and columns of the plain product
PRODUCT_SECONDS = 1.0
CPU = torch.device("cpu")
Train = Callable[[], Any]


def make_model(kind: str, folder: Path) -> None:
    """Save a model with random weights, and the tokenizer of MiniLM, which gives about as many tokens as its own."""
    tokenizer = AutoTokenizer.from_pretrained(build_model("minilm", cache_folder()), model_max_length=512)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    with quiet_transformers():
        network: Any = Gemma3ForCausalLM(GEMMA) if kind in ("gemma", "qlora") else BertForMaskedLM(BERT)
        network.to(torch.bfloat16).save_pretrained(folder)


def load(kind: str, folder: Path, precision: Precision, texts: Sequence[str]) -> Train:
    """Return a function that does one training step on the texts."""
    if kind == "tsdae":
        encoder = SentenceEncoder(read_encoder(folder, "cpu"), folder)
        encoder.precision = precision
        words = split_words(encoder, texts, None, CONTEXT)
        return lambda: train_tsdae(encoder, words, TsdaeTraining(batch_size=len(texts)), 0)
    model = LanguageModel(folder, CPU, "nf4" if kind == "qlora" else "trained")
    model.precision = precision
    if kind == "qlora":
        model.add_adapters(16, 32, 0.05, seed=1)
    recipe = Pretraining(epochs=1, batch_size=len(texts)).recipe(model.kind)
    ids = encode(model.tokenizer, texts, CONTEXT)
    return lambda: pretrain(model, ids, recipe, 0.15, 0)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(kind: str, folder: Path, precision: Precision, num_texts: int, num_steps: int) -> dict[str, float]:
    """Return the CPU seconds of a step, and those of its products at the speed of plain products."""
    dataset = load_dataset(SourceRef("docstrings.stdlib", {}, Path.cwd()))
    rows = np.random.default_rng(1).permutation(len(dataset.inputs))[:num_texts]
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    with deterministic(CPU, 1):
        train = load(kind, folder, precision, [dataset.inputs[row] for row in rows])
        with FlopCounterMode(display=False) as counter:  # the first step, which is slower
            train()
        started = cpu_seconds()
        for _ in range(num_steps):
            train()
        seconds = (cpu_seconds() - started) / num_steps
        left, right = torch.randn(NUM_ROWS, SIZE, dtype=dtype), torch.randn(SIZE, SIZE, dtype=dtype)
        torch.mm(left, right)
        started, number = cpu_seconds(), 0
        while (product_seconds := cpu_seconds() - started) < PRODUCT_SECONDS:
            torch.mm(left, right)
            number += 1
    speed = number * 2 * NUM_ROWS * SIZE**2 / product_seconds
    return {"step": seconds, "products": counter.get_total_flops() / speed, "speed": speed}


def main() -> None:
    """Print the figures of each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", metavar="KIND", nargs="*", default=list(KINDS), help=", ".join(KINDS))
    parser.add_argument("--texts", type=int, default=16)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--measure", nargs=3, metavar=("KIND", "FOLDER", "PRECISION"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        kind, folder, precision = arguments.measure
        print(json.dumps(measure(kind, Path(folder), precision, arguments.texts, arguments.steps)))
        return
    print("| training step | instructions | precision | step, CPU s | products, CPU s | ratio | GFLOP/s |")
    print("|---|---|---|---:|---:|---:|---:|")
    for kind in arguments.kinds:
        with tempfile.TemporaryDirectory() as folder:
            make_model(kind, Path(folder))
            for name, variables in INSTRUCTIONS.items():
                for precision in ("fp32", "bf16"):
                    command = [sys.executable, __file__, "--measure", kind, folder, precision]
                    command += ["--texts", str(arguments.texts), "--steps", str(arguments.steps)]
                    environment = os.environ | {"OMP_NUM_THREADS": "1"} | variables
                    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                    found = json.loads(done.stdout.splitlines()[-1])
                    print(
                        f"| {KINDS[kind]} | {name} | {precision} | {found['step']:.2f} | {found['products']:.2f} | "
                        f"{found['step'] / found['products']:.1f} | {found['speed'] / 1e9:.0f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
