"""Plugin ``prompting``: methods that prompt causal language models."""

from __future__ import annotations

from functools import partial

from peekbench import MethodEntry, hookimpl
from peekbench.plugins import Preparation
from peekbench_prompting.options import (
    BatchCalibration,
    FewShot,
    NeighborVoting,
    Packed,
    Pretrain,
    PromptChoice,
    SelfLabeled,
    Supervised,
    ZeroShot,
)

TRAINING_OPTIONS = frozenset({"lora", "precision", "pretraining"})
"""Options without effect if nothing is trained."""


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    entry = partial(
        MethodEntry,
        preparation=Preparation(
            pin="peekbench_lm.provision:pin",
            check="peekbench_lm.provision:check",
            prefetch="peekbench_prompting.provision:prefetch",
            resources="peekbench_lm.provision:resources",
        ),
    )
    return [
        entry(
            name="zero_shot",
            options=ZeroShot,
            method="peekbench_prompting.fit:prompt",
            summary="prompt a causal language model for the class, without training; ignores unlabeled texts",
            base="zero_shot",
        ),
        entry(
            name="few_shot",
            options=FewShot,
            method="peekbench_prompting.fit:prompt",
            summary="zero_shot with labeled train texts as examples in the prompt; ignores unlabeled texts",
            base="few_shot",
        ),
        entry(
            name="batch_calibration",
            options=BatchCalibration,
            method="peekbench_prompting.fit:batch_calibration",
            summary="zero_shot, divided by the mean class probabilities of the unlabeled texts",
            unlabeled_options=frozenset({"strength"}),
            base="zero_shot",
        ),
        entry(
            name="self_labeled",
            options=SelfLabeled,
            method="peekbench_prompting.in_context:self_labeled",
            summary="zero_shot with unlabeled texts and the model's own answers to them as examples in the prompt",
            unlabeled_options=frozenset({"num_examples", "selection"}),
            base="zero_shot",
        ),
        entry(
            name="neighbor_voting",
            options=NeighborVoting,
            method="peekbench_prompting.in_context:neighbor_voting",
            summary="zero_shot, averaged with the class probabilities of the most similar unlabeled texts",
            unlabeled_options=frozenset({"num_neighbors", "similarity", "exclude_self"}),
            base="zero_shot",
        ),
        entry(
            name="prompt_choice",
            options=PromptChoice,
            method="peekbench_prompting.in_context:prompt_choice",
            summary="zero_shot with the one of several prompts that agrees most with all of them on unlabeled texts",
            unlabeled_options=frozenset({"templates", "criterion"}),
            base="zero_shot",
        ),
        entry(
            name="pretrain",
            options=Pretrain,
            method="peekbench_prompting.training:pretrain",
            summary="train a causal language model on prompts of the unlabeled texts, then prompt it for the class",
            unlabeled_options=TRAINING_OPTIONS,
            base="zero_shot",
        ),
        entry(
            name="packed",
            options=Packed,
            method="peekbench_prompting.training:pretrain",
            summary="pretrain with several texts after one instruction",
            unlabeled_options=TRAINING_OPTIONS | {"sequence_length", "texts_per_sequence"},
            base="zero_shot",
        ),
        entry(
            name="supervised",
            options=Supervised,
            method="peekbench_prompting.training:supervised",
            summary="pretrain, then train on the answers of the train set",
            unlabeled_options=frozenset({"pretrain", "pretraining"}),
        ),
    ]
