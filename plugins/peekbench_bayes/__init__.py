"""Bayesian hierarchical analyses of bias and boost, calibrated and as in the study."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench_bayes.analysis import analyze
from peekbench_bayes.arrays import Effect
from peekbench_bayes.meta import analyse_slices
from peekbench_bayes.model import CountPriors, DifferencePriors, Preset
from peekbench_bayes.prior_check import check_priors
from peekbench_bayes.recovery import recover


class Hierarchical(Options):
    preset: Preset = "calibrated"
    """calibrated: a hierarchical model of the paired differences of scores. printed: binomials with effects of task and
    subsample, the study's section 6.1. random_slopes: the same with the arms' effects varying by task, as the study's
    published analyses had it."""
    engine: Literal["fast", "bambi", "both"] = "fast"
    """fast: a Gibbs sampler for calibrated, nested Laplace for the others. bambi: MCMC, for printed and random_slopes;
    needs peekbench[bayes]. both: compares the two."""
    sampler: Literal["nutpie", "pymc", "bambi"] = "nutpie"
    """What draws with the engine bambi. nutpie, pymc: of bambi's model with its effects centerd hierarchically, which
    mixes better. bambi: of the model as bambi writes it, by PyMC; slow."""
    effects: tuple[Effect, ...] = Field(default=("bias", "boost"), min_length=1)
    """What to fit; boost is left out where there is no base arm."""
    level: float = Field(default=0.89, gt=0, lt=1)
    """Probability that the intervals hold; 0.89 is the study's."""
    verdict_level: float = Field(default=0.95, gt=0, lt=1)
    """The same of the interval that a verdict rests on: at 0.95, a bias that is not there is claimed in 5% of analyses
    at most."""
    region: float = Field(default=0.005, ge=0)
    """Half-width of the region of practical equivalence: a bias surely inside it does not matter; 0.005 is half an
    accuracy point."""
    chains: int = Field(default=8, ge=2)
    draws: int = Field(default=500, ge=100)
    """Of each chain, after warm-up."""
    seed: int = Field(default=0, ge=0)
    save_posterior: bool = True
    """Write the draws as ArviZ NetCDF files next to the report, where arviz is installed."""
    count_priors: CountPriors = CountPriors()
    """Of the presets printed and random_slopes."""
    difference_priors: DifferencePriors = DifferencePriors()
    """Of the preset calibrated."""


class Meta(Options):
    num_slices: int = Field(default=500, ge=2)
    preset: Preset = "calibrated"
    """What is fitted to each slice. calibrated speaks of scores, the others of log-odds."""
    effects: tuple[Effect, ...] = Field(default=("bias",), min_length=1)
    level: float = Field(default=0.89, gt=0, lt=1)
    """Probability that the intervals hold."""
    region: float | None = Field(default=None, ge=0)
    """Half-width of the region of practical equivalence; left out, 0.005 of the score for calibrated and 0.04 log-odds,
    the study's, for the others."""
    draws: int = Field(default=60, ge=20)
    """Of each slice; calibrated only."""
    seed: int = Field(default=0, ge=0)
    count_priors: CountPriors = CountPriors()
    """Of the presets printed and random_slopes."""
    difference_priors: DifferencePriors = DifferencePriors()
    """Of the preset calibrated."""

    @property
    def limit(self) -> float:
        """The region that holds."""
        if self.region is not None:
            return self.region
        return 0.005 if self.preset == "calibrated" else 0.04


class PriorCheck(Options):
    preset: Preset = "calibrated"
    """Whose priors are checked."""
    effects: tuple[Effect, ...] = Field(default=("bias",), min_length=1)
    num_draws: int = Field(default=1000, ge=100)
    """Data sets to simulate, each with parameters of its own."""
    region: float = Field(default=0.005, ge=0)
    """Half-width of the region of practical equivalence, in units of the score."""
    seed: int = Field(default=0, ge=0)
    count_priors: CountPriors = CountPriors()
    """Of the presets printed and random_slopes."""
    difference_priors: DifferencePriors = DifferencePriors()
    """Of the preset calibrated."""


class Recovery(Options):
    preset: Preset = "calibrated"
    """What simulates and is fitted; no other than calibrated so far."""
    biases: tuple[float, ...] = Field(default=(0.0, 0.005, 0.01, 0.02), min_length=1)
    """True biases, in units of the score: 0.01 is one accuracy point."""
    num_data_sets: int = Field(default=200, ge=20)
    """For each true bias."""
    level: float = Field(default=0.89, gt=0, lt=1)
    """Probability that the intervals hold."""
    verdict_level: float = Field(default=0.95, gt=0, lt=1)
    """The same of the interval that a conclusion rests on."""
    region: float = Field(default=0.005, ge=0)
    """Half-width of the region of practical equivalence, in units of the score."""
    draws: int = Field(default=400, ge=100)
    """Of each data set, after warm-up."""
    seed: int = Field(default=0, ge=0)
    difference_priors: DifferencePriors = DifferencePriors()


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    return [
        AnalyzerEntry(
            name="hierarchical",
            options=Hierarchical,
            analyze=analyze,
            summary="Bayesian hierarchical models: bias and boost with shrinkage over tasks, and a verdict",
        ),
        AnalyzerEntry(
            name="meta",
            options=Meta,
            analyze=analyse_slices,
            summary="refits on random slices with one subsample per task and model: how conclusions would vary",
        ),
        AnalyzerEntry(
            name="prior_check",
            options=PriorCheck,
            analyze=check_priors,
            summary="what the priors imply for this design, before any score is seen, and where the results lie in it",
        ),
        AnalyzerEntry(
            name="recovery",
            options=Recovery,
            analyze=recover,
            summary="known biases in simulated data of this design: estimates, coverage and power",
        ),
    ]
