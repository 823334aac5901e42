"""Slow parts of the reproduction: posteriors, slices, model checks, data sets without bias, and PCA."""

from __future__ import annotations

import math
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pages import Row, markdown, picture, rows

from peekbench import Analysis, load_results
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench_bayes.arrays import PairedArms, split_results
from peekbench_bayes.options import CountPriors, DifferencePriors, Hierarchical
from peekbench_bayes.slices import fit_count_slices, fit_difference_slices

SPECS = Path(__file__).parents[2] / "specs" / "paper"
PUBLISHED = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))
PRESETS = ("paper", "random_slopes", "calibrated")
PCA_SIZES = (25, 50, 100, 200, 500)
Scores = Mapping[str, pd.DataFrame]
"""The published scores by folder."""


ANALYSES = {
    "table1": ("summary", "consistency"),
    "permutation": ("permutation",),  # paired tests by task with Benjamini-Hochberg adjustment over tasks
    "posteriors": tuple(f"{{use: bayes.hierarchical, options: {{preset: {preset}}}}}" for preset in PRESETS),
    "checks": (
        *(f"{{use: bayes.prior_check, options: {{preset: {preset}}}}}" for preset in PRESETS),
        "bayes.recovery",
    ),
}
"""Analyses of parts of the study: Table 1, section 8, section 6, appendix E.1."""


def run(part: str, results: pd.DataFrame) -> tuple[Analysis, ...]:
    """Run the analyses of a part of the study."""
    return analyze(results, AnalysisOptions(ANALYSES[part])).analyses


def run_with_options(name: str, results: pd.DataFrame, **options: Any) -> Analysis:
    """Run one analysis with the given options."""
    component = make_component(AnalysisSpec, name, options)
    analysis: Analysis = component.entry.analyze(results, options=component.options)
    return analysis


def pick_average(fit: Analysis, effect: str) -> Row:
    """Return the effect on average over the models, the only one that has log-odds."""
    found = rows(fit, "Boost and bias, preset")
    return next(row for row in found if row["effect"] == effect and row["log-odds"] is not None)


def posteriors(scores: Scores, folder: Path) -> dict[str, str]:
    """Compare posteriors with those of the notebooks, and draw figures 2 to 4."""
    body = []
    for source, (mean, sd) in PUBLISHED["notebooks"].items():
        data, size, effect = source.split()
        results = scores[data].query(f"num_train == 100 and num_test == {size}")
        # The study's code truncates counts.
        counts = results.assign(score=np.trunc(results["score"] * int(size)) / int(size))
        row = pick_average(run_with_options("bayes.hierarchical", counts, preset="random_slopes"), effect)
        body.append(
            [f"{data}, n={size}, {effect}", f"{mean} ({sd})", f"{row['log-odds']:.4f} ({row['sd of log-odds']:.4f})"]
        )
    r_hats, few = [], []
    for data in ("few_shot", "zero_shot", "zero_shot_packed"):
        for _, results in scores[data].groupby(["num_train", "num_test"]):
            fits = run("posteriors", results)
            biases = [pick_average(fit, "bias") for fit in fits]
            few += [biases] if data == "few_shot" else []
            checked = rows(fits[-1], "Checks of the fits")
            r_hats += [float(row["value"]) for row in checked if row["check"].startswith("R-hat")]
    excludes = {
        scale: [
            sum(row[f"{scale}, low"] * row[f"{scale}, high"] > 0 for row in column) for column in zip(*few, strict=True)
        ]
        for scale in ("log-odds", "mean")
    }
    drawn = run_with_options("bayes.hierarchical", scores["few_shot"].query("num_train == 100"), preset="paper")
    title = "Posterior predictive distribution of the average bias"
    return {
        "notebooks": markdown(["", "the study", "here"], body),
        "paper_excludes": str(excludes["log-odds"][0]),
        "excludes_log_odds": "{}, {} and {}".format(*excludes["log-odds"]),
        "excludes_points": "{}, {} and {}".format(*excludes["mean"]),
        "predictive_figure": picture(drawn, title, folder / "predictive.svg"),
        "r_hat": f"{max(r_hats):.3f}",
    }


def shares(scores: Scores, folder: Path, slices: int = 10_000) -> dict[str, str]:
    """Compare the share of slices outside the region with the study's, and draw figure 5."""
    body = []
    for source, (study, region) in PUBLISHED["shares"].items():
        data, size = source.split()
        results = scores[data].query(f"num_train == 100 and num_test == {size}")
        for preset in ("random_slopes", "paper"):
            many = run_with_options("bayes.meta", results, preset=preset, region=float(region), num_slices=slices)
            (row,) = rows(many, "Posterior means")
            cells = [f"{row[f'beyond {region}']:.0%}", f"{row['interval excludes 0']:.0%}"]
            body.append([f"{data}, n={size}, ±{region}", f"`{preset}`", study, *cells])
    few = scores["few_shot"].query("num_train == 100 and num_test == 500")
    drawn = run_with_options("bayes.meta", few, preset="random_slopes")
    headings = ["data and region", "model", "the study", "here", "intervals that exclude zero"]
    return {
        "shares": markdown(headings, body),
        "slices": f"{slices:,}",
        "slices_error": f"{50 / slices**0.5:.1f}",
        "conclusions_figure": picture(drawn, "Posterior means of studies", folder / "conclusions.svg"),
    }


def checks(scores: Scores, folder: Path, data_sets: int = 1000) -> dict[str, str]:
    """Return prior checks and the recovery of known biases, and draw figure 8."""
    few = scores["few_shot"].query("num_train == 100 and num_test == 200")
    *priors, recovery = run("checks", few)
    effects = [rows(analysis, "Mean effects")[0] for analysis in priors]
    largest = max(abs(effect[end]) for effect in effects for end in ("2.5%", "97.5%"))
    title = "Recovery of known biases"
    known = rows(run_with_options("bayes.recovery", few, num_data_sets=data_sets, seed=1), title)
    return {
        "priors": f"±{100 * largest:.0f}",
        "recovery_figure": picture(recovery, "Estimates in simulated", folder / "recovery.svg"),
        "recovery_share": f"{np.mean([row['coverage'] for row in known]):.1%}",
        "recovery_error": f"{(0.89 * 0.11 / data_sets / len(known)) ** 0.5 * 100:.1f}",
        "data_sets": f"{data_sets:,}",
    }


def overconfidence(scores: Scores, _folder: Path, repeats: int = 400) -> dict[str, str]:
    """Return the coverage of each preset on data sets without bias."""
    level = Hierarchical().level
    _, splits = split_results(scores["few_shot"].query("num_train == 100"), ("bias",))
    body = []
    for arms in splits:
        rng = np.random.default_rng([0, arms.num_scored or 0])
        data = [swap_arms(arms, rng.random(arms.control.shape) < 0.5) for _ in range(repeats)]
        fits = (
            fit_count_slices(data, "paper", CountPriors(), level),
            fit_count_slices(data, "random_slopes", CountPriors(), level),
            fit_difference_slices(data, DifferencePriors(), Hierarchical().draws, level, rng),
        )
        covered = (float(((fit.low <= 0) & (fit.high >= 0)).mean()) for fit in fits)
        body.append([f"n={arms.num_scored}", *(f"{share:.0%}" for share in covered)])
    return {
        "coverage": markdown(["both models", *(f"`{preset}`" for preset in PRESETS)], body),
        "repeats": str(repeats),
        "coverage_error": f"{50 / repeats**0.5:.1f}",
    }


def swap_arms(arms: PairedArms, is_swapped: NDArray[np.bool_]) -> PairedArms:
    """Return the scores with the arms of some subsamples swapped; random swaps remove any bias."""
    treatment = np.where(is_swapped, arms.control, arms.treatment)
    return replace(arms, control=np.where(is_swapped, arms.treatment, arms.control), treatment=treatment)


def pca(_scores: Scores, folder: Path) -> dict[str, str]:
    """Run or resume `pca.yaml`, compare its biases with those of a scikit-learn loop, and draw figure 6."""
    subprocess.run([sys.executable, "-m", "peekbench", "run", "--quiet", SPECS / "pca.yaml"], check=True)
    store = Path("runs", "pca.sqlite")
    (summary,) = analyze(store, AnalysisOptions(["summary"])).analyses
    by_task = {row["task"]: row for row in rows(summary, "Scores, boost and bias by task")}
    same = 0
    for rank, values in PUBLISHED["pca"].items():
        for size, loop in zip(PCA_SIZES, values, strict=True):
            row = by_task[f"rank{rank}-n{size}"]
            value, error = (float(number) for number in loop.split(" ± "))
            ours = 1.96 * row["se of bias"]
            same += abs(row["bias"] - value) < math.hypot(error, ours)
    results = load_results(store)
    return {
        "pca_trials": f"{len(results) // results['arm'].nunique():,}",
        "pca_same": str(same),
        "pca_figure": picture(summary, "Bias by number of test texts", folder / "pca.svg"),
    }
