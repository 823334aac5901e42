"""Spec to trials: what is to be done, which arm sees which unlabeled rows, and what it will cost."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from peekbench.records.trials import DesignPoint, Draw, PlannedDesign, Trial, WorkItem

if TYPE_CHECKING:
    from peekbench.spec.design import Design
    from peekbench.spec.experiment import ExperimentSpec


def make_trials(spec: ExperimentSpec) -> Iterator[Trial]:
    """Every trial of the spec, subsample by subsample, so that a run cut short is balanced over tasks and methods."""
    designs = {task.name: spec.design_of(task) for task in spec.tasks}
    return list_trials(designs, [method.name for method in spec.methods])


def list_trials(designs: Mapping[str, Design], methods: Sequence[str]) -> Iterator[Trial]:
    """The same from each task's design and the methods' names."""
    points = {
        task: [(num_train, num_test, design.repeats(num_test)) for num_train, num_test in design.points()]
        for task, design in designs.items()
    }
    most = max(repeats for sizes in points.values() for _, _, repeats in sizes)
    for subsample in range(most):
        for task, sizes in points.items():
            for num_train, num_test, repeats in sizes:
                if subsample < repeats:
                    draw = Draw(task, num_train, num_test, subsample)
                    for method in methods:
                        yield Trial(draw, method)


def group(
    trials: Iterable[Trial], base_keys: Mapping[str, str], stored: Container[tuple[Draw, str]]
) -> Iterator[WorkItem]:
    """Gather neighboring trials on one draw whose methods share a base arm.

    Parameters
    ----------
    base_keys
        `MethodSpec.base_key()` by method name.
    stored
        (draw, base key) of base arms that need not be computed again.
    """
    for draw, neighbors in groupby(trials, key=attrgetter("draw")):
        families: dict[str, list[Trial]] = {}
        for trial in neighbors:
            families.setdefault(base_keys[trial.method], []).append(trial)
        for base_key, family in families.items():
            yield WorkItem(tuple(family), has_base=(draw, base_key) in stored)


def planned_design(
    spec: ExperimentSpec, num_classes: Mapping[str, int], seconds: Mapping[tuple[str, int, int], float]
) -> PlannedDesign:
    """What the spec asks for, with the times of a pilot where there was one.

    Parameters
    ----------
    num_classes
        By task; 0 for regression.
    """
    drawn: dict[tuple[int, int], list[str]] = {}
    for task in spec.tasks:
        for point in spec.design_of(task).points() if num_classes[task.name] else ():
            drawn.setdefault(point, []).append(task.name)
    points = (
        DesignPoint(*point, spec.design.repeats(point[1]), tuple(tasks)) for point, tasks in sorted(drawn.items())
    )
    judged = tuple(method.name for method in spec.methods if not method.entry.control)
    return PlannedDesign(judged, tuple(points), seconds)


@dataclass(frozen=True, slots=True)
class Size:
    """How much work a spec is."""

    trials: int
    fits: int
    """Models to fit, shared base arms counted once."""
    bytes: int
    """What the store will take, roughly."""


ROW_BYTES = 1750  # of a trial in SQLite besides its predictions, measured with three arms and no metrics


def measure(spec: ExperimentSpec, num_outputs: dict[str, int]) -> Size:
    """Count trials, fits and bytes.

    Parameters
    ----------
    num_outputs
        Numbers predicted for one input, by task: the number of classes, or 1.
    """
    arms_without_base = sum(arm.kind != "base" for arm in spec.arms)
    has_base = arms_without_base < len(spec.arms)
    bases = len({method.base_key() for method in spec.methods}) if has_base else 0
    fits_per_draw = arms_without_base * len(spec.methods) + bases
    trials = fits = size = 0
    for task in spec.tasks:
        design = spec.design_of(task)
        is_regression = num_outputs[task.name] == 1
        prediction_bytes = 8 if is_regression else 4 * num_outputs[task.name]
        for _, num_test in design.points():
            repeats = design.repeats(num_test)
            trials += repeats * len(spec.methods)
            fits += repeats * fits_per_draw
            size += repeats * (fits_per_draw * num_test * prediction_bytes + len(spec.methods) * ROW_BYTES)
            size += repeats * num_test * 4 * is_regression  # targets take twice as much as indices of classes
    return Size(trials, fits, size)
