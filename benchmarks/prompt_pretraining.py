"""Pretraining on prompts of real texts against the straightforward way: transformers' Trainer, padding to the context.

Both train the same adapters of the same network (random weights, no dropout) on the same prompts in the same order, in
bf16 by one thread. Prints figures and both curves of the loss, asserts nothing.
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
from torch.utils.data import Dataset as TorchDataset

from peekbench import Task, load_dataset
from peekbench.cache import cache_folder
from peekbench.records import SourceRef
from peekbench_lm import completions, training
from peekbench_lm.builtin import build_model
from peekbench_lm.completions import Completion, complete
from peekbench_lm.devices import reproducibly
from peekbench_lm.model import LanguageModel
from peekbench_lm.training import Recipe, derive
from peekbench_prompting.prompts import Prompts
from peekbench_prompting.training_options import Training

CONTEXT = 512
INSTRUCTION = "The text is a docstring. Answer with its subject."
RANK, ALPHA = 16, 32
SHAPES = {"gpt2": (12, 768, 12), "6x384": (6, 384, 6)}
CPU = torch.device("cpu")
RECIPE = Recipe(**Training().model_dump(exclude={"optimizer"}))


def make_model(shape: str, folder: Path) -> None:
    """Random weights, and a tokenizer that cuts these texts into about as many tokens as GPT-2's."""
    from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

    tokenizer = AutoTokenizer.from_pretrained(build_model("gpt2-nano", cache_folder()))
    tokenizer.model_max_length = 1024
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    layers, width, heads = SHAPES[shape]
    still: Any = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    config = GPT2Config(
        vocab_size=len(tokenizer), n_layer=layers, n_embd=width, n_head=heads, bos_token_id=0, eos_token_id=0, **still
    )
    GPT2LMHeadModel(config).save_pretrained(folder)


def draw(num_texts: int) -> tuple[Task, list[str]]:
    """A task of real texts, and some of them."""
    source = SourceRef("docstrings.stdlib", {}, Path.cwd())
    dataset = load_dataset(source)
    rows = np.random.default_rng(0).permutation(len(dataset.inputs))[:num_texts]
    task = Task("stdlib", "classification", dataset.class_names, INSTRUCTION, source)
    return task, [str(dataset.inputs[row]) for row in rows]


def ours(folder: Path, num_texts: int, keep: Path) -> dict[str, Any]:
    """Seconds from texts to trained adapters, and the loss of each step."""
    task, texts = draw(num_texts)
    losses: list[float] = []
    usual = training._backward

    def backward(model: LanguageModel, batch: Any, *more: Any) -> Any:
        total = usual(model, batch, *more)
        losses.append(total.item() / batch.num_targets)
        return total

    training._backward = backward  # type: ignore[assignment]
    with reproducibly(CPU, 1):
        model = LanguageModel(folder, CPU, "frozen")
        model.precision = "bf16"
        for number in (8, num_texts):  # the first to warm up
            model.restore()
            model.add_adapters(RANK, ALPHA, 0.0, seed=1)
            first = {
                name: weight.detach().clone() for name, weight in model.network.named_parameters() if "lora" in name
            }
            torch.save(first, keep)
            losses.clear()
            started = time.perf_counter()
            prompts = Prompts(model.tokenizer, task, CONTEXT)
            ids = [prompt.ids for prompt in prompts.prompts(texts[:number])]
            complete(model, [[Completion(each)] for each in ids], RECIPE, seed=1)
            seconds = time.perf_counter() - started
    return {"seconds": seconds, "losses": losses, "lengths": [len(each) for each in ids]}


class Padded(TorchDataset[dict[str, Any]]):
    """Prompts padded to the context."""

    def __init__(self, tokenizer: Any, prompts: list[list[int]]) -> None:
        tokenizer.pad_token = tokenizer.eos_token
        self.rows = tokenizer.pad({"input_ids": prompts}, padding="max_length", max_length=CONTEXT, return_tensors="pt")

    def __len__(self) -> int:
        return len(self.rows["input_ids"])

    def __getitem__(self, row: int) -> dict[str, Any]:
        ids, real = self.rows["input_ids"][row], self.rows["attention_mask"][row]
        labels = torch.where(real > 0, ids, -100)
        labels[0] = -100  # nothing stands before it, but Trainer would count it among what it divides a loss by
        return {"input_ids": ids, "attention_mask": real, "labels": labels}


def straightforward(folder: Path, num_texts: int, keep: Path) -> dict[str, Any]:
    """The same by transformers and peft as their documentation has it."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback, Trainer, TrainingArguments

    torch.set_num_threads(1)
    task, texts = draw(num_texts)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for number in (8, num_texts):
        config = LoraConfig(
            r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, target_modules="all-linear", fan_in_fan_out=True
        )
        model: Any = get_peft_model(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), config)
        first = torch.load(keep)
        with torch.no_grad():
            for name, weight in model.base_model.model.named_parameters():
                if "lora" in name:
                    weight.copy_(first[name])
        with tempfile.TemporaryDirectory() as temporary:
            arguments = TrainingArguments(
                temporary, num_train_epochs=1, per_device_train_batch_size=RECIPE.batch_size,
                learning_rate=RECIPE.learning_rate, bf16=True, use_cpu=True, train_sampling_strategy="sequential",
                logging_steps=1, save_strategy="no", report_to="none", disable_tqdm=True, dataloader_pin_memory=False,
            )  # fmt: skip
            started = time.perf_counter()
            prompts = Prompts(tokenizer, task, CONTEXT)
            ids = [prompt.ids for prompt in prompts.prompts(texts[:number])]
            order = np.random.default_rng(derive(1, "order", 0)).permutation(number)
            trainer = Trainer(model, arguments, train_dataset=Padded(tokenizer, [ids[row] for row in order]))
            trainer.remove_callback(PrinterCallback)
            trainer.train()
            seconds = time.perf_counter() - started
    losses = [said["loss"] for said in trainer.state.log_history if "loss" in said]
    return {"seconds": seconds, "losses": [float(loss) for loss in losses]}


def unshared(folder: Path, num_texts: int, keep: Path) -> dict[str, Any]:
    """Ours, with each prompt's instruction computed for itself."""
    vars(completions)["count_shared"] = lambda texts: 0
    return ours(folder, num_texts, keep)


def in_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def measure(shape: str, num_texts: int) -> None:
    """Print one shape's figures."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, keep = Path(temporary) / shape, Path(temporary) / "adapters.pt"
        in_process(make_model, shape, folder)
        apart = in_process(unshared, folder, num_texts, keep)
        mine = in_process(ours, folder, num_texts, keep)
        theirs = in_process(straightforward, folder, num_texts, keep)
    lengths = mine["lengths"]
    print(f"{shape}, {num_texts} prompts of {np.mean(lengths):.0f} tokens on average ({np.max(lengths)} at most)")
    for name, figures in (
        (f"transformers' Trainer, padded to {CONTEXT}", theirs),
        ("without padding", apart),
        ("and the instruction computed once a step", mine),
    ):
        print(f"  {name:42}{figures['seconds']:8.1f} s  {theirs['seconds'] / figures['seconds']:5.1f}x")
    print("  loss by step, Trainer and ours")
    for step, (one, other) in enumerate(zip(theirs["losses"], mine["losses"], strict=True), start=1):
        print(f"    {step:3d}  {one:8.4f}  {other:8.4f}", flush=True)
    worst = max(abs(one - other) / one for one, other in zip(theirs["losses"], mine["losses"], strict=True))
    print(f"  largest relative difference {worst:.1e}; bf16 rounds to {2**-8:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=["6x384"])
    parser.add_argument("--texts", type=int, default=100)
    given = parser.parse_args()
    for each in given.shapes:
        measure(each, given.texts)
