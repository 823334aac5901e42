"""Checks of scores: numbers of subsamples, equal arms, and the majority class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import pandas as pd

from peekbench.formatting import pluralize
from peekbench_consistency.findings import (
    BLOCK,
    CONFIGURATION,
    Finding,
    WideTable,
    as_mapping,
    format_p,
    join_names,
)
from peekbench_stats import holm

EQUAL_BY_DESIGN: Mapping[str, Sequence[tuple[str, str]]] = {
    "": (),
    "negative": (("base", "extra"), ("base", "test"), ("extra", "test")),
    "positive": (("base", "extra"),),
}
"""Pairs of arms with the same scores, by kind of control."""
MIN_TRIALS = 5  # trials from which arms that never differ are reported
MIN_SUBSAMPLES = 2  # of a task, from which its noise is measured
MIN_JUDGED = 6  # independent trials of a configuration, from which sign flips can reject at the level of a first look


def find_few_subsamples(table: WideTable) -> list[Finding]:
    """Find configurations with too few trials for any verdict: one warning per configuration."""
    findings = []
    for key, group in table.rows.groupby(list(CONFIGURATION), sort=False):
        counts = group.groupby("task", sort=False).size()
        num_units, per_subsample = counts.sum(), len(counts)
        if not table.is_independent[str(key[0])] and group["subsample"].duplicated().any():
            num_units, per_subsample = group["subsample"].nunique(), 1  # which all tasks share
        needed = MIN_SUBSAMPLES
        if num_units < MIN_JUDGED:
            needed = max(needed, math.ceil(MIN_JUDGED / per_subsample))
        few = [f"{pluralize(count, 'subsample')} of {task}" for task, count in counts.items() if count < needed]
        if not few:
            continue
        findings.append(
            Finding(
                "warning",
                "too few subsamples for a verdict",
                table.locate(**as_mapping(key, CONFIGURATION)),
                join_names(few),
                f"add subsamples: each of these tasks needs at least {needed}",
            )
        )
    return findings


def find_equal_arms(table: WideTable, level: float) -> list[Finding]:
    """Find arms that never differ in a configuration, or in one task although they do in others.

    The p-value is r ** K for K trials. In a configuration, r is the share of ties between the other pairs of arms; in a
    task, between the same arms in the other tasks. Holm's adjustment over tasks, configurations and pairs of arms. Arms
    of controls that are equal by design are left out, and so are tasks in which all arms are equal, because the method
    may predict a single class there.

    Parameters
    ----------
    table
        The results.
    level
        Level of the adjusted tests.

    Returns
    -------
    list of Finding
        Errors, or warnings and infos if the arms may be equal because the method ignores the origin of its texts.
    """
    findings: list[Finding] = []
    suspects: list[tuple[Finding, float]] = []
    arms: list[str] = [arm for arm in ("base", "extra", "test") if arm in table.arms]
    pairs = list(combinations(arms, 2))
    for (*key, control), blocks in _count_ties(table, pairs).groupby([*CONFIGURATION, "control"], sort=False):
        num_trials = int(blocks["trials"].sum())
        num_ties = {pair: int(blocks[pair].sum()) for pair in pairs if pair not in EQUAL_BY_DESIGN[str(control)]}
        identical = [pair for pair, ties in num_ties.items() if ties == num_trials >= MIN_TRIALS]
        location = table.locate(**as_mapping(key, CONFIGURATION))
        if len(identical) > 1 or identical == [("extra", "test")]:
            findings.append(_ignoring_finding(location, len(identical) > 1, num_trials))
        elif identical:
            others = [ties for pair, ties in num_ties.items() if pair not in identical]
            rate = (sum(others) + 1) / (num_trials * len(others) + 2)
            suspects.append((_copy_finding(location, identical[0], num_trials), float(rate**num_trials)))
        is_constant = blocks[pairs].eq(blocks["trials"], axis=0).all(axis=1) & (len(pairs) > 1)
        for pair in [pair for pair in num_ties if pair not in identical]:
            rows = zip(blocks["task"], blocks[pair], blocks["trials"], is_constant, strict=True)
            for task, ties, trials, all_equal in rows:
                rate = (num_ties[pair] - ties + 1) / (num_trials - trials + 2)
                p = float(rate**trials) if ties == trials and not all_equal else 1.0
                suspects.append((_task_finding(table.locate(**as_mapping((*key, task))), pair, int(trials)), p))
    for (finding, _), p in zip(suspects, holm([p for _, p in suspects]).tolist(), strict=True):
        if p <= level and "all" not in table.arms:  # fits to other folds of the same texts may well predict alike
            findings.append(replace(finding, evidence=f"{finding.evidence}, {format_p(p)}"))
    return findings


def find_constant_arms(table: WideTable, level: float) -> list[Finding]:
    """Find tasks in which one of extra and test has the same score in every trial, and the other does not.

    Its fit was probably repeated without a new draw, such as a fit to the only test set. The p-value is r ** (K - 1)
    for K trials, where r is the share of the most frequent score of the other arm. Holm's adjustment over tasks.
    Controls are left out, and so are scores of 0 and 1, which perfect or useless predictions have in every draw. So are
    folds: fits to other divisions of the same texts may well predict each text alike.

    Parameters
    ----------
    table
        The results.
    level
        Level of the adjusted tests.
    """
    suspects: list[tuple[Finding, float]] = []
    if not {"extra", "test"} <= set(table.arms) or "all" in table.arms:
        return []
    judged = table.rows[(table.rows["num_test"] != 1) & (table.rows["control"] == "")]
    for key, group in judged.groupby(list(BLOCK), sort=False):
        for arm, other in (("extra", "test"), ("test", "extra")):
            if len(group) < MIN_TRIALS or group[arm].nunique() > 1 or group[arm].iloc[0] in (0, 1):
                continue
            finding = Finding(
                "warning",
                f"the score of {arm} never changes",
                table.locate(**as_mapping(key, BLOCK)),
                f"equal in all {len(group)} trials, so these are probably not independent, and intervals too narrow",
                "draw train and test rows again for each subsample, and fit all arms to them",
            )
            rate = group[other].value_counts(normalize=True).iloc[0]
            suspects.append((finding, float(rate ** (len(group) - 1))))
    adjusted = holm([p for _, p in suspects]).tolist()
    return [finding for (finding, _), p in zip(suspects, adjusted, strict=True) if p <= level]


def _task_finding(location: str, pair: tuple[str, str], trials: int) -> Finding:
    return Finding(
        "error",
        f"{pair[0]} and {pair[1]} are identical in one task",
        location,
        f"equal in all {trials} trials, but not in other tasks",
        "one column is probably a copy of the other; read it or run it again",
    )


def _copy_finding(location: str, pair: tuple[str, str], trials: int) -> Finding:
    found = f"equal in all {trials} trials, but other arms are not"
    if set(pair) == {"base", "extra"}:  # as of a method that remembers the texts that it adapted to
        remedy = "correct if fits change the predictions of no other texts; otherwise one column is a copy of the other"
        return Finding("warning", "base and extra are identical", location, found, remedy)
    remedy = "one column is a copy of the other; run it again"
    return Finding("error", f"{pair[0]} and {pair[1]} are identical", location, found, remedy)


def _ignoring_finding(location: str, is_all: bool, trials: int) -> Finding:
    found = f"equal in all {trials} trials"
    remedy = "correct for a method that ignores the origin of its texts; otherwise one column is a copy of the other"
    if is_all:
        return Finding("info", "all arms are identical", location, found, remedy)
    return Finding("warning", "extra and test are identical", location, found, remedy)


def _count_ties(table: WideTable, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return for each block the number of trials, and for each pair of arms the number of those with equal scores."""
    counted = table.rows[[*BLOCK, "control"]].assign(trials=1)
    for first, second in pairs:
        counted[first, second] = table.rows[first] == table.rows[second]
    return counted.groupby([*BLOCK, "control"], sort=False).sum().reset_index()


def find_majority_guessing(table: WideTable) -> list[Finding]:
    """Find tasks in which the mean score of an arm is not above the share of the majority class.

    Parameters
    ----------
    table
        The results.

    Returns
    -------
    list of Finding
        One warning per configuration, without controls; empty if scores are not accuracies.
    """
    wide = table.rows[table.rows["control"] == ""]
    if not table.is_accuracy or wide.empty:
        return []
    arms = [arm for arm in ("base", "extra", "test") if arm in table.arms]
    means = wide.groupby(list(BLOCK), sort=False)[[*arms, "majority"]].mean().reset_index()
    means["lowest"] = means[arms].min(axis=1)
    findings = []
    for key, group in means[means["lowest"] <= means["majority"]].groupby(list(CONFIGURATION), sort=False):
        group = group.assign(arm=group[arms].idxmin(axis=1), gap=group["lowest"] - group["majority"])
        tasks = group.sort_values("gap")[["task", "arm", "lowest", "majority"]].itertuples(index=False)
        names = [f"{task} {arm} {score:.1%} of {share:.1%}" for task, arm, score, share in tasks]
        findings.append(
            Finding(
                "warning",
                "accuracy not above the majority class",
                table.locate(**as_mapping(key, CONFIGURATION)) or str(key[0]),
                f"{len(names)} of {pluralize(wide['task'].nunique(), 'task')}: {join_names(names)}",
                "the method may predict one class or set of labels, or train sets of classes are balanced, but test "
                "sets are not: compare macro-F1 and log loss",
            )
        )
    return findings
