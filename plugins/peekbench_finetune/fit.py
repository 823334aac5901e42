"""Task-adaptive pretraining: pretraining on the unlabeled texts, if given, and finetuning with a new head."""

from __future__ import annotations

from dataclasses import replace

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.errors import SpecError
from peekbench.records import FloatArray
from peekbench_finetune.classification import Classifier
from peekbench_finetune.options import Overtrain, Tapt
from peekbench_lm.devices import deterministic
from peekbench_lm.fit import Lease, load_for_fit, prepare_training, record_memory
from peekbench_lm.language_model import LanguageModel, Snapshot
from peekbench_lm.likelihood import text_log_likelihoods
from peekbench_lm.pretraining import pretrain
from peekbench_lm.seeds import seed_for
from peekbench_lm.tokenizer import encode


def tapt(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Tapt, context: Context) -> Predictor:
    """Pretrain a language model on the unlabeled texts, then finetune it on the train set.

    `overtrain` uses this function too, with the options `Overtrain`: it pretrains for more epochs, and before that for
    the usual number of epochs, only to report the metric `plain_pretraining_loss`.

    Source: Gururangan et al. (2020), https://arxiv.org/abs/2004.10964, as in arXiv 2410.00179, sections 4 and 8

    Parameters
    ----------
    unlabeled
        Texts for pretraining; None to skip pretraining.
    train
        Labeled texts.
    task
        Task of the texts.
    options
        Options of the method.
    context
        Seed, threads and folders of the fit.

    Raises
    ------
    SpecError
        If this machine has no such device, or `overtraining_epochs` is not greater than the usual number of epochs.
    DataError
        If the model does not exist or is unavailable, or gives no probabilities of texts that are to be scored.
    """
    metrics: dict[str, float] = {}
    with load_for_fit(options, context, metrics) as lease:
        model = lease.model
        limit = model.context_limit(options.context_length)
        prepare_training(model, options, context.seed)
        if unlabeled is not None:
            metrics |= _pretrain(model, encode(model.tokenizer, unlabeled, limit), options, context.seed)
            if options.pretraining.discards_pooler:
                head = options.classification.model_copy(update={"head": "bert_new_pooler"})
                options = options.model_copy(update={"classification": head})
        pretrained = Snapshot(model) if options.score_texts else None
        predictor = _fit_classifier(lease, train, task, options, context, metrics)
    if pretrained is None:
        return predictor

    def log_likelihoods(inputs: Inputs) -> FloatArray:
        model = lease.model  # the reference to the lease keeps it, as that of `predict`
        with deterministic(model.device, options.threads), pretrained.restored():
            return text_log_likelihoods(model, inputs, limit)

    return replace(predictor, log_likelihoods=log_likelihoods)


def _fit_classifier(
    lease: Lease[LanguageModel], train: Labeled, task: Task, options: Tapt, context: Context, metrics: dict[str, float]
) -> Predictor:
    """Finetune the model and a linear layer, starting from the current weights; return a predictor."""
    model = lease.model
    limit = model.context_limit(options.context_length)
    pooling = options.classification.pooling or ("cls" if model.kind == "masked" else "last")
    head = options.classification.head
    classifier = Classifier(model, task.num_classes, pooling, seed_for(context.seed, "head"), head, task.kind)
    texts, seed = encode(model.tokenizer, train.inputs, limit), seed_for(context.seed, "classification")
    result = classifier.fit(texts, train.labels, options.classification.recipe(), seed)
    metrics.update(result.metrics("classification"), classification_loss=result.losses[-1])
    record_memory(model, metrics)

    def predict(inputs: Inputs) -> FloatArray:
        model = lease.model  # the reference to the lease keeps it until the predictor is deleted
        # In fp32: in bf16 the prediction for a text would depend visibly on the other texts of its batch.
        with deterministic(model.device, options.threads):
            texts = encode(model.tokenizer, inputs, limit)
            return classifier.predict(texts, options.classification.prediction_batch_size)

    return Predictor(predict, metrics)


def _pretrain(model: LanguageModel, texts: list[list[int]], options: Tapt, fit_seed: int) -> dict[str, float]:
    """Pretrain a model on token ids of texts; return the metrics."""
    metrics: dict[str, float] = {}
    probability, seed = options.pretraining.mask_probability, seed_for(fit_seed, "pretraining")
    recipe = options.pretraining.recipe(model.kind)
    if isinstance(options, Overtrain):
        epochs = _overtraining_epochs(options.overtraining_epochs, recipe.epochs)
        metrics["plain_pretraining_loss"] = pretrain(model, texts, recipe, probability, seed).losses[-1]
        recipe = replace(recipe, epochs=epochs)
        model.restore()
        prepare_training(model, options, fit_seed)
    result = pretrain(model, texts, recipe, probability, seed)
    return metrics | result.metrics("pretraining") | result.epoch_losses("pretraining")


def _overtraining_epochs(requested: int | None, usual: int) -> int:
    """Return the requested number of epochs, by default twice the usual number."""
    if requested is not None and requested <= usual:
        raise SpecError(
            f"overtraining_epochs: {requested} is not more than the {usual} epochs of usual pretraining; give a larger "
            "number"
        )
    return requested or 2 * usual
