"""Measure what it costs to settle a verdict by extending a run as advised, and how often it is wrong. Print a table.

A user runs a spec, or analyzes a table, reads the report, and extends the run or the table, which then states its
earlier sizes, by the number of subsamples that settles the verdict if the bias is near zero or outside the region,
until the verdict is settled. Noise is normal with a standard deviation of 2 points, or skewed as in `verdicts.py`; the
region is 0.5 points. Printed are the average number of subsamples per task until the verdict is settled, the shares of
runs of which any report is wrong, the share whose intervals all contain the bias, and the share of first advice after
which the verdict is settled and right. In parentheses are Monte Carlo standard errors.

    python benchmarks/statistics/extensions.py [--repeats 2000] [--seed 0]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field

import numpy as np
from simulated_trials import REGION, UNPLANNED, Draw, Method, judge, share
from verdicts import normal, skewed

from peekbench_summary.biased_rule import Conclusion
from peekbench_summary.settling import settle

DESIGNS = ((5, 10), (5, 20), (1, 20))
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
MAX_LOOKS, MAX_SUBSAMPLES = 8, 50_000
MARGIN = 1e-9  # of a bias at the edge, which is outside


@dataclass
class Walk:
    """What happened to one run."""

    sizes: list[int] = field(default_factory=list)
    conclusions: list[Conclusion] = field(default_factory=list)

    def is_wrong(self, decision: str) -> bool:
        """Return whether any report has a decision."""
        return any(each.decision.startswith(decision) for each in self.conclusions)


def follow(draw: Draw, tasks: int, first: int, bias: float, rng: np.random.Generator) -> Walk:
    """Extend a run as its reports advise."""
    method, walk, number = Method(draw, np.full(tasks, bias), None), Walk(), first
    earlier: list[int] = []
    while True:
        method.extend(rng, number)
        ((measured, conclusion),) = judge([method], UNPLANNED, earlier)
        walk.sizes.append(method.trials.shape[1])
        walk.conclusions.append(conclusion)
        if conclusion.decision != "inconclusive" or len(walk.sizes) == MAX_LOOKS:
            return walk
        settling = settle(measured, conclusion.alpha)
        if settling is None or settling.advice is None or walk.sizes[-1] + settling.advice.subsamples > MAX_SUBSAMPLES:
            return walk
        earlier.append(method.trials.size)
        number = settling.advice.subsamples


def is_right(conclusion: Conclusion, fraction: float) -> bool:
    """Return whether a verdict is settled, and right for a bias that is a fraction of the region."""
    allowed = {0.0: ("equivalent",), 1.0: ("biased up",)}.get(fraction, ("equivalent", "biased up"))
    return conclusion.decision in allowed


def main() -> None:
    """Print one row for each design and bias."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print("| noise | tasks x first subsamples | bias / region | subsamples until settled | unsettled | wrong |"
          " intervals cover | advice right |\n|" + "---|" * 8)  # fmt: skip
    for noise, draw in (("normal", normal), ("skewed", skewed)):
        for tasks, first in DESIGNS:
            for fraction in SHARES:
                bias = fraction * (REGION.half_width + MARGIN)
                walks = [follow(draw, tasks, first, bias, rng) for _ in range(arguments.repeats)]
                sizes = np.array([walk.sizes[-1] for walk in walks])
                wrong = {0.0: "biased", 1.0: "equivalent"}.get(fraction, "biased down")
                extended = [walk for walk in walks if len(walk.sizes) > 1]
                covered = [
                    all(each.estimate.low <= bias <= each.estimate.high for each in walk.conclusions) for walk in walks
                ]
                cells = [
                    noise,
                    f"{tasks} x {first}",
                    f"{fraction:g}",
                    f"{sizes.mean():.0f} ({sizes.std() / np.sqrt(len(sizes)):.1f})",
                    share([walk.conclusions[-1].decision == "inconclusive" for walk in walks]),
                    share([walk.is_wrong(wrong) for walk in walks]),
                    share(covered),
                    share([is_right(walk.conclusions[1], fraction) for walk in extended]),
                ]
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
