"""Measure where users end who do what their reports print, up to three times. Print a table.

Users run 5 methods (noise) in 4 designs (tasks, maximum number of subsamples, subsamples that the rows support) with 5
biases, 0 to 1 times the region. A run looks at a fifth of its maximum, two fifths and so on, and stops when settled.
Then the user does what the line `What next?` says: runs with the number of subsamples that it names, or reports the
interval. *Wrong*: biased without a bias, equivalent with one at the edge of the region, or of the wrong sign. In
parentheses are Monte Carlo standard errors.

    python benchmarks/statistics/replay.py [--repeats 2] [--seed 0]
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
from simulated_trials import Draw, Method, share
from verdicts import skewed

from peekbench.records import FloatArray, Looks, Verdict
from peekbench.records.report import Extension, Report
from peekbench.records.trials import RowLimit
from peekbench.report.facts.reports import limit_advice
from peekbench.report.render.advice import advise_next
from peekbench_summary.families import judge_family

NUM_LOOKS, MAX_ADVICE = 5, 3
NUM_TEST = 200
DESIGNS = ((1, 20, 60), (1, 50, 1000), (5, 20, 200), (5, 100, 400))
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def normal(spread: float) -> Draw:
    """Return the draw of normal noise."""

    def draw(rng: np.random.Generator, tasks: int, size: int) -> FloatArray:
        return rng.normal(0, spread, (tasks, size))

    return draw


METHODS: dict[str, Draw] = {
    "sd 0.3 points": normal(0.003),
    "sd 1 point": normal(0.01),
    "sd 2 points": normal(0.02),
    "sd 5 points": normal(0.05),
    "skewed": skewed,
}


def report(method: Method, size: int, first: int, fractions: list[float], rng: np.random.Generator) -> Verdict:
    """Run a method up to a number of subsamples, and return the verdict at this look."""
    method.extend(rng, size - method.trials.shape[1])
    fractions.append(size / first)
    looks = Looks(True, "group_sequential", tuple(fractions), first)
    ((verdict, _),) = judge_family([method.bias(looks)], 0.95)
    return replace(verdict, method="mine", parts=(("num_test", NUM_TEST),))


def replay(method: Method, first: int, supported: int, rng: np.random.Generator) -> tuple[str, str]:
    """Return how a user ends, and the decision of the last report."""
    fractions: list[float] = []
    sizes = [first * look // NUM_LOOKS for look in range(1, NUM_LOOKS + 1)]
    for _ in range(MAX_ADVICE + 1):
        for size in sizes:
            verdict = report(method, size, first, fractions, rng)
            if verdict.decision != "inconclusive":
                return "settled", verdict.decision
        verdict = limit_advice(verdict, {NUM_TEST: RowLimit(supported, "mine", NUM_TEST)})
        extension = Extension("peekbench run mine.yaml", of="run", num_subsamples=sizes[-1])
        printed = advise_next(Report("mine", "", verdicts=(verdict,), extension=extension), [verdict], [])
        if printed.short == "Report the interval":
            return "told", verdict.decision
        found = re.search(r"set num_subsamples to (\d+)", printed.details)
        assert found is not None, printed
        sizes = [int(found[1])]
    return "open", verdict.decision


def is_wrong(decision: str, fraction: float) -> bool:
    """Return whether a decision is wrong for a bias that is a fraction of the region."""
    wrong = {0.0: ("biased up", "biased down"), 1.0: ("equivalent", "biased down")}
    return decision in wrong.get(fraction, ("biased down",))


def main() -> None:
    """Print one row for each method, and one for all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    print("| method | settled | told that it cannot be | open | wrong |\n|---|---|---|---|---|")
    everyone: list[tuple[str, bool]] = []
    for name, draw in METHODS.items():
        ends: list[tuple[str, bool]] = []
        for (tasks, first, supported), fraction, _ in product(DESIGNS, SHARES, range(arguments.repeats)):
            method = Method(draw, np.full(tasks, 0.0), None)
            method.biases += fraction * (method.region.half_width + 1e-9)  # one at the edge is outside
            end, decision = replay(method, first, supported, rng)
            ends.append((end, is_wrong(decision, fraction)))
        everyone += ends
        print_row(name, ends)
    print_row(f"all {len(everyone):,}", everyone)


def print_row(name: str, ends: list[tuple[str, bool]]) -> None:
    """Print where users end."""
    counts = Counter(end for end, _ in ends)
    cells = [share([end == kind for end, _ in ends]) for kind in ("settled", "told", "open")]
    assert sum(counts.values()) == len(ends)
    print("|", " | ".join([name, *cells, share([wrong for _, wrong in ends])]), "|", flush=True)


if __name__ == "__main__":
    main()
