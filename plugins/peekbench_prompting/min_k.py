"""The audit `min_k`: whether a model finds the least likely words of texts more likely than those of unseen texts.

Min-K% Prob is the score of Shi et al. (2023), https://arxiv.org/abs/2310.16789, and Min-K%++ that of Zhang et al.
(2024), https://arxiv.org/abs/2404.02936.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from peekbench import Analysis, Context, Dataset
from peekbench.records import FloatArray
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import score_tokens
from peekbench_prompting.audit_options import MinK
from peekbench_prompting.membership import Encoded, Wording, audit_membership, report


def min_k(tasks: Mapping[str, Dataset], *, options: MinK, context: Context) -> Analysis:
    """Compare the Min-K% scores of each task's texts with those of unseen texts.

    Parameters
    ----------
    tasks
        Datasets by task name.
    options
        Models, score and unseen texts.
    context
        Seed and folders.

    Raises
    ------
    DataError
        If a task has no texts or too few, or a model is unavailable.
    SpecError
        If the device does not exist, a model is not causal, or there is no task as named in `unseen`.
    """

    def score(model: LanguageModel, encoded: Encoded, limit: int) -> FloatArray:
        return score_min_k(model, encoded, limit, options)

    name = "Min-K%++" if options.score == "min_k_plus_plus" else "Min-K%"
    unit = "" if options.score == "min_k_plus_plus" else ", nats"
    wording = Wording(
        name="min_k",
        title=f"Are the least likely words of the texts more likely under {options.model} than those of unseen texts?",
        score=f"{name}{unit}",
        note=(
            f"{name}: mean over texts of the score of a text, the mean log probability of the {options.k:.0%} of its "
            "tokens that are least likely"
            + (", each standardized by its distribution under the model. " if unit == "" else ". ")
            + "Higher values mean that the model finds the texts more predictable. "
        ),
    )
    return report(audit_membership(tasks, options, context, score), options, wording)


def score_min_k(model: LanguageModel, encoded: Encoded, limit: int, options: MinK) -> FloatArray:
    """Return the mean score of the least likely tokens of each text, NaN if none is scored; shape `(n,)`.

    A text has no scored token if it is empty, or is a single token and the model has no token for the beginning.

    Parameters
    ----------
    model
        A causal model.
    encoded
        Token ids of each text, without special tokens.
    limit
        Number of tokens that the model reads at once; longer texts are cut.
    options
        Share of the tokens and kind of score.
    """
    first = model.tokenizer.bos_token_id
    prefix = [] if first is None else [first]
    ids = [[*prefix, *text][:limit] for text in encoded]
    scored = [text for text in ids if len(text) > 1]
    batch_size = max(1, options.batch_tokens // limit)
    standardized = options.score == "min_k_plus_plus"
    tokens = iter(score_tokens(model, scored, batch_size, model.precision, standardized=standardized))
    return np.array([lowest_mean(next(tokens), options.k) if len(text) > 1 else np.nan for text in ids])


def lowest_mean(values: FloatArray, share: float) -> float:
    """Return the mean of the lowest values, at least one.

    Parameters
    ----------
    values
        Scores of tokens; shape `(num_tokens,)`.
    share
        Fraction of the values that count.

    Examples
    --------
    >>> lowest_mean(np.array([-1.0, -5.0, -2.0, -3.0]), 0.5)
    -4.0
    """
    number = max(1, int(len(values) * share))
    return float(np.partition(values, number - 1)[:number].mean())
