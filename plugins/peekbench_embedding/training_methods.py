"""Methods that train an encoder: SimCSE, SetFit and TSDAE. The entries refer to these functions by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray, IntArray
from peekbench_embedding.fixed_encoder import linear_predictor
from peekbench_embedding.options import Linear, Setfit, SetfitTraining, Simcse, SimcseTraining, Tsdae
from peekbench_embedding.trained_encoder import SentenceEncoder, encoders, train_encoder
from peekbench_embedding.tsdae import split_words, train_tsdae
from peekbench_encoders.embeddings import Embedder, check_texts
from peekbench_lm.devices import deterministic, to_device
from peekbench_lm.fit import Lease, acquire_from, computing
from peekbench_lm.layout import Part, Step
from peekbench_lm.precision import choose_precision
from peekbench_lm.seeds import seed_for
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


def make_simcse_batch(encoder: SentenceEncoder, texts: Sequence[Sequence[int]], temperature: float) -> Batch:
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
    """
    epochs = []
    for epoch in range(options.epochs):
        order = np.random.default_rng(seed_for(seed, "order", epoch)).permutation(len(texts))
        rows = split_order(order, options.batch_size)
        epochs.append(
            [make_simcse_batch(encoder, [texts[row] for row in batch], options.temperature) for batch in rows]
        )
    return train_encoder(encoder, texts, epochs, options, seed)


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
    """
    size = options.batch_size
    epochs = []
    for epoch in range(options.epochs):
        generator = np.random.default_rng(seed_for(seed, "pairs", epoch))
        pairs = sample_pairs(labels, options.pairs_per_text, generator)
        chunks = [pairs[start : start + size] for start in range(0, len(pairs), size)]
        epochs.append([make_pair_batch(encoder, texts, labels, chunk) for chunk in chunks])
    return train_encoder(encoder, texts, epochs, options, seed)


def make_pair_batch(
    encoder: SentenceEncoder, texts: Sequence[Sequence[int]], labels: IntArray, pairs: IntArray
) -> Batch:
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


def choose_pseudo_labels(probabilities: FloatArray, share: float) -> IntArray:
    """Return the rows of the texts that receive their most probable class as a label, in ascending order.

    Parameters
    ----------
    probabilities
        Class probabilities of the unlabeled texts; shape (n, num_classes).
    share
        Share of the texts of each predicted class that are chosen, those with the highest probability; rounded up.

    Examples
    --------
    >>> choose_pseudo_labels(np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.05, 0.95]]), 0.5).tolist()
    [0, 3]
    """
    labels, confidence = probabilities.argmax(1), probabilities.max(1)
    chosen: list[int] = []
    for label in range(probabilities.shape[1]):
        rows = np.flatnonzero(labels == label)
        chosen.extend(rows[np.argsort(-confidence[rows], kind="stable")][: ceil(share * len(rows))].tolist())
    return np.array(sorted(chosen), dtype=np.int64)


def simcse(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Simcse, context: Context) -> Predictor:
    """Train the encoder on the unlabeled texts with SimCSE, then fit a logistic regression on its embeddings.

    Source: Gao et al. (2021), https://arxiv.org/abs/2104.08821, unsupervised

    Parameters
    ----------
    unlabeled
        Texts for training; None for the pretrained encoder, which makes the method `embedding.linear`.
    train
        Labeled texts.
    task
        Not used.
    options
        Encoder, training and regularization.
    context
        Seed and folders of the fit.

    Raises
    ------
    SpecError
        If this machine has no such device.
    DataError
        If the model is unavailable, or has no network of transformers that can be trained.
    """

    def adapt(encoder: SentenceEncoder, texts: Inputs) -> TrainingResult:
        ids = encoder.tokenize(texts, options.prompt, options.training.context_length)["input_ids"]
        return train_simcse(encoder, ids, options.training, context.seed)

    return _fit(unlabeled, train, options, context, adapt)


def tsdae(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Tsdae, context: Context) -> Predictor:
    """Train the encoder on the unlabeled texts with TSDAE, then fit a logistic regression on its embeddings.

    The parameters and errors are those of `simcse`. Also a `DataError` is raised if the architecture of the encoder has
    no decoder in transformers.

    Source: Wang et al. (2021), https://arxiv.org/abs/2104.06979
    """

    def adapt(encoder: SentenceEncoder, texts: Inputs) -> TrainingResult:
        words = split_words(encoder, texts, options.prompt, options.training.context_length)
        return train_tsdae(encoder, words, options.training, context.seed)

    return _fit(unlabeled, train, options, context, adapt)


def setfit(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Setfit, context: Context) -> Predictor:
    """Train the encoder on pairs of train texts with SetFit, label unlabeled texts, and train it again with both.

    The first encoder and logistic regression label the unlabeled texts of each predicted class of which they are most
    confident. Then the pretrained encoder is trained on pairs of the train texts and these texts, and a second logistic
    regression is fitted on both. Without unlabeled texts, the first ones predict. The parameters and errors are those
    of `simcse`.

    Source: Tunstall et al. (2022), https://arxiv.org/abs/2209.11055; pseudo-labels as in Lee (2013), "Pseudo-Label"
    """
    check_texts(train.inputs)
    metrics: dict[str, float] = {}
    with _load(options, context, metrics) as lease:
        fit = partial(_fit_pairs, lease, options=options, seed=seed_for(context.seed, "setfit"))
        predictor = fit(train, metrics)
        if unlabeled is None:
            return predictor
        probabilities = np.asarray(predictor.predict(unlabeled))
        rows = choose_pseudo_labels(probabilities, options.pseudo_label_share)
        metrics["pseudo_labels"] = len(rows)
        labels = np.concatenate([train.labels, probabilities.argmax(1)[rows]])
        lease.model.restore()
        return fit(Labeled((*train.inputs, *(unlabeled[row] for row in rows)), labels), metrics)


def _fit_pairs(
    lease: Lease[SentenceEncoder], train: Labeled, metrics: dict[str, float], *, options: Setfit, seed: int
) -> Predictor:
    """Train the leased encoder on pairs of texts; return the predictor."""
    encoder, training = lease.model, options.training
    ids = encoder.tokenize(train.inputs, options.prompt, training.context_length)["input_ids"]
    result = train_setfit(encoder, ids, np.asarray(train.labels, dtype=np.int64), training, seed)
    return _predictor(lease, train, options, metrics, result)


def _fit(
    unlabeled: Inputs | None,
    train: Labeled,
    options: Simcse | Tsdae,
    context: Context,
    adapt: Callable[[SentenceEncoder, Inputs], TrainingResult],
) -> Predictor:
    """Train an encoder on the unlabeled texts, if given; return the predictor."""
    if unlabeled is None:
        return linear_predictor(Embedder(options, context.folders), train, options.regularization)
    check_texts(train.inputs)
    metrics: dict[str, float] = {}
    with _load(options, context, metrics) as lease:
        return _predictor(lease, train, options, metrics, adapt(lease.model, unlabeled))


@contextmanager
def _load(
    options: Simcse | Tsdae | Setfit, context: Context, metrics: dict[str, float]
) -> Iterator[Lease[SentenceEncoder]]:
    """Load the pretrained encoder for one fit, and compute reproducibly inside the `with` block."""
    with computing(options):
        lease = acquire_from(encoders, options, context, metrics)
        lease.model.precision = choose_precision(options.training.precision, lease.model.device)
        yield lease


def _predictor(
    lease: Lease[SentenceEncoder], train: Labeled, options: Linear, metrics: dict[str, float], result: TrainingResult
) -> Predictor:
    """Fit a logistic regression on the embeddings of the train texts; return the predictor."""

    def embed(inputs: Inputs) -> FloatArray:  # its reference keeps the lease until the predictor is deleted
        with deterministic(lease.model.device, options.threads):
            return lease.model.embed_texts(inputs, options.prompt, options.context_length)

    metrics = metrics | result.metrics("training") | result.epoch_losses("training")
    return linear_predictor(embed, train, options.regularization, metrics)
