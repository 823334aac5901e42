"""One fit: pretraining on the unlabeled texts, if there are any, then the linear layer and all weights on train."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.errors import SpecError
from peekbench.records import FloatArray
from peekbench_finetune.classification import Classifier
from peekbench_lm.devices import choose_device, peak_memory, reproducibly, reset_peak_memory
from peekbench_lm.folder import find_model
from peekbench_lm.model import LanguageModel, borrow
from peekbench_lm.names import Held
from peekbench_lm.pretraining import pretrain
from peekbench_lm.tokens import encode
from peekbench_lm.training import derive

if TYPE_CHECKING:
    from peekbench_finetune.options import Tapt


def fit(
    unlabeled: Inputs | None, train: Labeled, task: Task, options: Tapt, context: Context, overtraining: int | None
) -> Predictor:
    """Fit a model.

    Parameters
    ----------
    overtraining
        Epochs of pretraining in the place of `options.pretraining.epochs`, 0 for twice as many; None to leave it.
    """
    device = choose_device(options.device)
    reset_peak_memory(device)
    metrics: dict[str, float] = {}
    with reproducibly(device, options.threads):
        started = time.perf_counter()
        held: Held = "frozen" if options.lora else "trained"
        loan = borrow(find_model(options.model, options.revision, context.folders), device, held)
        metrics["loading_seconds"] = time.perf_counter() - started
        model = loan.model
        model.precision = options.precision
        limit = model.limit(options.context_length)
        _add_adapters(model, options, context.seed)
        if unlabeled is not None:
            texts = encode(model.tokenizer, unlabeled, limit)
            probability, seed = options.pretraining.mask_probability, derive(context.seed, "pretraining")
            recipe = options.pretraining.recipe(model.kind)
            if overtraining is not None:
                trained = pretrain(model, texts, recipe, probability, seed)
                metrics["plain_pretraining_loss"] = trained.losses[-1]
                recipe = replace(recipe, epochs=_more_epochs(overtraining, recipe.epochs))
                model.restore()
                _add_adapters(model, options, context.seed)
            trained = pretrain(model, texts, recipe, probability, seed)
            metrics.update(trained.metrics("pretraining"))
            metrics.update({f"pretraining_loss_{epoch}": loss for epoch, loss in enumerate(trained.losses, start=1)})
        pooling = options.classification.pooling or ("cls" if model.kind == "masked" else "last")
        classifier = Classifier(model, task.num_classes, pooling, derive(context.seed, "head"))
        texts, seed = encode(model.tokenizer, train.inputs, limit), derive(context.seed, "classification")
        trained = classifier.fit(texts, train.labels, options.classification.recipe(), seed)
        metrics.update(trained.metrics("classification"), classification_loss=trained.losses[-1])
    metrics["peak_memory_mb"] = peak_memory(device)
    if model.micro_batch.limit is not None:
        metrics["micro_batch_size"] = model.micro_batch.limit

    def predict(inputs: Inputs) -> FloatArray:
        assert loan.model is model  # the loan lasts as long as somebody can predict
        # In fp32, because in bf16 what is predicted for a text would depend visibly on the texts beside it.
        with reproducibly(device, options.threads):
            texts = encode(model.tokenizer, inputs, limit)
            return classifier.predict(texts, options.classification.prediction_batch_size)

    return Predictor(predict, metrics)


def _add_adapters(model: LanguageModel, options: Tapt, seed: int) -> None:
    if options.lora is not None:
        lora = options.lora
        model.add_adapters(lora.rank, lora.alpha, lora.dropout, derive(seed, "adapters"))


def _more_epochs(overtraining: int, plain: int) -> int:
    if 0 < overtraining <= plain:
        raise SpecError(f"overtraining_epochs: {overtraining} is no more than plain pretraining's {plain}; give more")
    return overtraining or 2 * plain
