"""Parts of the reproduction that simulate data: model checks, PCA, slices, and data sets without bias."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pages import markdown, picture, points, rows
from reproduction_tables import run
from study_numbers import PCA, PCA_SIZES, RAFT_ODDS_RATIO, RANKS, SAMPLED_COVERAGE, SHARES

from peekbench import Analysis, load_results
from peekbench.results.analyze import analyze
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.store.writer import Store
from peekbench_bayes.arrays import PairedArms, split_results
from peekbench_bayes.options import CountPriors, DifferencePriors, Hierarchical
from peekbench_bayes.slices import fit_count_slices, fit_difference_slices

PRESETS = ("paper", "random_slopes", "calibrated")
PCA_SECTION = """The table shows the bias in R^2 ± 1.96 standard errors: of the experiment in a scikit-learn loop, and
**here** from {trials:,} trials of `{spec}.yaml`.

{table}

As in the study's figure, the bias increases with the effective rank and decreases with n. Of the 20 pairs, {same}
differ by less than 1.96 standard errors of their difference; with other splits of the same data sets, 95% of pairs
should. The lines are uneven because there is one data set per rank and n, and data sets of one rank differ by more than
these errors (sd 0.01 to 0.03). The signal decreases with n, because each data set has 100 + 2n rows, so n and the
signal-to-noise ratio are confounded.

{figure}"""


def run_with_options(name: str, results: pd.DataFrame, **options: Any) -> Analysis:
    """Run one analysis with the given options."""
    component = make_component(AnalysisSpec, name, options)
    analysis: Analysis = component.entry.analyze(results, options=component.options)
    return analysis


def shares(few: pd.DataFrame, zero: pd.DataFrame, slices: int, folder: Path) -> dict[str, str]:
    """Compare the share of slices outside the region with the study's, and draw figure 5."""
    analyses = {"few-shot, n=500": run("meta", few), "zero-shot, n=100": run("meta_zero_shot", zero)}
    results = {"few-shot, n=500": few[few["num_test"] == 500], "zero-shot, n=100": zero}
    body = []
    raft_shares = []
    for data, (study, region) in SHARES.items():
        for preset, analysis in zip(("random_slopes", "paper"), analyses[data], strict=False):
            spec_row = rows(analysis, "Posterior means")[0]
            many = run_with_options("bayes.meta", results[data], preset=preset, region=float(region), num_slices=slices)
            many_row = rows(many, "Posterior means")[0]
            name = f"beyond {region}"
            cells = [f"**{row[name]:.0%}**" for row in (spec_row, many_row)]
            body.append([data, f"±{region}", f"`{preset}`", study, *cells, f"{many_row['interval excludes 0']:.0%}"])
        raft = run_with_options(
            "bayes.meta", results[data], preset="random_slopes", region=math.log(RAFT_ODDS_RATIO), num_slices=500
        )
        (row,) = rows(raft, "Posterior means")
        raft_shares.append(f"{next(value for key, value in row.items() if key.startswith('beyond')):.0%} ({data})")
    calibrated = rows(analyses["few-shot, n=500"][2], "Posterior means")[0]
    headings = ["data", "region", "model", "the study", "500 slices", f"{slices:,} slices", "intervals without zero"]
    return {
        "shares": markdown(headings, body),
        "slices": f"{slices:,}",
        "slices_error": f"{50 / slices**0.5:.1f}",
        "raft": " and ".join(raft_shares),
        "conclusions_figure": picture(
            analyses["few-shot, n=500"][0], "Posterior means of studies", folder / "conclusions.svg"
        ),
        "calibrated_beyond": f"{calibrated['beyond 0.5 points']:.0%}",
        "calibrated_excludes": f"{calibrated['interval excludes 0']:.0%}",
    }


def checks(few: pd.DataFrame, data_sets: int, folder: Path) -> dict[str, str]:
    """Return prior checks and the recovery of known biases, and draw figures 7 and 8."""
    *priors, recovery = run("checks", few)
    body = []
    for name, analysis in zip(PRESETS, priors, strict=True):
        (row,) = rows(analysis, "Mean effects")
        middle = f"{points(row['2.5%'], 1)} to {points(row['97.5%'], 1)}"
        body.append([f"`{name}`", middle, points(row["observed"]), f"{row['percentile']:.0%}"])
    others = rows(
        run_with_options("bayes.recovery", few[few["num_test"] == 200], num_data_sets=data_sets, seed=1),
        "Recovery of known biases",
    )
    known = [
        [
            points(row["true bias"]), points(row["mean estimate"]), f"{row['coverage']:.1%}",
            f"{other['coverage']:.1%}", f"{row['interval excludes 0']:.0%}",
        ]
        for row, other in zip(rows(recovery, "Recovery of known biases"), others, strict=True)
    ]  # fmt: skip
    coverages = [row["coverage"] for row in others]
    headings = ["true bias", "mean estimate", "intervals that contain it, of 200", f"of {data_sets:,} others",
                "intervals that exclude 0, of 200"]  # fmt: skip
    return {
        "priors": markdown(["preset", "middle 95%", "observed", "percentile"], body),
        "recovery": markdown(headings, known),
        "prior_figure": picture(priors[0], "Mean effects", folder / "prior.svg"),
        "recovery_figure": picture(recovery, "Estimates in simulated", folder / "recovery.svg"),
        "least_held": f"{min(row['coverage'] for row in rows(recovery, 'Recovery of known biases')):.1%}",
        "data_sets": f"{data_sets:,}",
        "data_sets_error": f"{(0.89 * 0.11 / data_sets) ** 0.5 * 100:.1f}",
        "all_held": f"{np.mean(coverages):.1%}",
        "all_held_error": f"{(0.89 * 0.11 / data_sets / len(coverages)) ** 0.5 * 100:.1f}",
        "all_data_sets": f"{data_sets * len(coverages):,}",
    }


def pca(store: Path | None, folder: Path) -> dict[str, str]:
    """Compare the biases of PCA with those of a scikit-learn loop, and draw figure 6."""
    if store is None:
        return {"pca": "Not run for this page; pass the store of `specs/paper/pca.yaml` as `--pca`."}
    (summary,) = analyze(store, ["summary"])
    by_task = {row["task"]: row for row in rows(summary, "Scores, boost and bias by task")}
    body, same = [], 0
    for rank in RANKS:
        cells = []
        for size, study in zip(PCA_SIZES, PCA[rank], strict=True):
            row = by_task[f"rank{rank}-n{size}"]
            value, error = (float(number) for number in study.split(" ± "))
            ours = 1.96 * row["se of bias"]
            same += abs(row["bias"] - value) < math.hypot(error, ours)
            cells.append(f"{value:.3f} ± {error:.3f}, **{row['bias']:.3f}** ± {ours:.3f}")
        body.append([f"rank {rank}", *cells])
    table = markdown(["", *(f"n={size}" for size in PCA_SIZES)], body)
    figure = picture(summary, "Bias by number of test texts", folder / "pca.svg")
    with Store.open(store) as opened:
        spec = opened.spec()["name"]
    results = load_results(store)
    trials = len(results) // results["arm"].nunique()
    return {"pca": PCA_SECTION.format(trials=trials, spec=spec, table=table, same=same, figure=figure)}


def overconfidence(few: pd.DataFrame, repeats: int) -> dict[str, str]:
    """Return the coverage of each preset on data sets without bias."""
    options = Hierarchical()
    _, splits = split_results(few, ("bias",))
    body = []
    for arms in splits:
        rng = np.random.default_rng([0, arms.num_scored or 0])
        data = list(swap_arms(arms, repeats, rng))
        fits = (
            fit_count_slices(data, "paper", CountPriors(), options.level),
            fit_count_slices(data, "random_slopes", CountPriors(), options.level),
            fit_difference_slices(data, DifferencePriors(), options.draws, options.level, rng),
        )
        covered = (float(((fit.low <= 0) & (fit.high >= 0)).mean()) for fit in fits)
        body.append([f"n={arms.num_scored}", *(f"**{share:.0%}**" for share in covered)])
    body.append(["n=500, by MCMC", *(SAMPLED_COVERAGE.get(preset, "") for preset in PRESETS)])
    return {
        "coverage": markdown(["both models", *(f"`{preset}`" for preset in PRESETS)], body),
        "repeats": str(repeats),
        "coverage_error": f"{50 / repeats**0.5:.1f} points",
    }


def swap_arms(arms: PairedArms, repeats: int, rng: np.random.Generator) -> Iterator[PairedArms]:
    """Yield data sets without bias: the arms of each subsample are swapped at random."""
    for _ in range(repeats):
        is_swapped = rng.random(arms.control.shape) < 0.5
        yield replace(
            arms,
            control=np.where(is_swapped, arms.treatment, arms.control),
            treatment=np.where(is_swapped, arms.control, arms.treatment),
        )
