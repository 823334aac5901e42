"""The audit `exchangeability`: whether a language model prefers the order in which texts were published.

A model that has seen the published file may prefer its order; see Oren et al. (2023), https://arxiv.org/abs/2310.17623.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from peekbench import Analysis, Context, DataError, Dataset, Folders
from peekbench_lm.devices import choose_device, deterministic
from peekbench_lm.fit import acquire
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import log_likelihoods
from peekbench_lm.model_files import find_model
from peekbench_prompting.audit_options import Exchangeability
from peekbench_prompting.findings import Finding, report
from peekbench_prompting.orders import (
    OrderScores,
    Preference,
    Shard,
    Similarity,
    compare_orders,
    label_similarity,
    make_shards,
    neighbor_scores,
    word_similarity,
)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one task that the audit uses, and their orders."""

    texts: Sequence[str]
    labels: Sequence[float]
    formatted: Sequence[str]
    """The rows as the model reads them."""
    shards: Sequence[Shard]
    seed: Sequence[int]

    def slice_of(self, shard: Shard) -> slice:
        """Return the positions of a shard's rows."""
        return slice(shard.first, shard.first + len(shard.orders[0]))


@dataclass(frozen=True, slots=True)
class ModelScores:
    """Scores of one model for all tasks."""

    scores: Mapping[str, OrderScores]
    """Log likelihoods of all orders, by task."""
    median_tokens: Mapping[str, float]
    """Median number of tokens per row, by task."""
    limit: int
    """Number of tokens that the model reads at once."""


def exchangeability(tasks: Mapping[str, Dataset], *, options: Exchangeability, context: Context) -> Analysis:
    """Compare log likelihoods of the published order of each task's texts with those of random orders.

    Source: Oren et al. (2023), https://arxiv.org/abs/2310.17623, "sharded likelihood comparison test".

    Parameters
    ----------
    tasks
        Datasets by task name.
    options
        Models, rows and computation.
    context
        Seed and folders.

    Raises
    ------
    DataError
        If a task has no texts or too few, the model is not causal, or the model is unavailable.
    SpecError
        If the device does not exist.
    """
    rows = {name: _select_rows(name, dataset, options, context.seed) for name, dataset in tasks.items()}
    device = choose_device(options.device)
    with deterministic(device, options.threads):
        model = _score_tasks(options.model, options.revision, rows, options, context.folders, device)
        reference: Mapping[str, OrderScores] = {}
        if options.reference:
            reference = _score_tasks(
                options.reference, options.reference_revision, rows, options, context.folders, device
            ).scores
    findings = {
        name: Finding(
            num_texts=len(task.texts),
            num_shards=len(task.shards),
            share_repeated=1 - len(set(task.formatted)) / len(task.formatted),
            median_tokens=model.median_tokens[name],
            model=compare_orders(model.scores[name], task.seed),
            reference=compare_orders(reference[name], task.seed) if reference else None,
            words=_compare_neighbors(task, word_similarity, task.texts),
            labels=_compare_neighbors(task, label_similarity, task.labels),
        )
        for name, task in rows.items()
    }
    return report(findings, options, model.limit)


def _compare_neighbors(
    rows: Rows, similarity: Callable[[Sequence[Any]], Similarity], values: Sequence[Any]
) -> Preference:
    """Test whether neighbors are more similar in the published order than in random orders."""
    similarities = [similarity(values[rows.slice_of(shard)]) for shard in rows.shards]
    return compare_orders(neighbor_scores(rows.shards, similarities), rows.seed)


def _select_rows(name: str, dataset: Dataset, options: Exchangeability, seed: int) -> Rows:
    """Return a task's first rows with random orders of each shard.

    Raises
    ------
    DataError
        If the inputs are not texts, or there are fewer than two per shard.
    """
    if not isinstance(dataset.inputs, Sequence):
        raise DataError(
            f"task {name}: its inputs are not texts, which a language model needs; remove the task from the spec"
        )
    number = min(len(dataset.inputs), options.max_texts)
    required = 2 * options.shards
    if number < required:
        raise DataError(
            f"task {name}: {number} texts, but {options.shards} shards of at least two texts need {required}; lower "
            f"`shards`{', or raise `max_texts`' if number < len(dataset.inputs) else ''}"
        )
    texts = [str(dataset.inputs[row]) for row in range(number)]
    first_labels = dataset.labels[:number]
    labels = list(first_labels) if isinstance(first_labels, Sequence) else first_labels.tolist()
    names = dataset.class_names
    formatted = [
        options.row.format(text=text, label=label, class_name=names[int(label)] if names else label)
        for text, label in zip(texts, labels, strict=True)
    ]
    task_seed = [seed, *name.encode()]
    shards = make_shards(number, options.shards, options.permutations, task_seed)
    return Rows(texts, labels, formatted, shards, task_seed)


def _score_tasks(
    model: str,
    revision: str,
    rows: Mapping[str, Rows],
    options: Exchangeability,
    folders: Folders,
    device: torch.device,
) -> ModelScores:
    """Compute log likelihoods of all orders of all tasks.

    Raises
    ------
    DataError
        If the model is unavailable or not causal.
    """
    lease = acquire(find_model(model, revision, folders), device, "frozen")
    if lease.model.kind != "causal":
        raise DataError(
            f"model {model}: it fills in masked tokens and assigns no likelihood to texts; choose a causal model"
        )
    lease.model.precision = options.precision
    limit = lease.model.context_limit(options.context_length)
    scores, median_tokens = {}, {}
    for name, task in rows.items():
        encoded = lease.model.tokenizer(list(task.formatted), add_special_tokens=False, verbose=False)["input_ids"]
        median_tokens[name] = float(sorted(map(len, encoded))[len(encoded) // 2])
        scores[name] = _score_orders(lease.model, encoded, task, options, limit)
    return ModelScores(scores, median_tokens, limit)


def _score_orders(
    model: LanguageModel, encoded: Sequence[Sequence[int]], rows: Rows, options: Exchangeability, limit: int
) -> OrderScores:
    """Return the log likelihoods of a task's orders.

    Rows are tokenized one at a time, so all orders of a shard contain exactly the same tokens. Orders that differ only
    in the positions of equal rows are computed once, so that rounding does not make them differ.
    """
    scores = []
    for shard in rows.shards:
        shard_rows = encoded[rows.slice_of(shard)]
        sequences = [tuple(token for row in order for token in shard_rows[row]) for order in shard.orders]
        distinct = list(dict.fromkeys(sequences))
        likelihoods = log_likelihoods(
            model, distinct, limit, options.stride or max(1, limit // 2), options.batch_tokens
        )
        likelihood_of = dict(zip(distinct, likelihoods, strict=True))
        scores.append([likelihood_of[sequence] for sequence in sequences])
    return np.array(scores)
