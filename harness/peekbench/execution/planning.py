"""Groups the trials of a spec into work items, and estimates their cost."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from statistics import harmonic_mean
from types import MappingProxyType
from typing import TYPE_CHECKING

from peekbench.execution.fit_plans import ScoredSet, count_fits, plan_arm
from peekbench.records.runs import DesignPoint, Looks, PlannedDesign, Settled
from peekbench.records.trials import Draw, Trial, WorkItem
from peekbench.spec.arms import BASE, Arm, split
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec

if TYPE_CHECKING:
    import pandas as pd


def group_trials(
    trials: Iterable[Trial], base_keys: Mapping[tuple[str, str], str], stored: Container[tuple[Draw, str]]
) -> Iterator[WorkItem]:
    """Group adjacent trials on one draw whose methods share a base arm.

    Parameters
    ----------
    trials
        Trials in the order of `ExperimentSpec.trials`.
    base_keys
        `ExperimentSpec.base_keys`.
    stored
        (draw, base key) of the base arms that the store already has.
    """
    for draw, adjacent in groupby(trials, key=attrgetter("draw")):
        by_base: dict[str, list[Trial]] = {}
        for trial in adjacent:
            by_base.setdefault(base_keys[trial.method, draw.task], []).append(trial)
        for base_key, sharing in by_base.items():
            yield WorkItem(tuple(sharing), has_base=(draw, base_key) in stored)


def planned_design(
    spec: ExperimentSpec,
    num_classes: Mapping[str, int],
    variances: Mapping[tuple[str, int, int], float] = MappingProxyType({}),
    results: pd.DataFrame | None = None,
) -> PlannedDesign:
    """Return the design of a spec for forecasts.

    Parameters
    ----------
    spec
        The spec.
    num_classes
        Number of classes by task; 0 for regression.
    variances
        Variances of the bias between divisions into folds, if a pilot measured them.
    results
        Results of the run so far, if its store has any.
    """
    repeats_by_point: dict[tuple[int, int], dict[str, int]] = {}
    for task in spec.tasks:
        design = spec.design_of(task)
        if num_classes[task.name] or results is not None:
            for point in design.points():
                repeats_by_point.setdefault(point, {})[task.name] = design.repeats(point[1])
    points = (
        # If tasks are equally noisy, the mean over them has the error of this number of subsamples for each.
        DesignPoint(*point, round(harmonic_mean(list(repeats.values()))), tuple(repeats))
        for point, repeats in sorted(repeats_by_point.items())
    )
    methods = tuple(method.name for method in spec.methods if not method.entry.control)
    looks = Looks(True)
    stops_at: tuple[Settled, ...] = ()
    if stop := spec.design.stop:
        looks = Looks(True, stop.method, spec.design.look_fractions(), spec.design.largest)
        stops_at = stop.at
    measured = None
    if spec.design.folds:
        measured = variances
    return PlannedDesign(methods, tuple(points), looks, spec.design.crossover or 1, stops_at, measured, results)


@dataclass(frozen=True, slots=True)
class Size:
    """Amount of work of a spec."""

    trials: int
    fits: int
    """Models to fit. Shared base arms are counted once."""


def fits_of_arms(spec: ExperimentSpec) -> dict[int, dict[str, int]]:
    """Return the number of fits of each arm in a trial, by num_test. Arms can have fits in common, which run once."""
    points = {num_test: spec.design_of(task) for task in spec.tasks for _, num_test in spec.design_of(task).points()}
    return {
        num_test: {arm.name: count_fits([_plan(arm, design, num_test)]) for arm in spec.arms}
        for num_test, design in sorted(points.items())
    }


def count_work(spec: ExperimentSpec) -> Size:
    """Count the trials and fits of a spec."""
    others = [arm for arm in spec.arms if arm.kind != "base"]
    has_base = len(others) < len(spec.arms)
    trials = fits = 0
    for task in spec.tasks:
        design = spec.design_of(task)
        num_bases = len({method.base_key(task.name) for method in spec.methods})
        for _, num_test in design.points():
            repeats = design.repeats(num_test)
            trials += repeats * len(spec.methods)
            base, *plans = (_plan(arm, design, num_test) for arm in (BASE, *others))
            fits += repeats * count_fits(plans) * len(spec.methods)
            if has_base and count_fits([base, *plans]) > count_fits(plans):  # otherwise, another arm has its fit
                fits += repeats * num_bases
    return Size(trials, fits)


def _plan(arm: Arm, design: Design, num_test: int) -> list[ScoredSet]:
    """Return how an arm predicts the sets of a draw; the size of a set with folds is approximate."""
    number = design.num_folds(num_test)
    folds: list[tuple[int, int]] = []
    if number:
        num_test = round(num_test * number / (number - 1))
        folds = split(num_test, number)
    return plan_arm(arm, design.num_sets, num_test, crossover=bool(design.crossover), folds=folds)
