"""Methods from scikit-learn and gensim that learn representations of words or texts from unlabeled text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from peekbench import MethodEntry, Options, hookimpl


class Lsa(Options):
    """Options of `classic.lsa`."""

    num_components: int = Field(default=10, ge=1)
    """Dimensions of the truncated SVD; fewer if the texts span fewer."""
    vocabulary: Literal["all", "train"] = "all"
    """Texts whose words are used: all texts of the fit, or the train texts, so that all arms have the same words."""
    regularization: float = Field(default=1.0, gt=0)
    """Inverse strength C of the logistic regression's L2 penalty."""


class SelfTraining(Options):
    """Options of `classic.self_training`."""

    rounds: int = Field(default=1, ge=1)
    """Number of times that the classifier labels the unlabeled texts and is fitted again."""
    unlabeled_weight: float = Field(default=0.5, gt=0)
    """Weight of an unlabeled text, relative to a train text."""
    temperature: float = Field(default=0.5, gt=0)
    """Soft labels are the predicted probabilities to the power of 1/temperature, normalized; values below 1 sharpen
    them."""
    regularization: float = Field(default=10.0, gt=0)
    """Inverse strength C of the logistic regression's L2 penalty."""


class Word2Vec(Options):
    """Options of `classic.word2vec`."""

    num_dimensions: int = Field(default=50, ge=2)
    """Dimensions of a word vector."""
    window: int = Field(default=5, ge=1)
    """Number of context words on either side of a word."""
    epochs: int = Field(default=60, ge=1)
    """Passes over the texts. A few hundred texts need many more than the 5 that gensim makes by default."""
    regularization: float = Field(default=10.0, gt=0)
    """Inverse strength C of the logistic regression's L2 penalty."""


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    """Register the methods."""
    return [
        MethodEntry(
            name="lsa",
            options=Lsa,
            method="peekbench_classic.tfidf:lsa",
            summary="latent semantic analysis (tf-idf, truncated SVD), logistic regression",
            task_kinds=frozenset({"classification", "multilabel"}),
            metrics={"explained_variance": "share of the variance of the texts that the SVD's dimensions explain"},
        ),
        MethodEntry(
            name="self_training",
            options=SelfTraining,
            method="peekbench_classic.tfidf:self_training",
            summary="tf-idf, logistic regression, soft pseudo-labels on the unlabeled texts",
            metrics={"soft_label_entropy": "mean entropy of the pseudo-labels; 0 if all are certain"},
            unlabeled_options=frozenset({"rounds", "unlabeled_weight", "temperature"}),
        ),
        MethodEntry(
            name="word2vec",
            options=Word2Vec,
            method="peekbench_classic.word2vec:word2vec",
            summary="mean of word2vec vectors trained on the texts, logistic regression",
            task_kinds=frozenset({"classification", "multilabel"}),
        ),
    ]
