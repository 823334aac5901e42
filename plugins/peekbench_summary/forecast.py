"""Chances that subsamples settle a verdict: those of a planned run, and those that are added to an open verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import stdtr
from scipy.stats import nct, t

from peekbench import Analysis, Column, Table
from peekbench.formatting import join_words
from peekbench.records import (
    POINTS,
    Advice,
    BoolArray,
    Cell,
    DesignPoint,
    FloatArray,
    PlannedDesign,
    ScoreUnits,
    Settling,
)
from peekbench.results import Configuration, configurations, default_region, read_looks, score_units
from peekbench_stats import check_region, levels_at, resolve_score, select_score, units_of
from peekbench_summary.biased_rule import Bias, Region, levels_of, size_of
from peekbench_summary.estimates import estimate_these_tasks, failures_cancel, format_chosen, mean_over_tasks
from peekbench_summary.power import Power

POWER = 0.8
"""Probability with which a detectable bias is detected, and with which added subsamples must settle a verdict."""
PRIOR = 4.0
MIN_MAXIMUM, MAX_RATIO = 1000, 10
"""Largest number of additional subsamples per task that is considered, absolute and as a multiple of those today."""
MAX_DEGREES = 10_000.0  # beyond which the power of Student's t test is that of the normal test
NUM_WALKS = 10_000
MAX_ROWS = 8


def settle(bias: Bias, alpha: float) -> Settling | None:
    """Return the fewest additional subsamples per task that probably settle a verdict.

    The later mean is a weighted average of today's and that of the new subsamples. Its distribution follows from
    today's data and a normal prior for the bias, whose standard deviation is `PRIOR` times the region. Without it, a
    few noisy subsamples would predict a bias of many points.

    Parameters
    ----------
    bias
        The measured bias.
    alpha
        Error rate of the interval that decides.

    Returns
    -------
    Settling or None
        None if there is no interval today, or no noise, or if nothing settles the verdict but there are too few trials
        to know. If no trial has a difference, the number requires that no further trial has any, and has no
        probability.

    References
    ----------
    Predictive power: Spiegelhalter et al. (1986), https://doi.org/10.1016/0197-2456(86)90003-6
    """
    present = bias.num_units / len(bias.units)
    maximum = max(MIN_MAXIMUM, round(MAX_RATIO * present))
    candidates = np.unique(np.geomspace(1, maximum, 100).round())
    ratios = 1 + candidates / present
    levels = np.array([bias.levels.later(ratio)(alpha) for ratio in ratios.tolist()])
    units = ratios * bias.num_units
    if bias.num_sides == 1:
        enough = units * math.log1p(-bias.region.half_width) <= np.log(levels)
        return _settle(bias, alpha, Settling(_first(candidates, enough, None), maximum))
    now = estimate_these_tasks(bias.units, 1 - alpha, is_skewed=False)
    error, region = now.standard_error, bias.region.half_width
    if not error > 0 or not any(map(np.ptp, bias.units)):
        return None
    share = 1 / (1 + (error / (PRIOR * region)) ** 2) if region else 1.0  # of today's mean in the posterior mean
    new = 1 - 1 / ratios  # weight of the new subsamples
    means = mean_over_tasks(bias.units) * (1 - new + new * share)
    spreads = error * np.sqrt(new * (new * share + 1 - new))
    errors = error / np.sqrt(ratios)
    margins, hidden = (
        np.array([function(number) for number in units.tolist()])
        for function in (bias.region.margin, bias.region.unseen_bias)
    )
    degrees = now.degrees * ratios
    within = np.clip(margins - t.isf(levels, degrees) * errors, 0, None)
    half_widths = t.isf(levels / 2, degrees) * errors
    beyond = np.maximum(half_widths + hidden, within)

    def inside(limits: FloatArray) -> FloatArray:
        probabilities: FloatArray = stdtr(now.degrees, (limits - means) / spreads)
        return probabilities - stdtr(now.degrees, (-limits - means) / spreads)

    chances = (1 - inside(beyond) + inside(within)) * (2.0 ** (1 - units) <= levels)
    advice = _first(candidates, chances >= POWER, chances)
    return _settle(bias, alpha, Settling(advice, maximum, half_width=float(half_widths[-1])))


def _settle(bias: Bias, alpha: float, found: Settling) -> Settling | None:
    """Return what settles a verdict; None if nothing does, and there are too few trials for any test."""
    if found.advice is None and 2.0 ** (1 - bias.num_units) > bias.levels.now(alpha):
        return None
    return found


def _first(candidates: FloatArray, enough: BoolArray, chances: FloatArray | None) -> Advice | None:
    """Return the first candidate that is enough, rounded up to two digits."""
    positions = np.flatnonzero(enough)
    if not len(positions):
        return None
    number = int(candidates[positions[0]])
    unit: int = 10 ** max(0, len(str(number)) - 2)
    rounded = math.ceil(number / unit) * unit
    return Advice(rounded, None if chances is None else float(np.interp(rounded, candidates, chances)))


def minimum_detectable(standard_error: float, degrees: float, level: float) -> float | None:
    """Return the smallest effect that a two-sided t test detects with a probability of `POWER`.

    Returns
    -------
    float or None
        None without degrees of freedom.

    Examples
    --------
    >>> round(minimum_detectable(0.01, 1000, 0.05), 4)
    0.028
    """
    if not degrees > 0:
        return None
    degrees = min(degrees, MAX_DEGREES)
    critical = float(t.isf(level / 2, degrees))
    return standard_error * float(brentq(lambda ratio: nct.sf(critical, degrees, ratio) - POWER, 0, 2 * critical + 2))


@dataclass(frozen=True, slots=True)
class Noise:
    """What the precision of a mean over tasks depends on."""

    label: str
    variance: float
    """Variance of this mean between subsamples."""
    degrees: float
    """Degrees of freedom of each subsample after the first."""
    num_units: int
    """Independent values in each subsample: its tasks, or 1 if they share draws."""
    failures_cancel: bool = False
    """Whether what fits that fail lose cancels in the bias, as with folds."""
    bias: float | None = None
    """The present estimate."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What to expect of looks at a run if the bias has a given size."""

    subsamples: float | None
    """Mean number of subsamples per task at which the run stops."""
    settled: float | None
    """Probability that the verdict is then settled."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The looks at a run of one configuration."""

    sizes: Sequence[int]
    """Subsamples per task at each look."""
    levels: FloatArray
    """Two-sided level of each look."""
    region: float
    """Half-width of the region of practical equivalence."""
    stops_at: Sequence[str] = ("biased", "equivalent")
    """Verdicts at which the run stops early."""

    def detectable(self, noise: Noise) -> float | None:
        """Return the bias that the last look detects; None if there is none."""
        size, level = self.sizes[-1], float(self.levels[-1])
        if 2.0 ** (1 - size * noise.num_units) > level:
            return None
        return minimum_detectable(math.sqrt(noise.variance / size), noise.degrees * (size - 1), level)

    def expect(self, noise: Noise, bias: float) -> Expectation:
        """Simulate the looks; the verdict on this configuration alone decides when the run stops."""
        sizes = np.array(self.sizes)
        units = (sizes * noise.num_units).tolist()
        errors = np.sqrt(noise.variance / sizes)
        half_widths, half_widths_within = (
            t.isf(levels, np.maximum(noise.degrees * (sizes - 1), 1e-9)) * errors
            for levels in (self.levels / 2, self.levels)
        )
        # The sum of the first subsamples is a random walk; its increments have the variance of the added subsamples.
        steps = np.random.default_rng(0).normal(size=(NUM_WALKS, len(sizes))) * np.sqrt(np.diff(sizes, prepend=0))
        means = bias + steps.cumsum(axis=1) / sizes * math.sqrt(noise.variance)
        region = Region(self.region, failure_loss=0.0 if noise.failures_cancel else None)
        is_possible = np.array([2.0 ** (1 - number) for number in units]) <= self.levels
        equivalent = (np.abs(means) + half_widths_within <= [region.margin(number) for number in units]) & is_possible
        biased = (np.abs(means) > half_widths) & ~equivalent & is_possible
        stops = (biased & ("biased" in self.stops_at)) | (equivalent & ("equivalent" in self.stops_at))
        stops[:, -1] = True
        stop = stops.argmax(axis=1)
        settled = (biased | equivalent)[np.arange(NUM_WALKS), stop]
        return Expectation(float(sizes[stop].mean()), float(settled.mean()))


TYPICAL_SOURCE = (
    "The noise was not measured: it is that of finetuning BERT, whose training is unstable, and GPT-2, whose training "
    "is stable, in the accuracies published with arXiv 2410.00179 (25 tasks, 100 train texts, 50 to 500 test texts)."
)
TYPICAL = {"BERT": (0.0090, 0.045), "GPT-2": (0.00074, 0.061)}
"""Variance of the bias between subsamples of a task in these accuracies: a part that more test texts do not reduce, and
the part of n test texts, times n."""
EVENNESS = 0.6
"""Degrees of freedom of the mean over these tasks, as a share of those of equally noisy tasks."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is asked about one configuration."""

    num_train: int | None
    num_test: int | None
    noise: Noise
    walk: Walk

    def outcomes(self, region: float) -> list[Cell]:
        """Return the cells of what is expected."""
        cells: list[Cell] = [self.walk.detectable(self.noise)]
        for bias in (0.0, region / 2, self.noise.bias):
            expected = Expectation(None, None) if bias is None else self.walk.expect(self.noise, bias)
            cells += [expected.subsamples, expected.settled]
        return cells


def analyze_power(results: pd.DataFrame, *, options: Power) -> Analysis:
    """Return the bias that a run detects, and the chance that as many subsamples settle a verdict.

    Parameters
    ----------
    results
        The results table.
    options
        Level, region and score.

    Returns
    -------
    Analysis
        A table; only a warning if no task has two subsamples.
    """
    looks, rows = read_looks(results), []
    results, region = _select(results, options)
    measured = list(_measure(results, options.level))
    for configuration, noise in measured:
        level = levels_of(configuration, looks).now((1 - options.level) / len(measured))
        size = round(fmean(map(len, configuration.subsamples.values())))
        _, num_train, num_test = size_of(configuration)
        rows.append(Row(num_train, num_test, noise, Walk([size], np.array([level]), region)))
    if not rows:
        warning = "power: no task has two subsamples, so the noise cannot be estimated; draw more subsamples"
        return Analysis("power", warnings=(warning,))
    return Analysis("power", (_tabulate(rows, region, score_units(results), "The noise is that of these results."),))


def forecast(design: PlannedDesign, *, options: Power) -> Analysis:
    """Forecast the detectable bias of each design point, and when its verdicts are settled.

    Parameters
    ----------
    design
        Methods, design points, looks, and results or variances that tell the noise.
    options
        Level, region and score.

    Returns
    -------
    Analysis
        A table; only a warning if the noise is not known.
    """
    points = {(point.num_train, point.num_test): point for point in design.points}
    units, region = POINTS, default_region(options.score) if options.region is None else options.region
    source = "The noise is that of the answers of all fits of a division to the same texts, in a pilot trial."
    noises: list[tuple[DesignPoint, Noise]] = []
    if design.results is not None:
        results, region = _select(design.results, options)
        units = score_units(results)
        source = "The noise is that of the trials in the store."
        for configuration, noise in _measure(results, options.level):
            noises += [(point, noise) for key, point in points.items() if key == configuration.key[2:]]
    elif design.variances is not None:
        for (method, num_train, num_test), variance in design.variances.items():
            point = points[num_train, num_test]
            if method in design.methods:  # and no control
                noises.append((point, _noise_of(method, point, variance, failures_cancel=True)))
    elif options.score == "score":
        source = TYPICAL_SOURCE
        for point in points.values():
            for label, (training, sampling) in TYPICAL.items():
                variance = (training + sampling / point.num_test) / design.num_scored_sets
                noises.append((point, _noise_of(label, point, variance)))
    check_region(region, "power", units=units)
    family = max(1, len(design.methods) * len(points))
    rows = [
        Row(point.num_train, point.num_test, noise, _plan_walk(design, point, region, (1 - options.level) / family))
        for point, noise in noises
    ]
    if not rows or not design.methods:
        return Analysis("power", warnings=(UNKNOWN,))
    return Analysis("power", (_tabulate(rows, region, units, source),))


UNKNOWN = (
    "chance of a verdict: unknown, because typical noise is known only for accuracies of methods that are no controls. "
    "With folds, leave out --no-pilot; otherwise, run the spec with few subsamples, then plan again"
)


def _noise_of(label: str, point: DesignPoint, variance: float, *, failures_cancel: bool = False) -> Noise:
    """Return the noise of a mean over tasks of which each has this variance."""
    number = len(point.tasks)
    degrees = 1.0 if number == 1 else EVENNESS * number
    return Noise(label, variance / number, degrees, number, failures_cancel)


def _plan_walk(design: PlannedDesign, point: DesignPoint, region: float, alpha: float) -> Walk:
    shares = design.looks.fractions or (1.0,)
    sizes = [max(2, math.ceil(share * point.num_subsamples - 1e-9)) for share in shares]
    return Walk(sizes, levels_at(design.looks, alpha), region, design.stops_at)


def _select(results: pd.DataFrame, options: Power) -> tuple[pd.DataFrame, float]:
    """Return the results in the chosen score, and the half-width of the region."""
    score = resolve_score(results, options.score)
    results = select_score(results, score, "power")
    check_region(options.region, "power", units=score_units(results))
    return results, default_region(score) if options.region is None else options.region


def _measure(results: pd.DataFrame, level: float) -> Iterator[tuple[Configuration, Noise]]:
    """Yield the noise of each configuration whose tasks have two subsamples."""
    for configuration in configurations(results).without_controls().configurations:
        units = units_of(configuration, configuration.scores["bias"])
        estimate = estimate_these_tasks(units, level, configuration.step, is_skewed=False)
        if estimate.standard_error > 0:
            number = fmean(map(len, units))
            variance, degrees = estimate.standard_error**2 * number, estimate.degrees / (number - 1)
            cancels = failures_cancel(configuration, "bias")
            yield configuration, Noise(configuration.label, variance, degrees, len(units), cancels, estimate.mean)


def _tabulate(rows: Sequence[Row], region: float, units: ScoreUnits, source: str) -> Table:
    """Tabulate the least precise configurations, which decide when a run stops."""
    left_out = ""
    if len(rows) > MAX_ROWS:
        left_out = f" {len(rows) - MAX_ROWS:,} more precise configurations are left out."
    rows = sorted(rows, key=lambda row: -row.noise.variance / row.walk.sizes[-1])[:MAX_ROWS]
    sizes: dict[str, list[int | None]] = {
        "num_train": [row.num_train for row in rows],
        "num_test": [row.num_test for row in rows],
        "num_subsamples": [row.walk.sizes[-1] for row in rows],
    }
    varying = [name for name, values in sizes.items() if len(set(values)) > 1]
    fixed = [f"{name} {values[0]}" for name, values in sizes.items() if name not in varying and values[0]]
    columns = [Column("noise of"), *(Column(name, "count") for name in varying), Column("detectable", units.spread)]
    for bias in ("zero", "half", "now"):
        columns += [Column(f"{bias}: mean", "count"), Column(f"{bias}: settled", "fraction")]
    cells = [
        (row.noise.label, *(sizes[name][position] for name in varying), *row.outcomes(region))
        for position, row in enumerate(rows)
    ]
    if all(row.noise.bias is None for row in rows):
        columns, cells = columns[:-2], [row[:-2] for row in cells]
    detectable = f"detectable: the bias that all subsamples show with {POWER:.0%} probability."
    note = (
        f"With {join_words(fixed)}. {detectable} "
        "For a bias of 0, of half the region, and of the present estimate: the mean number of subsamples per task "
        "after which the run stops, and the probability that the verdict is then 'biased' or 'equivalent', for a "
        f"region of ±{format_chosen(region, units)}. {source}{left_out}"
    )
    caption = f"{detectable} zero: settled: the probability of a verdict if there is no bias. More: --power. {source}"
    return Table(
        "Subsamples until a verdict, a forecast",
        tuple(columns),
        tuple(cells),
        note.removeprefix("With . "),
        overview=("noise of", *varying, "detectable", "zero: settled"),
        caption=caption,
    )
