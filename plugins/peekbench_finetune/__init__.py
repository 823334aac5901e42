"""Finetuned language models: task-adaptive pretraining, for too many epochs too."""

from __future__ import annotations

from functools import partial

from peekbench import MethodEntry, hookimpl
from peekbench.plugins import Preparation
from peekbench_finetune.options import Overtrain, Tapt


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    entry = partial(
        MethodEntry,
        task_kinds=frozenset({"classification", "multilabel"}),
        preparation=Preparation(
            pin="peekbench_lm.provision:pin",
            check="peekbench_lm.provision:check",
            prefetch="peekbench_lm.provision:prefetch",
            resources="peekbench_lm.provision:resources",
        ),
    )
    return [
        entry(
            name="tapt",
            options=Tapt,
            method="peekbench_finetune.fit:tapt",
            summary="task-adaptive pretraining of a language model, linear layer, all weights finetuned",
            unlabeled_options=frozenset({"pretraining"}),
            base="finetuning",
        ),
        entry(
            name="overtrain",
            options=Overtrain,
            method="peekbench_finetune.fit:tapt",
            summary="tapt with more epochs of pretraining",
            unlabeled_options=frozenset({"pretraining", "overtraining_epochs"}),
            base="finetuning",
        ),
    ]
