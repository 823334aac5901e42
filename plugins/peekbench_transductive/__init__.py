"""Transductive methods: classifiers that adapt to the inputs they will predict, on features fitted on train only.

Texts become tf-idf vectors or the embeddings of a sentence encoder, and arrays become standardized columns
(`features.py`). Nothing of this is fitted on unlabeled inputs, so only the method itself can learn from them.
"""

from __future__ import annotations

from functools import partial

from pydantic import Field

from peekbench import MethodEntry, Options, hookimpl
from peekbench.plugins import Preparation
from peekbench_encoders.options import Encoder


class OnFeatures(Options):
    """Options of the methods that take any features."""

    encoder: Encoder | None = None
    """Sentence encoder whose embeddings are the features of texts, such as `{model: builtin:minilm}`; by default, texts
    have tf-idf features. Encoders need the extra `embeddings`."""


class Linear(OnFeatures):
    """Options of the methods with a linear classifier."""

    regularization: float = Field(default=10.0, gt=0)
    """Inverse strength C of the logistic regression's L2 penalty. Features have a mean squared length of about 1."""


class LabelSpreading(OnFeatures):
    """Options of `transductive.label_spreading`."""

    alpha: float = Field(default=0.9, gt=0, lt=1)
    """Share of a node's label that comes from its neighbors in the graph; the rest is its own label."""
    gamma: float = Field(default=20.0, gt=0)
    """Sharpness of the kernel exp(-gamma d² / m), where d is the distance of two inputs and m is the mean of d² between
    train inputs. Larger values connect only close neighbors."""


class EntropyMinimization(Linear):
    """Options of `transductive.entropy_minimization`."""

    steps: int = Field(default=10, ge=1)
    """Steps of Adam, each on all unlabeled inputs. Many steps make all predictions certain, and possibly equal."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Learning rate of Adam."""


class ClassPriors(Linear):
    """Options of `transductive.class_priors`."""

    prior_strength: float = Field(default=400.0, ge=0)
    """Weight of train's class shares, as a number of inputs; 0 estimates shares by the unlabeled inputs alone."""


class Centroids(OnFeatures):
    """Options of `transductive.centroids`."""

    unlabeled_weight: float = Field(default=0.1, gt=0, le=1)
    """Weight of an unlabeled input in the new centroids; train inputs have the weight 1."""
    gamma: float = Field(default=5.0, gt=0)
    """Sharpness of the assignments, which are proportional to exp(-gamma d² / m), where d is the distance of an input
    from a centroid and m is the mean squared distance between train inputs."""


class BatchStatistics(Linear):
    """Options of `transductive.batch_statistics`."""

    prior_strength: float = Field(default=256.0, ge=0)
    """Weight of train's variances, as a number of inputs; 0 uses those of the unlabeled inputs alone."""


class Bm25(Options):
    """Options of `transductive.bm25`."""

    num_neighbors: int = Field(default=10, ge=1)
    """Number of train texts that vote, each with its score; all train texts if there are fewer."""
    k1: float = Field(default=1.2, ge=0)
    """Saturation of term frequencies: at 0, a word counts once; at large values, each occurrence counts the same."""
    b: float = Field(default=0.75, ge=0, le=1)
    """Normalization by length: 0 is none, 1 is full."""


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    entry = partial(
        MethodEntry,
        task_kinds=frozenset({"classification", "tabular_classification"}),
        preparation=Preparation(
            pin="peekbench_transductive.provision:pin",
            check="peekbench_transductive.provision:check",
            prefetch="peekbench_transductive.provision:prefetch",
            resources="peekbench_transductive.provision:resources",
        ),
    )
    return [
        entry(
            name="label_spreading",
            options=LabelSpreading,
            method="peekbench_transductive.neighbors:label_spreading",
            summary="labels spread over a graph of the train and unlabeled inputs",
            metrics={"label_entropy": "mean entropy of the labels that the unlabeled inputs get, in nats"},
        ),
        entry(
            name="entropy_minimization",
            options=EntropyMinimization,
            method="peekbench_transductive.linear:entropy_minimization",
            summary="linear classifier, made more certain of the unlabeled inputs",
            unlabeled_options=frozenset({"steps", "learning_rate"}),
            metrics={
                "entropy_before": "mean entropy of the predictions of unlabeled inputs before the adaptation, in nats",
                "entropy_after": "the same after the adaptation",
            },
        ),
        entry(
            name="class_priors",
            options=ClassPriors,
            method="peekbench_transductive.linear:class_priors",
            summary="calibrated linear classifier, corrected by class shares that EM estimates from unlabeled inputs",
            unlabeled_options=frozenset({"prior_strength"}),
            metrics={
                "temperature": "divisor of the logits that calibrates them, from cross-validation on train",
                "smallest_prior": "smallest estimated class share among the unlabeled inputs",
                "largest_prior": "largest estimated class share among the unlabeled inputs",
                "prior_change": "total variation distance between the estimated class shares and those of train",
                "iterations": "number of EM iterations",
            },
        ),
        entry(
            name="centroids",
            options=Centroids,
            method="peekbench_transductive.neighbors:centroids",
            summary="nearest class centroid; unlabeled inputs move the centroids (soft k-means)",
            unlabeled_options=frozenset({"unlabeled_weight"}),
            metrics={
                "assignment_entropy": "mean entropy of the classes assigned to the unlabeled inputs, in nats",
                "centroid_shift": "mean distance that a centroid moves, in units of the root mean squared distance "
                "between train inputs",
            },
        ),
        entry(
            name="batch_statistics",
            options=BatchStatistics,
            method="peekbench_transductive.linear:batch_statistics",
            summary="linear classifier on features scaled by the unlabeled inputs",
            unlabeled_options=frozenset({"prior_strength"}),
            metrics={
                "scale_change": "mean absolute logarithm of the ratio of the standard deviations to train's",
            },
        ),
        MethodEntry(
            name="bm25",
            task_kinds=frozenset({"classification"}),
            options=Bm25,
            method="peekbench_transductive.neighbors:bm25",
            summary="BM25 weights from all texts, vote of the nearest train texts",
            metrics={
                "mean_idf": "mean inverse document frequency of the words in train",
                "mean_words": "mean number of words of a text, by which BM25 normalizes lengths",
            },
        ),
    ]
