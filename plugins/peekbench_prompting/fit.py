"""Class probabilities from the log probabilities of the class names as answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.special import softmax

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_lm.continuations import Beginning, score_continuations, supports_trees
from peekbench_lm.devices import deterministic
from peekbench_lm.fit import Lease, load_for_fit, record_memory
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.once import compute_once, computes_once
from peekbench_lm.options import Precision
from peekbench_lm.precision import choose_precision
from peekbench_lm.seeds import seed_for
from peekbench_prompting.frame import fill_template, frame_prompt
from peekbench_prompting.options import BatchCalibration, FewShot, Prompting, Scoring, ZeroShot
from peekbench_prompting.prompts import AnswerTokens, Example, ExamplePrompts, Prompt, PromptEncoder, choose_examples

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Texts without content (Zhao et al. 2021, arXiv 2102.09690, section 5)."""


def scoring_precision(scoring: Scoring, model: LanguageModel) -> Precision:
    """Return the precision of products in predictions, which is fp32 by default unless weights have four bits."""
    if scoring.precision == "auto" and model.weight_mode != "nf4":
        return "fp32"
    return choose_precision(scoring.precision, model.device)


class Scorer:
    """Scores the classes of texts with the current weights of a model.

    Parameters
    ----------
    model
        A causal language model.
    scoring
        Normalization, prior correction, batch size and precision.
    """

    def __init__(self, model: LanguageModel, scoring: Scoring) -> None:
        self._model = model
        self._scoring = scoring
        self._precision = scoring_precision(scoring, model)
        self._num_scored = self._num_by_tree = 0

    @property
    def share_by_tree(self) -> float:
        """Fraction of prompts whose answers were all scored in one forward pass; the others take much longer."""
        return self._num_by_tree / max(1, self._num_scored)

    def probabilities(self, encoder: PromptEncoder, prompts: Sequence[Prompt]) -> FloatArray:
        """Return class probabilities of each prompt.

        Parameters
        ----------
        encoder
            The encoder that made the prompts.
        prompts
            One prompt per text.

        Returns
        -------
        array of shape (len(prompts), num_classes)
        """
        scores = self.scores(encoder, prompts)
        if self._scoring.prior_correction == "content_free":
            prior = softmax(self.scores(encoder, encoder.encode(CONTENT_FREE)), axis=1)
            scores = scores - np.log(prior.mean(axis=0))
        probabilities: FloatArray = softmax(scores, axis=1)
        return probabilities

    def scores(self, encoder: PromptEncoder, prompts: Sequence[Prompt]) -> FloatArray:
        """Return the mean or summed log probability of each class's answer.

        Parameters
        ----------
        encoder
            The encoder that made the prompts.
        prompts
            One prompt per text.

        Returns
        -------
        array of shape (len(prompts), num_classes)
        """
        scores = np.empty((len(prompts), encoder.task.num_classes))
        is_alone = computes_once(self._model)
        rows_of: dict[tuple[AnswerTokens, tuple[int, ...]], list[int]] = {}
        for row, prompt in enumerate(prompts):
            answers = encoder.answer_tokens(prompt)
            before: list[int] = []
            if is_alone:
                before = prompt.ids[: min(prompt.num_before, len(prompt.ids) - answers.num_replaced - 1)]
            rows_of.setdefault((answers, tuple(before)), []).append(row)
        for (answers, leading), rows in rows_of.items():
            stems = [prompts[row].ids[: len(prompts[row].ids) - answers.num_replaced] for row in rows]
            batches = [[stem] for stem in stems] if is_alone else [stems]
            self._num_scored += len(rows)
            self._num_by_tree += sum(
                len(batch) * supports_trees(self._model, batch, answers.tokens) for batch in batches
            )
            scores[rows] = self._score(stems, answers.tokens, Beginning(leading))
            if self._scoring.normalization == "mean":
                scores[rows] /= [len(tokens) for tokens in answers.tokens]
        return scores

    def _score(
        self, stems: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], beginning: Beginning
    ) -> FloatArray:
        """Return the log probability of each answer after each stem."""

        def compute(stems: Sequence[Sequence[int]]) -> FloatArray:
            batch_size = self._scoring.batch_size
            return score_continuations(self._model, stems, answers, batch_size, self._precision, beginning)

        settings = ("answers", answers, len(beginning.ids), self._precision)
        return compute_once(self._model, settings, stems, compute)


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
            examples = choose_examples(train, task, options.num_examples, seed_for(context.seed, "examples"))
            prompts = ExamplePrompts(encoder, examples)
            metrics["num_examples"] = prompts.num_examples
        else:
            prompts = ExamplePrompts(encoder)
        return make_predictor(lease, prompts, options, metrics)


def make_encoder(
    model: LanguageModel, task: Task, options: Prompting, examples: Sequence[Example] = (), template: str | None = None
) -> PromptEncoder:
    """Return the encoder of a task's prompts for a model, with examples or with a template."""
    limit = model.context_limit(options.context_length)
    if template is None:
        frame = frame_prompt(task.class_names, task.instruction, examples)
    else:
        frame = fill_template(template, task.class_names, task.instruction)
    return PromptEncoder(model.tokenizer, task, limit, frame, options.chat_template)


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


def batch_calibration(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: BatchCalibration, context: Context
) -> Predictor:
    """Prompt the model, and divide by the mean class probabilities of the unlabeled texts.

    Without unlabeled texts, nothing is calibrated. The other parameters and the errors are those of `prompt`.

    Source: Zhou et al. (2024), arXiv 2309.17249, section 4, equations 1 and 2, with all unlabeled texts as the batch.
    """
    metrics: dict[str, float] = {}
    predictor = fit_untrained(train, task, options, context, metrics)
    if unlabeled is None:
        return predictor
    prior = np.mean(predictor.predict(unlabeled), axis=0)
    metrics |= {"smallest_prior": float(prior.min()), "largest_prior": float(prior.max())}
    return Predictor(lambda inputs: calibrate(np.asarray(predictor.predict(inputs)), prior, options.strength), metrics)


def calibrate(probabilities: FloatArray, prior: FloatArray, strength: float) -> FloatArray:
    """Divide probabilities by a power of the class priors, and normalize rows.

    Source: Zhou et al. (2024), arXiv 2309.17249, section 4. The prior is that of equation 1. Equation 2 subtracts it
    from the scores of the classes; here, probabilities are divided by it, which the paper calls equivalent to a
    subtraction of logits. `strength` is the gamma of their adjustable layer: their unsupervised method is gamma 1, and
    they choose other values with labels.

    Parameters
    ----------
    probabilities
        Class probabilities; shape `(n, num_classes)`.
    prior
        Mean class probabilities; shape `(num_classes,)`.
    strength
        Power of the priors.

    Returns
    -------
    array of shape `(n, num_classes)`

    Examples
    --------
    >>> calibrate(np.array([[0.6, 0.4]]), np.array([0.75, 0.25]), 1.0).round(3).tolist()
    [[0.333, 0.667]]
    """
    smallest = np.finfo(np.float64).tiny  # a probability can be rounded to 0, which has no logarithm
    scores = np.log(np.maximum(probabilities, smallest)) - strength * np.log(np.maximum(prior, smallest))
    calibrated: FloatArray = softmax(scores, axis=1)
    return calibrated
