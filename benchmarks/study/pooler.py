"""Measure what a new pooler adds to the boost of BERT (`pretraining.discards_pooler` of `finetune.tapt`).

The study finetunes `BertForSequenceClassification` from the published checkpoint in the arm `base`, and from a
checkpoint of `BertForMaskedLM`, which has no pooler, in the arms `extra` and `test`. This script trains a nano BERT
with a pooler on docstrings: it predicts masked tokens and, from the pooler, the package of a text. (BERT predicts
whether a sentence follows another, which so small a model does not learn.) It then measures the boost with and without
the defect, on short texts of the Hub.

    python benchmarks/study/pooler.py FOLDER --subsamples 6
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForPreTraining

import peekbench
from peekbench_lm import nano
from peekbench_lm.pretraining import NO_TARGET, mask_tokens
from peekbench_lm.tokenizer import encode

PACKAGES = ["numpy", "pandas", "scipy", "sklearn", "stdlib"]
TASKS = ["hf.trec", "hf.mtop_domain", "hf.massive", "hf.emotion"]
NUM_HELD_OUT, BATCH_SIZE, LEARNING_RATE, MAX_LENGTH = 500, 32, 2e-3, 48


def train_pooler(folder: Path, num_steps: int) -> None:
    """Train a nano BERT on docstrings, and save it with its pooler."""
    torch.manual_seed(0)
    generator = np.random.default_rng(0)
    inputs = [peekbench.load_dataset(f"docstrings.{name}").inputs for name in PACKAGES]
    texts = [str(text) for part in inputs for text in part]
    packages = np.repeat(np.arange(len(PACKAGES)), [len(part) for part in inputs])
    tokenizer = nano.train_tokenizer("masked", texts, nano.VOCABULARY_SIZE)
    ids = encode(tokenizer, texts, MAX_LENGTH)
    size: dict[str, Any] = {"hidden_size": nano.WIDTH, "intermediate_size": 4 * nano.WIDTH}
    depth: dict[str, Any] = {"num_hidden_layers": nano.NUM_LAYERS, "num_attention_heads": nano.NUM_HEADS}
    config = BertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id, **size, **depth
    )
    padding: int = tokenizer.pad_token_id
    network: Any = BertForPreTraining(config)
    network.cls.seq_relationship = nn.Linear(nano.WIDTH, len(PACKAGES))

    def losses(rows: Any) -> tuple[torch.Tensor, torch.Tensor, float]:
        masked = [mask_tokens(np.array(ids[row]), tokenizer, 0.15, generator) for row in rows]
        width = max(len(tokens) for tokens, _ in masked)
        padded = [np.pad(tokens, (0, width - len(tokens)), constant_values=padding) for tokens, _ in masked]
        targets = [np.pad(part, (0, width - len(part)), constant_values=NO_TARGET) for _, part in masked]
        tokens = torch.from_numpy(np.stack(padded))
        outputs = network(input_ids=tokens, attention_mask=tokens.ne(padding).long())
        labels, scores = torch.from_numpy(packages[rows]), outputs.seq_relationship_logits
        token_loss = cross_entropy(
            outputs.prediction_logits.flatten(0, 1), torch.from_numpy(np.stack(targets)).flatten()
        )
        return token_loss, cross_entropy(scores, labels), float((scores.argmax(-1) == labels).double().mean())

    order = generator.permutation(len(texts))
    training, held_out = order[NUM_HELD_OUT:], order[:NUM_HELD_OUT]
    optimizer = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, step / 50) * (1 - step / num_steps))
    for step in range(num_steps):
        token_loss, package_loss, _ = losses(generator.choice(training, BATCH_SIZE))
        optimizer.zero_grad()
        loss: Any = token_loss + package_loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: losses {token_loss.item():.3f} and {package_loss.item():.3f}", flush=True)
    network.train(False)
    with torch.no_grad():
        token_loss, _, accuracy = losses(held_out)
    print(
        f"{len(texts)} texts; held-out: token loss {token_loss.item():.3f}, package accuracy {accuracy:.1%}", flush=True
    )
    tokenizer.save_pretrained(folder)
    network.save_pretrained(folder)


def make_spec(model: Path, num_subsamples: int) -> dict[str, Any]:
    """Return the experiment: the head of BERT with and without the defect."""
    options: dict[str, Any] = {
        "model": str(model.resolve()),
        "precision": "fp32",
        "context_length": MAX_LENGTH,
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
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--subsamples", type=int, default=6)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = arguments.folder / "bert-nano-pooler"
    if not (model / "config.json").exists():
        train_pooler(model, arguments.steps)
    run = peekbench.run(make_spec(model, arguments.subsamples), progress=False)
    print(run.report())
    boosts = run.arms.pivot(index=["task", "subsample"], columns="method", values="boost")
    difference = 100 * (boosts["discarded"] - boosts["kept"])
    error = difference.groupby("task").std() / np.sqrt(arguments.subsamples)
    mean, width = difference.mean(), 1.96 * np.sqrt((error**2).sum()) / len(TASKS)
    print(f"boost with the defect minus boost without: {mean:+.2f} points [{mean - width:+.2f}, {mean + width:+.2f}]")
    print(difference.groupby("task").mean().round(2).to_string())
