"""Measure wrong verdicts and power if 20 methods are judged together. Assert nothing.

Data sets, for two models and two test sizes: five tasks and 20 subsamples of the published accuracies at m=100
(FOLDER/few_shot), drawn again for each method. Arms are swapped at random, so that no method has a bias; then one
method gets a bias of the size that a single method's t test detects with 80% power, and of 1.4 times that size.
Standard errors are in parentheses.

    python benchmarks/statistics/families.py FOLDER [--repeats 1000] [--methods 20] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from few_subsamples import ALPHA, REGION, Source, load_sources
from scipy.stats import norm

from peekbench_summary.biased_rule import Bias, Evidence, Levels, conclude
from peekbench_summary.families import count_biased_tasks

NUM_TASKS, NUM_SUBSAMPLES = 5, 20
DETECTED = float(norm.ppf(1 - ALPHA / 2) + norm.ppf(0.8))  # standard errors of a bias found with 80% power
SOURCES = ("bert, n=50", "bert, n=500", "gpt2, n=50", "gpt2, n=500")
SIZES = (1.0, 1.4)  # of the planted bias, relative to the detectable one


def share(flags: Sequence[bool]) -> str:
    """Return a share with its standard error."""
    mean = float(np.mean(flags))
    return f"{mean:.1%} ({np.sqrt(mean * (1 - mean) / len(flags)):.1%})"


def is_biased(evidence: Evidence, levels: Levels) -> bool:
    """Return whether the verdict is 'biased'."""
    return conclude(evidence, levels).decision.startswith("biased")


def measure(source: Source, num_methods: int, repeats: int, rng: np.random.Generator) -> list[str]:
    """Return the cells of a row."""
    alone = Levels(ALPHA, ALPHA)
    unadjusted, adjusted, tasks = [], [], []
    detected: dict[float, list[tuple[bool, bool]]] = {size: [] for size in SIZES}
    for _ in range(repeats):
        drawn = [source.draw(NUM_TASKS, NUM_SUBSAMPLES, 0.0, rng) for _ in range(num_methods)]
        nulls = [Bias(differences.tolist(), REGION, source.step) for differences in drawn]
        family = Evidence.of_family(nulls, ALPHA)
        levels = Levels.of_family(family, ALPHA)
        unadjusted.append(any(is_biased(each, alone) for each in family))
        adjusted.append(any(is_biased(each, levels) for each in family))
        tasks.append(any(map(any, count_biased_tasks(nulls, ALPHA))))
        error = np.sqrt((drawn[0].var(axis=1, ddof=1) / NUM_SUBSAMPLES).sum()) / NUM_TASKS
        for size in SIZES:
            planted = (drawn[0] + size * DETECTED * error).tolist()
            (evidence,) = Evidence.of_family([Bias(planted, REGION, source.step)], ALPHA)
            together = Levels.of_family([evidence, *family[1:]], ALPHA)
            detected[size].append((evidence.p_zero <= ALPHA, evidence.p_zero <= together.zero))
    powers = [share([pair[part] for pair in pairs]) for pairs in detected.values() for part in (0, 1)]
    return [share(unadjusted), share(adjusted), share(tasks), *powers]


def main() -> None:
    """Print a table with a row for each model and test size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--methods", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    powers = " | ".join(f"{name}, {size:g} x" for size in SIZES for name in ("power alone", "power in the family"))
    print(f"| source | any biased, unadjusted | any biased, adjusted | any single task | {powers} |")
    print("|---" * (4 + 2 * len(SIZES)) + "|")
    sources = load_sources(arguments.folder)
    for number, name in enumerate(SOURCES):
        rng = np.random.default_rng([arguments.seed, number])
        cells = measure(sources[name], arguments.methods, arguments.repeats, rng)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
