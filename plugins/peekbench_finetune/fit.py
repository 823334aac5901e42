"""A fit: pretraining on the unlabeled texts, if given, and finetuning with a linear layer on the train set."""

from __future__ import annotations

import time
from dataclasses import replace

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.errors import SpecError
from peekbench.records import FloatArray
from peekbench_finetune.classification import Classifier
from peekbench_finetune.options import Overtrain, Tapt
from peekbench_lm.devices import choose_device, deterministic, peak_memory, reset_peak_memory
from peekbench_lm.models.language_model import LanguageModel
from peekbench_lm.models.lease import acquire
from peekbench_lm.models.tokens import encode
from peekbench_lm.seeds import derive_seed
from peekbench_lm.sources.model_files import find_model
from peekbench_lm.training.pretraining import pretrain
from peekbench_lm.types import WeightMode


def fit(unlabeled: Inputs | None, train: Labeled, task: Task, options: Tapt, context: Context) -> Predictor:
    """Fit a classifier. Parameters and errors are those of the methods in `methods`.

    With the options of `overtrain`, pretraining takes more epochs.
    """
    device = choose_device(options.device)
    reset_peak_memory(device)
    metrics: dict[str, float] = {}
    with deterministic(device, options.threads):
        started = time.perf_counter()
        weight_mode: WeightMode = "frozen" if options.lora else "trained"
        lease = acquire(find_model(options.model, options.revision, context.folders), device, weight_mode)
        metrics["loading_seconds"] = time.perf_counter() - started
        model = lease.model
        model.precision = options.precision
        limit = model.context_limit(options.context_length)
        _add_adapters(model, options, context.seed)
        if unlabeled is not None:
            metrics |= _pretrain(model, encode(model.tokenizer, unlabeled, limit), options, context.seed)
        pooling = options.classification.pooling or ("cls" if model.kind == "masked" else "last")
        classifier = Classifier(model, task.num_classes, pooling, derive_seed(context.seed, "head"))
        texts, seed = encode(model.tokenizer, train.inputs, limit), derive_seed(context.seed, "classification")
        result = classifier.fit(texts, train.labels, options.classification.recipe(), seed)
        metrics.update(result.metrics("classification"), classification_loss=result.losses[-1])
    metrics["peak_memory_mb"] = peak_memory(device)
    if model.micro_batch.limit is not None:
        metrics["micro_batch_size"] = model.micro_batch.limit

    def predict(inputs: Inputs) -> FloatArray:
        assert lease.model is model  # this reference keeps the lease until the predictor is deleted
        # In fp32: in bf16 the prediction for a text would depend visibly on the other texts of its batch.
        with deterministic(device, options.threads):
            texts = encode(model.tokenizer, inputs, limit)
            return classifier.predict(texts, options.classification.prediction_batch_size)

    return Predictor(predict, metrics)


def _pretrain(model: LanguageModel, texts: list[list[int]], options: Tapt, fit_seed: int) -> dict[str, float]:
    """Pretrain a model on token ids of texts; return the metrics."""
    metrics: dict[str, float] = {}
    probability, seed = options.pretraining.mask_probability, derive_seed(fit_seed, "pretraining")
    recipe = options.pretraining.recipe(model.kind)
    if isinstance(options, Overtrain):
        epochs = _overtraining_epochs(options.overtraining_epochs, recipe.epochs)
        metrics["plain_pretraining_loss"] = pretrain(model, texts, recipe, probability, seed).losses[-1]
        recipe = replace(recipe, epochs=epochs)
        model.restore()
        _add_adapters(model, options, fit_seed)
    result = pretrain(model, texts, recipe, probability, seed)
    metrics |= result.metrics("pretraining")
    return metrics | {f"pretraining_loss_{epoch}": loss for epoch, loss in enumerate(result.losses, start=1)}


def _add_adapters(model: LanguageModel, options: Tapt, seed: int) -> None:
    if options.lora is not None:
        lora = options.lora
        model.add_adapters(lora.rank, lora.alpha, lora.dropout, derive_seed(seed, "adapters"))


def _overtraining_epochs(requested: int | None, usual: int) -> int:
    """Return the requested number of epochs, by default twice the usual number."""
    if requested is not None and requested <= usual:
        raise SpecError(
            f"overtraining_epochs: {requested} is not more than the {usual} epochs of usual pretraining; give a larger "
            "number"
        )
    return requested or 2 * usual
