"""Plans trials and their fits: their order and number, which unlabeled texts each fit sees, and what it predicts.

An arm is a rule for the unlabeled texts of a fit. For each scored set, it divides the texts of the set into parts, and
each part is predicted by a fit of its own. Fits to the same unlabeled texts are one fit: with crossover scoring, the
fit to a set predicts its own set for the arm `test` and the others for the arm `extra`. With folds, fit k adapts to the
test set without fold k and predicts all of it: fold k for the arm `extra`, the others for the arm `test`. Private extra
texts take the place of fold k. `SpecWork` runs the fits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from statistics import harmonic_mean
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from peekbench.records.data import IntArray
from peekbench.records.runs import DesignPoint, Looks, PlannedDesign, Settled
from peekbench.records.trials import Draw, Trial, WorkItem
from peekbench.spec.arms import BASE, EXTRA, Arm, split
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec

if TYPE_CHECKING:
    import pandas as pd


class Part(NamedTuple):
    """Consecutive texts of a set."""

    number: int
    """Number of the set."""
    start: int
    stop: int


Unlabeled: TypeAlias = tuple[Part, ...] | None
"""Texts that a fit sees without labels. Equal texts in the same order are equal tuples."""
ScoredSet: TypeAlias = list[tuple[Part, Unlabeled]]
"""All parts of a set, each with the unlabeled texts of the fit that predicts it."""


def plan_arm(
    arm: Arm, num_sets: int, num_test: int, *, crossover: bool, folds: Sequence[tuple[int, int]] = ()
) -> list[ScoredSet]:
    """Return how an arm predicts each set that it scores.

    With crossover scoring, all sets are scored, and for the arm `extra` by the fits to all other sets. Other arms that
    need extra texts take them from the next set. With folds, given by their first and last positions, the arm `test`
    scores the set once for each way to predict every fold by another fit that adapts to it.
    """
    if arm.kind == "batches":
        together = plan_arm(EXTRA, num_sets, num_test, crossover=crossover, folds=folds)
        return [_divide(of_set, arm.blocks_of(num_test)) for of_set in together]
    if folds:
        return _plan_folds(arm, num_test, folds, has_extra=num_sets > 1)
    shifts = range(1, num_sets) if crossover and arm.kind == "extra" else range(1, 2)
    own_sets = range(num_sets if crossover else 1)
    return [_plan_set(arm, own, (own + shift) % num_sets, num_test) for shift in shifts for own in own_sets]


def _divide(scored: ScoredSet, blocks: Sequence[tuple[int, int]]) -> ScoredSet:
    """Return smaller parts that the same fits predict, none of which has texts of two blocks."""
    return [
        (part._replace(start=max(part.start, start), stop=min(part.stop, stop)), unlabeled)
        for part, unlabeled in scored
        for start, stop in blocks
        if start < part.stop and part.start < stop
    ]


def _plan_set(arm: Arm, own: int, other: int, size: int) -> ScoredSet:
    planned: ScoredSet = []
    for start, stop in arm.blocks_of(size):
        before, block, after = Part(own, 0, start), Part(own, start, stop), Part(own, stop, size)
        match arm.kind:
            case "base":
                planned.append((block, None))
                continue
            case "extra":
                texts = [Part(other, 0, size)]
            case "mix":  # doses are nested and paired
                peeked = arm.num_peeked(size)
                texts = [Part(own, 0, peeked), Part(other, peeked, size)]
            case "cross":
                texts = [before, after]
            case "prequential" if start == 0:  # nothing is known before it
                planned.append((block, None))
                continue
            case "prequential":
                texts = [before]
            case "stream":
                texts = [before, block]
            case "swap-in":
                texts = [before._replace(number=other), block, after._replace(number=other)]
            case "test" | "blocks":
                texts = [block]
            case _:
                raise NotImplementedError(f"the fits of the arm {arm.name} are not planned")
        planned.append((block, _join_parts(texts)))
    return planned


def _plan_folds(arm: Arm, size: int, folds: Sequence[tuple[int, int]], *, has_extra: bool) -> list[ScoredSet]:
    whole = Part(0, 0, size)
    match arm.kind:
        case "base":
            return [[(whole, None)]]
        case "all":
            return [[(whole, (whole,))]]
        case "extra":
            shifts = range(1)
        case "test":
            shifts = range(1, len(folds))
        case _:
            raise NotImplementedError(f"the fits of the arm {arm.name} are not planned with folds")
    blocks = [Part(0, start, stop) for start, stop in folds]
    fits = []
    for block in blocks:
        texts = [other for other in blocks if other is not block]
        if has_extra:
            texts.append(block._replace(number=1))
        fits.append(_join_parts(texts))
    return [[(block, fits[(place + shift) % len(folds)]) for place, block in enumerate(blocks)] for shift in shifts]


def _join_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts of texts without empty ones, and with neighbors as one part."""
    joined: list[Part] = []
    for part in parts:
        if joined and joined[-1].number == part.number and joined[-1].stop == part.start:
            joined[-1] = joined[-1]._replace(stop=part.stop)
        elif part.start < part.stop:
            joined.append(part)
    return tuple(joined)


def rows_of(part: Part, sets: Sequence[IntArray]) -> IntArray:
    """Return the rows of the texts of a part."""
    return sets[part.number][part.start : part.stop]


def count_fits(plans: Iterable[Sequence[ScoredSet]]) -> int:
    """Return the number of fits of a trial, each of them to other unlabeled texts."""
    return len({unlabeled for scored in plans for of_set in scored for _, unlabeled in of_set})


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
