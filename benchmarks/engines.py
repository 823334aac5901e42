"""Compare the effective samples per second of `engine: bambi` with those of plain bambi. Assert nothing.

Each sampler runs in its own process, so that its peak memory can be measured. Plain bambi fits the model with an
interaction of task and subsample and bambi's default parametrization, and samples with PyMC. Seconds are processor
seconds and include compilation. The benchmark takes minutes, and gigabytes of memory with many subsamples. With
--slices 3, compare that many fits of `bayes.meta` with those of the bambi engine instead.

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

import bambi
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

PLAIN = "plain bambi"
ENGINES = {"engine bambi, nutpie": "nutpie", "engine bambi, PyMC": "pymc"}
"""Name to sampler."""


def normal_prior(sd: float) -> bambi.Prior:
    """Return a normal prior around zero."""
    return bambi.Prior("Normal", mu=0, sigma=sd)


def group_prior(scale: float) -> bambi.Prior:
    """Return the prior of a group's effects, whose standard deviation has a half-normal prior."""
    return bambi.Prior("Normal", mu=0, sigma=bambi.Prior("HalfNormal", sigma=scale))


def sample_with_plain_bambi(arms: PairedArms, preset: Preset, num_draws: int) -> FloatArray:
    """Draw from the posterior of the effect with the paper's priors: (n_chains, n_draws)."""
    priors = CountPriors()
    table = tabulate(make_count_rows(arms, preset, priors))
    table["subsample"] = table["pair"].str.slice(6)
    table["method"] = table["arm"].astype(int).astype(str)
    terms = {"Intercept": normal_prior(priors.intercept_sd), "arm": normal_prior(priors.effect_sd)}
    if len(arms.models) > 1:
        terms["model"] = normal_prior(priors.model_sd)
    terms["1|task"] = group_prior(priors.task_sd)
    if preset == "random_slopes":
        terms["1|task:method"] = group_prior(priors.slope_sd)
    terms["1|task:subsample"] = group_prior(priors.pair_sd)
    right_side = " + ".join(f"({name})" if "|" in name else name for name in terms if name != "Intercept")
    model = bambi.Model(f"p(right, trials) ~ {right_side}", table, family="binomial", priors=terms)
    trace = model.fit(draws=num_draws, tune=TUNE, chains=CHAINS, cores=1, random_seed=0, progressbar=False)
    return np.asarray(trace.posterior["arm"])


def measure(sampler: str, arms: PairedArms, preset: Preset, num_draws: int) -> tuple[float, float, float]:
    """Return the effective samples of the effect, the processor seconds, and the peak memory in GB."""
    warnings.simplefilter("ignore")  # those of the samplers
    started = sum(os.times()[:4])  # includes compilers, which are child processes
    if sampler == PLAIN:
        effect = sample_with_plain_bambi(arms, preset, num_draws)
    else:
        options = Hierarchical(preset=preset, engine="bambi", sampler=ENGINES[sampler], chains=CHAINS, draws=num_draws)
        log_odds = fit_with_bambi(arms, options).log_odds
        assert log_odds is not None
        effect = log_odds
    seconds = sum(os.times()[:4]) - started
    return float(array_stats.ess(effect)), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def compare_slices(arms: PairedArms, preset: Preset, number: int) -> None:
    """Print the differences between fits of `bayes.meta` and of the bambi engine, in posterior standard deviations."""
    warnings.simplefilter("ignore")
    meta = Meta(preset=preset)
    slices = list(itertools.islice(draw_slices(arms, meta.num_slices, np.random.default_rng(meta.seed)), number))
    effects = fit_count_slices(slices, preset, meta.count_priors, meta.level)
    for position, slice_arms in enumerate(slices):
        posterior = fit_with_bambi(slice_arms, Hierarchical(preset=preset, engine="bambi", draws=1000))
        assert posterior.log_odds is not None
        reference = summarize(posterior.log_odds, meta.level)
        pairs = (
            (effects.mean[position], reference.mean),
            (effects.low[position], reference.low),
            (effects.high[position], reference.high),
        )
        differences = ", ".join(f"{(ours - theirs) / reference.standard_error:+.3f}" for ours, theirs in pairs)
        print(
            f"{preset}, slice {position}: mean, low, high {differences}; "
            f"failed checks of bambi: {len(posterior.failed)}",
            flush=True,
        )


def main() -> None:
    """Print a line for each sampler, or for each slice."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--preset", choices=["paper", "random_slopes"], default="random_slopes")
    parser.add_argument("--num-test", type=int, default=500)
    parser.add_argument(
        "--draws", type=int, default=1000, help=f"draws of each of {CHAINS} chains, after {TUNE} to tune"
    )
    parser.add_argument("--samplers", nargs="+", choices=[*ENGINES, PLAIN], default=[*ENGINES, PLAIN])
    parser.add_argument(
        "--slices", type=int, default=0, help="compare that many slices of bayes.meta with bambi instead"
    )
    arguments = parser.parse_args()
    results = load_results(arguments.folder / "few_shot")
    selected = results[(results["num_train"] == 100) & (results["num_test"] == arguments.num_test)]
    (arms,) = split_results(selected, ("bias",))[1]
    if arguments.slices:
        compare_slices(arms, arguments.preset, arguments.slices)
        return
    print(f"{arguments.preset}, n={arguments.num_test}, {CHAINS} chains of {TUNE} + {arguments.draws:,}:")
    rates = {}
    for sampler in arguments.samplers:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            num_samples, seconds, memory = pool.apply(measure, (sampler, arms, arguments.preset, arguments.draws))
        rates[sampler] = num_samples / seconds
        print(
            f"{sampler:<22} {num_samples:7,.0f} effective samples in {seconds:7.1f} s: "
            f"{rates[sampler]:7.1f} per second, {memory:.2f} GB",
            flush=True,
        )
    for engine in rates.keys() & ENGINES.keys() if PLAIN in rates else ():
        print(f"{engine}: {rates[engine] / rates[PLAIN]:.1f} times the rate of {PLAIN}")


if __name__ == "__main__":
    main()
