"""Reference on a GPU: the Trainer as its competent user sets it up, with bf16 and padding to the longest of a batch."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from straightforward import Classifier
from torch.utils.data import Dataset
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from peekbench_finetune.options import Tapt
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.tokenizer import context_limit, model_kind


class Rows(Dataset[dict[str, Any]]):
    """Token ids of texts, without padding."""

    def __init__(self, ids: Sequence[Sequence[int]], labels: Sequence[int] | None = None) -> None:
        self.rows: list[dict[str, Any]] = [{"input_ids": list(row), "attention_mask": [1] * len(row)} for row in ids]
        for row, label in zip(self.rows, labels or (), strict=False):
            row["labels"] = label

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return dict(self.rows[row])


def make_arguments(folder: str, epochs: int, batch_size: int, learning_rate: float, **more: Any) -> TrainingArguments:
    """Return settings of the Trainer for speed: bf16, and no files or logs."""
    return TrainingArguments(
        output_dir=folder,
        num_train_epochs=epochs,
        per_device_train_batch_size=batch_size,
        per_device_eval_batch_size=64,
        learning_rate=learning_rate,
        bf16=True,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        use_cpu=not torch.cuda.is_available(),
        **more,
    )


def train(trainer: Trainer) -> Trainer:
    """Train without output."""
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return trainer


def run_arm(
    folder: Path,
    unlabeled: Sequence[str] | None,
    train_set: tuple[Sequence[str], Sequence[int]],
    test: Sequence[str],
    num_classes: int,
    options: Tapt,
) -> None:
    """Pretrain, classify and predict, as an arm of `finetune.tapt` does."""
    kind, tokenizer = model_kind(folder), AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    limit = context_limit(tokenizer, folder, options.context_length)

    def encode(texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
        return ids

    with tempfile.TemporaryDirectory() as temporary, quiet_transformers():
        start = folder
        if unlabeled is not None:
            loader: Any = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
            model, stage = loader.from_pretrained(folder, dtype=torch.float32), options.pretraining
            arguments = make_arguments(temporary, stage.recipe(kind).epochs, stage.batch_size, stage.learning_rate)
            collator = DataCollatorForLanguageModeling(tokenizer, mlm=kind == "masked")
            train(Trainer(model, arguments, data_collator=collator, train_dataset=Rows(encode(unlabeled))))
            start = Path(temporary) / "pretrained"
            model.save_pretrained(start)
        classifier = Classifier(start, num_classes, "cls" if kind == "masked" else "last")
        last = options.classification
        arguments = make_arguments(temporary, last.epochs, last.batch_size, last.learning_rate)
        rows = Rows(encode(train_set[0]), train_set[1])
        trainer = Trainer(
            classifier, arguments, data_collator=DataCollatorWithPadding(tokenizer), train_dataset=rows
        )  # fmt: skip
        train(trainer).predict(Rows(encode(test)))
