"""Reference implementation of task-adaptive pretraining with transformers' Trainer.

Each arm loads a model from disk, pads all texts to the longest one, computes in fp32, and saves the pretrained model to
load it again with a linear layer. Batches, optimizer, schedule and masking are those of `finetune.tapt`.
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
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from peekbench_finetune.classification import HEAD_STANDARD_DEVIATION
from peekbench_finetune.options import Classification, Pretraining, Tapt
from peekbench_lm.loading import quiet_transformers
from peekbench_lm.tokenizer import context_limit, model_kind


class Texts(TorchDataset[dict[str, Any]]):
    """Texts padded to the longest one."""

    def __init__(self, tokenizer: Any, texts: Sequence[str], limit: int, labels: Sequence[int] | None = None) -> None:
        self.encoded = tokenizer(list(texts), truncation=True, max_length=limit, padding="longest", return_tensors="pt")
        self.labels = None if labels is None else torch.tensor(list(labels))

    def __len__(self) -> int:
        return len(self.encoded["input_ids"])

    def __getitem__(self, row: int) -> dict[str, Any]:
        item = {name: column[row] for name, column in self.encoded.items() if name != "token_type_ids"}
        return item if self.labels is None else {**item, "labels": self.labels[row]}


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
            arguments = _arguments(Path(temporary), options.pretraining, options.pretraining.recipe(kind).epochs, seed)
            texts = Texts(tokenizer, unlabeled, limit)
            _train(Trainer(model, arguments, data_collator=collator, train_dataset=texts))
            start = Path(temporary) / "pretrained"
            model.save_pretrained(start)
        torch.manual_seed(seed)
        classifier = Classifier(
            start, num_classes, options.classification.pooling or ("cls" if kind == "masked" else "last")
        )
        arguments = _arguments(Path(temporary), options.classification, options.classification.epochs, seed)
        trainer = Trainer(classifier, arguments, train_dataset=Texts(tokenizer, train[0], limit, train[1]))
        _train(trainer)
        scores: Any = trainer.predict(Texts(tokenizer, test, limit)).predictions
    return np.asarray(scores)


def _train(trainer: Trainer) -> None:
    trainer.remove_callback(PrinterCallback)
    trainer.train()


def _arguments(folder: Path, stage: Pretraining | Classification, epochs: int, seed: int) -> TrainingArguments:
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
        dataloader_pin_memory=False,
        remove_unused_columns=False,
    )
