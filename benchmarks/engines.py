"""Effective samples a second of `engine: bambi` against what bambi does by itself. Prints figures, asserts nothing.

Each way has a process of its own, so that its peak of memory is seen. bambi by itself is the model as one would write
it, with an interaction of task and subsample and bambi's own parametrization, drawn from by PyMC. Seconds are of the
processor, compilation included. Takes minutes, and with many subsamples gigabytes. With
--slices 3 it compares so many fits of `bayes.meta` with the engine's instead.

    OMP_NUM_THREADS=1 python benchmarks/engines.py FOLDER [--preset random_slopes] [--num-test 500] [--draws 1000]
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import resource
import warnings
from pathlib import Path

import numpy as np
from arviz_stats.base import array_stats

from peekbench import load_results
from peekbench.records import FloatArray
from peekbench_bayes.arrays import PairedArms, split_results
from peekbench_bayes.counts import make_count_rows
from peekbench_bayes.mcmc import CHAINS, TUNE, fit_with_bambi, tabulate
from peekbench_bayes.options import CountPriors, Hierarchical, Meta, Preset
from peekbench_bayes.slices import draw_slices, fit_count_slices
from peekbench_bayes.summaries import summarize

BY_ITSELF = "bambi by itself"
OURS = {"engine bambi, nutpie": "nutpie", "engine bambi, PyMC": "pymc"}


def draw_by_itself(arms: PairedArms, preset: Preset, draws: int) -> FloatArray:
    """Draws of the effect, (n_chains, n_draws), with the study's priors and its own terms."""
    import bambi

    priors = CountPriors()
    table = tabulate(make_count_rows(arms, preset, priors))
    table["subsample"] = table["pair"].str.slice(6)
    table["method"] = table["arm"].astype(int).astype(str)

    def normal(sd: float) -> bambi.Prior:
        return bambi.Prior("Normal", mu=0, sigma=sd)

    def group(scale: float) -> bambi.Prior:
        return bambi.Prior("Normal", mu=0, sigma=bambi.Prior("HalfNormal", sigma=scale))

    terms = {"Intercept": normal(priors.intercept_sd), "arm": normal(priors.effect_sd)}
    if len(arms.models) > 1:
        terms["model"] = normal(priors.model_sd)
    terms["1|task"] = group(priors.task_sd)
    if preset == "random_slopes":
        terms["1|task:method"] = group(priors.slope_sd)
    terms["1|task:subsample"] = group(priors.pair_sd)
    right = " + ".join(f"({name})" if "|" in name else name for name in terms if name != "Intercept")
    model = bambi.Model(f"p(right, trials) ~ {right}", table, family="binomial", priors=terms)
    trace = model.fit(draws=draws, tune=TUNE, chains=CHAINS, cores=1, random_seed=0, progressbar=False)
    return np.asarray(trace.posterior["arm"])


def measure(way: str, arms: PairedArms, preset: Preset, draws: int) -> tuple[float, float, float]:
    """Effective samples of the effect, seconds and peak of memory in GB."""
    warnings.simplefilter("ignore")  # of the samplers
    started = sum(os.times()[:4])  # of compilers too, which are children
    if way == BY_ITSELF:
        effect = draw_by_itself(arms, preset, draws)
    else:
        options = Hierarchical(preset=preset, engine="bambi", sampler=OURS[way], chains=CHAINS, draws=draws)
        found = fit_with_bambi(arms, options).log_odds
        assert found is not None
        effect = found
    seconds = sum(os.times()[:4]) - started
    return float(array_stats.ess(effect)), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def compare_slices(arms: PairedArms, preset: Preset, number: int) -> None:
    """Print how far fits of `bayes.meta` are from the bambi engine's: mean, low and high in posterior sd."""
    warnings.simplefilter("ignore")
    meta = Meta(preset=preset)
    slices = list(itertools.islice(draw_slices(arms, meta.num_slices, np.random.default_rng(meta.seed)), number))
    found = fit_count_slices(slices, preset, meta.count_priors, meta.level)
    for at, one in enumerate(slices):
        posterior = fit_with_bambi(one, Hierarchical(preset=preset, engine="bambi", draws=1000))
        assert posterior.log_odds is not None
        bambi = summarize(posterior.log_odds, meta.level)
        pairs = ((found.mean[at], bambi.mean), (found.low[at], bambi.low), (found.high[at], bambi.high))
        off = ", ".join(f"{(ours - theirs) / bambi.sd:+.3f}" for ours, theirs in pairs)
        print(f"{preset}, slice {at}: {off}; failed checks of bambi: {len(posterior.failed)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--preset", choices=["paper", "random_slopes"], default="random_slopes")
    parser.add_argument("--num-test", type=int, default=500)
    parser.add_argument("--draws", type=int, default=1000, help=f"of each of {CHAINS} chains, after {TUNE} to tune")
    parser.add_argument("--ways", nargs="+", choices=[*OURS, BY_ITSELF], default=[*OURS, BY_ITSELF])
    parser.add_argument("--slices", type=int, default=0, help="compare so many slices of bayes.meta with bambi instead")
    asked = parser.parse_args()
    results = load_results(asked.folder / "few_shot")
    some = results[(results["num_train"] == 100) & (results["num_test"] == asked.num_test)]
    (arms,) = split_results(some, ("bias",))[1]
    if asked.slices:
        compare_slices(arms, asked.preset, asked.slices)
        return
    print(f"{asked.preset}, n={asked.num_test}, {CHAINS} chains of {TUNE} + {asked.draws:,}:")
    rates = {}
    for way in asked.ways:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            samples, seconds, memory = pool.apply(measure, (way, arms, asked.preset, asked.draws))
        rates[way] = samples / seconds
        print(
            f"{way:<22} {samples:7,.0f} effective samples in {seconds:7.1f} s: {rates[way]:7.1f} a second, "
            f"{memory:.2f} GB",
            flush=True,
        )
    for way in rates.keys() & OURS.keys() if BY_ITSELF in rates else ():
        print(f"{way}: {rates[way] / rates[BY_ITSELF]:.1f} times {BY_ITSELF}")


if __name__ == "__main__":
    main()
