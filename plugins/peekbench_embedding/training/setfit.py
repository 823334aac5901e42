"""Contrastive training on pairs of labeled texts: SetFit (Tunstall et al. 2022, https://arxiv.org/abs/2209.11055).

The cosine similarity of two texts should be 1 if they have the same class and 0 otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from peekbench.records import FloatArray, IntArray
from peekbench_embedding.training.encoder import SentenceEncoder, train_encoder
from peekbench_embedding.training.options import SetfitTraining
from peekbench_lm.devices import to_device
from peekbench_lm.layout import Part, Step
from peekbench_lm.seeds import derive_seed
from peekbench_lm.training_loop import Batch, TrainingResult


def sample_pairs(labels: IntArray, pairs_per_text: int, generator: np.random.Generator) -> IntArray:
    """Return pairs of texts in random order; shape (num_pairs, 2).

    Each text begins half of its pairs with another text of its class and the other half with a text of another class.
    The only text of its class is paired with itself. If there is only one class, all pairs have that class.

    Parameters
    ----------
    labels
        Class of each text; shape (n,).
    pairs_per_text
        Number of pairs that each text begins.
    generator
        Source of random numbers.
    """
    rows = np.arange(len(labels))
    pairs: list[tuple[int, int]] = []
    for row in rows:
        same, other = rows[(labels == labels[row]) & (rows != row)], rows[labels != labels[row]]
        for candidates, count in ((same, pairs_per_text // 2), (other, pairs_per_text - pairs_per_text // 2)):
            choices = candidates if len(candidates) else np.array([row])
            pairs.extend((int(row), int(partner)) for partner in generator.choice(choices, count))
    return generator.permutation(np.array(pairs, dtype=np.int64))


def train_setfit(
    encoder: SentenceEncoder, texts: Sequence[Sequence[int]], labels: IntArray, options: SetfitTraining, seed: int
) -> TrainingResult:
    """Train an encoder on pairs of labeled texts.

    Parameters
    ----------
    encoder
        Encoder to train.
    texts
        Token ids of the texts.
    labels
        Class of each text; shape (len(texts),).
    options
        Hyperparameters.
    seed
        Seed of pairs, order and dropout.

    Raises
    ------
    PeekbenchError
        If a batch does not fit into memory.
    """
    size = options.batch_size
    epochs = []
    for epoch in range(options.epochs):
        generator = np.random.default_rng(derive_seed(seed, "pairs", epoch))
        pairs = sample_pairs(labels, options.pairs_per_text, generator)
        chunks = [pairs[start : start + size] for start in range(0, len(pairs), size)]
        epochs.append([make_batch(encoder, texts, labels, chunk) for chunk in chunks])
    return train_encoder(encoder, texts, epochs, options, seed)


def make_batch(encoder: SentenceEncoder, texts: Sequence[Sequence[int]], labels: IntArray, pairs: IntArray) -> Batch:
    """Return the batch of some pairs. A text of several pairs is encoded once.

    Parameters
    ----------
    encoder
        Encoder to train.
    texts
        Token ids of all texts.
    labels
        Class of each text.
    pairs
        Positions of the texts of each pair; shape (num_pairs, 2).
    """
    rows, members = np.unique(pairs, return_inverse=True)
    step = Step([texts[row] for row in rows])
    members = np.argsort(step.order)[members.reshape(pairs.shape)]  # positions in the step; (num_pairs, 2)
    is_same = torch.from_numpy((labels[pairs[:, 0]] == labels[pairs[:, 1]]).astype(np.float32))

    def loss(part: Part) -> Tensor:
        first, second = encoder.embed(part)[to_device(torch.from_numpy(members.T), encoder.device)]
        similarity = cosine_similarity(first, second)  # (num_pairs,)
        return (similarity - to_device(is_same, encoder.device)).square().sum()

    return Batch(step, len(pairs), loss, is_whole=True)


def choose_pseudo_labels(probabilities: FloatArray, min_confidence: float, max_labels: int | None) -> IntArray:
    """Return the rows of the texts that receive their most probable class as a label, in ascending order.

    Parameters
    ----------
    probabilities
        Class probabilities of the unlabeled texts; shape (n, num_classes).
    min_confidence
        Minimum probability of the most probable class.
    max_labels
        Maximum number of texts of each class, those with the highest probability; None for no limit.

    Examples
    --------
    >>> choose_pseudo_labels(np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.05, 0.95]]), 0.7, 1).tolist()
    [0, 3]
    """
    labels, confidence = probabilities.argmax(1), probabilities.max(1)
    chosen: list[int] = []
    for label in range(probabilities.shape[1]):
        rows = np.flatnonzero((labels == label) & (confidence >= min_confidence))
        chosen.extend(rows[np.argsort(-confidence[rows], kind="stable")][:max_labels].tolist())
    return np.array(sorted(chosen), dtype=np.int64)
