"""The parts of the study's reproduction that draw data: model checks, PCA, slices, and data sets without bias."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from reproduction_tables import markdown, picture, points, rows, run
from study_numbers import PCA, PCA_SIZES, RAFT_ODDS_RATIO, RANKS, SAMPLED_COVERAGE, SHARES

from peekbench import Analysis, analyze, load_results
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.store.writer import Store
from peekbench_bayes.arrays import PairedArms, split_results
from peekbench_bayes.options import CountPriors, DifferencePriors, Hierarchical
from peekbench_bayes.slices import fit_count_slices, fit_difference_slices

if TYPE_CHECKING:
    import pandas as pd

PRESETS = ("paper", "random_slopes", "calibrated")
DRAWN = """Bias in R^2 ± 1.96 standard errors: the experiment in a scikit-learn loop, and **here** from {trials:,}
trials of `{spec}.yaml`.

{table}

As in the study's figure, the bias grows with the effective rank and falls with n. Of the 20 pairs {same} differ by
less than 1.96 standard errors of their difference, as other splits of the same data sets should in 95% of cases.
There is one data set of each rank and n, and data sets of one rank differ by more than these errors (sd 0.01 to
0.03), which makes the lines uneven. The signal falls as n grows, because each data set has 100 + 2n rows, so n and
the ratio of signal to noise are confounded.

{figure}"""


def asked(name: str, results: pd.DataFrame, **options: Any) -> Analysis:
    """An analysis with options of its own."""
    use = make_component(AnalysisSpec, name, options)
    found: Analysis = use.entry.analyze(results, options=use.options)
    return found


def shares(few: pd.DataFrame, zero: pd.DataFrame, slices: int, folder: Path) -> dict[str, str]:
    found = {"few-shot, n=500": run("meta", few), "zero-shot, n=100": run("meta_zero_shot", zero)}
    results = {"few-shot, n=500": few[few["num_test"] == 500], "zero-shot, n=100": zero}
    body = []
    smallest = []
    for where, (paper, region) in SHARES.items():
        for preset, one in zip(("random_slopes", "paper"), found[where], strict=False):
            of_study = rows(one, "Posterior means")[0]
            many = asked("bayes.meta", results[where], preset=preset, region=float(region), num_slices=slices)
            of_many = rows(many, "Posterior means")[0]
            name = f"beyond {region}"
            cells = [f"**{row[name]:.0%}**" for row in (of_study, of_many)]
            body.append([where, f"±{region}", f"`{preset}`", paper, *cells, f"{of_many['interval excludes 0']:.0%}"])
        raft = asked(
            "bayes.meta", results[where], preset="random_slopes", region=math.log(RAFT_ODDS_RATIO), num_slices=500
        )
        (row,) = rows(raft, "Posterior means")
        smallest.append(f"{next(value for key, value in row.items() if key.startswith('beyond')):.0%} ({where})")
    calibrated = rows(found["few-shot, n=500"][2], "Posterior means")[0]
    headings = ["data", "region", "model", "the study", "500 slices", f"{slices:,} slices", "intervals without zero"]
    return {
        "shares": markdown(headings, body),
        "slices": f"{slices:,}",
        "slices_error": f"{50 / slices**0.5:.1f}",
        "raft": " and ".join(smallest),
        "conclusions_figure": picture(found["few-shot, n=500"][0], "What studies", folder / "conclusions.svg"),
        "calibrated_beyond": f"{calibrated['beyond 0.5 points']:.0%}",
        "calibrated_excludes": f"{calibrated['interval excludes 0']:.0%}",
    }


def checks(few: pd.DataFrame, data_sets: int, folder: Path) -> dict[str, str]:
    *priors, recovery = run("checks", few)
    body = []
    for name, one in zip(PRESETS, priors, strict=True):
        (row,) = rows(one, "Mean effects")
        middle = f"{points(row['2.5%'], 1)} to {points(row['97.5%'], 1)}"
        body.append([f"`{name}`", middle, points(row["observed"]), f"{row['percentile']:.0%}"])
    others = rows(asked("bayes.recovery", few[few["num_test"] == 200], num_data_sets=data_sets, seed=1), "Known biases")
    known = [
        [
            points(row["true bias"]), points(row["mean estimate"]), f"{row['coverage']:.1%}",
            f"{other['coverage']:.1%}", f"{row['interval excludes 0']:.0%}",
        ]
        for row, other in zip(rows(recovery, "Known biases"), others, strict=True)
    ]  # fmt: skip
    held = [row["coverage"] for row in others]
    headings = ["true bias", "mean estimate", "intervals that hold it, of 200", f"of {data_sets:,} others",
                "intervals that exclude 0, of 200"]  # fmt: skip
    return {
        "priors": markdown(["preset", "middle 95%", "observed", "percentile"], body),
        "recovery": markdown(headings, known),
        "prior_figure": picture(priors[0], "Mean effects", folder / "prior.svg"),
        "recovery_figure": picture(recovery, "Estimates in simulated", folder / "recovery.svg"),
        "least_held": f"{min(row['coverage'] for row in rows(recovery, 'Known biases')):.1%}",
        "data_sets": f"{data_sets:,}",
        "data_sets_error": f"{(0.89 * 0.11 / data_sets) ** 0.5 * 100:.1f}",
        "all_held": f"{np.mean(held):.1%}",
        "all_held_error": f"{(0.89 * 0.11 / data_sets / len(held)) ** 0.5 * 100:.1f}",
        "all_data_sets": f"{data_sets * len(held):,}",
    }


def pca(store: Path | None, folder: Path) -> dict[str, str]:
    if store is None:
        return {"pca": "Not run for this page: `--pca` takes the store of `specs/paper/pca.yaml`."}
    (summary,) = analyze(store, ["summary"])
    by_task = {row["task"]: row for row in rows(summary, "Scores, boost and bias by task")}
    body, same = [], 0
    for rank in RANKS:
        cells = []
        for size, other in zip(PCA_SIZES, PCA[rank], strict=True):
            row = by_task[f"rank{rank}-n{size}"]
            value, error = (float(number) for number in other.split(" ± "))
            ours = 1.96 * row["se of bias"]
            same += abs(row["bias"] - value) < math.hypot(error, ours)
            cells.append(f"{value:.3f} ± {error:.3f}, **{row['bias']:.3f}** ± {ours:.3f}")
        body.append([f"rank {rank}", *cells])
    table = markdown(["", *(f"n={size}" for size in PCA_SIZES)], body)
    drawn = picture(summary, "Bias by number of test texts", folder / "pca.svg")
    with Store.open(store) as opened:
        spec = opened.spec()["name"]
    results = load_results(store)
    trials = len(results) // results["arm"].nunique()
    return {"pca": DRAWN.format(trials=trials, spec=spec, table=table, same=same, figure=drawn)}


def overconfidence(few: pd.DataFrame, repeats: int) -> dict[str, str]:
    options = Hierarchical()
    _, parts = split_results(few, ("bias",))
    body = []
    for arms in parts:
        rng = np.random.default_rng([0, arms.num_test or 0])
        data = list(swapped(arms, repeats, rng))
        found = (
            fit_count_slices(data, "paper", CountPriors(), options.level),
            fit_count_slices(data, "random_slopes", CountPriors(), options.level),
            fit_difference_slices(data, DifferencePriors(), options.draws, options.level, rng),
        )
        held = (float(((one.low <= 0) & (one.high >= 0)).mean()) for one in found)
        body.append([f"n={arms.num_test}", *(f"**{share:.0%}**" for share in held)])
    body.append(["n=500, by MCMC", *(SAMPLED_COVERAGE.get(preset, "") for preset in PRESETS)])
    return {
        "coverage": markdown(["both models", *(f"`{preset}`" for preset in PRESETS)], body),
        "repeats": str(repeats),
        "coverage_error": f"{50 / repeats**0.5:.1f} points",
    }


def swapped(arms: PairedArms, repeats: int, rng: np.random.Generator) -> Iterator[PairedArms]:
    """Data sets without bias."""
    for _ in range(repeats):
        is_swapped = rng.random(arms.control.shape) < 0.5
        yield replace(
            arms,
            control=np.where(is_swapped, arms.treatment, arms.control),
            treatment=np.where(is_swapped, arms.control, arms.treatment),
        )
