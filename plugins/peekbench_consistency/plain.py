"""What is seen without much statistics: numbers of subsamples, odd counts, equal arms, scores of a guess."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import gcd
from typing import TYPE_CHECKING, Any

from peekbench.formatting import pluralize
from peekbench_consistency.findings import BLOCK, CONFIGURATION, Finding, Rows, cells_of, holm, listed, shown_p

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-6
FEWEST = 5  # trials from which it is worth a word that arms never differ


def unequal_numbers(rows: Rows) -> list[Finding]:
    """Blocks of one design point should have the same number of subsamples."""
    findings = []
    for key, group in rows.wide.groupby(["num_train", "num_test"], sort=False):
        counts = group.groupby(["method", "model", "task"], sort=False).size()
        usual = int(counts.mode().max())
        odd = counts[counts != usual]
        if len(odd):
            names = ("method", "model", "task")
            named = [f"{rows.place(**cells_of(block, names))} {count}" for block, count in odd.items()]
            findings.append(
                Finding(
                    "doubt",
                    "unequal numbers of subsamples",
                    rows.place(**cells_of(key, ("num_train", "num_test"))),
                    f"most have {usual}; {listed(named)}",
                    "finish the runs; tasks count alike in averages, but the shorter ones are less sure",
                )
            )
    return findings


def odd_counts(rows: Rows, results: pd.DataFrame, level: float) -> list[Finding]:
    """Accuracies should be whole numbers of texts out of n, and not of a divisor of n only.

    If counts were multiples of g by chance, each different one would be so with chance 1/g; Holm over configurations.
    """
    import numpy as np

    if not rows.is_accuracy:
        return []
    findings = []
    found: list[tuple[dict[str, Any], int, float]] = []
    for key, group in results.groupby(list(CONFIGURATION), sort=False, dropna=False):
        cells = cells_of(key, CONFIGURATION)
        exact = group["score"].to_numpy() * float(cells["num_test"])
        off = np.abs(exact - np.rint(exact)) > ROUNDING
        if off.any():
            findings.append(
                Finding(
                    "doubt",
                    "accuracies are no multiples of 1/n",
                    rows.place(**cells),
                    f"{off.sum()} of {len(off)} scores, the first {group['score'].to_numpy()[off][0]:g} with n="
                    f"{cells['num_test']}; {listed(list(group['task'][off].unique()))}",
                    "if they are rounded, give them in full or give num_correct; else num_test is not what they had",
                )
            )
        counts = set(np.rint(exact).astype(int).tolist())
        common = gcd(*counts)
        found.append((cells, common, min(1.0, float(max(common, 1)) ** -(len(counts) - 1.0)) if common > 1 else 1.0))
    for (cells, common, _), p in zip(found, holm([p for *_, p in found]), strict=True):
        if p <= level:
            findings.append(
                Finding(
                    "doubt",
                    "counts come in steps",
                    rows.place(**cells),
                    f"all are multiples of {common}, {shown_p(p)}",
                    f"n was perhaps {cells['num_test']} / {common}; check num_test",
                )
            )
    return findings


def equal_arms(rows: Rows, level: float) -> list[Finding]:
    """Arms that never differ in a configuration, or in one task where they do in others.

    In the second case the chance of it is r ** K, r the share of ties in the other tasks and K the task's trials; Holm
    over tasks, configurations and pairs of arms.
    """
    findings: list[Finding] = []
    suspects: list[tuple[dict[str, Any], tuple[str, str], int, float]] = []
    for key, group in rows.wide.groupby(list(CONFIGURATION), sort=False):
        equal = {pair: group[pair[0]] == group[pair[1]] for pair in combinations(_main_arms(rows), 2)}
        never = [pair for pair, ties in equal.items() if ties.all() and len(group) >= FEWEST]
        if never:
            findings.append(_never_differ(rows, cells_of(key, CONFIGURATION), never, len(group)))
        for pair, ties in equal.items():
            if pair in never:
                continue
            for task, tied in ties.groupby(group["task"], sort=False):
                others = ties[group["task"] != task]
                rate = (others.sum() + 1) / (len(others) + 2)
                p = float(rate ** len(tied)) if tied.all() else 1.0
                suspects.append((cells_of((*key, task)), pair, len(tied), p))
    for (cells, pair, size, _), p in zip(suspects, holm([p for *_, p in suspects]), strict=True):
        if p <= level:
            findings.append(
                Finding(
                    "fault",
                    f"{pair[0]} and {pair[1]} are the same in one task",
                    rows.place(**cells),
                    f"equal in all {size} trials, and not so in other tasks, {shown_p(p)}",
                    "one column is probably a copy of the other; read or run it again",
                )
            )
    return findings


def _main_arms(rows: Rows) -> list[str]:
    return [arm for arm in ("base", "extra", "test") if arm in rows.arms]


def _never_differ(rows: Rows, cells: dict[str, Any], pairs: list[tuple[str, str]], trials: int) -> Finding:
    where, evidence = rows.place(**cells), f"equal in all {trials} trials"
    if len(pairs) > 1 or pairs == [("extra", "test")]:
        arms = "all arms" if len(pairs) > 1 else "extra and test"
        return Finding(
            "note",
            f"{arms} are the same",
            where,
            evidence,
            "right for a method that ignores whose texts it gets; else a column is a copy",
        )
    one, other = pairs[0]
    return Finding(
        "fault", f"{one} and {other} are the same", where, evidence, "one column is a copy of the other; run it again"
    )


def no_better_than_guessing(rows: Rows, majority: Mapping[str, float]) -> list[Finding]:
    """Tasks whose mean score of extra is not above the share of the commonest class."""
    if not rows.is_accuracy:
        return []
    wide = rows.wide.assign(majority=rows.wide["task"].map(majority).fillna(rows.wide["majority"]))
    means = wide.groupby(list(BLOCK), sort=False)[["extra", "majority"]].mean().reset_index()
    findings = []
    for key, group in means[means["extra"] <= means["majority"]].groupby(list(CONFIGURATION), sort=False):
        named = [f"{task} {extra:.0%} of {share:.0%}" for task, extra, share in
                 group.sort_values("extra")[["task", "extra", "majority"]].itertuples(index=False)]  # fmt: skip
        findings.append(
            Finding(
                "note",
                "no better than the commonest class",
                rows.place(**cells_of(key, CONFIGURATION)),
                f"{len(named)} of {pluralize(rows.wide['task'].nunique(), 'task')}: {listed(named)}",
                "accuracy shows little there; look at macro-F1 or log loss too",
            )
        )
    return findings
