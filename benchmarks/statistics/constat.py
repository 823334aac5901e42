"""Measure the error rate and the power of `constat` on simulated scores. Print three tables, assert nothing.

Models have an ability from 0.2 to 0.9, which gives their expected accuracy on both benchmarks. `same`: the same
accuracy; `shifted`: the reference benchmark is harder, in proportion 0.8 a^1.8; `s-curve`: its log-odds are
1.6 logit(a) - 0.8; `saturated`: the original benchmark approaches 97%. `scatter` is the standard deviation of models
around the curve. In the rows `families`, it comes from several families, and the tested model is of another; in
the rows `clusters`, the models of a family also have similar abilities. `named`: the analysis knows the families.
Numbers of correct answers are binomial. A model that is outside the range of the reference models is not judged. Rates
are those among judged models; power refers to all repeats.

Compared are the test of `constat` (up: biased up) and that of the paper, which takes models to be
exactly on the curve: the share of resamples without an excess is at most 5%. Contamination turns a share of the wrong
answers (the dose) into correct ones. The second table is about the default: each model of a clean population is tested
against all others, with the adjustment of Benjamini and Hochberg.

    python benchmarks/statistics/constat.py [--repeats 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from peekbench.records import FloatArray, IntArray
from peekbench_constat.excess import Scores, predict_scores
from peekbench_constat.findings import MIN_FAMILIES
from peekbench_stats import selection_level

RESAMPLES = 300
LEVEL = 0.95
DOSES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
RELATIONS: dict[str, Callable[[FloatArray], tuple[FloatArray, FloatArray]]] = {
    "same": lambda ability: (ability, ability),
    "shifted": lambda ability: (ability, 0.8 * ability**1.8),
    "s-curve": lambda ability: (ability, expit(1.6 * logit(ability) - 0.8)),
    "saturated": lambda ability: (np.minimum(0.97, 1 - (1 - ability) ** 2), ability),
}
"""Accuracies on the original and on the reference benchmark."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One simulated population of models."""

    relation: str = "shifted"
    num_references: int = 20
    num_test: int = 1000
    scatter: float = 0.02
    families: str = ""
    num_families: int = 5
    are_named: bool = False
    """Whether the analysis knows the families."""
    dose: float = 0.0


def simulate(setting: Setting, rng: np.random.Generator) -> tuple[Scores, Scores, IntArray]:
    """Return the scores of the reference models and, at last, of the tested model on both benchmarks; and families."""
    num_models = setting.num_references + 1
    ability = rng.uniform(0.2, 0.9, num_models)
    deviations = rng.normal(0, setting.scatter, num_models)
    family = np.arange(num_models)
    if setting.families:
        family = rng.integers(0, setting.num_families, num_models)
        family[-1] = setting.num_families
        deviations = deviations / 2 + rng.normal(0, setting.scatter, setting.num_families + 1)[family]
        if setting.families == "clusters":
            centers = rng.uniform(0.3, 0.8, setting.num_families + 1)
            ability = np.clip(centers[family] + rng.uniform(-0.1, 0.1, num_models), 0.2, 0.9)
    original, reference = RELATIONS[setting.relation](ability)
    original = np.clip(original + deviations, 0.01, 0.99)
    original[-1] += setting.dose * (1 - original[-1])
    return _answer(original, setting.num_test, rng), _answer(reference, setting.num_test, rng), family


def _answer(accuracies: FloatArray, num_test: int, rng: np.random.Generator) -> Scores:
    observed = rng.binomial(num_test, accuracies) / num_test
    names = tuple(map(str, range(len(accuracies))))
    sizes = np.full(len(accuracies), num_test)
    return Scores(names, sizes, observed, rng.binomial(num_test, observed, (RESAMPLES, len(observed))) / num_test)


def measure(setting: Setting, repeats: int, seed: int) -> tuple[float, float, float, float]:
    """Return rates: biased up, biased down, contaminated according to the paper's test; of all, not judged."""
    up = down = paper = not_judged = 0
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        original, reference, family = simulate(setting, rng)
        numbers = np.unique(family[:-1], return_inverse=True)[1] if setting.are_named else None
        others, tested = original.names[:-1], original.names[-1:]
        prediction = predict_scores(original.select(others), reference.select(others), rng, numbers)
        is_known = numbers is None or numbers.max() + 1 >= MIN_FAMILIES
        if not is_known or not prediction.covers(float(reference.observed[-1])):
            not_judged += 1
            continue
        excess = prediction.compare(original.select(tested), reference.select(tested))
        is_found = excess.p_value <= 1 - LEVEL
        up += is_found and excess.estimate > 0
        down += is_found and excess.estimate < 0
        paper += (excess.resampled <= 0).mean() <= 1 - LEVEL
    judged = max(1, repeats - not_judged)
    return up / judged, down / judged, paper / judged, not_judged / repeats


def measure_default(setting: Setting, repeats: int, seed: int) -> tuple[float, float]:
    """Return the rate of judged models with a verdict, and that of repeats in which any model has one."""
    found = judged = repeats_found = 0
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat])
        original, reference, family = simulate(setting, rng)
        p_values = []
        for position, name in enumerate(original.names):
            is_other = family != family[position] if setting.are_named else np.arange(len(family)) != position
            others = tuple(np.array(original.names)[is_other].tolist())
            numbers = np.unique(family[is_other], return_inverse=True)[1] if setting.are_named else None
            if numbers is not None and numbers.max() + 1 < MIN_FAMILIES:
                continue
            prediction = predict_scores(original.select(others), reference.select(others), rng, numbers)
            if prediction.covers(float(reference.observed[position])):
                p_values.append(prediction.compare(original.select((name,)), reference.select((name,))).p_value)
        judged += len(p_values)
        if p_values:
            here = sum(p_value <= selection_level(p_values, 1 - LEVEL) for p_value in p_values)
            found += here
            repeats_found += here > 0
    return found / max(1, judged), repeats_found / repeats


def _describe(setting: Setting) -> str:
    if not setting.families:
        return ""
    return f"{setting.num_families} {setting.families}{', named' if setting.are_named else ''}"


def main() -> None:
    """Print error rates and power."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    print("clean models\n")
    print("| relation | references | texts | scatter | families | up | down | either | paper's test | not judged |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    settings = [
        *(Setting(relation, 20, 1000, scatter) for relation in RELATIONS for scatter in (0.0, 0.02)),
        *(Setting("shifted", number, 1000) for number in (8, 12, 40)),
        Setting("shifted", 20, 200),
        *(
            Setting("shifted", size, 1000, 0.03, families, number, are_named)
            for families in ("families", "clusters")
            for size, number in ((20, 5), (20, 8), (40, 12))
            for are_named in (False, True)
        ),
    ]
    for each in settings:
        up, down, *others = measure(each, arguments.repeats, arguments.seed)
        texts = " | ".join(f"{rate:.1%}" for rate in (up, down, up + down, *others))
        facts = f"{each.relation} | {each.num_references} | {each.num_test} | {100 * each.scatter:g}"
        print(f"| {facts} | {_describe(each)} | {texts} |", flush=True)

    print("\neach of the clean models against all others, shifted, adjusted\n")
    print("| models | texts | scatter | families | models with a verdict | repeats with a verdict |")
    print("|---|---|---|---|---|---|")
    for each in (
        Setting(num_references=19),
        *(Setting("shifted", 19, 1000, 0.03, "clusters", 8, are_named) for are_named in (False, True)),
    ):
        texts = " | ".join(
            f"{rate:.1%}" for rate in measure_default(each, max(1, arguments.repeats // 5), arguments.seed)
        )
        facts = f"{each.num_references + 1} | {each.num_test} | {100 * each.scatter:g} | {_describe(each)}"
        print(f"| {facts} | {texts} |", flush=True)

    print("\npower (biased up) by dose, shifted\n")
    print(f"| references | texts | scatter | {' | '.join(f'{dose:.0%}' for dose in DOSES)} |")
    print(f"|---|---|---|{'---|' * len(DOSES)}")
    for num_references, num_test, scatter in ((12, 1000, 0.02), (20, 1000, 0.02), (40, 1000, 0.02), (20, 1000, 0.0)):
        population = Setting("shifted", num_references, num_test, scatter)
        rates = [measure(replace(population, dose=dose), arguments.repeats, 1) for dose in DOSES]
        cells = " | ".join(f"{up * (1 - not_judged):.0%}" for up, *_, not_judged in rates)
        print(f"| {num_references} | {num_test} | {100 * scatter:g} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
