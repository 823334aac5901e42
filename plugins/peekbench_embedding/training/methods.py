"""Methods that train an encoder. Importing this module imports torch; the entries refer to its functions by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_embedding.head import linear_predictor
from peekbench_embedding.options import Linear
from peekbench_embedding.training.encoder import SentenceEncoder, encoders
from peekbench_embedding.training.options import Setfit, Simcse, Tsdae
from peekbench_embedding.training.setfit import choose_pseudo_labels, train_setfit
from peekbench_embedding.training.simcse import train_simcse
from peekbench_embedding.training.tsdae import split_words, train_tsdae
from peekbench_encoders.embeddings import Embedder, check_texts
from peekbench_lm.devices import deterministic
from peekbench_lm.fit import Lease, acquire_from, computing
from peekbench_lm.seeds import derive_seed
from peekbench_lm.training_loop import TrainingResult


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
    PeekbenchError
        If a batch does not fit into memory.
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

    The first encoder and logistic regression label the unlabeled texts of which they are confident. Then the pretrained
    encoder is trained on pairs of the train texts and these texts, and a second logistic regression is fitted on both.
    Without unlabeled texts, the first ones predict. The parameters and errors are those of `simcse`.

    Source: Tunstall et al. (2022), https://arxiv.org/abs/2209.11055; pseudo-labels as in Lee (2013), "Pseudo-Label"
    """
    check_texts(train.inputs)
    metrics: dict[str, float] = {}
    with _load(options, context, metrics) as lease:
        fit = partial(_fit_pairs, lease, options=options, seed=derive_seed(context.seed, "setfit"))
        predictor = fit(train, metrics)
        if unlabeled is None:
            return predictor
        probabilities = np.asarray(predictor.predict(unlabeled))
        rows = choose_pseudo_labels(probabilities, options.min_confidence, options.max_pseudo_labels)
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
        lease.model.precision = options.training.precision
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
