"""Measure how often verdicts are wrong for users who follow the advice of reports. Print tables, assert nothing.

A user runs a spec with methods that have no bias, reads the report, and extends the run as it advises: by the
smallest number of additional subsamples that it names for an inconclusive method. This goes on until all verdicts are
settled, at most six times. Other users plan five looks. A run is wrong if any of its reports calls any method biased.
For 'equivalent', every method has a bias just outside the region. Noise:

- normal: standard deviation of 2 points;
- failures: 5% of the trials of either arm lose 10 points in addition, so the arms are exchangeable;
- skewed: the same for the arm test only, whose mean is shifted to keep a bias of zero. The arms are not exchangeable;
- differing tasks: the biases of tasks differ with a standard deviation of 3 points around an average of zero;
- rare failures: 2% of the trials of test lose 30 points, or 5% lose 20 or 30. In all others, the answers are equal, or
  5% differ by one answer. The user states no loss of failures, or one of 30 points (the option `failure_loss`). For
  'biased', all other trials gain what the failures lose on average, so there is no bias.

The last table is about the cost of settling a verdict: runs of one method, without rounding, are extended by the number
of subsamples that settles the verdict if the bias is near zero or outside the region. Printed are the average number of
subsamples per task until the verdict is settled, the shares of runs of which any report is wrong, the share whose
intervals all contain the bias, and the share of first advice after which the verdict is settled and right.

    python benchmarks/statistics/verdicts.py [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from simulated_trials import REGION, UNPLANNED, Draw, Method, advice_on, judge, share

from peekbench.records import FloatArray, Looks
from peekbench_summary.biased_rule import Conclusion
from peekbench_summary.forecast import settle

STEP = 1 / 200
MAX_LOOKS, MAX_SUBSAMPLES = 6, 2000
METHODS = (1, 5, 20)
EXTENDED = ((5, 10), (5, 20), (1, 20))
"""Tasks and first subsamples of runs of one method that are extended until their verdict is settled."""
SHARES_OF_REGION = (0.0, 0.25, 0.5, 0.75, 1.0)
MAX_EXTENSIONS, MAX_EXTENDED = 8, 50_000
MARGIN = 1e-9  # of a bias at the edge, which is outside


def normal(rng: np.random.Generator, tasks: int, size: int) -> FloatArray:
    """Draw normal noise."""
    return rng.normal(0, 0.02, (tasks, size))


def failures(rng: np.random.Generator, tasks: int, size: int) -> FloatArray:
    """Draw noise with failures of both arms."""
    return normal(rng, tasks, size) + 0.1 * (_fails(rng, tasks, size, 0.05) - _fails(rng, tasks, size, 0.05))


def skewed(rng: np.random.Generator, tasks: int, size: int) -> FloatArray:
    """Draw noise with failures of one arm and a mean of zero."""
    return normal(rng, tasks, size) - 0.1 * _fails(rng, tasks, size, 0.05) + 0.005


def _fails(rng: np.random.Generator, tasks: int, size: int, rate: float) -> FloatArray:
    return (rng.random((tasks, size)) < rate).astype("float64")


def rare(rate: float, loss: float, gain: float = 0.0) -> Draw:
    """Return the draw of failures of one arm, among trials of which 5% differ by one answer."""

    def draw(rng: np.random.Generator, tasks: int, size: int) -> FloatArray:
        others = STEP * (_fails(rng, tasks, size, 0.025) - _fails(rng, tasks, size, 0.025)) + gain
        return np.where(rng.random((tasks, size)) < rate, -loss, others)

    return draw


NOISE: dict[str, Draw] = {"normal": normal, "failures": failures, "skewed": skewed}


def follow_advice(methods: Sequence[Method], first: int, rng: np.random.Generator) -> list[set[str]]:
    """Extend a run as its reports advise, and return the decisions of each report."""
    decisions: list[set[str]] = []
    earlier: list[int] = []
    number = first
    while len(decisions) < MAX_LOOKS:
        for method in methods:
            method.extend(rng, number)
        judged = judge(methods, UNPLANNED, earlier)
        decisions.append({conclusion.decision for _, conclusion in judged})
        advised = [advice.subsamples for each in judged if (advice := advice_on(*each)) is not None]
        size = methods[0].trials.shape[1]
        if "inconclusive" not in decisions[-1] or size >= MAX_SUBSAMPLES:
            break
        earlier.append(methods[0].trials.size)
        number = min(min(advised, default=size), MAX_SUBSAMPLES - size)
    return decisions


def look_as_planned(methods: Sequence[Method], maximum: int, rng: np.random.Generator) -> list[set[str]]:
    """Run a design with five planned looks, and return the decisions at each."""
    decisions: list[set[str]] = []
    for look in range(1, 6):
        size = maximum * look // 5
        for method in methods:
            method.extend(rng, size - method.trials.shape[1])
        looks = Looks(True, "group_sequential", tuple(number / 5 for number in range(1, look + 1)), maximum)
        decisions.append({conclusion.decision for _, conclusion in judge(methods, looks)})
        if "inconclusive" not in decisions[-1]:
            break
    return decisions


def is_wrong(decisions: Sequence[set[str]], kind: str) -> bool:
    """Return whether any report of a run has a decision of a kind."""
    return any(decision.startswith(kind) for each in decisions for decision in each)


def print_wrong(repeats: int, rng: np.random.Generator) -> None:
    """Print how often runs are wrong."""
    print("| noise | tasks x first subsamples | methods | looks | wrong 'biased' | wrong 'equivalent' |")
    print("|---|---|---|---|---|---|")
    for noise, draw in {**NOISE, "differing tasks": normal}.items():
        for tasks, first in ((1, 20), (5, 10), (5, 20)):
            if noise == "differing tasks" and tasks == 1:
                continue
            for number in METHODS:
                for how, walk in (("advice", follow_advice), ("planned", look_as_planned)):
                    hits: dict[str, list[bool]] = {"biased": [], "equivalent": []}
                    for kind, bias in (("biased", 0.0), ("equivalent", 0.0051)):
                        for _ in range(max(200, repeats // number)):
                            spread = rng.normal(0, 0.03, tasks) if noise == "differing tasks" else np.zeros(tasks)
                            biases = spread - spread.mean() + bias
                            methods = [Method(draw, biases, STEP) for _ in range(number)]
                            size = first if how == "advice" else 5 * first
                            hits[kind].append(is_wrong(walk(methods, size, rng), kind))
                    cells = (noise, f"{tasks} x {first}", number, how, *map(share, hits.values()))
                    print("|", " | ".join(map(str, cells)), "|", flush=True)


def print_rare(repeats: int, rng: np.random.Generator) -> None:
    """Print how often rare failures are missed."""
    print("\n| failing trials | loss | tasks x first subsamples | stated loss | wrong 'equivalent' | wrong 'biased' |")
    print("|---|---|---|---|---|---|")
    for rate, losses in ((0.02, (0.3,)), (0.05, (0.2, 0.3))):  # a bias outside the region
        for loss in losses:
            balanced = rare(rate, loss, rate * loss / (1 - rate))
            for tasks, first in ((1, 10), (1, 20), (5, 4), (5, 20)):
                for stated in (None, 0.3):
                    region = replace(REGION, failure_loss=stated)
                    cells = []
                    for draw, kind in ((rare(rate, loss), "equivalent"), (balanced, "biased")):
                        methods = [Method(draw, np.zeros(tasks), STEP, region) for _ in range(repeats)]
                        cells.append(share([is_wrong(follow_advice([each], first, rng), kind) for each in methods]))
                    told = "none" if stated is None else f"{stated:.0%}"
                    print(f"| {rate:.0%} | {loss:.0%} | {tasks} x {first} | {told} | {' | '.join(cells)} |", flush=True)


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
        if conclusion.decision != "inconclusive" or len(walk.sizes) == MAX_EXTENSIONS:
            return walk
        settling = settle(measured, conclusion.alpha)
        if settling is None or settling.advice is None or walk.sizes[-1] + settling.advice.subsamples > MAX_EXTENDED:
            return walk
        earlier.append(method.trials.size)
        number = settling.advice.subsamples


def is_right(conclusion: Conclusion, fraction: float) -> bool:
    """Return whether a verdict is settled, and right for a bias that is a fraction of the region."""
    allowed = {0.0: ("equivalent",), 1.0: ("biased up",)}.get(fraction, ("equivalent", "biased up"))
    return conclusion.decision in allowed


def print_extensions(repeats: int, rng: np.random.Generator) -> None:
    """Print one row for each design and bias."""
    print("\n| noise | tasks x first subsamples | bias / region | subsamples until settled | unsettled | wrong |"
          " intervals cover | advice right |\n|" + "---|" * 8)  # fmt: skip
    for noise, draw in (("normal", normal), ("skewed", skewed)):
        for tasks, first in EXTENDED:
            for fraction in SHARES_OF_REGION:
                bias = fraction * (REGION.half_width + MARGIN)
                walks = [follow(draw, tasks, first, bias, rng) for _ in range(repeats)]
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = np.random.default_rng(arguments.seed)
    for table in (print_wrong, print_rare, print_extensions):
        table(arguments.repeats, generator)
