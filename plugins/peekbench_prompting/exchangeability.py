"""The audit `exchangeability`: whether a language model prefers the order in which texts were published.

A model that has seen the published file may prefer its order; see Oren et al. (2023), https://arxiv.org/abs/2310.17623.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, ttest_1samp

from peekbench import Analysis, Column, Context, DataError, Dataset, Folders, Table
from peekbench.records import Cell
from peekbench_exposure.findings import EXPOSED, NO_EXPOSURE, SHIFT_LEVEL, inconclusive
from peekbench_lm.devices import choose_device, deterministic
from peekbench_lm.fit import language_models
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import log_likelihoods
from peekbench_lm.model_files import find_model
from peekbench_lm.provision import check_requirement
from peekbench_prompting.audit_options import Exchangeability

Order: TypeAlias = NDArray[np.int64]
"""Row numbers within a shard; shape `(num_rows,)`."""
OrderScores: TypeAlias = NDArray[np.float64]
"""One row per shard, one column per order, the published order first; shape `(num_shards, 1 + num_permutations)`."""
Similarity: TypeAlias = NDArray[np.float64]
"""Similarity of every pair of rows; shape `(num_rows, num_rows)`."""

NUM_DRAWS = 9_999  # of the exact test, so its p-value is a multiple of 1 / 10,000
TOLERANCE = 1e-9  # relative difference below which two sums count as equal


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of neighboring rows, which are shuffled among themselves."""

    first: int
    """Position of the shard's first row in the task."""
    orders: tuple[Order, ...]
    """Orders of the shard's rows; the published order first."""


def make_shards(num_rows: int, num_shards: int, num_permutations: int, seed: Sequence[int]) -> list[Shard]:
    """Cut rows into shards and draw random orders of each, with replacement.

    Parameters
    ----------
    num_rows
        Number of rows of the task.
    num_shards
        Number of shards; their sizes differ by at most one row.
    num_permutations
        Random orders per shard.
    seed
        Seed of the orders.
    """
    shards = []
    for number, rows in enumerate(np.array_split(np.arange(num_rows), num_shards)):
        generator = np.random.default_rng([*seed, number])
        drawn = (generator.permutation(len(rows)) for _ in range(num_permutations))
        shards.append(Shard(int(rows[0]), (np.arange(len(rows)), *drawn)))
    return shards


@dataclass(frozen=True, slots=True)
class Preference:
    """Comparison of the scores of published orders with those of random orders."""

    difference: float
    """Score of the published order minus the mean score of random orders, averaged over shards."""
    p_t: float | None
    """P-value of the one-sided t test over shards; None if the difference is the same in all shards."""
    p_exact: float
    """Probability of a total at least this high if each shard's published order were one of its orders at random."""


def compare_orders(scores: OrderScores, seed: Sequence[int]) -> Preference:
    """Test whether published orders score higher than random ones.

    The t test is that of Oren et al. (2023), https://arxiv.org/abs/2310.17623. The exact test uses the same scores. If
    the rows of a shard are exchangeable, then each of the scores of its orders is equally likely to be that of the
    published order. Totals over shards, with one score drawn at random from each shard, therefore have the distribution
    of the total of the published orders. This holds for any distribution of the scores, even if it differs between
    shards.

    Parameters
    ----------
    scores
        Scores of all orders of each shard.
    seed
        Seed of the draws of the exact test.
    """
    differences = scores[:, 0] - scores[:, 1:].mean(axis=1)
    is_constant = bool(np.ptp(differences) <= TOLERANCE * np.abs(scores).max(initial=0))
    p_t = None if is_constant else float(ttest_1samp(differences, 0, alternative="greater").pvalue)
    generator = np.random.default_rng(seed)
    totals = np.zeros(NUM_DRAWS)
    for shard in scores:
        totals += shard[generator.integers(0, len(shard), NUM_DRAWS)]
    published = scores[:, 0].sum()
    num_as_high = int((totals >= published - TOLERANCE * max(1.0, abs(published))).sum())
    return Preference(float(differences.mean()), p_t, (1 + num_as_high) / (1 + NUM_DRAWS))


def neighbor_scores(shards: Sequence[Shard], similarities: Sequence[Similarity]) -> OrderScores:
    """Return the summed similarity of neighboring rows in each order.

    Parameters
    ----------
    shards
        Shards with their orders.
    similarities
        The similarity matrix of each shard's rows.
    """
    return np.array(
        [
            [math.fsum(similarity[order[:-1], order[1:]]) for order in shard.orders]
            for shard, similarity in zip(shards, similarities, strict=True)
        ]
    )


def word_similarity(texts: Sequence[str]) -> Similarity:
    """Return the Jaccard similarity of the words of every pair of texts."""
    words = [frozenset(text.lower().split()) for text in texts]
    pairs = ((len(first & second), len(first | second)) for first in words for second in words)
    return np.array([shared / total if total else 1.0 for shared, total in pairs]).reshape(len(texts), len(texts))


def label_similarity(labels: Sequence[float]) -> Similarity:
    """Return 1 for every pair of rows with the same label, and 0 for all other pairs."""
    values = np.asarray(labels)
    similarity: Similarity = np.equal.outer(values, values).astype(np.float64)
    return similarity


NOT_RANDOM = inconclusive("the order may not be random")
CERTAIN_LEVEL = 0.05  # significance level at which a warning says that an order is not random


@dataclass(frozen=True, slots=True)
class Finding:
    """Results of the audit for one task."""

    num_texts: int
    num_shards: int
    share_repeated: float
    """Fraction of rows that repeat an earlier row."""
    median_tokens: float
    """Median number of tokens per row."""
    model: Preference
    """Preference of the audited model for the published order."""
    reference: Preference | None
    """Preference of the reference model; None without one."""
    words: Preference
    """Whether neighboring texts share more words in the published order than in random orders."""
    labels: Preference
    """Whether neighboring texts share their label more often in the published order than in random orders."""

    def is_order_random(self, alpha: float) -> bool:
        """Return False if a model that has never seen the texts may prefer their published order.

        The tests of words and labels count as one (Bonferroni correction).

        Parameters
        ----------
        alpha
            Significance level.
        """
        if 2 * min(self.words.p_exact, self.labels.p_exact) <= alpha:
            return False
        return self.reference is None or self.reference.p_exact > alpha


def report(findings: Mapping[str, Finding], options: Exchangeability, limit: int) -> Analysis:
    """Return one analysis of all tasks.

    Parameters
    ----------
    findings
        Results by task name.
    options
        The audit's options.
    limit
        Number of tokens that the model reads at once.
    """
    alpha = 1 - options.level
    adjusted = false_discovery_control([finding.model.p_exact for finding in findings.values()])
    rows, orders = [], []
    for (name, finding), p in zip(findings.items(), map(float, adjusted), strict=True):
        suspicion = EXPOSED if finding.is_order_random(SHIFT_LEVEL) else NOT_RANDOM
        conclusion = NO_EXPOSURE if p > alpha else suspicion
        model, num_texts, num_shards = finding.model, finding.num_texts, finding.num_shards
        gain = model.difference * num_shards / num_texts
        rows.append((name, num_texts, num_shards, gain, model.p_t, model.p_exact, p, conclusion))
        orders.append(_order_cells(name, finding))
    warnings = _warnings(findings, limit)
    return Analysis(
        "exchangeability", (_preference_table(rows, options), _order_table(orders, options)), warnings=warnings
    )


def _order_cells(name: str, finding: Finding) -> tuple[Cell, ...]:
    reference = None if finding.reference is None else finding.reference.p_exact
    return (
        name,
        finding.median_tokens,
        finding.share_repeated,
        finding.words.p_exact,
        finding.labels.p_exact,
        reference,
    )


def _preference_table(rows: Sequence[tuple[Cell, ...]], options: Exchangeability) -> Table:
    columns = (
        Column("task"),
        Column("texts", "count"),
        Column("shards", "count"),
        Column("gain, nats per text", "number"),
        Column("p, t test", "p_value"),
        Column("p, exact", "p_value"),
        Column("p, adjusted", "p_value"),
        Column("finding"),
    )
    note = (
        "Gain: log likelihood of a shard's texts in the published order, minus the mean over "
        f"{options.permutations} random orders of the same texts, per text. A model that was trained on the published "
        "file may prefer its order. A model that was not has no such preference, provided that every order of the "
        "texts was equally likely to be published. p, t test: one-sided, over shards (Oren et al. 2023). p, exact: "
        "from the same scores, without assumptions about their distribution. p, adjusted: the exact p-value, adjusted "
        "for the number of these tasks (Benjamini and Hochberg). Exposed: the model prefers the published order. This "
        "is evidence about that order only. It does not say how often the model saw it, whether it saw the labels, or "
        "whether a score increased. No exposure found: the model may have seen the texts in another order, one at a "
        "time, or too rarely. The arms base, extra and test cannot show what a model saw in its original pretraining."
    )
    return Table(f"Does {options.model} prefer the order in which texts were published?", columns, tuple(rows), note)


def _order_table(rows: Sequence[tuple[Cell, ...]], options: Exchangeability) -> Table:
    columns = (
        Column("task"),
        Column("tokens per text", "number"),
        Column("repeated", "fraction"),
        Column("p, words of neighbors", "p_value"),
        Column("p, labels of neighbors", "p_value"),
        Column(f"p, {options.reference or 'reference'}", "p_value"),
    )
    note = (
        "A small p-value means that the published order is not random: neighboring texts share more words or labels "
        "than in random orders of the same shards, or the reference model prefers the published order too. A model "
        "that has never seen the texts may then prefer their order. If a p-value is at most "
        f"{SHIFT_LEVEL:.1f} (words and labels count as one test), a preference is inconclusive. Large p-values do not "
        "prove that the order is random. Tokens per text: the median. Repeated: fraction of texts that repeat an "
        "earlier text; swapping equal texts changes nothing."
    )
    return Table("Is the published order of the texts random?", columns, tuple(rows), note)


def _warnings(findings: Mapping[str, Finding], limit: int) -> tuple[str, ...]:
    warnings = []
    if not_random := [name for name, finding in findings.items() if not finding.is_order_random(CERTAIN_LEVEL)]:
        warnings.append(
            f"The order of {', '.join(not_random)} is not random (p at most {CERTAIN_LEVEL:.2g}): a preference for "
            "this order does not show that the model has seen the texts."
        )
    if long := [name for name, finding in findings.items() if 2 * finding.median_tokens > limit]:
        warnings.append(
            f"The model reads {limit} tokens at once, less than two typical texts of {', '.join(long)}. It reads few "
            "texts together with the previous one, so the audit may miss a preference."
        )
    return tuple(warnings)


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
    first_labels: Any = dataset.labels[:number]
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
    DataError, SpecError
        If the model is unavailable or not causal.
    """
    lease = language_models.acquire(find_model(model, revision, folders), device, "frozen")
    check_requirement(model, lease.model.kind, "causal")
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
