"""Measure how often intervals for other texts cover the truth if texts of a group are alike. Print a table.

One task whose texts belong to groups of unequal sizes, such as the texts of an author. The difference between the arms
on a text is -1, 0 or 1, and its expectation is the bias plus an effect of the group, one of the text and one of the
subsample. Each data set has new groups. Compared are the intervals of `summary.texts` for draws of rows, which ignore
the groups; for draws of whole groups, with texts as units; and for draws of whole groups, with groups as units, as
peekbench computes them if the task has groups. In the last designs, all texts are tested by each fit, as with folds.

    python benchmarks/statistics/groups.py [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse

import numpy as np

from peekbench.data.sampling import deal_groups
from peekbench.records import FloatArray, IntArray
from peekbench_stats import cross_interval, cross_texts

BIAS = 0.01
DISCORDANT = 0.4
"""Probability that the two arms classify a text differently."""
DESIGNS = (
    (50, 10, 200, 5),
    (50, 10, 200, 20),
    (200, 10, 200, 20),
    (200, 3, 200, 20),
    (20, 50, 1000, 10),
    (100, 10, 1000, 10),
)
"""Groups, texts of a group on average, test texts and subsamples."""
SDS = (0.0, 0.1, 0.2)
"""Standard deviations of the effects of groups."""
TEXT_SD, SUBSAMPLE_SD = 0.1, 0.02
LEVEL = 0.95


def draw_rows(groups: IntArray, num_test: int, subsamples: int, *, whole: bool, rng: np.random.Generator) -> IntArray:
    """Return the rows of the test sets, of whole groups or not: (subsamples, num_test)."""
    drawn = []
    for _ in range(subsamples):
        order = rng.permutation(len(groups))
        if whole:
            order = order[np.argsort(rng.permutation(groups.max() + 1)[groups[order]], kind="stable")]
            (order,), _ = deal_groups(order, groups[order], 1, num_test)
        drawn.append(order[:num_test])
    return np.array(drawn)


def simulate(rows: IntArray, effects: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the differences of all test texts, like rows."""
    expected = BIAS + effects[rows] + SUBSAMPLE_SD * rng.standard_normal((len(rows), 1))
    is_discordant = rng.random(rows.shape) < DISCORDANT
    is_up = rng.random(rows.shape) < (1 + expected / DISCORDANT) / 2
    return np.where(is_discordant, np.where(is_up, 1.0, -1.0), 0.0)


def main() -> None:
    """Print a row for each design and each standard deviation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    error = 100 * (LEVEL * (1 - LEVEL) / arguments.repeats) ** 0.5
    print(f"Coverage of {LEVEL:.0%} intervals; standard error {error:.1f} points.\n")
    print(
        "| groups | texts | n | subsamples | sd of groups | rows | groups, texts as units | groups | mean half-widths |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for number, (num_groups, size, num_test, subsamples) in enumerate(DESIGNS):
        for sd in SDS:
            rng = np.random.default_rng([arguments.seed, number, round(100 * sd)])
            covered, widths = np.zeros((2, 3, arguments.repeats))
            for repeat in range(arguments.repeats):
                shares = rng.dirichlet(np.full(num_groups, 2.0))
                groups = np.sort(
                    np.concatenate([np.arange(num_groups), rng.choice(num_groups, num_groups * (size - 1), p=shares)])
                )
                effects = sd * rng.choice([-1.0, 1.0], num_groups)[groups] + TEXT_SD * rng.choice(
                    [-1.0, 1.0], len(groups)
                )
                for way, (whole, is_unit) in enumerate(((False, False), (True, False), (True, True))):
                    rows = draw_rows(groups, num_test, subsamples, whole=whole, rng=rng)
                    units = groups[rows] if is_unit else None
                    interval = cross_interval([cross_texts(simulate(rows, effects, rng), rows, units)], LEVEL)
                    assert interval is not None
                    covered[way, repeat] = interval.low <= BIAS <= interval.high
                    widths[way, repeat] = (interval.high - interval.low) / 2
            cells = [f"{share:.1%}" for share in covered.mean(axis=1)]
            cells.append("/".join(f"{100 * width:.2f}" for width in widths.mean(axis=1)))
            place = f"{num_groups} | {num_groups * size} | {num_test} | {subsamples} | {sd:g}"
            print(f"| {place} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
