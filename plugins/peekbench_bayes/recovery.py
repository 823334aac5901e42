"""Does the default analysis find effects that are known, in simulated data of the design at hand (appendix E.1)?"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from peekbench import Analysis, Column, Table
from peekbench.errors import SpecError
from peekbench.records import Cell, Decision, Unit
from peekbench.results import decide
from peekbench_bayes.arrays import Arms, split
from peekbench_bayes.calibrated import WARM_UP
from peekbench_bayes.figures import recovered
from peekbench_bayes.gaussian import Cells, sample, summarize_cells
from peekbench_bayes.prior_check import draw_cells
from peekbench_bayes.slices import CHAINS_AT_A_TIME, draw_averages

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from peekbench.records import FloatArray
    from peekbench_bayes import Recovery
    from peekbench_bayes.model import DifferencePriors

DECISIONS: tuple[Decision, ...] = get_args(Decision)
CHAINS = 8
DRAWS = 250
FAR = 3.0  # standard errors that a coverage may be off
TOO_WIDE = "they are wider than need be with this design: more subsamples make them sharper"
TOO_NARROW = "do not trust them with this design: raise draws, take more subsamples, or ask summary"


@dataclass(frozen=True, slots=True)
class Components:
    """Standard deviations by which data are simulated, in units of the score."""

    count: FloatArray
    """Subsamples of each cell: (n_models, n_tasks)."""
    task: float
    """Between tasks."""
    cell: float
    """Between models within a task; 0 with one model."""
    single: FloatArray
    """Of single differences: (n_models, n_tasks)."""


def recover(results: pd.DataFrame, *, options: Recovery) -> Analysis:
    """Simulate data sets with known biases for each method at each design point, and fit each of them.

    Raises
    ------
    SpecError
        Where a preset other than calibrated is asked for.
    """
    if options.preset != "calibrated":
        raise SpecError(
            f"preset {options.preset}: recovery simulates from and fits the preset calibrated alone; leave preset out"
        )
    import numpy as np

    keys, parts = split(results, ("bias",))
    rows: list[tuple[Cell, ...]] = []
    conclusions: list[tuple[Cell, ...]] = []
    spreads: list[tuple[Cell, ...]] = []
    warnings = []
    error = (options.level * (1 - options.level) / options.num_data_sets) ** 0.5
    estimated: list[tuple[Arms, dict[float, FloatArray]]] = []
    for arms in parts:
        estimated.append((arms, {}))
        rng = np.random.default_rng(options.seed)
        components = estimate_components(arms, options.difference_priors, rng)
        spreads += [(*arms.cells, name, value) for name, value in _spreads(arms, components)]
        for effect in options.biases:
            draws = fit_known(components, effect, options, rng)
            estimated[-1][1][effect] = draws
            means = draws.mean(axis=0)
            low, high = np.quantile(draws, _ends(options.level), axis=0)
            coverage = float(((low <= effect) & (effect <= high)).mean())
            start = (*arms.cells, effect)
            off = float(means.mean()) - effect
            excludes = float(((low > 0) | (high < 0)).mean())
            rows.append((*start, off + effect, off, float(means.std()), coverage, excludes))
            limits = np.quantile(draws, _ends(options.verdict_level), axis=0).T.tolist()
            said = Counter(decide(low_end, high_end, options.region) for low_end, high_end in limits)
            conclusions.append((*start, *(said[decision] / options.num_data_sets for decision in DECISIONS)))
            if abs(coverage - options.level) > FAR * error:
                warnings.append(
                    f"{arms.label}: {options.level:.0%} intervals hold a true bias of {effect:g} in {coverage:.1%} of "
                    f"data sets; {TOO_WIDE if coverage > options.level else TOO_NARROW}"
                )
    unit: Unit = "difference" if all(arms.num_test for arms in parts) else "change"
    spread: Unit = "spread" if unit == "difference" else "number"
    size = f"{options.region * 100:g} points" if unit == "difference" else f"{options.region:g}"
    of = f"{options.num_data_sets:,} simulated data sets each"
    first = (*keys, Column("true bias", unit))
    return Analysis(
        "recovery",
        tables=(
            Table(
                f"Known biases recovered, {of}",
                (
                    *first, Column("mean estimate", unit), Column("error of the mean", unit),
                    Column("sd of estimates", spread), Column("coverage", "fraction"),
                    Column("interval excludes 0", "fraction"),
                ),
                tuple(rows),
                "Estimate: posterior mean of the average over these tasks and models. Coverage: share of "
                f"{options.level:.0%} intervals that hold the true bias, by chance within {2 * error:.1%} of that in "
                "most cases. Interval excludes 0: the power, or where the true bias is 0, the false alarms.",
            ),
            Table(
                f"Conclusions, {of}, region {size}",
                (*first, *(Column(decision, "fraction") for decision in DECISIONS)),
                tuple(conclusions),
                f"What the {options.verdict_level:.0%} intervals say.",
            ),
            Table(
                "Standard deviations of the simulated data",
                (*keys, Column("standard deviation"), Column("value", spread)),
                tuple(spreads),
                "Posterior means of the preset calibrated, fitted to the results.",
            ),
        ),
        figures=recovered(
            estimated, options.level, options.region, unit, "{:g} points" if unit == "difference" else "{:g}"
        ),
        warnings=tuple(warnings),
    )  # fmt: skip


def estimate_components(arms: Arms, priors: DifferencePriors, rng: np.random.Generator) -> Components:
    """Posterior means of the standard deviations, given the results."""
    import numpy as np

    cells = summarize_cells(np.repeat(arms.difference[None], CHAINS, axis=0))
    states = list(sample(cells, priors, WARM_UP + DRAWS, rng))[WARM_UP:]
    single = np.mean([np.sqrt(state.variance) for state in states], axis=(0, 1))
    task, cell = (float(np.mean([getattr(state, name) for state in states])) for name in ("tau_task", "tau_cell"))
    return Components(cells.count[0], task, cell, single)


def simulate_known(components: Components, effect: float, number: int, rng: np.random.Generator) -> Cells:
    """Data sets whose average effect over tasks and models is exactly `effect`: (number, n_models, n_tasks)."""
    import numpy as np

    count = components.count
    theta = components.task * rng.standard_normal((number, 1, count.shape[1]))
    theta = theta + components.cell * rng.standard_normal((number, *count.shape))
    there = count > 0
    theta = theta + effect - np.average(theta, axis=(1, 2), weights=np.broadcast_to(there, theta.shape))[:, None, None]
    return draw_cells(count, theta, components.single, rng)


def fit_known(components: Components, effect: float, options: Recovery, rng: np.random.Generator) -> FloatArray:
    """Draws of the average effect in each of the data sets: (n_draws, n_data_sets)."""
    import numpy as np

    parts = []
    for at in range(0, options.num_data_sets, CHAINS_AT_A_TIME):
        cells = simulate_known(components, effect, min(CHAINS_AT_A_TIME, options.num_data_sets - at), rng)
        parts.append(draw_averages(cells, options.difference_priors, options.draws, rng))
    return np.concatenate(parts, axis=1)


def _ends(level: float) -> list[float]:
    return [(1 - level) / 2, (1 + level) / 2]


def _spreads(arms: Arms, components: Components) -> list[tuple[str, float]]:
    import numpy as np

    found = [("between tasks", components.task)]
    several = len(arms.models) > 1
    if several:
        found.append(("between models within a task", components.cell))
    for model, single, count in zip(arms.models, components.single, components.count, strict=True):
        if count.any():
            name = f"single differences, {model}" if several else "single differences"
            found.append((name, float(np.sqrt((single[count > 0] ** 2).mean()))))
    return found
