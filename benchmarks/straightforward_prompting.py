"""Prompt pretraining and zero-shot classification with the Trainer of transformers and peft, as in their documentation.

Each fit loads the model, pads prompts to the longest of a batch, trains adapters with gradient checkpointing, and
scores each class of each text by a forward pass of its own. On a GPU, the weights have four bits and the optimizer is
the paged eight-bit AdamW of bitsandbytes; otherwise both have 32 bits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    DataCollatorForLanguageModeling,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from peekbench import Task
from peekbench_lm.loading import quiet_transformers
from peekbench_prompting.options import Pretrain
from peekbench_prompting.prompts import PromptEncoder

SCORING_BATCH_SIZE = 32  # texts; the default of the method


def run_arm(
    folder: Path, unlabeled: Sequence[str] | None, test: Sequence[str], task: Task, options: Pretrain, seed: int
) -> NDArray[np.float64]:
    """Train on the prompts of the unlabeled texts, if given; return the class scores of the test texts."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.pad_token = tokenizer.eos_token
    encoder = PromptEncoder(tokenizer, task, options.context_length)
    with quiet_transformers():
        model = _load(folder, options)
        if unlabeled is not None:
            _train(model, tokenizer, [{"input_ids": prompt.ids} for prompt in encoder.encode(unlabeled)], options, seed)
        return _score(model, encoder, test)


def _load(folder: Path, options: Pretrain) -> Any:
    has_gpu = torch.cuda.is_available()
    quantization: dict[str, Any] = {}
    if has_gpu:
        quantization["device_map"] = {"": 0}
        quantization["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.bfloat16,
        )  # type: ignore[no-untyped-call]
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **quantization)
    if has_gpu:
        model = prepare_model_for_kbit_training(model)  # type: ignore[no-untyped-call]
    assert options.lora is not None
    lora = options.lora
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    return get_peft_model(model, config)


def _train(model: Any, tokenizer: Any, prompts: list[dict[str, Any]], options: Pretrain, seed: int) -> None:
    stage = options.pretraining
    with tempfile.TemporaryDirectory() as temporary:
        arguments = TrainingArguments(
            output_dir=temporary,
            num_train_epochs=stage.epochs,
            per_device_train_batch_size=stage.batch_size,
            learning_rate=stage.learning_rate,
            lr_scheduler_type=stage.schedule,
            max_grad_norm=stage.max_gradient_norm,
            optim="paged_adamw_8bit" if torch.cuda.is_available() else "adamw_torch",
            activation_checkpointing=True,
            activation_checkpointing_kwargs={"use_reentrant": False},
            bf16=True,
            use_cpu=not torch.cuda.is_available(),
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=seed,
        )
        collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
        trainer = Trainer(model, arguments, data_collator=collator, train_dataset=prompts)
        trainer.remove_callback(PrinterCallback)
        trainer.train()


@torch.no_grad()
def _score(model: Any, encoder: PromptEncoder, test: Sequence[str]) -> NDArray[np.float64]:
    """Return the mean log probability of the tokens of each class's answer; shape (len(test), num_classes)."""
    model.eval()
    scores = np.empty((len(test), encoder.task.num_classes))
    prompts = encoder.encode(test)
    for label in range(encoder.task.num_classes):
        for start in range(0, len(prompts), SCORING_BATCH_SIZE):
            batch = prompts[start : start + SCORING_BATCH_SIZE]
            sequences = [encoder.with_answer(prompt, label) for prompt in batch]
            width = max(map(len, sequences))
            ids = torch.tensor([[*sequence, *[0] * (width - len(sequence))] for sequence in sequences])
            mask = torch.tensor([[1] * len(sequence) + [0] * (width - len(sequence)) for sequence in sequences])
            with torch.autocast(model.device.type, torch.bfloat16):
                logits = model(input_ids=ids.to(model.device), attention_mask=mask.to(model.device)).logits
            table = logits.float().log_softmax(-1).cpu()
            for row, (prompt, sequence) in enumerate(zip(batch, sequences, strict=True)):
                first = len(prompt.ids) - encoder.answer_tokens(prompt).num_replaced
                answer = torch.arange(first, len(sequence))
                scores[start + row, label] = table[row, answer - 1, torch.tensor(sequence)[answer]].mean().item()
    return scores
