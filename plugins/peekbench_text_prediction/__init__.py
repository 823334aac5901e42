"""Plugin ``lm``: methods that predict the test texts themselves, by n-grams or by trained causal language models.

Where the text is what a method predicts, adapting to the test texts is training on the answers, so the bias is large.
"""

from __future__ import annotations

from functools import partial

from peekbench import MethodEntry, hookimpl
from peekbench.plugins import Preparation
from peekbench.records import TaskKind
from peekbench_text_prediction.options import DynamicEvaluation, Ngram, Pretraining

LANGUAGE_MODELING: frozenset[TaskKind] = frozenset({"language_modeling"})


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    causal = partial(
        MethodEntry,
        task_kinds=LANGUAGE_MODELING,
        base="training",
        preparation=Preparation(
            pin="peekbench_lm.provision:pin",
            check="peekbench_lm.provision:check",
            prefetch="peekbench_lm.provision:prefetch",
            resources="peekbench_lm.provision:resources",
        ),
    )
    return [
        MethodEntry(
            name="ngram",
            options=Ngram,
            method="peekbench_text_prediction.ngram:ngram",
            summary="byte n-grams counted in the train and unlabeled texts",
            task_kinds=LANGUAGE_MODELING,
            metrics={"num_bytes": "bytes of the texts that the n-grams are counted in"},
        ),
        causal(
            name="pretraining",
            options=Pretraining,
            method="peekbench_text_prediction.trained_model:pretraining",
            summary="a causal language model trained on the train and unlabeled texts",
        ),
        causal(
            name="dynamic_evaluation",
            options=DynamicEvaluation,
            method="peekbench_text_prediction.trained_model:dynamic_evaluation",
            summary="a causal language model that predicts each text before it is trained on it",
            unlabeled_options=frozenset({"adaptation"}),
        ),
    ]
