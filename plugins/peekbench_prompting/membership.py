"""The audits `min_k` and `codec`: whether a model has learned the texts of a task.

A score of membership says nothing by itself, because it depends on how easy a text is. Both audits therefore compare
the texts of a task with texts that the model cannot have seen, and test whether the two groups are comparable at all:
where they are not, even a method that knows no model tells them apart (Das, Zhang and Tramer 2024, arXiv 2406.16201).

Min-K% Prob is the score of Shi et al. (2023), https://arxiv.org/abs/2310.16789, and Min-K%++ that of Zhang et al.
(2024), https://arxiv.org/abs/2404.02936: a model finds the least likely words of texts that it has learned less
unlikely. CoDeC is that of Zawalski et al. (2025), https://arxiv.org/abs/2510.27055: a model that has not seen a data
set becomes more certain of a text after examples of it, and one that has learned the texts does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TypeAlias

import numpy as np
from scipy.stats import false_discovery_control

from peekbench import Analysis, Column, Context, DataError, Dataset, Folders, Table
from peekbench.records import BoolArray, Cell, FloatArray, Unit
from peekbench_exposure.comparison import NUM_PERMUTATIONS, Comparison, Groups, compare_scores
from peekbench_exposure.findings import SHIFT_LEVEL, decide, inconclusive
from peekbench_exposure.text_shift import shift_p_values, text_similarity
from peekbench_exposure.texts import ComparedTexts, choose_texts
from peekbench_lm.devices import choose_device, deterministic
from peekbench_lm.fit import language_models
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.likelihood import score_pairs, score_tokens
from peekbench_lm.model_files import find_model
from peekbench_lm.provision import check_requirement
from peekbench_prompting.audit_options import Codec, Membership, MinK

MIN_TEXTS = 10  # of each group

Encoded: TypeAlias = Sequence[Sequence[int]]
"""Token ids of each text, without special tokens."""
ScoreTexts: TypeAlias = Callable[[LanguageModel, Encoded, int], FloatArray]
"""Function of a model, of token ids of texts, and of the number of tokens that the model reads at once. It returns a
score of each text, which is higher if the model has seen the text, or NaN for a text without a token to score; shape
`(n,)`."""


@dataclass(frozen=True, slots=True)
class TextScores:
    """Scores of texts under one model."""

    scores: FloatArray
    """One score per text; shape `(n,)`."""
    num_tokens: FloatArray
    """Tokens per text before texts are cut; shape `(n,)`."""
    limit: int
    """Number of tokens that the model reads at once."""

    def select(self, is_chosen: BoolArray) -> TextScores:
        """Return the scores of some of the texts; shape of the argument `(n,)`."""
        return replace(self, scores=self.scores[is_chosen], num_tokens=self.num_tokens[is_chosen])


@dataclass(frozen=True, slots=True)
class Result:
    """Result of the audit for one task."""

    texts: ComparedTexts
    """Texts that have a score."""
    scores: TextScores
    """Scores of all these texts, audited and unseen, under the audited model."""
    comparison: Comparison | None = None
    """None without unseen texts."""
    shift: Mapping[str, float] = field(default_factory=dict)
    """P-values of tests whether the unseen texts differ, by respect."""
    num_unscored: int = 0
    """Number of texts, audited or unseen, that were left out because they have no token to score."""


def audit_membership(
    tasks: Mapping[str, Dataset], options: Membership, context: Context, score: ScoreTexts
) -> dict[str, Result]:
    """Score the texts of each task, and compare them with unseen texts.

    Parameters
    ----------
    tasks
        Datasets by task name.
    options
        Models, unseen texts and computation.
    context
        Seed and folders.
    score
        Computes the scores.

    Raises
    ------
    DataError
        If a task has no texts or too few, or a model is unavailable.
    SpecError
        If the device does not exist, a model is not causal, or there is no task as named in `unseen`.
    """
    chosen = choose_texts(tasks, options.unseen, options.unseen_split, options.max_texts, context.seed)
    is_compared = bool(options.unseen or options.unseen_split)
    for name, texts in chosen.items():
        _check_number(name, texts, is_compared)
    model = _score_tasks(options.model, options.revision, chosen, options, context.folders, score)
    reference: Mapping[str, TextScores] = {}
    if options.reference:
        reference = _score_tasks(options.reference, options.reference_revision, chosen, options, context.folders, score)
    results = {}
    for name, texts in chosen.items():
        scores = [model[name], *([reference[name]] if reference else [])]
        is_scored = ~np.any([np.isnan(of_model.scores) for of_model in scores], axis=0)
        scored, num_unscored = _select(texts, is_scored), int((~is_scored).sum())
        _check_number(name, scored, is_compared, num_unscored)
        result = _compare(scored, *(of_model.select(is_scored) for of_model in scores), seed=context.seed)
        results[name] = replace(result, num_unscored=num_unscored)
    return results


def _select(texts: ComparedTexts, is_chosen: BoolArray) -> ComparedTexts:
    number = len(texts.audited)
    audited, unseen = compress(texts.audited, is_chosen[:number]), compress(texts.unseen, is_chosen[number:])
    return replace(texts, audited=tuple(audited), unseen=tuple(unseen))


def _check_number(name: str, texts: ComparedTexts, is_compared: bool, num_unscored: int = 0) -> None:
    groups = [("texts", texts.audited)] + ([("unseen texts", texts.unseen)] if is_compared else [])
    for noun, group in groups:
        if len(group) < MIN_TEXTS:
            excluded = f" after {texts.num_common} that are in both groups are removed" if texts.num_common else ""
            excluded += f" (without {num_unscored} that have no token to score)" if num_unscored else ""
            raise DataError(f"task {name}: {len(group)} {noun}{excluded}, but the audit needs at least {MIN_TEXTS}")


def _score_tasks(
    model: str,
    revision: str,
    chosen: Mapping[str, ComparedTexts],
    options: Membership,
    folders: Folders,
    score: ScoreTexts,
) -> dict[str, TextScores]:
    """Compute the scores of all texts of all tasks under one model."""
    device = choose_device(options.device)
    with deterministic(device, options.threads):
        lease = language_models.acquire(find_model(model, revision, folders), device, "frozen")
        check_requirement(model, lease.model.kind, "causal")
        lease.model.precision = options.precision
        limit = lease.model.context_limit(options.context_length)
        results = {}
        for name, texts in chosen.items():
            encoded = lease.model.tokenizer(list(texts.pooled), add_special_tokens=False, verbose=False)["input_ids"]
            num_tokens = np.array([len(ids) for ids in encoded], dtype=np.float64)
            results[name] = TextScores(score(lease.model, encoded, limit), num_tokens, limit)
        return results


def _compare(texts: ComparedTexts, model: TextScores, reference: TextScores | None = None, *, seed: int) -> Result:
    if not texts.unseen:
        return Result(texts, model)
    groups = Groups(len(texts.audited), len(texts.unseen), seed)
    length = np.log1p(model.num_tokens)
    references = [] if reference is None else [reference.scores]
    comparison = compare_scores(model.scores, [length, *references], groups)
    similarities = {
        "words": text_similarity(texts.pooled, "word"),
        "style": text_similarity(texts.pooled, "char"),
    }
    values = {"length": length} | ({} if reference is None else {"difficulty": reference.scores})
    return Result(texts, model, comparison, shift_p_values(similarities, values, groups))


NOTHING_TO_COMPARE = inconclusive("no unseen texts to compare with")


@dataclass(frozen=True, slots=True)
class Wording:
    """What distinguishes the reports of the audits."""

    name: str
    """Name of the analysis."""
    title: str
    """Title of the table of findings."""
    score: str
    """Name of the score, for a column."""
    note: str
    """What the score is, in complete sentences."""
    unit: Unit = "number"
    """Unit of the score."""


def report(results: Mapping[str, Result], options: Membership, wording: Wording) -> Analysis:
    """Return one analysis of all tasks.

    Parameters
    ----------
    results
        Results by task name.
    options
        The audit's options.
    wording
        Name and meaning of the score.
    """
    compared = {name: result for name, result in results.items() if result.comparison is not None}
    p_values = [result.comparison.p for result in compared.values() if result.comparison is not None]
    adjusted = dict(zip(compared, map(float, false_discovery_control(p_values)), strict=True)) if compared else {}
    tables = [_finding_table(results, adjusted, options, wording)]
    if compared:
        tables.append(_shift_table(compared, options))
    return Analysis(wording.name, tuple(tables), warnings=_warnings(results, options))


def _finding_table(
    results: Mapping[str, Result], adjusted: Mapping[str, float], options: Membership, wording: Wording
) -> Table:
    columns = (
        Column("task"),
        Column("texts", "count"),
        Column("unseen texts", "count"),
        Column(f"{wording.score}: texts", wording.unit),
        Column(f"{wording.score}: unseen", wording.unit),
        Column("difference, adjusted", "difference" if wording.unit == "fraction" else "change"),
        Column("p", "p_value"),
        Column("p, adjusted", "p_value"),
        Column("finding"),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, result in results.items():
        audited, unseen = len(result.texts.audited), len(result.texts.unseen)
        means = [float(result.scores.scores[:audited].mean()), None]
        if result.comparison is None:
            rows.append((name, audited, unseen, *means, None, None, None, NOTHING_TO_COMPARE))
            continue
        means[1] = float(result.scores.scores[audited:].mean())
        finding = decide(adjusted[name], result.shift, 1 - options.level)
        compared = result.comparison
        rows.append((name, audited, unseen, *means, compared.adjusted, compared.p, adjusted[name], finding))
    note = (
        f"{wording.note}Difference, adjusted: texts minus unseen texts, after adjustment for the length of a text"
        f"{' and its score under the reference model' if options.reference else ''}. p: share of {NUM_PERMUTATIONS:,} "
        "random exchanges of texts with unseen texts that give a difference at least this large; one-sided. p, "
        "adjusted: for the number of these tasks (Benjamini and Hochberg). Exposed: the difference is larger than "
        "chance explains, and no test finds another difference between the groups. No exposure found: the difference "
        "is not larger, and no test finds another one; the model may still have seen the texts, too rarely to show. "
        "If the unseen texts were seen too, the audit finds nothing."
    )
    return Table(wording.title, columns, tuple(rows), note)


def _shift_table(results: Mapping[str, Result], options: Membership) -> Table:
    respects = list(dict.fromkeys(respect for result in results.values() for respect in result.shift))
    rows = tuple((name, *(result.shift.get(respect) for respect in respects)) for name, result in results.items())
    columns = (Column("task"), *(Column(f"p, {respect}", "p_value") for respect in respects))
    note = (
        "A small p-value means that the texts and the unseen texts differ, so that a model that has seen neither may "
        "find one group easier: in their words, their style (sequences of three characters; both by TF-IDF) or their "
        f"length{f', or in their difficulty for {options.reference}' if options.reference else ''}. If the "
        f"smallest p-value times the number of tests is at most {SHIFT_LEVEL:.1f}, the finding is inconclusive."
    )
    return Table("Are the texts and the unseen texts comparable?", columns, rows, note)


def _warnings(results: Mapping[str, Result], options: Membership) -> tuple[str, ...]:
    warnings = []
    if any(result.comparison is None for result in results.values()):
        warnings.append(
            "Without texts that the model cannot have seen, scores show only how easy the texts are. Name a task with "
            "such texts in `unseen`, or a split in `unseen_split`."
        )
    if common := {name: result.texts.num_common for name, result in results.items() if result.texts.num_common}:
        listed = ", ".join(f"{name} ({number})" for name, number in common.items())
        warnings.append(f"Some texts are also among the unseen texts and were left out: {listed}.")
    if unscored := {name: result.num_unscored for name, result in results.items() if result.num_unscored}:
        listed = ", ".join(f"{name} ({number})" for name, number in unscored.items())
        warnings.append(f"Some texts or unseen texts have no token to score and were left out: {listed}.")
    if cut := _long_tasks(results):
        warnings.append(f"More than half of the texts of {', '.join(cut)} are longer than the model reads at once.")
    return tuple(warnings)


def _long_tasks(results: Mapping[str, Result]) -> Sequence[str]:
    return [name for name, result in results.items() if (result.scores.num_tokens > result.scores.limit).mean() > 0.5]


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
