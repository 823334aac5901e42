"""Causal language models that answer prompts, without training or trained on references."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench_generation.options import Finetuned, Prompting, Sampling, Supervised, Training
from peekbench_generation.prompts import PromptEncoder
from peekbench_lm.completions import Completion, train_completions
from peekbench_lm.fit import acquire_language_model, computing, prepare_training, record_memory
from peekbench_lm.generation import Answer, Decoding, generate
from peekbench_lm.options import Recipe
from peekbench_lm.seeds import seed_for
from peekbench_lm.training_loop import Epochs, TrainingResult
from peekbench_lm.training_loop import train as train_model

LINE_BREAK = "\n"  # ends an answer by default


class AnsweringModel:
    """A causal language model that answers the prompts of a task. Create and use it inside `computing`.

    Parameters
    ----------
    train
        Prompts and references from which examples are drawn.
    task
        Task of the prompts.
    options
        Options of the method.
    context
        Seed and folders of the fit.

    Raises
    ------
    SpecError, DataError
        If the device does not exist, the model is unavailable or not causal, or train has too few examples.
    """

    def __init__(self, train: Labeled, task: Task, options: Prompting, context: Context) -> None:
        self.task = task
        """Task of the prompts."""
        self.seed = context.seed
        """Seed of the fit."""
        self.metrics: dict[str, float] = {}
        """Metrics of the fit."""
        self._options = options
        self._lease = acquire_language_model(options, context, self.metrics)
        self.model = self._lease.model
        """The model."""
        limit = self.model.context_limit(options.context_length)
        if options.num_examples > len(train.labels):
            raise DataError(
                f"task {task.name}: num_examples is {options.num_examples}, but there are {len(train.labels)} train "
                "prompts; reduce num_examples or increase num_train"
            )
        generator = np.random.default_rng(seed_for(context.seed, "examples"))
        rows = generator.permutation(len(train.labels))[: options.num_examples].tolist()
        examples = [(train.inputs[row], first_reference(train.labels[row])) for row in rows]
        self.encoder = PromptEncoder(self.model.tokenizer, task, options, limit, examples)
        """Writes and tokenizes the prompts."""
        self._stop = options.answers.stop or ()
        if options.answers.stop is None and not self.encoder.is_chat:
            self._stop = (LINE_BREAK,)

    def answer(self, prompts: Sequence[Sequence[int]], sampling: Sampling | None, seed: int) -> list[list[Answer]]:
        """Return answers to prompts, as samples or as predictions.

        Parameters
        ----------
        prompts
            Token ids of each prompt.
        sampling
            Number and temperature of samples; None for predictions.
        seed
            Seed of the samples.
        """
        options = self._options.answers
        chosen = options if sampling is None else sampling
        decoding = Decoding(options.max_tokens, chosen.temperature, self._stop)
        return generate(self.model, prompts, decoding, options.batch_size, chosen.num_samples, seed)

    def sample(self, prompts: Sequence[Sequence[int]], sampling: Sampling, seed: int) -> list[list[Answer]]:
        """Return samples to adapt to, and add their cost to the metrics. The parameters are those of `answer`."""
        started = time.perf_counter()
        samples = self.answer(prompts, sampling, seed)
        num_tokens = sum(len(answer.ids) for row in samples for answer in row)
        for name, value in (("sampling_seconds", time.perf_counter() - started), ("sampled_tokens", num_tokens)):
            self.metrics[name] = self.metrics.get(name, 0.0) + value
        return samples

    def train_answers(self, stage: str, completions: Sequence[Completion], training: Training) -> None:
        """Train on answers, and add the metrics of the training.

        Parameters
        ----------
        stage
            Name of the stage, which begins the names of the metrics.
        completions
            Prompts with their answers; nothing is trained without any.
        training
            Hyperparameters.
        """
        if not completions:
            return
        recipe = training.make_recipe(training.epochs)
        result = train_completions(self.model, completions, recipe, seed_for(self.seed, stage))
        self.metrics |= result.metrics(stage) | result.epoch_losses(stage)
        record_memory(self.model, self.metrics)

    def train_batches(self, epochs: Epochs, recipe: Recipe) -> TrainingResult:
        """Adapt to batches, and add the cost to the metrics.

        Parameters
        ----------
        epochs
            Batches of all epochs.
        recipe
            Hyperparameters.
        """
        result = train_model(self.model, [self.model.network], epochs, recipe, seed_for(self.seed, "dropout"))
        self.metrics |= result.metrics("adaptation")
        record_memory(self.model, self.metrics)
        return result

    def predictor(self) -> Predictor:
        """Return a predictor that answers prompts with the current weights."""
        options = self._options

        def predict(inputs: Inputs) -> list[str] | list[list[str]]:
            started = time.perf_counter()
            with computing(options):
                answers = self.answer(self.encoder.encode(list(inputs)), None, seed_for(self.seed, "answers"))
            flat = [answer for row in answers for answer in row]
            self.metrics["share_cut"] = self.encoder.take_share_cut()
            self.metrics["answer_seconds"] = time.perf_counter() - started
            self.metrics["answer_tokens"] = sum(len(answer.ids) for answer in flat)
            self.metrics["share_unfinished"] = sum(answer.is_cut for answer in flat) / max(1, len(flat))
            if options.answers.num_samples == 1:
                return [answer.text for answer in flat]
            return [[answer.text for answer in row] for row in answers]

        return Predictor(predict, self.metrics)


def first_reference(reference: str | Sequence[str]) -> str:
    """Return a reference, or the first of several."""
    return reference if isinstance(reference, str) else reference[0]


Adapt: TypeAlias = Callable[[AnsweringModel, Sequence[Sequence[int]]], None]
"""Trains a model on the token ids of unlabeled prompts."""


def fit(
    unlabeled: Inputs | None,
    train: Labeled,
    task: Task,
    options: Prompting,
    context: Context,
    adapt: Adapt | None = None,
) -> Predictor:
    """Train on references if the options say so, then on the unlabeled prompts, and return a predictor.

    Parameters
    ----------
    unlabeled
        Prompts without references; None to train on none.
    train
        Prompts and references.
    task
        Task of the prompts.
    options
        Options of the method.
    context
        Seed and folders of the fit.
    adapt
        Function that trains on the unlabeled prompts; None to ignore them.

    Raises
    ------
    SpecError, DataError
        If the device does not exist; the model is unavailable or not causal; or a reference is too long.
    """
    with computing(options):
        answering = AnsweringModel(train, task, options, context)
        finetuning = options.finetuning if isinstance(options, Finetuned) else None
        adapts = adapt is not None and unlabeled is not None
        if isinstance(options, Finetuned) and (finetuning or adapts):
            prepare_training(answering.model, options, context.seed)
        else:
            answering.model.freeze()
        if finetuning:
            pairs = zip(train.inputs, train.labels, strict=True)
            completions = [answering.encoder.complete(prompt, first_reference(label)) for prompt, label in pairs]
            answering.metrics["finetuning_share_cut"] = answering.encoder.take_share_cut()
            answering.train_answers("finetuning", completions, finetuning)
        if adapt is not None and unlabeled is not None:
            encoded = answering.encoder.encode(list(unlabeled))
            answering.metrics["adaptation_share_cut"] = answering.encoder.take_share_cut()
            adapt(answering, encoded)
    return answering.predictor()


def prompt(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Prompting, context: Context) -> Predictor:
    """Answer prompts without training, after `options.num_examples` examples (Brown et al. 2020, arXiv 2005.14165).

    The unlabeled prompts are ignored. The parameters and errors are those of `fit`.
    """
    return fit(unlabeled, train, task, options, context)


def supervised(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Supervised, context: Context
) -> Predictor:
    """Train on the references of the train prompts, then answer.

    The unlabeled prompts are ignored. The parameters and errors are those of `fit`.
    """
    return fit(unlabeled, train, task, options, context)
