"""Columns and cells that the tables of the analysis and of the forecast share."""

from __future__ import annotations

from peekbench import Column
from peekbench.results import check_region
from peekbench_power import Power
from peekbench_power.detection import Criterion

TIME_COLUMNS = (Column("subsamples", "count"), Column("trials", "count"), Column("time", "seconds"))


def format_bias(bias: float, is_accuracy: bool) -> str:
    """Write a bias that a user has chosen: '0.5 points' for accuracies."""
    return f"{bias * 100:g} points" if is_accuracy else f"{bias:g}"


def check_units(options: Power, is_accuracy: bool) -> None:
    """Refuse biases and regions of accuracies that were written in points instead of as fractions."""
    for option, value in (("region", options.region), ("target_bias", options.target_bias), ("biases", options.biases)):
        for bias in value if isinstance(value, tuple) else (value,):
            check_region(bias, "power", is_accuracy=is_accuracy, option=option)


def share_alpha(options: Power, family: int) -> Power:
    """Return the options with the significance level of one of several configurations that are judged together.

    The worst case for a configuration is that it alone is detected. The procedure of Benjamini and Hochberg then tests
    it at the error rate of the family divided by the number of configurations.
    """
    return options if family == 1 else options.model_copy(update={"alpha": options.alpha / family})


def name_level(options: Power) -> str:
    """Return the significance level in words: '5% two-sided'."""
    return f"{100 * options.alpha:.2g}% two-sided"


def criterion_of(options: Power) -> Criterion:
    """Return what counts as detecting a bias, or its absence."""
    return Criterion(options.power, options.alpha, options.region)
