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

The last tables show the coverage of the first interval, and the power of verdicts relative to the t test if the biases
of two tasks are -5.2 and +0.8 points.

    python benchmarks/statistics/verdicts.py [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from simulated_trials import ALPHA, REGION, UNPLANNED, Draw, Method, advice_on, judge, share

from peekbench.records import FloatArray, Looks
from peekbench_summary.families import judge_family

STEP = 1 / 200
MAX_LOOKS, MAX_SUBSAMPLES = 6, 2000
METHODS = (1, 5, 20)


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


def of_size(deviation: float) -> Draw:
    """Return the draw of normal noise with a standard deviation."""
    return lambda rng, tasks, size: rng.normal(0, deviation, (tasks, size))


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


def print_coverage(repeats: int, rng: np.random.Generator) -> None:
    """Print how often the interval of a first report covers, of a run or a table."""
    print("\n| noise | tasks x subsamples | covers |\n|---|---|---|")
    for noise, draw in NOISE.items():
        for tasks, size in ((1, 8), (1, 20), (5, 10), (5, 20), (5, 100)):
            hits = []
            for _ in range(repeats):
                method = Method(draw, np.full(tasks, 0.02), STEP)
                method.extend(rng, size)
                estimate = method.bias(UNPLANNED).estimate(ALPHA)
                hits.append(estimate.low <= 0.02 <= estimate.high)
            print(f"| {noise} | {tasks} x {size} | {share(hits)} |", flush=True)


def print_power(repeats: int, rng: np.random.Generator) -> None:
    """Print the power if tasks differ, relative to that of the t test."""
    print("\n| noise, points | subsamples | t test | verdict | ratio |\n|---|---|---|---|---|")
    for noise in (2.0, 4.0, 8.0):
        for size in (6, 10, 20):
            by_t, judged = [], []
            for _ in range(repeats):
                method = Method(of_size(noise / 100), np.array([-0.052, 0.008]), STEP)
                method.extend(rng, size)
                bias = method.bias(UNPLANNED)
                by_t.append(bias.estimate(ALPHA).p_zero <= bias.levels.now(ALPHA))
                ((verdict, _),) = judge_family([bias], 1 - ALPHA)
                judged.append(verdict.decision == "biased down")
            ratio = np.mean(judged) / np.mean(by_t)
            print(f"| {noise:g} | {size} | {share(by_t)} | {share(judged)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = np.random.default_rng(arguments.seed)
    for table in (print_wrong, print_rare, print_coverage, print_power):
        table(arguments.repeats, generator)
