"""What is fitted: the presets and their priors, none of them left to a library's default."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from peekbench import Options

Preset: TypeAlias = Literal["calibrated", "printed", "random_slopes"]


class CountPriors(Options):
    """Priors of the binomial presets, on the log-odds scale; the study's (section 6.1, arXiv 2410.00179)."""

    intercept_sd: float = Field(default=1.0, gt=0)
    """Of the normal prior of the log-odds at the average predictor."""
    model_sd: float = Field(default=5.0, gt=0)
    """Of the normal prior of each further language model's difference from the first."""
    effect_sd: float = Field(default=1.0, gt=0)
    """Of the normal prior of the bias (or boost)."""
    task_sd: float = Field(default=1.0, gt=0)
    """Scale of the half-normal prior of the sd of tasks."""
    pair_sd: float = Field(default=1.0, gt=0)
    """Scale of the half-normal prior of the sd of subsamples within a task."""
    slope_sd: float = Field(default=3.5355, gt=0)
    """Scale of the half-normal prior of the sd of arms within a task; `random_slopes` only. As in the
    published analyses."""


class DifferencePriors(Options):
    """Priors of the preset `calibrated`, on the scale of scores: 0.05 is five accuracy points."""

    mean_sd: float = Field(default=0.1, gt=0)
    """Of the normal prior of the mean difference."""
    model_sd: float = Field(default=0.05, gt=0)
    """Of the normal prior of each language model's deviation from it."""
    task_sd: float = Field(default=0.05, gt=0)
    """Scale of the half-normal prior of the sd of tasks' effects."""
    cell_sd: float = Field(default=0.05, gt=0)
    """Scale of the half-normal prior of the sd of a model's deviation from a task's effect."""
    residual_sd: float = Field(default=0.1, gt=0)
    """Typical sd of a single difference, for which its variance's prior is exponential."""
    residual_df: float = Field(default=2.0, gt=0)
    """How alike tasks are taken to be in the variance of single differences: degrees of freedom that a model's tasks
    lend to each other."""
