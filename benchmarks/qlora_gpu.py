"""Trials per hour, share of the peak and memory of prompt pretraining with QLoRA and a network of Mistral-7B's size.

Each trial has three arms and 100 test texts. The table compares peekbench, with and without gradient checkpointing and
flash attention, with the Trainer of transformers and peft, and estimates the duration of the study's zero-shot
experiment. The script checks nothing. Without a GPU it prints that it was skipped; `--dry-run` runs all of it with a
tiny network, whose weights have 32 bits, on any machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from finetuning import in_process
from gpu_table import DEVICE, Row, matrix_peak, peak_memory, print_table
from prompt_pretraining import draw
from straightforward_prompting import run_arm
from transformers import AutoTokenizer, MistralConfig, MistralForCausalLM

from peekbench import Context, Folders, Labeled
from peekbench.cache import cache_folder
from peekbench_lm.builtin_models import build_model
from peekbench_prompting.options import Pretrain
from peekbench_prompting.training import pretrain

NUM_TEST = 100
SPEC_TRIALS = 500  # of specs/paper/zero_shot_mistral.yaml, three arms each
MISTRAL: dict[str, object] = {
    "vocab_size": 32768, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "sliding_window": None, "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5, "rope_theta": 1e6,
}  # fmt: skip
NUM_TEST_TINY = 8  # texts of a dry run
TINY: dict[str, object] = {
    "vocab_size": 8192,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def make_model(folder: Path, config: dict[str, object], device: str) -> None:
    """Save random bf16 weights, and a tokenizer that gives about as many tokens per text as that of Mistral."""
    tokenizer = AutoTokenizer.from_pretrained(build_model("gpt2-nano", cache_folder()))
    tokenizer.model_max_length = 32768
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        MistralForCausalLM(MistralConfig(**config)).to("cpu").save_pretrained(folder)  # type: ignore[arg-type]


def num_matrix_weights(config: dict[str, object]) -> int:
    """Return the number of weights of the matrices of all layers."""
    width, inner, layers, heads, key_heads = (
        int(str(config[key]))
        for key in (
            "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        )
    )  # fmt: skip
    return layers * (2 * width**2 + 2 * width * width * key_heads // heads + 3 * width * inner)


def run_peekbench(folder: Path, options: Pretrain, num_trials: int, num_test: int) -> tuple[float, float, float]:
    """Return the seconds of some trials after one that loads the model, the memory in MB and weighted tokens.

    A trained token counts twice and a scored token once, the forward and backward passes through frozen matrices.
    """
    task, texts = draw(2 * num_test)
    extra, test = texts[:num_test], texts[num_test:]
    train = Labeled((), torch.zeros(0, dtype=torch.long).numpy())
    started = weighted = 0.0
    for trial in range(num_trials + 1):
        if trial == 1:
            started, weighted = time.perf_counter(), 0.0
        for unlabeled in (None, extra, test):
            context = Context(trial, 1, Folders(Path.cwd(), cache_folder()))
            predictor = pretrain(unlabeled, train, task, options=options, context=context)
            predictor.predict(test)
            tokens = predictor.metrics.get("pretraining_tokens", 0.0)
            weighted += 2 * tokens
            if unlabeled is test:
                weighted += 3 * tokens  # all arms score the prompts of these texts
    return time.perf_counter() - started, peak_memory(), weighted


def run_trainer(folder: Path, options: Pretrain, num_trials: int, num_test: int) -> tuple[float, float]:
    """Return the seconds of some trials with transformers and peft, and the memory in MB."""
    task, texts = draw(2 * num_test)
    extra, test = texts[:num_test], texts[num_test:]
    started = time.perf_counter()
    for trial in range(num_trials):
        for unlabeled in (None, extra, test):
            run_arm(folder, unlabeled, test, task, options, trial)
    return time.perf_counter() - started, peak_memory()


def main(num_trials: int, is_tiny: bool) -> None:
    """Print the table."""
    config: dict[str, object] = {**MISTRAL, **TINY} if is_tiny else MISTRAL
    kernels = ("auto", "grouped") if DEVICE.type == "cuda" else ("grouped",)
    num_test = NUM_TEST_TINY if is_tiny else NUM_TEST
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "mistral"
        in_process(make_model, folder, config, DEVICE.type)
        for checkpointed in (True, False):
            for kernel in kernels:
                options = Pretrain.model_validate(
                    {
                        "model": str(folder),
                        "weights": "fp32" if DEVICE.type == "cpu" else "nf4",
                        "gradient_checkpointing": checkpointed,
                        "attention_kernel": kernel,
                        "scoring": {"precision": "bf16"},
                    }
                )
                seconds, memory, weighted = in_process(run_peekbench, folder, options, num_trials, num_test)
                operations = 2 * num_matrix_weights(config) * weighted
                label = f"peekbench, {kernel} attention{', checkpointing' * checkpointed}"
                rows.append(Row(label, num_trials, seconds, operations, memory))
        seconds, memory = in_process(run_trainer, folder, options, num_trials, num_test)
        rows.insert(0, Row("Trainer with peft, checkpointing", num_trials, seconds, rows[0].operations, memory))
        print_table("Mistral-7B shape, three arms", rows, in_process(matrix_peak), SPEC_TRIALS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--dry-run", action="store_true", help="run one trial of a tiny network")
    arguments = parser.parse_args()
    if not (torch.cuda.is_available() or arguments.dry_run):
        print("skipped: no GPU is available; --dry-run tries the script with a tiny network")
    else:
        main(1 if arguments.dry_run else arguments.trials, arguments.dry_run)
