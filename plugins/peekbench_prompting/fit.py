"""One fit: a model, its prompts, and a predictor that asks it for the classes of texts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_lm.devices import choose_device, peak_memory, reproducibly, reset_peak_memory
from peekbench_lm.folder import find_model
from peekbench_lm.model import LanguageModel, Lease, borrow
from peekbench_lm.training import derive
from peekbench_prompting.examples import Questions, choose_examples
from peekbench_prompting.methods import check_causal
from peekbench_prompting.prompts import Prompts
from peekbench_prompting.scoring import Scorer

if TYPE_CHECKING:
    from peekbench_prompting.options import FewShot, Prompting, ZeroShot


def fit_zero_shot(task: Task, options: ZeroShot, context: Context) -> Predictor:
    """Nothing but a model and prompts."""
    metrics: dict[str, float] = {}
    with fitting_model(options, context, metrics) as loan:
        return make_predictor(loan, Questions(partial(make_prompts, loan.model, task, options)), options, metrics)


def fit_few_shot(train: Labeled, task: Task, options: FewShot, context: Context) -> Predictor:
    """The same with examples in the prompts."""
    metrics: dict[str, float] = {}
    with fitting_model(options, context, metrics) as loan:
        examples = choose_examples(train, task, options.num_examples, derive(context.seed, "examples"))
        questions = Questions(partial(make_prompts, loan.model, task, options), examples)
        metrics["num_examples"] = questions.num_examples
        return make_predictor(loan, questions, options, metrics)


@contextmanager
def fitting_model(options: Prompting, context: Context, metrics: dict[str, float]) -> Iterator[Lease]:
    """A model to fit, for as long as somebody refers to the loan; computes reproducibly.

    Raises
    ------
    SpecError, DataError
        Where there is no such device or model, or the model is not a causal one.
    """
    device = choose_device(options.device)
    reset_peak_memory(device)
    with reproducibly(device, options.threads):
        started = time.perf_counter()
        loan = borrow(find_model(options.model, options.revision, context.folders), device, options.held)
        metrics["loading_seconds"] = time.perf_counter() - started
        check_causal(options.model, loan.model.kind)
        yield loan


def make_prompts(
    model: LanguageModel, task: Task, options: Prompting, examples: Sequence[tuple[str, str]] = ()
) -> Prompts:
    """A task's prompts for a model."""
    return Prompts(model.tokenizer, task, model.limit(options.context_length), examples, options.chat_template)


def make_predictor(loan: Lease, questions: Questions, options: Prompting, metrics: dict[str, float]) -> Predictor:
    """What asks the model, as it is when texts come, for their classes.

    Parameters
    ----------
    metrics
        Of the fit; what is found in predicting is added.
    """
    scorer, device = Scorer(loan.model, options.scoring), loan.model.device

    def predict(inputs: Inputs) -> FloatArray:
        started = time.perf_counter()
        parts, num_cut, num_examples = [], 0, 0
        with reproducibly(device, options.threads):
            for number, prompts, rows, asked in questions.put(list(inputs)):
                parts.append((rows, scorer.probabilities(prompts, asked)))
                num_cut += sum(prompt.is_cut for prompt in asked)
                num_examples += number * len(asked)
        metrics["scoring_seconds"] = time.perf_counter() - started
        metrics["share_scored_by_tree"] = scorer.share_by_tree
        metrics["share_cut"] = num_cut / max(1, len(inputs))
        if questions.num_examples:
            metrics["mean_examples"] = num_examples / max(1, len(inputs))
        metrics["peak_memory_mb"] = peak_memory(device)
        if loan.model.micro_batch.limit is not None:
            metrics["micro_batch_size"] = loan.model.micro_batch.limit
        probabilities = np.empty((len(inputs), questions.num_classes))
        for rows, some in parts:
            probabilities[rows] = some
        return probabilities

    return Predictor(predict, metrics)
