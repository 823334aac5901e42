"""The parts that the audits `min_k` and `codec` share: models, and the comparison of texts with unseen texts.

A score of membership says nothing by itself, because it depends on how easy a text is. Both audits therefore compare
the texts of a task with texts that the model cannot have seen, and test whether the two groups are comparable at all:
where they are not, even a method that knows no model tells them apart (Das, Zhang and Tramer 2024, arXiv 2406.16201).
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
from peekbench_lm.fit import acquire
from peekbench_lm.language_model import LanguageModel
from peekbench_lm.model_files import find_model
from peekbench_lm.provision import check_kind
from peekbench_prompting.audit_options import Membership

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
        is_scored = ~np.any([np.isnan(each.scores) for each in scores], axis=0)
        scored, num_unscored = _select(texts, is_scored), int((~is_scored).sum())
        _check_number(name, scored, is_compared, num_unscored)
        result = _compare(scored, *(each.select(is_scored) for each in scores), seed=context.seed)
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
        lease = acquire(find_model(model, revision, folders), device, "frozen")
        check_kind(model, lease.model.kind, "causal")
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
