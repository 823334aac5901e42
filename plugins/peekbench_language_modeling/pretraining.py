"""A causal language model trained on the train and unlabeled texts, which predicts whole texts."""

from __future__ import annotations

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_language_modeling.options import Pretraining
from peekbench_language_modeling.trained_model import TrainedModel
from peekbench_lm.fit import computing


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
    PeekbenchError
        If a single text does not fit into memory.
    """
    with computing(options):
        trained = TrainedModel(options, context)
        trained.train([*train.inputs, *(() if unlabeled is None else unlabeled)], options, context.seed)

    def predict(inputs: Inputs) -> FloatArray:
        with computing(options):
            return trained.log_likelihoods(inputs)

    return Predictor(predict, trained.metrics)
