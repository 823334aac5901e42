"""The audit `codec`: whether texts of the same data set as context make a model less certain of a text.

A model that has not seen a data set learns from examples in its context, and becomes more certain of the next text. A
model that has learned the texts does not, and examples may disturb what it remembers (Zawalski et al. 2025,
https://arxiv.org/abs/2510.27055, "contamination detection via context").
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from peekbench import Analysis, Context, DataError, Dataset
from peekbench.records import FloatArray
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import score_pairs
from peekbench_prompting.audit_options import Codec
from peekbench_prompting.membership import Encoded, Wording, audit_membership, report

SEPARATOR = "\n\n"  # between texts of a context


def codec(tasks: Mapping[str, Dataset], *, options: Codec, context: Context) -> Analysis:
    """Compare the share of each task's texts whose confidence falls with that of unseen texts.

    Parameters
    ----------
    tasks
        Datasets by task name.
    options
        Models, number of examples and unseen texts.
    context
        Seed and folders.

    Raises
    ------
    DataError
        If a task has no texts or too few for the examples, or a model is unavailable.
    SpecError
        If the device does not exist, a model is not causal, or there is no task as named in `unseen`.
    """

    def score(model: LanguageModel, encoded: Encoded, limit: int) -> FloatArray:
        gains = confidence_gains(model, encoded, limit, options, context.seed)
        return np.where(np.isnan(gains), np.nan, gains < 0)

    wording = Wording(
        name="codec",
        title=f"Do other texts as context make {options.model} less certain of a text?",
        score="confidence falls",
        unit="fraction",
        note=(
            "Confidence falls: share of texts whose mean log probability per token is lower after "
            f"{options.examples} random example{'s' if options.examples > 1 else ''} of the texts compared here. "
        ),
    )
    return report(audit_membership(tasks, options, context, score), options, wording)


def confidence_gains(model: LanguageModel, encoded: Encoded, limit: int, options: Codec, seed: int) -> FloatArray:
    """Return how much examples raise the mean log probability of the tokens of each text; shape `(n,)`.

    It is NaN for a text without tokens.

    The examples of a text are random other texts, whether audited or unseen. If audited and unseen texts are
    exchangeable, then so are their gains. Each text serves equally often as an example.

    Parameters
    ----------
    model
        A causal model.
    encoded
        Token ids of each text, without special tokens.
    limit
        Number of tokens that the model reads at once. A text may fill half of it; examples are cut at their start.
    options
        Number of examples, and computation.
    seed
        Seed of the choice of examples.

    Raises
    ------
    DataError
        If there are not more texts than examples, so that a text would be its own example.
    """
    if options.examples >= len(encoded):
        raise DataError(
            f"examples: {options.examples}, but a task has only {len(encoded)} texts and unseen texts together; set "
            f"`examples` to at most {len(encoded) - 1}"
        )
    first = model.tokenizer.bos_token_id
    prefix = [model.tokenizer.eos_token_id or 0] if first is None else [first]
    separator = model.tokenizer(SEPARATOR, add_special_tokens=False)["input_ids"]
    order = np.random.default_rng([seed, len(encoded)]).permutation(len(encoded))
    place = np.argsort(order)
    alone, after_examples = [], []
    for row, ids in enumerate(encoded):
        text = list(ids[: limit // 2]) or [prefix[0]]
        neighbors = (order[(place[row] + step) % len(order)] for step in range(1, options.examples + 1))
        examples = [token for neighbor in neighbors for token in (*encoded[neighbor], *separator)]
        alone.append((prefix, text))
        after_examples.append(([*prefix, *examples[-(limit - len(text) - len(prefix)) :]], text))
    batch_size = max(1, options.batch_tokens // limit)
    totals = [score_pairs(model, pairs, batch_size, model.precision) for pairs in (alone, after_examples)]
    gains: FloatArray = (totals[1] - totals[0]) / [len(text) for _, text in alone]
    gains[[not ids for ids in encoded]] = np.nan
    return gains
