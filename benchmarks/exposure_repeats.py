"""Repeats of the audits of exposure on scores of texts; a part of exposure.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from peekbench.records import FloatArray, IntArray
from peekbench_exposure.comparison import Groups, compare_scores
from peekbench_exposure.findings import EXPOSED, NO_EXPOSURE, decide
from peekbench_exposure.text_shift import shift_p_values
from peekbench_overlap.judge import p_compared, p_expected
from peekbench_prompting.exchangeability import OrderScores, compare_orders

LEVELS = (0.01, 0.05)
"""Significance levels; the first is the default of the audits."""
NUM_TEXTS, NUM_DRAWN_SHARDS, NUM_ORDERS = 150, 15, 10
MIN_SHARE, CLEAN_SHARE = 0.7, 0.1
GROUPS = Groups(NUM_TEXTS, NUM_TEXTS)
AUDITED, UNSEEN, SHIFTED = 0, 1, 2  # parts of pools


Findings: TypeAlias = dict[tuple[str, float], str]
"""Findings by audit and significance level."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Texts and their scores; arrays have the shape `(n,)`."""

    part: IntArray
    num_tokens: FloatArray
    scores: Mapping[str, FloatArray]
    in_corpus: FloatArray
    """Share of the n-grams of each text that only this text has and that are in the training texts."""
    in_other_texts: FloatArray
    """Share of the n-grams of each text that other texts of the pool have, too."""


@dataclass(frozen=True, slots=True)
class Orders:
    """Scores of the orders of shards, the published order first; shape `(num_shards, 1 + num_orders)`."""

    likelihoods: OrderScores
    words: OrderScores
    """Similarity of neighboring texts."""


def audit_texts(pool: Pool, matrices: Mapping[str, FloatArray], audited: IntArray, unseen: IntArray) -> Findings:
    """Return the findings of all audits of some texts of a pool."""
    rows = np.concatenate([audited, unseen])
    length = np.log1p(pool.num_tokens[rows])
    p_values = {}
    for name, values in pool.scores.items():
        chosen = values[rows]
        scores = (chosen < 0).astype(np.float64) if name == "codec" else chosen
        p_values[name] = compare_scores(scores, [length], GROUPS).p
    shares = [group[~np.isnan(group)] for group in (pool.in_corpus[audited], pool.in_corpus[unseen])]
    found = [int((group >= MIN_SHARE).sum()) for group in shares]
    p_values["overlap"] = p_compared(found[0], len(shares[0]), found[1], len(shares[1]))
    similarities = {name: matrix[np.ix_(rows, rows)] for name, matrix in matrices.items()}
    shift = shift_p_values(similarities, {"length": length}, GROUPS)
    expected = max(CLEAN_SHARE, float((pool.in_other_texts[audited] >= MIN_SHARE).mean()))
    findings = {}
    for level in LEVELS:
        for name, p in p_values.items():
            findings[name, level] = decide(p, shift, level)
            findings[f"{name}, unchecked", level] = decide(p, {}, level)
        findings["overlap, no unseen texts", level] = decide(p_expected(found[0], len(shares[0]), expected), {}, level)
    return findings


def audit_orders(orders: Orders, generator: np.random.Generator, *, random_order: bool) -> Findings:
    """Return the finding of the audit of exchangeability for some shards."""
    shards = generator.permutation(len(orders.likelihoods))[:NUM_DRAWN_SHARDS]
    columns = np.tile(np.arange(1 + NUM_ORDERS), (NUM_DRAWN_SHARDS, 1))
    if random_order:
        drawn = [generator.permutation(orders.likelihoods.shape[1] - 1)[: 1 + NUM_ORDERS] for _ in shards]
        columns = 1 + np.array(drawn)
    chosen = [scores[shards[:, None], columns] for scores in (orders.likelihoods, orders.words)]
    model, words = (compare_orders(scores, [int(generator.integers(2**31))]) for scores in chosen)
    shift = {"order": 2 * words.p_exact}
    findings = {}
    for level in LEVELS:
        # An order that is not random only makes a model prefer it more, so it does not hide exposure.
        is_preferred = model.p_exact <= level
        findings["exchangeability", level] = decide(model.p_exact, shift if is_preferred else {}, level)
        findings["exchangeability, unchecked", level] = decide(model.p_exact, {}, level)
    return findings


Similarities: TypeAlias = Mapping[str, Mapping[str, FloatArray]]
"""Similarities of the texts of each pool, by unit; shape `(n, n)`."""
Draw: TypeAlias = Callable[[Pool, np.random.Generator], tuple[IntArray, IntArray]]


def draw_parts(audited: int, unseen: int) -> Draw:
    """Draw audited and unseen texts from different parts."""

    def draw(pool: Pool, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
        first, second = (generator.permutation(np.flatnonzero(pool.part == part)) for part in (audited, unseen))
        return first[:NUM_TEXTS], second[:NUM_TEXTS]

    return draw


def draw_mixed(share: float) -> Draw:
    """Draw unseen texts of which a share is shifted."""

    def draw(pool: Pool, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
        groups = [generator.permutation(np.flatnonzero(pool.part == part)) for part in (AUDITED, UNSEEN, SHIFTED)]
        num_shifted = round(share * NUM_TEXTS)
        return groups[AUDITED][:NUM_TEXTS], np.concatenate(
            [groups[SHIFTED][:num_shifted], groups[UNSEEN][: NUM_TEXTS - num_shifted]]
        )

    return draw


def draw_clean(pool: Pool, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw both groups from the same unseen texts."""
    rows = generator.permutation(np.flatnonzero(pool.part <= UNSEEN))
    return rows[:NUM_TEXTS], rows[NUM_TEXTS : 2 * NUM_TEXTS]


def draw_by_length(strength: float) -> Draw:
    """Draw audited texts that are longer, or shorter if the strength is negative."""

    def draw(pool: Pool, generator: np.random.Generator) -> tuple[IntArray, IntArray]:
        rows = np.flatnonzero(pool.part <= UNSEEN)
        ranks = np.argsort(np.argsort(pool.num_tokens[rows] + generator.random(len(rows)))) / len(rows)
        keys = strength * ranks + generator.random(len(rows))
        order = rows[np.argsort(-keys)]
        return order[:NUM_TEXTS], order[-NUM_TEXTS:]

    return draw


SCENARIOS: Mapping[str, tuple[str, Draw]] = {
    "clean": ("dose 0", draw_clean),
    "dose 1": ("dose 1", draw_parts(AUDITED, UNSEEN)),
    "dose 3": ("dose 3", draw_parts(AUDITED, UNSEEN)),
    "dose 10": ("dose 10", draw_parts(AUDITED, UNSEEN)),
    "dose 30": ("dose 30", draw_parts(AUDITED, UNSEEN)),
    "audited numpy, unseen pandas": ("shifted", draw_parts(AUDITED, SHIFTED)),
    "audited pandas, unseen numpy": ("shifted", draw_parts(SHIFTED, AUDITED)),
    "unseen 10% pandas": ("shifted", draw_mixed(0.1)),
    "unseen 25% pandas": ("shifted", draw_mixed(0.25)),
    "unseen 50% pandas": ("shifted", draw_mixed(0.5)),
    "audited longer": ("dose 0", draw_by_length(2)),
    "audited shorter": ("dose 0", draw_by_length(-2)),
    "audited slightly longer": ("dose 0", draw_by_length(0.5)),
    "audited slightly shorter": ("dose 0", draw_by_length(-0.5)),
}


SORTED = "sorted"
"""Scenario in which the texts have the order of their files."""


def repeat(
    pools: Mapping[str, Pool], similarities: Similarities, orders: Mapping[str, Orders], repeats: int
) -> Iterator[tuple[str, dict[tuple[str, float], Counter[str]]]]:
    """Yield the findings of all audits in each scenario."""
    for number, scenario in enumerate([*SCENARIOS, SORTED]):
        findings: dict[tuple[str, float], Counter[str]] = {}
        of_orders = "dose 0" if scenario == "clean" else scenario
        for seed in range(repeats):
            generator = np.random.default_rng([number, seed])
            result: Findings = {}
            if scenario in SCENARIOS:
                pool, draw = SCENARIOS[scenario]
                result |= audit_texts(pools[pool], similarities[pool], *draw(pools[pool], generator))
            if of_orders in orders:
                result |= audit_orders(orders[of_orders], generator, random_order=scenario == "clean")
            for audit, finding in result.items():
                findings.setdefault(audit, Counter())[finding.split(":")[0]] += 1
        yield scenario, findings


def print_table(
    pools: Mapping[str, Pool], similarities: Similarities, orders: Mapping[str, Orders], repeats: int
) -> None:
    """Print the share of repeats in which each audit finds exposure, and is inconclusive."""
    for scenario, findings in repeat(pools, similarities, orders, repeats):
        for (audit, level), counts in sorted(findings.items()):
            num_open = repeats - counts[EXPOSED] - counts[NO_EXPOSURE]
            shares = f"exposed {counts[EXPOSED] / repeats:6.1%}, inconclusive {num_open / repeats:6.1%}"
            print(f"{scenario:<28} {audit:<28} level {level:.2f}: {shares}", flush=True)
