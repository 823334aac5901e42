"""Plugin ``generation``: methods that answer prompts with causal language models, and learn from unlabeled prompts.

A method adapts to prompts without references: it trains on the answers on which most of its samples agree, or
reinforces them.
"""

from __future__ import annotations

from functools import partial

from peekbench import MethodEntry, hookimpl
from peekbench.plugins import Preparation
from peekbench.records import TaskKind
from peekbench_generation.options import (
    MajorityVote,
    PolicyGradient,
    Prompting,
    Supervised,
)

GENERATION: frozenset[TaskKind] = frozenset({"generation"})
ANSWERING = {
    "answer_tokens": "tokens of the predicted answers",
    "answer_seconds": "time to predict the answers",
    "share_cut": "share of the prompts that are too long for the context and lack their beginning",
    "share_unfinished": "share of the predicted answers that `max_tokens` ended",
}
FINETUNING_CUT = {"finetuning_share_cut": "share_cut of the train prompts that the method trains on"}
ADAPTING = ANSWERING | FINETUNING_CUT | {"adaptation_share_cut": "share_cut of the unlabeled prompts"}
SAMPLING = {
    "sampled_tokens": "tokens of the samples that the method adapts to",
    "sampling_seconds": "time to generate these samples",
}
VOTING = SAMPLING | {"agreement": "mean share of the samples of a prompt that agree with their majority"}


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    entry = partial(
        MethodEntry,
        task_kinds=GENERATION,
        preparation=Preparation(
            pin="peekbench_lm.provision:pin",
            check="peekbench_lm.provision:check",
            prefetch="peekbench_lm.provision:prefetch",
            resources="peekbench_lm.provision:resources",
        ),
    )
    adapted = partial(entry, base="finetuned")
    return [
        entry(
            name="prompt",
            options=Prompting,
            method="peekbench_generation.fit:prompt",
            summary="answer by prompting a causal language model, without training; ignores unlabeled prompts",
            metrics=ANSWERING,
        ),
        entry(
            name="supervised",
            options=Supervised,
            method="peekbench_generation.fit:supervised",
            summary="train on the references of the train prompts, then answer; ignores unlabeled prompts",
            metrics=ANSWERING | FINETUNING_CUT,
        ),
        adapted(
            name="majority_vote",
            options=MajorityVote,
            method="peekbench_generation.adaptation:majority_vote",
            summary="train on the answers to unlabeled prompts on which most samples agree",
            unlabeled_options=frozenset({"sampling", "adaptation"}),
            metrics=ADAPTING | VOTING | {"share_trained": "share of the samples that are trained on"},
        ),
        adapted(
            name="policy_gradient",
            options=PolicyGradient,
            method="peekbench_generation.adaptation:policy_gradient",
            summary="reinforce the answers to unlabeled prompts on which most samples agree (GRPO)",
            unlabeled_options=frozenset({"sampling", "adaptation"}),
            metrics=ADAPTING
            | VOTING
            | {
                "share_without_advantage": "share of the sampled prompts from which nothing is learned, because all "
                "samples have the same reward",
                "first_reward": "mean reward of the first step",
                "last_reward": "mean reward of the last step",
            },
        ),
    ]
