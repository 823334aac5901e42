"""Task-adaptive pretraining of BERT- and GPT-like language models, and what too much of it does."""

from __future__ import annotations

from peekbench import MethodEntry, hookimpl
from peekbench_finetune.methods import overtrain, tapt
from peekbench_finetune.options import Overtrain, Tapt
from peekbench_lm.provision import count_tokens, pin, prefetch


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    return [
        MethodEntry(
            name="tapt",
            options=Tapt,
            method=tapt,
            summary="task-adaptive pretraining of a language model, linear layer, all weights finetuned",
            unlabeled_options=frozenset({"pretraining"}),
            base="finetuning",
            pin=pin,
            prefetch=prefetch,
            count_tokens=count_tokens,
        ),
        MethodEntry(
            name="overtrain",
            options=Overtrain,
            method=overtrain,
            summary="as tapt, with more epochs of pretraining",
            unlabeled_options=frozenset({"pretraining", "overtraining_epochs"}),
            base="finetuning",
            pin=pin,
            prefetch=prefetch,
            count_tokens=count_tokens,
        ),
    ]
