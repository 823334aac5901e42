"""Prompting without training, and the parts that all fits share: prompts, and a predictor that scores the classes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_lm.devices import deterministic
from peekbench_lm.fit import Lease, load_for_fit, record_memory
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.seeds import derive_seed
from peekbench_prompting.examples import Example, ExamplePrompts, choose_examples
from peekbench_prompting.options import FewShot, Prompting, ZeroShot
from peekbench_prompting.prompts import PromptEncoder
from peekbench_prompting.scoring import Scorer


def prompt(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: ZeroShot | FewShot, context: Context
) -> Predictor:
    """Prompt the model for the class of each text, without training; `few_shot` puts examples before the text.

    Source: arXiv 2410.00179, section 9, without examples; Brown et al. (2020), arXiv 2005.14165, with examples.

    Parameters
    ----------
    unlabeled
        Ignored.
    train
        Texts and labels to choose the examples from; not used without examples.
    task
        Its class names and instruction are part of every prompt.
    options
        Model and prompts.
    context
        Seed and folders.

    Raises
    ------
    SpecError
        If the device does not exist, the model is not causal, or the instruction does not fit into the context.
    DataError
        If the model is unavailable.
    """
    return fit_untrained(train, task, options, context, {})


def fit_untrained(
    train: Labeled, task: Task, options: Prompting, context: Context, metrics: dict[str, float]
) -> Predictor:
    """Return a predictor that prompts the untrained model.

    Parameters
    ----------
    train
        Texts and labels to choose examples from; not used unless the options are those of `few_shot`.
    task
        Its class names and instruction are part of every prompt.
    options
        Model and prompts.
    context
        Seed and folders.
    metrics
        Metrics of the fit; the fit and each prediction add theirs.
    """
    with load_for_fit(options, context, metrics) as lease:
        encoder = partial(make_encoder, lease.model, task, options)
        if isinstance(options, FewShot):
            examples = choose_examples(train, task, options.num_examples, derive_seed(context.seed, "examples"))
            prompts = ExamplePrompts(encoder, examples)
            metrics["num_examples"] = prompts.num_examples
        else:
            prompts = ExamplePrompts(encoder)
        return make_predictor(lease, prompts, options, metrics)


def make_encoder(
    model: LanguageModel, task: Task, options: Prompting, examples: Sequence[Example] = ()
) -> PromptEncoder:
    """Return the encoder of a task's prompts for a model."""
    limit = model.context_limit(options.context_length)
    return PromptEncoder(model.tokenizer, task, limit, examples, options.chat_template)


def make_predictor(
    lease: Lease[LanguageModel], prompts: ExamplePrompts, options: Prompting, metrics: dict[str, float]
) -> Predictor:
    """Return a predictor that scores the classes with the model's current weights.

    Parameters
    ----------
    lease
        The fitted model.
    prompts
        Puts texts into prompts.
    options
        Scoring and threads.
    metrics
        Metrics of the fit; prediction adds its own.
    """
    scorer, device = Scorer(lease.model, options.scoring), lease.model.device

    def predict(inputs: Inputs) -> FloatArray:
        started = time.perf_counter()
        parts, num_cut, num_examples = [], 0, 0
        with deterministic(device, options.threads):
            for batch in prompts.build(list(inputs)):
                parts.append((batch.rows, scorer.probabilities(batch.encoder, batch.prompts)))
                num_cut += sum(prompt.is_cut for prompt in batch.prompts)
                num_examples += batch.num_examples * len(batch.prompts)
        metrics["scoring_seconds"] = time.perf_counter() - started
        metrics["share_scored_by_tree"] = scorer.share_by_tree
        metrics["share_cut"] = num_cut / max(1, len(inputs))
        if prompts.num_examples:
            metrics["mean_examples"] = num_examples / max(1, len(inputs))
        record_memory(lease.model, metrics)
        probabilities = np.empty((len(inputs), prompts.num_classes))
        for rows, part in parts:
            probabilities[rows] = part
        return probabilities

    return Predictor(predict, metrics)
