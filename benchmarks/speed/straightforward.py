"""Reference implementation of task-adaptive pretraining with transformers' Trainer.

Each arm loads a model from disk, and saves the pretrained model to load it again with a linear layer. Texts are padded
to the longest one and computed in fp32 or, as a competent user of the Trainer has them, to the longest of a batch in
bf16. Batches, optimizer, schedule and masking are those of `finetune.tapt`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import Dataset as TorchDataset
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from peekbench_finetune.classification import HEAD_STANDARD_DEVIATION
from peekbench_finetune.options import Classification, Pretraining, Tapt
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.tokenizer import context_limit, model_kind


class Texts(TorchDataset[dict[str, Any]]):
    """Token ids of texts."""

    def __init__(
        self, tokenizer: Any, texts: Sequence[str], limit: int, labels: Sequence[int] = (), *, pads: bool
    ) -> None:
        self.encoded = tokenizer(list(texts), truncation=True, max_length=limit, padding=pads)
        self.labels = list(labels)

    def __len__(self) -> int:
        return len(self.encoded["input_ids"])

    def __getitem__(self, row: int) -> dict[str, Any]:
        item = {name: column[row] for name, column in self.encoded.items() if name != "token_type_ids"}
        return {**item, "labels": self.labels[row]} if self.labels else item


class Classifier(nn.Module):
    """A model with a linear layer on the hidden state that represents a text."""

    def __init__(self, folder: Path, num_classes: int, pooling: str) -> None:
        super().__init__()
        self.body = AutoModel.from_pretrained(folder, dtype=torch.float32)
        self.head = nn.Linear(self.body.config.hidden_size, num_classes)
        nn.init.normal_(self.head.weight, std=HEAD_STANDARD_DEVIATION)
        nn.init.zeros_(self.head.bias)
        self.pooling = pooling

    def forward(self, input_ids: Any, attention_mask: Any, labels: Any = None) -> dict[str, Any]:
        hidden = self.body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        if self.pooling == "cls":
            pooled = hidden[:, 0]
        elif self.pooling == "last":
            pooled = hidden[torch.arange(len(hidden)), attention_mask.sum(1) - 1]
        else:
            pooled = (hidden * attention_mask[..., None]).sum(1) / attention_mask.sum(1, keepdim=True)
        logits = self.head(pooled)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits} if loss is not None else {"logits": logits}


def run_arm(
    folder: Path,
    unlabeled: Sequence[str] | None,
    train: tuple[Sequence[str], Sequence[int]],
    test: Sequence[str],
    num_classes: int,
    options: Tapt,
    seed: int,
    bf16: bool = False,
) -> NDArray[np.float64]:
    """Run an arm and return the class scores of the test texts; shape (n, num_classes)."""
    kind = model_kind(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    limit = context_limit(tokenizer, folder, options.context_length)
    with tempfile.TemporaryDirectory() as temporary, quiet_transformers():
        start = folder
        if unlabeled is not None:
            loader: Any = AutoModelForMaskedLM if kind == "masked" else AutoModelForCausalLM
            model = loader.from_pretrained(folder, dtype=torch.float32)
            collator = DataCollatorForLanguageModeling(
                tokenizer, mlm=kind == "masked", mlm_probability=options.pretraining.mask_probability
            )
            stage = options.pretraining
            arguments = _arguments(Path(temporary), stage, stage.recipe(kind).epochs, seed, bf16)
            texts = Texts(tokenizer, unlabeled, limit, pads=not bf16)
            train_quietly(Trainer(model, arguments, data_collator=collator, train_dataset=texts))
            start = Path(temporary) / "pretrained"
            model.save_pretrained(start)
        torch.manual_seed(seed)
        classifier = Classifier(
            start, num_classes, options.classification.pooling or ("cls" if kind == "masked" else "last")
        )
        arguments = _arguments(Path(temporary), options.classification, options.classification.epochs, seed, bf16)
        rows = Texts(tokenizer, train[0], limit, train[1], pads=not bf16)
        trainer = Trainer(classifier, arguments, data_collator=DataCollatorWithPadding(tokenizer), train_dataset=rows)
        train_quietly(trainer)
        scores: Any = trainer.predict(Texts(tokenizer, test, limit, pads=not bf16)).predictions
    return np.asarray(scores)


def train_quietly(trainer: Trainer) -> None:
    """Train without output."""
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def _arguments(
    folder: Path, stage: Pretraining | Classification, epochs: int, seed: int, bf16: bool
) -> TrainingArguments:
    return TrainingArguments(
        output_dir=str(folder / "trainer"),
        num_train_epochs=epochs,
        per_device_train_batch_size=stage.batch_size,
        per_device_eval_batch_size=64,
        learning_rate=stage.learning_rate,
        lr_scheduler_type=stage.schedule,
        weight_decay=stage.weight_decay,
        max_grad_norm=stage.max_gradient_norm,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=not torch.cuda.is_available(),
        seed=seed,
        bf16=bf16,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
    )
