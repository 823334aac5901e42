"""A causal language model that a fit leases, trains and predicts with."""

from __future__ import annotations

from peekbench import Context, Inputs
from peekbench.records import FloatArray
from peekbench_language_modeling.options import Pretraining
from peekbench_lm.fit import acquire_language_model, prepare_training, record_memory
from peekbench_lm.likelihood import split_for_training, text_log_likelihoods
from peekbench_lm.pretraining import pretrain
from peekbench_lm.seeds import derive_seed


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
        PeekbenchError
            If a single text does not fit into memory.
        """
        recipe = options.pretraining.make_recipe(options.pretraining.epochs)
        sequences = split_for_training(self.model, texts, self.limit)
        result = pretrain(self.model, sequences, recipe, 0.0, derive_seed(seed, "pretraining"))
        self.metrics |= result.metrics("pretraining") | result.epoch_losses("pretraining")
        record_memory(self.model, self.metrics)

    def log_likelihoods(self, texts: Inputs) -> FloatArray:
        """Return the natural logarithm of the probability of each text; shape (len(texts),)."""
        return text_log_likelihoods(self.model, texts, self.limit)
