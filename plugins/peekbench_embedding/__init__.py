"""Methods on sentence embeddings: a pretrained encoder, adapted or corrected by the unlabeled texts, and a linear head.

The base arm of the methods with a fixed encoder is `embedding.linear`. Each text is encoded once: `embeddings.py`.
"""

from __future__ import annotations

from functools import partial

from peekbench import MethodEntry, hookimpl
from peekbench.plugins import Preparation
from peekbench_embedding.options import (
    AllButTheTop,
    CorpusContext,
    LabelPropagation,
    Linear,
    Setfit,
    Simcse,
    Tsdae,
    Whitening,
)


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    entry = partial(
        MethodEntry,
        base="linear",
        task_kinds=frozenset({"classification", "multilabel"}),
        preparation=Preparation(
            pin="peekbench_lm.provision:pin",
            check="peekbench_encoders.provision:check",
            prefetch="peekbench_encoders.provision:prefetch",
            resources="peekbench_lm.provision:resources",
        ),
    )
    return [
        entry(
            name="linear",
            options=Linear,
            method="peekbench_embedding.fixed_encoder:linear",
            summary="linear classifier on fixed sentence embeddings; ignores unlabeled texts",
        ),
        entry(
            name="whitening",
            options=Whitening,
            method="peekbench_embedding.fixed_encoder:whitening",
            summary="linear classifier on embeddings whitened by the mean and covariance of the unlabeled texts",
            unlabeled_options=frozenset({"num_components", "shrinkage"}),
            metrics={
                "shrinkage": "weight of the identity in the covariance",
                "components": "number of dimensions of the whitened embeddings",
            },
        ),
        entry(
            name="context",
            options=CorpusContext,
            method="peekbench_embedding.fixed_encoder:context",
            summary="linear classifier on embeddings relative to the mean of the unlabeled texts",
            metrics={"mean_length": "length of the subtracted mean"},
        ),
        entry(
            name="all_but_the_top",
            options=AllButTheTop,
            method="peekbench_embedding.fixed_encoder:all_but_the_top",
            summary="linear classifier on embeddings without the mean and strongest components of the unlabeled texts",
            unlabeled_options=frozenset({"num_components"}),
            metrics={"removed_variance": "share of the variance of the unlabeled texts that is removed"},
        ),
        entry(
            name="label_propagation",
            options=LabelPropagation,
            method="peekbench_embedding.label_propagation:label_propagation",
            summary="labels propagated to the unlabeled texts; other texts join the graph one at a time",
            base="",
            task_kinds=frozenset({"classification"}),
            unlabeled_options=frozenset({"rule"}),
            metrics={"label_entropy": "mean entropy of the labels of the unlabeled texts, in nats"},
        ),
        entry(
            name="simcse",
            options=Simcse,
            method="peekbench_embedding.training_methods:simcse",
            summary="encoder trained to tell the unlabeled texts apart, linear classifier",
            unlabeled_options=frozenset({"training"}),
        ),
        entry(
            name="tsdae",
            options=Tsdae,
            method="peekbench_embedding.training_methods:tsdae",
            summary="encoder trained to reconstruct the unlabeled texts from some of their words, linear classifier",
            unlabeled_options=frozenset({"training"}),
        ),
        entry(
            name="setfit",
            options=Setfit,
            method="peekbench_embedding.training_methods:setfit",
            summary="encoder trained on pairs of train texts and of pseudo-labeled texts, linear classifier",
            base="",
            task_kinds=frozenset({"classification"}),
            unlabeled_options=frozenset({"pseudo_label_share"}),
            metrics={"pseudo_labels": "number of unlabeled texts that receive a label"},
        ),
    ]
