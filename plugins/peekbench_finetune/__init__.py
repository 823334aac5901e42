"""Task-adaptive pretraining of BERT- and GPT-like language models, and pretraining for too many epochs."""

from __future__ import annotations

from functools import partial

from peekbench import MethodEntry, hookimpl
from peekbench_finetune.options import Overtrain, Tapt


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    entry = partial(
        MethodEntry,
        base="finetuning",
        pin="peekbench_lm.provision:pin",
        prefetch="peekbench_lm.provision:prefetch",
        count_tokens="peekbench_lm.provision:count_tokens",
        resources="peekbench_lm.provision:resources",
    )
    return [
        entry(
            name="tapt",
            options=Tapt,
            method="peekbench_finetune.methods:tapt",
            summary="task-adaptive pretraining of a language model, linear layer, all weights finetuned",
            unlabeled_options=frozenset({"pretraining"}),
        ),
        entry(
            name="overtrain",
            options=Overtrain,
            method="peekbench_finetune.methods:overtrain",
            summary="tapt with more epochs of pretraining",
            unlabeled_options=frozenset({"pretraining", "overtraining_epochs"}),
        ),
    ]
