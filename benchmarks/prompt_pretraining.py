"""Speed of pretraining on prompts, compared with transformers' Trainer, which pads every prompt to the context length.

Both train the same adapters of the same network (random weights, no dropout) on the same prompts in the same order, in
bf16 with one thread. The script prints times and both loss curves; it asserts nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset as TorchDataset
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from peekbench import Task, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import SourceRef
from peekbench_lm import completions
from peekbench_lm import training_loop as training
from peekbench_lm.builtin_models import build_model
from peekbench_lm.completions import Completion, train_completions
from peekbench_lm.devices import deterministic
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.options import Recipe
from peekbench_lm.seeds import derive_seed
from peekbench_prompting.options import Training
from peekbench_prompting.prompts import PromptEncoder

CONTEXT = 512
INSTRUCTION = "The text is a docstring. Answer with its subject."
RANK, ALPHA = 16, 32
SHAPES = {"gpt2": (12, 768, 12), "6x384": (6, 384, 6)}
CPU = torch.device("cpu")
RECIPE = Recipe(**Training().model_dump(exclude={"optimizer"}))


def make_model(shape: str, folder: Path) -> None:
    """Save a model with random weights, and a tokenizer that gives about as many tokens per text as that of GPT-2."""
    tokenizer = AutoTokenizer.from_pretrained(build_model("gpt2-nano", cache_folder()))
    tokenizer.model_max_length = 1024
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    layers, width, heads = SHAPES[shape]
    no_dropout: Any = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_layer=layers,
        n_embd=width,
        n_head=heads,
        bos_token_id=0,
        eos_token_id=0,
        **no_dropout,
    )
    GPT2LMHeadModel(config).save_pretrained(folder)


def draw(num_texts: int) -> tuple[Task, list[str]]:
    """Return a task of real texts and a sample of its texts."""
    source = SourceRef("docstrings.stdlib", {}, Path.cwd())
    dataset = load_dataset(source)
    rows = np.random.default_rng(0).permutation(len(dataset.inputs))[:num_texts]
    task = Task("stdlib", "classification", dataset.class_names, INSTRUCTION, source)
    return task, [str(dataset.inputs[row]) for row in rows]


def train_peekbench(folder: Path, num_texts: int, adapters: Path) -> dict[str, Any]:
    """Measure the seconds from texts to trained adapters and the loss of each step, and save the initial adapters."""
    task, texts = draw(num_texts)
    losses: list[float] = []
    original = training.backward

    def backward(model: LanguageModel, batch: Any, *arguments: Any) -> Any:
        total = original(model, batch, *arguments)
        losses.append(total.item() / batch.num_targets)
        return total

    training.backward = backward  # type: ignore[assignment]
    with deterministic(CPU, 1):
        model = LanguageModel(folder, CPU, "frozen")
        model.precision = "bf16"
        for number in (8, num_texts):  # the first round is a warm-up
            model.restore()
            model.add_adapters(RANK, ALPHA, 0.0, seed=1)
            initial = {
                name: weight.detach().clone() for name, weight in model.network.named_parameters() if "lora" in name
            }
            torch.save(initial, adapters)
            losses.clear()
            started = time.perf_counter()
            encoder = PromptEncoder(model.tokenizer, task, CONTEXT)
            sequences = [prompt.ids for prompt in encoder.encode(texts[:number])]
            train_completions(model, [[Completion(ids)] for ids in sequences], RECIPE, seed=1)
            seconds = time.perf_counter() - started
    return {"seconds": seconds, "losses": losses, "lengths": list(map(len, sequences))}


class PaddedPrompts(TorchDataset[dict[str, Any]]):
    """Prompts padded to the context length."""

    def __init__(self, tokenizer: Any, prompts: list[list[int]]) -> None:
        tokenizer.pad_token = tokenizer.eos_token
        self.rows = tokenizer.pad({"input_ids": prompts}, padding="max_length", max_length=CONTEXT, return_tensors="pt")

    def __len__(self) -> int:
        return len(self.rows["input_ids"])

    def __getitem__(self, row: int) -> dict[str, Any]:
        ids, mask = self.rows["input_ids"][row], self.rows["attention_mask"][row]
        labels = torch.where(mask > 0, ids, -100)
        labels[0] = -100  # the first token is not predicted, but Trainer would count it when it averages the loss
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def train_transformers(folder: Path, num_texts: int, adapters: Path) -> dict[str, Any]:
    """Measure the same with transformers and peft, used as in their documentation, from the same initial adapters."""
    torch.set_num_threads(1)
    task, texts = draw(num_texts)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for number in (8, num_texts):
        config = LoraConfig(
            r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules="all-linear", fan_in_fan_out=True
        )
        model: Any = get_peft_model(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), config)
        initial = torch.load(adapters)
        with torch.no_grad():
            for name, weight in model.base_model.model.named_parameters():
                if "lora" in name:
                    weight.copy_(initial[name])
        with tempfile.TemporaryDirectory() as temporary:
            arguments = TrainingArguments(
                temporary, num_train_epochs=1, per_device_train_batch_size=RECIPE.batch_size,
                learning_rate=RECIPE.learning_rate, bf16=True, use_cpu=True, train_sampling_strategy="sequential",
                logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
            )  # fmt: skip
            started = time.perf_counter()
            encoder = PromptEncoder(tokenizer, task, CONTEXT)
            sequences = [prompt.ids for prompt in encoder.encode(texts[:number])]
            order = np.random.default_rng(derive_seed(1, "order", 0)).permutation(number)
            trainer = Trainer(
                model, arguments, train_dataset=PaddedPrompts(tokenizer, [sequences[row] for row in order])
            )
            trainer.remove_callback(PrinterCallback)
            trainer.train()
            seconds = time.perf_counter() - started
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {"seconds": seconds, "losses": [float(loss) for loss in losses]}


def train_without_sharing(folder: Path, num_texts: int, adapters: Path) -> dict[str, Any]:
    """Measure peekbench without computing the shared instruction once per step."""
    vars(completions)["count_shared"] = lambda texts: 0
    return train_peekbench(folder, num_texts, adapters)


def in_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def measure(shape: str, num_texts: int) -> None:
    """Print the times and losses of one network."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, adapters = Path(temporary) / shape, Path(temporary) / "adapters.pt"
        in_process(make_model, shape, folder)
        unshared = in_process(train_without_sharing, folder, num_texts, adapters)
        ours = in_process(train_peekbench, folder, num_texts, adapters)
        theirs = in_process(train_transformers, folder, num_texts, adapters)
    lengths = ours["lengths"]
    print(f"{shape}, {num_texts} prompts of {np.mean(lengths):.0f} tokens on average ({np.max(lengths)} at most)")
    for name, figures in (
        (f"transformers' Trainer, padded to {CONTEXT}", theirs),
        ("peekbench, without padding", unshared),
        ("and with a shared instruction", ours),
    ):
        print(f"  {name:42}{figures['seconds']:8.1f} s  {theirs['seconds'] / figures['seconds']:5.1f}x")
    print("  loss by step: Trainer, peekbench")
    pairs = list(zip(theirs["losses"], ours["losses"], strict=True))
    for step, (reference, loss) in enumerate(pairs, start=1):
        print(f"    {step:3d}  {reference:8.4f}  {loss:8.4f}", flush=True)
    largest = max(abs(reference - loss) / reference for reference, loss in pairs)
    print(f"  largest relative difference {largest:.1e}; bf16 rounds to {2**-8:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["6x384"])
    parser.add_argument("--texts", type=int, default=100)
    arguments = parser.parse_args()
    for shape in arguments.shapes:
        measure(shape, arguments.texts)
