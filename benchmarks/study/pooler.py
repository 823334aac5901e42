"""Measure what a new pooler adds to the boost of BERT (`pretraining.discards_pooler` of `finetune.tapt`).

The study finetunes `BertForSequenceClassification` from the published checkpoint in the arm `base`, and from a
checkpoint of `BertForMaskedLM`, which has no pooler, in the arms `extra` and `test`. This script trains the nano BERT
further on masked tokens and on whether a paragraph follows another, as BERT was, so that it has a trained pooler. It
then measures the boost with and without the defect, on short texts.

    python benchmarks/study/pooler.py FOLDER --subsamples 6
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertForPreTraining

import peekbench
from peekbench.cache import cache_folder
from peekbench_lm import corpus
from peekbench_lm.builtin_models import build_model
from peekbench_lm.pretraining import mask_tokens
from peekbench_lm.tokenizer import load_tokenizer

NUM_HELD_OUT, BATCH_SIZE, LEARNING_RATE, MAX_LENGTH = 1000, 32, 1e-3, 64
TASKS = ["hf.trec", "hf.mtop_domain", "hf.massive", "hf.emotion"]


def make_batches(tokenizer: Any, pairs: Sequence[tuple[str, str]]) -> Iterator[dict[str, torch.Tensor]]:
    """Yield masked batches of pairs, half of which are consecutive."""
    generator = np.random.default_rng(0)
    for start in range(0, len(pairs), BATCH_SIZE):
        firsts, seconds = map(list, zip(*pairs[start : start + BATCH_SIZE], strict=True))
        is_other = generator.random(len(firsts)) < 0.5
        seconds = [
            pairs[int(generator.integers(len(pairs)))][1] if other else text
            for text, other in zip(seconds, is_other, strict=True)
        ]
        encoded = tokenizer(firsts, seconds, truncation=True, max_length=MAX_LENGTH, padding=True, return_tensors="pt")
        masked = [mask_tokens(ids, tokenizer, 0.15, generator) for ids in encoded["input_ids"].numpy()]
        inputs, targets = (torch.from_numpy(np.stack(part)) for part in zip(*masked, strict=True))
        yield {
            "input_ids": inputs,
            "attention_mask": encoded["attention_mask"],
            "labels": targets,
            "next_sentence_label": torch.from_numpy(is_other.astype(np.int64)),
        }


def train_pooler(folder: Path, num_pairs: int) -> None:
    """Train the nano BERT on pairs of paragraphs, and save it with its pooler."""
    torch.manual_seed(0)
    source = build_model("bert-nano", cache_folder())
    tokenizer, network = load_tokenizer(source), BertForPreTraining.from_pretrained(source)
    paragraphs = corpus.load_paragraphs()
    rows = np.random.default_rng(1).permutation(len(paragraphs) - 1)
    pairs = [(paragraphs[row], paragraphs[row + 1]) for row in rows[: num_pairs + NUM_HELD_OUT]]
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    num_steps = -(-num_pairs // BATCH_SIZE)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step / 50) * (1 - step / num_steps))
    network.train()
    for step, batch in enumerate(make_batches(tokenizer, pairs[:num_pairs])):
        loss = network(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step} of {num_steps}: loss {loss.item():.3f}", flush=True)
    network.train(False)
    num_correct = 0
    with torch.no_grad():
        for batch in make_batches(tokenizer, pairs[num_pairs:]):
            guesses = network(**batch).seq_relationship_logits.argmax(-1)
            num_correct += int((guesses == batch["next_sentence_label"]).sum())
    print(f"consecutive paragraphs are recognized in {num_correct / NUM_HELD_OUT:.1%} of held-out pairs", flush=True)
    tokenizer.save_pretrained(folder)
    network.save_pretrained(folder)


def make_spec(model: Path, num_subsamples: int) -> dict[str, Any]:
    """Return the experiment: the head of BERT with and without the defect."""
    options: dict[str, Any] = {
        "model": str(model.resolve()),
        "precision": "fp32",
        "pretraining": {"epochs": 2, "learning_rate": 1e-3},
        "classification": {"head": "bert", "epochs": 10, "learning_rate": 1e-3},
    }
    defect = {**options, "pretraining": {**options["pretraining"], "discards_pooler": True}}
    return {
        "name": "pooler",
        "tasks": TASKS,
        "methods": [
            {"name": "kept", "use": "finetune.tapt", "options": options},
            {"name": "discarded", "use": "finetune.tapt", "options": defect},
        ],
        "design": {"num_train": 100, "num_test": 200, "num_subsamples": num_subsamples},
        "analyses": ["summary"],
        "executor": {"use": "local", "options": {"workers": 1}},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--pairs", type=int, default=16_000)
    parser.add_argument("--subsamples", type=int, default=6)
    arguments = parser.parse_args()
    model = arguments.folder / "bert-nano-pooler"
    if not (model / "config.json").exists():
        train_pooler(model, arguments.pairs)
    run = peekbench.run(make_spec(model, arguments.subsamples), progress=False)
    print(run.report())
    boosts = run.arms.pivot(index=["task", "subsample"], columns="method", values="boost")
    difference = 100 * (boosts["discarded"] - boosts["kept"])
    error = difference.groupby("task").std() / np.sqrt(arguments.subsamples)
    mean, width = difference.mean(), 1.96 * np.sqrt((error**2).sum()) / len(TASKS)
    print(f"boost with the defect minus boost without: {mean:+.2f} points [{mean - width:+.2f}, {mean + width:+.2f}]")
    print(difference.groupby("task").mean())
