"""Compares the numbers of scored sets, `design.crossover`, by the time that each takes for the same power."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Any, Literal, TypeAlias

from peekbench.data.loading import load_dataset
from peekbench.data.preflight import check_sizes
from peekbench.errors import DataError, SpecError
from peekbench.formatting import pluralize
from peekbench.records.trials import ArmResult
from peekbench.spec.experiment import ExperimentSpec, canonical, make_spec

Crossover: TypeAlias = Literal[False] | int
"""Value of `design.crossover`."""
CHOICES: tuple[Crossover, ...] = (False, 2, 3, 5, 10)
"""Values that are compared, besides the spec's own."""
MIN_DEGREES = 20
"""Degrees of freedom that a choice must leave. With fewer, intervals are more than 6% wider for this reason alone."""
TOLERANCE = 0.1
"""Share of the time that a choice must save to be recommended."""


@dataclass(frozen=True, slots=True)
class TrialTimes:
    """Seconds of the parts of a trial.

    Examples
    --------
    >>> times = TrialTimes(base_fit=1.0, base_predict=0.5, fit=2.0, predict=0.5)
    >>> times.seconds(False), times.seconds(2)
    (6.5, 8.0)
    """

    base_fit: float
    """Fit of the base arm; 0 if the trial has none, or shares that of another method."""
    base_predict: float
    """Prediction of one set by this fit."""
    fit: float
    """A fit that adapts to a set."""
    predict: float
    """Prediction of one set by such a fit."""

    @classmethod
    def of(cls, arms: Sequence[ArmResult], crossover: Crossover) -> TrialTimes:
        """Divide the times of the arms base, extra and test of a trial among their fits and predictions."""
        sets = crossover or 1
        base = next((arm for arm in arms if arm.arm == "base"), None)
        adapted = [arm for arm in arms if arm.arm in ("extra", "test")]
        return cls(
            0.0 if base is None else base.fit_seconds,
            0.0 if base is None else base.predict_seconds / sets,
            sum(arm.fit_seconds for arm in adapted) / (crossover or 2),
            sum(arm.predict_seconds for arm in adapted) / (crossover**2 or 2),
        )

    @classmethod
    def mean(cls, times: Sequence[TrialTimes]) -> TrialTimes:
        """Return the mean times of several trials."""
        return cls(*(fmean(getattr(each, field.name) for each in times) for field in fields(cls)))

    def seconds(self, crossover: Crossover) -> float:
        """Return the seconds of a trial with another number of sets."""
        sets, fits, predictions = (crossover, crossover, crossover**2) if crossover else (1, 2, 2)
        return self.base_fit + sets * self.base_predict + fits * self.fit + predictions * self.predict


def information(crossover: Crossover) -> float:
    """Return the information of a trial on the bias, in units of the inverse variance of one score of one fit.

    A score is the sum of the difficulty of the set, the quality of the fit, the bias if the fit adapted to the set, and
    noise of variance v. With K sets, difficulty and quality cancel. `test` averages K scores and `extra` the other
    K (K - 1), so the variance of their difference is v / K + v / (K (K - 1)) = v / (K - 1). With one set, it is 2 v
    plus the variances of the qualities of both fits, which are left out here in favor of one set.
    """
    return crossover - 1.0 if crossover else 0.5


@dataclass(frozen=True, slots=True)
class SetChoice:
    """The choices of `design.crossover` for a spec."""

    current: Crossover
    """The spec's own."""
    costs: Mapping[str, Mapping[Crossover, float]]
    """By method, seconds of the choices that the spec and its data allow, for the power that the spec has now."""
    excluded: Mapping[Crossover, str]
    """Reasons why other choices are not possible."""

    @property
    def relative(self) -> dict[Crossover, float]:
        """Time of each choice for all methods, relative to the spec's own."""
        return relative_times(self.costs.values(), self.current)

    @property
    def best(self) -> Crossover:
        """Recommended choice for all methods."""
        return recommend(self.relative, self.current)

    def best_by_method(self) -> dict[str, Crossover]:
        """Return the choice that would be recommended for each method alone."""
        return {
            method: recommend(relative_times([costs], self.current), self.current)
            for method, costs in self.costs.items()
        }


def relative_times(costs: Iterable[Mapping[Crossover, float]], current: Crossover) -> dict[Crossover, float]:
    """Return the time of each choice relative to the current one, summed over methods."""
    total: dict[Crossover, float] = {}
    for by_choice in costs:
        for choice, seconds in by_choice.items():
            total[choice] = total.get(choice, 0.0) + seconds
    return {choice: seconds / total[current] for choice, seconds in total.items()}


def recommend(relative: Mapping[Crossover, float], current: Crossover) -> Crossover:
    """Return the current choice unless another one saves time, and otherwise the smallest of about equal choices.

    Examples
    --------
    >>> recommend({False: 2.0, 2: 1.0, 3: 0.75, 5: 0.7}, 2), recommend({2: 1.0, 3: 0.95}, 2)
    (3, 2)
    """
    cheapest = min(relative.values())
    if cheapest >= 1 - TOLERANCE:
        return current
    about_equal = [choice for choice, time in relative.items() if choice and time <= cheapest * (1 + TOLERANCE)]
    return min(about_equal, default=False)


def compare(
    spec: ExperimentSpec, times: Mapping[tuple[str, int, int], TrialTimes], trials: Mapping[tuple[str, int, int], int]
) -> SetChoice | None:
    """Compare the choices of a spec.

    Parameters
    ----------
    spec
        The spec.
    times
        Mean times of a trial by method, num_train and num_test.
    trials
        Number of trials, by the same keys.

    Returns
    -------
    SetChoice or None
        None if nothing was measured, or the spec has other arms than base, extra and test.
    """
    current = spec.design.crossover
    if any(arm.name not in ("base", "extra", "test") for arm in spec.arms):
        return None
    allowed: list[Crossover] = []
    excluded: dict[Crossover, str] = {}
    for choice in sorted({*CHOICES, current}):
        reason = "" if choice == current else find_obstacle(spec, choice)
        if reason:
            excluded[choice] = reason
        else:
            allowed.append(choice)
    costs: dict[str, dict[Crossover, float]] = {}
    for key, parts in times.items():
        of_method = costs.setdefault(key[0], {})
        for choice in allowed:
            ratio = information(current) / information(choice)
            of_method[choice] = of_method.get(choice, 0.0) + trials[key] * ratio * parts.seconds(choice)
    costs = {method: by_choice for method, by_choice in costs.items() if by_choice[current] > 0}
    return SetChoice(current, costs, excluded) if costs else None


def with_crossover(spec: ExperimentSpec, choice: Crossover) -> ExperimentSpec:
    """Return the spec with another number of sets, and the subsamples that then have the same information.

    Raises
    ------
    SpecError
        If the spec does not allow this, for example because of its planned looks.
    """
    ratio = information(spec.design.crossover) / information(choice)

    def scale(number: Any) -> Any:
        if isinstance(number, Mapping):
            return {size: scale(each) for size, each in number.items()}
        return None if number is None else math.ceil(number * ratio - 1e-9)

    raw = canonical(spec)
    design = {**raw["design"], "crossover": choice, "num_subsamples": scale(raw["design"]["num_subsamples"])}
    tasks = [{**task, "num_subsamples": scale(task["num_subsamples"])} for task in raw["tasks"]]
    return make_spec({**raw, "design": design, "tasks": tasks}, folder=spec.folder)


def find_obstacle(spec: ExperimentSpec, choice: Crossover) -> str:
    """Return why a spec cannot have a number of sets; empty if it can."""
    try:
        other = with_crossover(spec, choice)
    except SpecError:
        return "not with these planned looks"
    for task in other.tasks:
        try:
            check_sizes(load_dataset(spec.source(task)), other.design_of(task), task.name)
        except DataError:
            return f"too few rows in task {task.name}"
    if information(choice) > information(spec.design.crossover):
        for num_test in other.design.num_test:
            designs = [design for design in map(other.design_of, other.tasks) if num_test in design.num_test]
            repeats = [design.repeats(num_test) for design in designs]
            if designs and sum(repeats) - len(repeats) < MIN_DEGREES:
                return f"would leave {pluralize(min(repeats), 'subsample')} per task"
    return ""
