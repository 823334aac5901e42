"""`summary.selection`: how much the best of several scores is inflated because it was chosen by this score."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from scipy.stats import t as student_t

from peekbench import Analysis, Column, Table
from peekbench.errors import SpecError
from peekbench.formatting import pluralize
from peekbench.records import Answers, BoolArray, Cell, FloatArray, IntArray, Predictions, Unit
from peekbench.results import has_independent_tasks, plain_cell, score_units
from peekbench_stats import independent_units
from peekbench_summary import Selection
from peekbench_summary.estimates import MeanEstimate, estimate_these_tasks
from peekbench_summary.text_noise import are_texts_fixed

NUM_SPLITS = 200  # of the texts of a subsample; each half is used once to choose and once to score
NUM_GROUPS = 10  # of texts, each of which is left out once
SEED = 0
DIGITS = 12  # scores that differ by less are equal except for rounding
NUM_COMPARED = (2, 3, 5, 10, 20, 50, 100, 200, 500)
SIZES = ("num_train", "num_test")
TOO_FEW = (
    "summary.selection did not run: a choice needs the scores of at least two configurations (methods or models; "
    "controls do not count) at the same sizes and in the same subsamples, numbered alike; add a method, or the scores "
    "and numbers that are missing"
)
ONE_SUBSAMPLE = (
    "summary.selection did not run: without the answers to single texts, it needs two or more subsamples of a task; "
    "add subsamples, or a table with one row for each text (column text)"
)
BY_TEXTS = (
    "The test texts of a subsample are split in halves {splits} times; each half chooses the best configuration, and "
    "the other half scores it. This is the luck of the test texts of a choice by half as many texts as a subsample "
    "has. For all texts, the inflation is about 0.71 times as large for equally good configurations, and smaller for "
    "others."
)
BY_SAME_TEXTS = (
    "All subsamples test the same texts, which are split in halves {splits} times; each half of a subsample chooses "
    "the best configuration, and the other half scores it in the other subsamples. This is the luck of the test texts "
    "and of the subsample (division, or training seed) of a choice by half of the texts. For all texts, the inflation "
    "is 0.71 to 1 times as large for equally good configurations, and smaller for others."
)
BY_SUBSAMPLES = (
    "Each subsample chooses the best configuration, and the other subsamples of the task score it. This is the luck of "
    "the test texts, and of training if subsamples differ in it. If subsamples are seeds on the same texts, it is the "
    "luck of the seeds only; rows of single texts (column text) show that of the texts."
)
NOTE = (
    "K configurations are a random choice of the {total}; scores are those of the arm {arm}. {method} {interval} Not "
    "included: configurations that were revised after looking at test scores."
)


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices among configurations, one for each row, and what they cost."""

    chosen: FloatArray
    """Scores by which configurations are chosen, shape (n_choices, n_configurations)."""
    inflation: FloatArray
    """The same scores minus those of other texts."""

    def inflation_of_best(self, num_compared: int) -> float:
        """Return the mean inflation of the best of a random subset of configurations, over all subsets and choices.

        The one with rank r of N is the best of a random subset of K with probability C(N - r, K - 1) / C(N, K), and
        configurations with equal scores are chosen with equal probabilities.
        """
        total = self.chosen.shape[1]
        rounded = self.chosen.round(DIGITS)
        num_better = total - rankdata(rounded, "max", axis=1).astype(np.int64)
        num_not_worse = total - rankdata(rounded, "min", axis=1).astype(np.int64) + 1
        num_subsets = math.comb(total, num_compared)
        is_among_first = np.array(
            [1 - math.comb(total - first, num_compared) / num_subsets for first in range(total + 1)]
        )
        is_best = (is_among_first[num_not_worse] - is_among_first[num_better]) / (num_not_worse - num_better)
        return float((is_best * self.inflation).sum(axis=1).mean())


@dataclass(frozen=True, slots=True)
class Comparison:
    """Configurations that are compared at the same sizes."""

    sizes: tuple[Cell, ...]
    """Sizes that distinguish it from other comparisons."""
    num_configurations: int
    choices: Mapping[str, Sequence[Choices]]
    """Choices in each subsample, by task."""
    num_texts: int | None
    """Mean number of texts by which a configuration is chosen; None if unknown."""
    way: str
    """How the inflation is estimated."""
    shared: Mapping[str, Sequence[int]]
    """Numbers of these subsamples by task if tasks share draws; otherwise nothing."""
    left_out: Mapping[str, Sequence[Sequence[Choices]]]
    """Choices in each subsample without each group of texts, by task; empty unless all subsamples test the same."""

    def estimate(self, num_compared: int, level: float) -> MeanEstimate:
        """Return the inflation of the best of K configurations, averaged over tasks."""
        tasks = [[sample.inflation_of_best(num_compared) for sample in samples] for samples in self.choices.values()]
        units = independent_units(tasks, [*self.shared.values()], shares_draws=bool(self.shared))
        estimate = estimate_these_tasks(units, level)
        if not self.left_out or not estimate.has_interval:
            return estimate
        variance = sum(map(partial(_jackknife, num_compared), self.left_out.values())) / len(tasks) ** 2
        degrees = min(map(len, self.left_out.values())) - 1
        half = float(student_t.ppf((1 + level) / 2, degrees)) * math.sqrt(variance)
        low, high = (estimate.mean - estimate.low, estimate.high - estimate.mean)
        return replace(estimate, low=estimate.mean - math.hypot(low, half), high=estimate.mean + math.hypot(high, half))


def _jackknife(num_compared: int, left_out: Sequence[Sequence[Choices]]) -> float:
    """Return the variance of the inflation over other texts, from estimates without each group of texts."""
    means = [np.mean([sample.inflation_of_best(num_compared) for sample in samples]) for samples in left_out]
    return float(np.var(means)) * (len(means) - 1)


def analyze_selection(results: pd.DataFrame, *, options: Selection, predictions: Predictions | None) -> Analysis:
    """Estimate the inflation of the score of the best configuration, because it was chosen by this score.

    Parameters
    ----------
    results
        The results table.
    options
        Level of the intervals, and arm whose scores are compared.
    predictions
        Answers to single texts.

    Returns
    -------
    Analysis
        A table over the number of configurations; a warning and no table if no configurations were tested
        on the same texts.

    Raises
    ------
    SpecError
        If the results lack the arm.
    """
    arm = _choose_arm(results, options.arm)
    rows = results[results["arm"] == arm]
    per_task = rows.groupby("task")[list(SIZES)].nunique(dropna=False).max()
    varying = [size for size in SIZES if per_task[size] > 1]
    groups = [rows] if not varying else [group for _, group in rows.groupby(varying, sort=True, dropna=False)]
    warnings: list[str] = []
    comparisons = [_compare(group, varying, arm, predictions, warnings) for group in groups]
    found = [comparison for comparison in comparisons if comparison is not None]
    if not found:
        return Analysis("selection", warnings=tuple(dict.fromkeys(warnings)))
    unit = score_units(rows).difference
    curves = [_estimate_curve(comparison, options.level) for comparison in found]
    return Analysis(
        "selection",
        tables=(_tabulate(found, curves, varying, arm, options.level, unit=unit),),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _choose_arm(results: pd.DataFrame, arm: str | None) -> str:
    present = [str(name) for name in results["arm"].unique()]
    if arm is None:
        return next((name for name in ("extra", "base") if name in present), present[0])
    if arm not in present:
        raise SpecError(
            f"analysis summary.selection, option arm: there are no scores of {arm!r}; choose one of "
            f"{', '.join(present)}"
        )
    return arm


def _compare(
    rows: pd.DataFrame, varying: Sequence[str], arm: str, predictions: Predictions | None, warnings: list[str]
) -> Comparison | None:
    """Let each subsample choose among the configurations; None and a warning if there is nothing to choose."""
    scores = rows.pivot(index=["task", "subsample"], columns=["method", "model"], values="score")
    complete = scores.dropna()
    if complete.shape[1] < 2 or complete.empty:
        warnings.append(TOO_FEW)
        return None
    if len(complete) < len(scores):
        lost = pluralize(len(scores) - len(complete), "subsample")
        warnings.append(f"summary.selection left out {lost} that not all configurations have; add their scores")
    is_kept = pd.MultiIndex.from_frame(rows[["task", "subsample"]]).isin(complete.index)
    rows = rows[is_kept]
    choices, num_texts = _choose_by_texts(rows, complete, arm, predictions), None
    way = BY_SUBSAMPLES
    by_task: dict[str, Sequence[Choices]]
    left_out: dict[str, Sequence[Sequence[Choices]]] = {}
    if choices is not None:
        num_texts = round(float(np.mean([of_task.num_texts for of_task in choices.values()])))
        by_task = {task: of_task.samples for task, of_task in choices.items()}
        left_out = {task: of_task.left_out for task, of_task in choices.items() if of_task.left_out}
        way = BY_SAME_TEXTS if left_out else BY_TEXTS
    else:
        by_task = _choose_by_subsamples(complete)
        if not by_task:
            warnings.append(ONE_SUBSAMPLE)
            return None
        if rows["num_test"].notna().all():
            num_texts = round(float(rows["num_test"].mean()))
    sizes = tuple(plain_cell(rows[size].iloc[0]) for size in varying)
    numbers = complete.reset_index().groupby("task", sort=False)["subsample"].agg(list)[list(by_task)]
    has_same = not all(has_independent_tasks(rows).values()) and numbers.explode().duplicated().any()
    shared = {str(task): row for task, row in numbers.items()} if has_same else {}
    return Comparison(sizes, complete.shape[1], by_task, num_texts, way, shared, left_out)


def _choose_by_subsamples(scores: pd.DataFrame) -> dict[str, Sequence[Choices]]:
    """Choose by each subsample and score by the others of its task.

    The mean over configurations is subtracted from the scores of a subsample. This removes its difficulty, which all
    configurations share, from the noise, and changes no mean over subsamples.
    """
    choices: dict[str, Sequence[Choices]] = {}
    for task, rows in scores.groupby(level="task", sort=False):
        relative = rows.to_numpy(dtype=np.float64)
        if (count := len(relative)) < 2:
            continue
        relative = relative - relative.mean(axis=1, keepdims=True)
        others = (relative.sum(axis=0) - relative) / (count - 1)
        choices[str(task)] = [Choices(relative[[number]], (relative - others)[[number]]) for number in range(count)]
    return choices


def _choose_by_texts(
    rows: pd.DataFrame, scores: pd.DataFrame, arm: str, predictions: Predictions | None
) -> dict[str, ChoicesByTexts] | None:
    """Choose by halves of the texts; None if not all answers are known."""
    if rows["num_test"].eq(1).fillna(False).all():  # each row is the answer to one text
        return {
            str(task): ChoicesByTexts.of([(of_task.to_numpy(dtype=np.float64).T, np.arange(len(of_task)))], [0])
            for task, of_task in scores.groupby(level="task", sort=False)
            if len(of_task) > 1
        } or None
    if predictions is None:
        return None
    choices: dict[str, ChoicesByTexts] = {}
    for task, of_task in rows.groupby("task", sort=False):
        answers = []
        for (method, model), of_method in of_task.groupby(["method", "model"], sort=False):
            num_train, num_test = (plain_cell(of_method[size].iloc[0]) for size in SIZES)
            assert isinstance(num_train, int | None)
            assert isinstance(num_test, int | None)
            answers.append(predictions.answers(str(task), str(method), num_train, num_test, (arm,), str(model)))
        known = [answer for answer in answers if answer is not None]
        if len(known) < len(answers):
            return None
        subsamples = scores.loc[[task]].index.get_level_values("subsample")
        shared = [_pair_texts(known, int(subsample), arm) for subsample in subsamples]
        if min(units.max(initial=0) for _, units in shared) < 1:
            return None
        are_same = all(map(are_texts_fixed, known)) and len({len(units) for _, units in shared}) == 1
        choices[str(task)] = ChoicesByTexts.of(shared, [*map(int, subsamples)], are_same=are_same)
    return choices


@dataclass(frozen=True, slots=True)
class ChoicesByTexts:
    """Choices by halves of the texts of one task."""

    samples: Sequence[Choices]
    """Choices in each subsample."""
    num_texts: float
    """Mean number of texts of a half."""
    left_out: Sequence[Sequence[Choices]] = ()
    """The same without each group of texts, if all subsamples test the same."""

    @classmethod
    def of(
        cls, paired: Sequence[tuple[FloatArray, IntArray]], subsamples: Sequence[int], *, are_same: bool = False
    ) -> ChoicesByTexts:
        """Choose in each subsample, from the scores of its texts and their units.

        If all subsamples test the same texts, a configuration is scored by the other subsamples, relative to the mean
        of all configurations, which removes what these subsamples are easier by.
        """
        num_texts = float(np.mean([len(units) // 2 for _, units in paired]))
        units = paired[0][1]
        num_groups = min(NUM_GROUPS, (int(units.max(initial=0)) + 1) // 2)
        if not are_same or num_groups < 2:
            samples = [
                _choose_by_halves(scores, scores, number, units)
                for (scores, units), number in zip(paired, subsamples, strict=True)
            ]
            return cls(samples, num_texts)
        own = np.stack([scores - scores.mean(axis=0) for scores, _ in paired])
        others = (own.sum(axis=0) - own) / (len(own) - 1)
        group = np.random.default_rng(SEED).permutation(int(units.max()) + 1)[units] % num_groups
        samples, *left_out = (
            [
                _choose_by_halves(scores, other, number, units, is_kept)
                for scores, other, number in zip(own, others, subsamples, strict=True)
            ]
            for is_kept in [np.full(len(units), True), *(group != number for number in range(num_groups))]
        )
        return cls(samples, num_texts, left_out)


def _pair_texts(answers: Sequence[Answers], subsample: int, arm: str) -> tuple[FloatArray, IntArray]:
    """Return the scores of the texts that all configurations answered, (n_configurations, n_texts), and their units.

    The units, (n_texts,), are the numbers from 0 of the texts or, if these have groups, of the groups.
    """
    places = [int(np.flatnonzero(answer.subsamples == subsample)[0]) for answer in answers]
    texts = [answer.rows[place] for answer, place in zip(answers, places, strict=True)]
    common = reduce(np.intersect1d, texts)
    scores = []
    units = np.arange(len(common))
    for answer, place, numbers in zip(answers, places, texts, strict=True):
        order = np.argsort(numbers, kind="stable")
        of_common = order[np.searchsorted(numbers[order], common)]
        scores.append(answer.scores[arm][place][of_common])
        if answer.groups is not None:
            units = np.unique(answer.groups[place][of_common], return_inverse=True)[1]
    return np.stack(scores), units


def _choose_by_halves(
    scores: FloatArray, others: FloatArray, subsample: int, units: IntArray, is_kept: BoolArray | None = None
) -> Choices:
    """Split units in halves; each half chooses by `scores`, and the other one scores by `others`.

    An odd unit is left out of each split, and so are texts that are not kept.
    """
    num_units = int(units.max()) + 1
    half = num_units // 2
    rng = np.random.default_rng([SEED, subsample])
    order = rng.permuted(np.tile(np.arange(num_units), (NUM_SPLITS, 1)), axis=1)
    is_chosen = np.zeros((2 * NUM_SPLITS, num_units))
    np.put_along_axis(is_chosen, np.concatenate([order[:, :half], order[:, half : 2 * half]]), 1.0, axis=1)
    is_in_half = is_chosen[:, units]
    if is_kept is not None:
        is_in_half = is_in_half * is_kept
    sizes = is_in_half.sum(axis=1, keepdims=True)
    chosen, scored = (is_in_half @ values.T / sizes for values in (scores, others))
    return Choices(chosen, chosen - np.roll(scored, NUM_SPLITS, axis=0))


def _estimate_curve(comparison: Comparison, level: float) -> dict[int, MeanEstimate]:
    total = comparison.num_configurations
    numbers = [number for number in NUM_COMPARED if number < total] + [total]
    return {number: comparison.estimate(number, level) for number in numbers}


def _tabulate(
    comparisons: Sequence[Comparison],
    curves: Sequence[Mapping[int, MeanEstimate]],
    varying: Sequence[str],
    arm: str,
    level: float,
    *,
    unit: Unit,
) -> Table:
    columns = (
        *(Column(size, "count") for size in varying),
        Column("K", "count"),
        Column("inflation", unit),
        Column("texts", "count"),
        Column("tasks", "count"),
        Column("subsamples", "count"),
    )
    rows = tuple(
        (
            *comparison.sizes,
            *(number, estimate.as_cell, comparison.num_texts),
            *(len(comparison.choices), sum(map(len, comparison.choices.values()))),
        )
        for comparison, curve in zip(comparisons, curves, strict=True)
        for number, estimate in curve.items()
    )
    ways = dict.fromkeys(comparison.way for comparison in comparisons)
    has_interval = all(estimate.has_interval for curve in curves for estimate in curve.values())
    interval = (
        f"{level:.0%} intervals are for other subsamples of the same data, averaged over tasks"
        f"{', and for other texts' if BY_SAME_TEXTS in ways else ''}."
        if has_interval
        else "There is no interval for single subsamples of a task, or for subsamples without variation."
    )
    totals = " or ".join(
        str(total) for total in dict.fromkeys(comparison.num_configurations for comparison in comparisons)
    )
    note = NOTE.format(total=totals, arm=arm, method=" ".join(ways).format(splits=NUM_SPLITS), interval=interval)
    title = "Winner's curse: inflation of the best score of K configurations"
    overview = (*varying, "K", "inflation", "texts", "tasks", "subsamples")
    return Table(title, columns, rows, note, overview=overview)
