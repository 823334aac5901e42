"""Options of the Bayesian analyses: presets, engines and priors. No prior is left to a library's default."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, model_validator

from peekbench import Options
from peekbench.records import ScoreName

Preset: TypeAlias = Literal["calibrated", "paper", "random_slopes"]
Effect: TypeAlias = Literal["bias", "boost"]


class CountPriors(Options):
    """Priors of the binomial presets, on the log-odds scale (the study's, section 6.1 of arXiv 2410.00179)."""

    intercept_sd: float = Field(default=1.0, gt=0)
    """Standard deviation of the normal prior of the log-odds at the average predictor."""
    model_sd: float = Field(default=5.0, gt=0)
    """Standard deviation of the normal prior of each other language model's difference from the first."""
    effect_sd: float = Field(default=1.0, gt=0)
    """Standard deviation of the normal prior of the bias (or boost)."""
    task_sd: float = Field(default=1.0, gt=0)
    """Scale of the half-normal prior of the standard deviation between tasks."""
    pair_sd: float = Field(default=1.0, gt=0)
    """Scale of the half-normal prior of the standard deviation between subsamples within a task."""
    slope_sd: float = Field(default=3.5355, gt=0)
    """Scale of the half-normal prior of the standard deviation between arms within a task, as in the published
    analyses; preset random_slopes only."""


class DifferencePriors(Options):
    """Priors of the preset `calibrated`, on the scale of scores: 0.05 is five accuracy points."""

    mean_sd: float = Field(default=0.1, gt=0)
    """Standard deviation of the normal prior of the mean difference."""
    model_sd: float = Field(default=0.05, gt=0)
    """Standard deviation of the normal prior of each language model's deviation from the mean difference."""
    task_sd: float = Field(default=0.05, gt=0)
    """Scale of the half-normal prior of the standard deviation between the tasks' effects."""
    cell_sd: float = Field(default=0.05, gt=0)
    """Scale of the half-normal prior of the standard deviation of a model's deviation from a task's effect."""
    exchangeable_share: float = Field(default=0.5, gt=0, le=1)
    """Prior probability that the effect of a task resembles those of the other tasks. Otherwise it is an effect of its
    own, such as that of a contaminated task, which is hardly shrunk. At 1, all effects come from one normal
    distribution."""
    own_sd: float = Field(default=0.1, gt=0)
    """Standard deviation that is added to the effects of tasks with effects of their own."""
    residual_sd: float = Field(default=0.1, gt=0)
    """Typical standard deviation of a single difference; its variance has an exponential prior."""
    residual_df: float = Field(default=2.0, gt=0)
    """Degrees of freedom by which the tasks of a model share information about the variance of single differences;
    higher values assume more similar tasks."""


class OfScore(Options):
    """Options that all analyses share."""

    score: ScoreName = "score"
    """Score to analyze: 'score' (accuracy, R^2 or, in language modeling, the log-likelihood), 'macro_f1', 'log_loss',
    'brier' or 'bits_per_byte', if all results have it. Signs are such that a positive effect is an improvement. The
    presets other than calibrated model counts of correct answers, so they analyze accuracy only."""
    region: float | None = Field(default=None, ge=0)
    """Half-width of the region of practical equivalence, in units of the score. By default 0.005, half an accuracy
    point, or 0.01 for the log loss. In `bayes.meta`, the presets other than calibrated have a region in log-odds, by
    default the study's 0.04."""
    seed: int = Field(default=0, ge=0)
    """Seed of all random draws."""
    difference_priors: DifferencePriors = DifferencePriors()
    """Priors of the preset calibrated."""


class OfPreset(OfScore):
    """Options that the analyses with several models share."""

    preset: Preset = "calibrated"
    """calibrated: a hierarchical model of the paired differences of scores. paper: binomial counts with effects of task
    and subsample, section 6.1 of the study. random_slopes: as paper, and the effect of the arm varies by task, as in
    the study's published analyses."""
    effects: tuple[Effect, ...] = Field(default=("bias",), min_length=1)
    """Effects to analyze; boost is skipped if the results have no base arm."""
    count_priors: CountPriors = CountPriors()
    """Priors of the presets paper and random_slopes."""

    @model_validator(mode="after")
    def _check_score(self) -> OfPreset:
        if self.score != "score" and self.preset != "calibrated":
            raise ValueError(
                f"score: preset {self.preset} models counts of correct answers and cannot analyze {self.score}; "
                "use preset: calibrated, or remove score"
            )
        return self


class Hierarchical(OfPreset):
    """Options of `bayes.hierarchical`."""

    engine: Literal["fast", "bambi"] = "fast"
    """fast: a Gibbs sampler for calibrated, nested Laplace for the other presets. bambi: MCMC, for paper and
    random_slopes; requires peekbench[bambi]."""
    sampler: Literal["nutpie", "bambi"] = "nutpie"
    """Sampler of the engine bambi. nutpie: bambi's model with hierarchically centered effects, which mixes better.
    bambi: the model as bambi writes it, sampled by PyMC; slow."""
    effects: tuple[Effect, ...] = Field(default=("bias", "boost"), min_length=1)
    """Effects to fit; boost is skipped if the results have no base arm."""
    level: float = Field(default=0.89, gt=0, lt=1)
    """Probability of the credible intervals; 0.89 is the study's."""
    verdict_level: float = Field(default=0.95, gt=0, lt=1)
    """Probability of the interval that decides the verdict; at 0.95, at most 5% of analyses of an unbiased method claim
    a bias."""
    chains: int = Field(default=8, ge=2)
    """Number of Markov chains."""
    draws: int = Field(default=500, ge=100)
    """Draws per chain after warm-up."""


class Meta(OfPreset):
    """Options of `bayes.meta`."""

    num_slices: int = Field(default=500, ge=2)
    """Number of random slices; each keeps one subsample of each task and model."""
    level: float = Field(default=0.89, gt=0, lt=1)
    """Probability of the credible intervals."""
    draws: int = Field(default=60, ge=20)
    """Draws per slice; preset calibrated only."""


class PriorCheck(OfPreset):
    """Options of `bayes.prior_check`."""

    num_draws: int = Field(default=1000, ge=100)
    """Number of simulated data sets; each has its own parameters."""


class Recovery(OfScore):
    """Options of `bayes.recovery`, which simulates and fits the preset calibrated."""

    biases: tuple[float, ...] = Field(default=(0.0, 0.005, 0.01, 0.02), min_length=1)
    """True biases, in units of the score: 0.01 is one accuracy point."""
    num_data_sets: int = Field(default=200, ge=20)
    """Number of simulated data sets per true bias."""
    level: float = Field(default=0.89, gt=0, lt=1)
    """Probability of the credible intervals."""
    verdict_level: float = Field(default=0.95, gt=0, lt=1)
    """Probability of the intervals that decide the conclusions."""
    draws: int = Field(default=400, ge=100)
    """Draws per data set after warm-up."""
