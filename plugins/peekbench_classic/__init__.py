"""Methods on scikit-learn and gensim that learn from unlabeled text what a word or a text is like."""

from __future__ import annotations

from pydantic import Field

from peekbench import MethodEntry, Options, hookimpl
from peekbench_classic.lsa import lsa
from peekbench_classic.self_training import self_training
from peekbench_classic.word2vec import word2vec
from peekbench_classic.words import count_word2vec_words, count_words


class Lsa(Options):
    num_components: int = Field(default=10, ge=1)
    """Dimensions that the truncated SVD keeps; fewer where the texts do not span as many."""
    regularization: float = Field(default=1.0, gt=0)
    """Inverse strength C of the logistic regression's L2 penalty."""


class SelfTraining(Options):
    rounds: int = Field(default=1, ge=1)
    """How often the unlabeled texts get new soft labels and the classifier is fitted again."""
    unlabeled_weight: float = Field(default=0.5, gt=0)
    """Weight of one unlabeled text beside a train text's 1."""
    temperature: float = Field(default=0.5, gt=0)
    """Soft labels are the predicted probabilities to the power of 1/temperature, normalized: below 1 sharpens them."""
    regularization: float = Field(default=10.0, gt=0)
    """Inverse strength C of the logistic regression's L2 penalty."""


class Word2Vec(Options):
    num_dimensions: int = Field(default=50, ge=2)
    """Length of a word's vector."""
    window: int = Field(default=5, ge=1)
    """Words to either side that count as a word's context."""
    epochs: int = Field(default=20, ge=1)
    """Passes over the texts."""
    regularization: float = Field(default=10.0, gt=0)
    """Inverse strength C of the logistic regression's L2 penalty."""


@hookimpl
def peekbench_methods() -> list[MethodEntry]:
    return [
        MethodEntry(
            name="lsa",
            options=Lsa,
            method=lsa,
            count_tokens=count_words,
            summary="latent semantic analysis (tf-idf, truncated SVD), logistic regression",
            metrics={
                "explained_variance": "share of the variance of the texts it was fitted on that its dimensions hold"
            },
        ),
        MethodEntry(
            name="self_training",
            options=SelfTraining,
            method=self_training,
            count_tokens=count_words,
            summary="tf-idf, logistic regression, soft pseudo-labels on the unlabeled texts",
            metrics={"soft_label_entropy": "mean entropy of the pseudo-labels; 0 where all are sure"},
            unlabeled_options=frozenset({"rounds", "unlabeled_weight", "temperature"}),
        ),
        MethodEntry(
            name="word2vec",
            options=Word2Vec,
            method=word2vec,
            count_tokens=count_word2vec_words,
            summary="mean of word2vec vectors trained on the texts, logistic regression",
        ),
    ]
