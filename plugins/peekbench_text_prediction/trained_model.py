"""Causal language models that are trained on texts and predict whole texts: `pretraining` and `dynamic_evaluation`."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_lm.completions import Completion, make_batch
from peekbench_lm.fit import acquire_language_model, computing, prepare_training, record_memory
from peekbench_lm.language_model import Snapshot
from peekbench_lm.likelihood import split_for_training, text_log_likelihoods
from peekbench_lm.options import Recipe
from peekbench_lm.pretraining import pretrain
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import Batch, Epochs, train
from peekbench_text_prediction.options import Adaptation, DynamicEvaluation, Pretraining


class TrainedModel:
    """A causal language model with the options of a fit. Create and use it inside `computing`.

    Parameters
    ----------
    options
        Options of the method.
    context
        Seed and folders of the fit.

    Raises
    ------
    DataError
        If the model is unavailable or gives no probability of texts.
    """

    def __init__(self, options: Pretraining, context: Context) -> None:
        self.metrics: dict[str, float] = {}
        """Metrics of the fit."""
        self._lease = acquire_language_model(options, context, self.metrics)
        self.model = self._lease.model
        """The model."""
        self.limit = self.model.context_limit(options.context_length)
        """Number of tokens that the model reads at once."""
        prepare_training(self.model, options, context.seed)

    def train(self, texts: Inputs, options: Pretraining, seed: int) -> None:
        """Train on texts in random order, and add the metrics of the training.

        Parameters
        ----------
        texts
            Texts to train on.
        options
            Options of the method.
        seed
            Seed of the fit.

        Raises
        ------
        DataError
            If the tokenizer changes a text.
        """
        recipe = options.pretraining.make_recipe(options.pretraining.epochs)
        sequences = split_for_training(self.model, texts, self.limit)
        result = pretrain(self.model, sequences, recipe, 0.0, seed_for(seed, "pretraining"))
        self.metrics |= result.metrics("pretraining") | result.epoch_losses("pretraining")
        record_memory(self.model, self.metrics)

    def log_likelihoods(self, texts: Inputs) -> FloatArray:
        """Return the natural logarithm of the probability of each text; shape (len(texts),)."""
        return text_log_likelihoods(self.model, texts, self.limit)


def pretraining(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Pretraining, context: Context
) -> Predictor:
    """Train a causal language model on the train and unlabeled texts.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; None to train on the train texts only.
    train
        Texts without labels.
    task
        Not used.
    options
        Options of the method.
    context
        Seed and folders of the fit.

    Returns
    -------
    Predictor
        The model.

    Raises
    ------
    SpecError
        If this machine has no such device.
    DataError
        If the model is unavailable, is not causal, or its tokenizer changes texts.
    """
    with computing(options):
        trained = TrainedModel(options, context)
        trained.train([*train.inputs, *(() if unlabeled is None else unlabeled)], options, context.seed)

    def predict(inputs: Inputs) -> FloatArray:
        with computing(options):
            return trained.log_likelihoods(inputs)

    return Predictor(predict, trained.metrics)


def dynamic_evaluation(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: DynamicEvaluation, context: Context
) -> Predictor:
    """Train a causal language model on the train texts, then on the unlabeled texts between predictions.

    The unlabeled texts form a stream, in the order of a hash of each text. A text to predict has a place in this order
    by its own hash, whether it is one of the unlabeled texts or not. It is predicted by the model before the step of
    the stream that its place falls into, so never by a model that was trained on it, and other inputs do not matter.

    Source: Krause et al. (2018), https://arxiv.org/abs/1709.07432, for the order of prediction and training and for the
    decay towards the first weights; with steps of Adam, as Rannen-Triki et al. (2024), https://arxiv.org/abs/2403.01518,
    adapt transformers.

    Parameters
    ----------
    unlabeled
        Texts of the stream; None for the model that is trained on the train texts only.
    train
        Texts without labels.
    task
        Not used.
    options
        Options of the method.
    context
        Seed and folders of the fit.

    Returns
    -------
    Predictor
        The model, whose predictions replay the stream from the state after the train texts.

    Raises
    ------
    SpecError, DataError, PeekbenchError
        As for `pretraining`.
    """
    with computing(options):
        trained = TrainedModel(options, context)
        trained.train(train.inputs, options, context.seed)
    stream = Stream(() if unlabeled is None else unlabeled, options.adaptation.batch_size, context.seed)
    replay = Replay(trained, stream, options.adaptation, seed_for(context.seed, "adaptation"))

    def predict(inputs: Inputs) -> FloatArray:
        with computing(options):
            return replay.log_likelihoods(inputs)

    return Predictor(predict, trained.metrics)


class Stream:
    """Texts in the order of their hashes, in batches.

    Parameters
    ----------
    texts
        Texts of the stream.
    batch_size
        Number of texts of each batch; the last one may have fewer.
    seed
        Seed of the hashes.
    """

    def __init__(self, texts: Inputs, batch_size: int, seed: int) -> None:
        self._seed = seed
        self._size = batch_size
        ordered = sorted(texts, key=self._hash)
        self._hashes = [self._hash(text) for text in ordered]
        self.batches = [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]
        """Texts of each batch."""

    def place(self, text: str) -> int:
        """Return the number of batches before the place of a text. None of them contains the text or a copy of it.

        Parameters
        ----------
        text
            Any text, which may be one of the stream.
        """
        return bisect_left(self._hashes, self._hash(text)) // self._size

    def _hash(self, text: str) -> bytes:
        """Return a hash that is the same in every process. Equal texts have equal hashes, so copies are neighbors."""
        return hashlib.blake2b(f"{self._seed} {text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Replay:
    """A model that is trained on a stream again for each prediction.

    Parameters
    ----------
    trained
        Model in the state before the stream.
    stream
        Texts to train on.
    options
        Options of the training.
    seed
        Seed of the dropout masks.
    """

    def __init__(self, trained: TrainedModel, stream: Stream, options: Adaptation, seed: int) -> None:
        self._trained = trained
        self._stream = stream
        self._options = options
        self._seed = seed
        self._before = Snapshot(trained.model)

    def log_likelihoods(self, texts: Inputs) -> FloatArray:
        """Return the natural logarithm of the probability of each text at its place in the stream.

        Parameters
        ----------
        texts
            Texts to predict.
        """
        model = self._trained.model
        self._before.restore()
        scores = np.zeros(len(texts))
        epochs = Epochs(self._steps(texts, scores), max(1, len(self._stream.batches)))
        train(model, [model.network], epochs, self._recipe(), self._seed)
        return scores

    def _steps(self, texts: Inputs, scores: FloatArray) -> Iterator[Sequence[Batch]]:
        """Yield the steps of the stream up to the last place, and fill in the scores of the texts before each step."""
        places = np.array([self._stream.place(text) for text in texts])
        for step in range(places.max() + 1):
            rows = np.flatnonzero(places == step).tolist()
            if rows:
                scores[rows] = self._trained.log_likelihoods([texts[row] for row in rows])
            if step < places.max():
                self._trained.model.network.train()
                yield [self._make_batch(self._stream.batches[step])]
                if self._options.decay:
                    self._before.restore(self._options.decay)

    def _make_batch(self, texts: Sequence[str]) -> Batch:
        sequences = split_for_training(self._trained.model, texts, self._trained.limit)
        return make_batch(self._trained.model, [Completion(ids) for ids in sequences])

    def _recipe(self) -> Recipe:
        return Recipe(
            epochs=1,
            batch_size=self._options.batch_size,
            learning_rate=self._options.learning_rate,
            schedule="constant",
            weight_decay=0.0,
            max_gradient_norm=self._options.max_gradient_norm,
        )
