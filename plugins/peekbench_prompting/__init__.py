"""Large language models asked for a text's class, and whether they have seen the texts before."""

from __future__ import annotations

from functools import partial

from peekbench import MethodEntry, hookimpl
from peekbench.plugins import AuditEntry
from peekbench_lm.provision import pin
from peekbench_prompting.exchangeability import Exchangeability, exchangeability, pin_models, prefetch_models
from peekbench_prompting.methods import count_tokens, few_shot, prefetch, pretrain, supervised, zero_shot
from peekbench_prompting.options import FewShot, ZeroShot
from peekbench_prompting.training_options import Packed, Pretrain, Supervised

TRAINING = frozenset({"lora", "precision", "gradient_checkpointing", "pretraining"})
"""Options that matter to training alone."""


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    entry = partial(MethodEntry, pin=pin, prefetch=prefetch, count_tokens=count_tokens)
    return [
        entry(
            name="zero_shot",
            options=ZeroShot,
            method=zero_shot,
            summary="a causal language model, untrained, is asked for the class; ignores unlabeled texts",
            base="zero_shot",
        ),
        entry(
            name="few_shot",
            options=FewShot,
            method=few_shot,
            summary="as zero_shot, with train texts and their classes in the prompt; ignores unlabeled texts",
        ),
        entry(
            name="pretrain",
            options=Pretrain,
            method=pretrain,
            summary="a causal language model is trained on the unlabeled texts' prompts and asked for the class",
            unlabeled_options=TRAINING,
            base="zero_shot",
        ),
        entry(
            name="packed",
            options=Packed,
            method=pretrain,
            summary="as pretrain, with several texts behind one instruction",
            unlabeled_options=TRAINING | {"sequence_length", "attention"},
            base="zero_shot",
        ),
        entry(
            name="supervised",
            options=Supervised,
            method=supervised,
            summary="as pretrain, then trained on the train set's answers",
            unlabeled_options=frozenset({"pretrain", "pretraining"}),
        ),
    ]


@hookimpl
def peekbench_audits() -> list[AuditEntry]:
    return [
        AuditEntry(
            name="exchangeability",
            options=Exchangeability,
            audit=exchangeability,
            summary="does a language model prefer the published order of the texts, as if it had seen them?",
            pin=pin_models,
            prefetch=prefetch_models,
        )
    ]
