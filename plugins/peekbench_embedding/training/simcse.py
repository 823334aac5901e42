"""Unsupervised SimCSE (Gao et al. 2021, https://arxiv.org/abs/2104.08821, section 3).

A text is encoded twice, with two dropout masks. The two embeddings should be more similar to each other than to the
embeddings of the other texts of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from peekbench.records import IntArray
from peekbench_embedding.training.encoder import SentenceEncoder, train_encoder
from peekbench_embedding.training.options import SimcseTraining
from peekbench_lm.devices import to_device
from peekbench_lm.layout import Part, Step
from peekbench_lm.seeds import derive_seed
from peekbench_lm.training_loop import Batch, TrainingResult


def contrastive_loss(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Return the sum of the losses of all texts of a batch (equation 4 of the paper).

    Parameters
    ----------
    first, second
        Embeddings of the texts with two dropout masks; each of shape (num_texts, size).
    temperature
        Temperature of the softmax over cosine similarities.
    """
    with torch.autocast(first.device.type, enabled=False):
        scores = normalize(first) @ normalize(second).T / temperature  # (num_texts, num_texts)
        return cross_entropy(scores, torch.arange(len(first), device=first.device), reduction="sum")


def make_batch(encoder: SentenceEncoder, texts: Sequence[Sequence[int]], temperature: float) -> Batch:
    """Return the batch of some texts.

    Parameters
    ----------
    encoder
        Encoder to train.
    texts
        Token ids of the texts.
    temperature
        Temperature of the softmax over cosine similarities.
    """
    step = Step([*texts, *texts])  # every token has its own dropout masks
    positions = to_device(torch.from_numpy(np.argsort(step.order)), encoder.device)

    def loss(part: Part) -> Tensor:
        first, second = encoder.embed(part)[positions].chunk(2)
        return contrastive_loss(first, second, temperature)

    return Batch(step, len(texts), loss, is_whole=True)


def split_order(order: IntArray, size: int) -> list[IntArray]:
    """Split the order of texts into batches. The last one is larger by a text that would have no negative example.

    Parameters
    ----------
    order
        Rows of the texts: (num_texts,).
    size
        Number of texts of a batch.
    """
    last = len(order) - (len(order) % size == 1)
    return np.split(order, list(range(size, last, size)))


def train_simcse(
    encoder: SentenceEncoder, texts: Sequence[Sequence[int]], options: SimcseTraining, seed: int
) -> TrainingResult:
    """Train an encoder on unlabeled texts.

    Parameters
    ----------
    encoder
        Encoder to train.
    texts
        Token ids of the texts.
    options
        Hyperparameters.
    seed
        Seed of order and dropout.

    Raises
    ------
    PeekbenchError
        If a batch does not fit into memory.
    """
    epochs = []
    for epoch in range(options.epochs):
        order = np.random.default_rng(derive_seed(seed, "order", epoch)).permutation(len(texts))
        rows = split_order(order, options.batch_size)
        epochs.append([make_batch(encoder, [texts[row] for row in batch], options.temperature) for batch in rows])
    return train_encoder(encoder, texts, epochs, options, seed)
