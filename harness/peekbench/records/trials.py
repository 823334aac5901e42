"""What is drawn, fitted and scored: the units of work and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from peekbench.records.data import FloatArray, Folders, Inputs, IntArray


Control: TypeAlias = Literal["", "negative", "positive"]
"""What is known beforehand of a method: no bias (negative), a planted one (positive), or, as of all others, nothing."""


@dataclass(frozen=True, slots=True)
class Context:
    """The circumstances of one fit."""

    seed: int
    """Derived from the trial, so that neither the worker nor the order of work changes a number; below 2**32."""
    threads: int
    """CPU threads that this fit may keep busy. BLAS and OpenMP pools are limited to one thread anyway, see docs."""
    folders: Folders


@dataclass(frozen=True, slots=True)
class Predictor:
    """A fitted model."""

    predict: Callable[[Inputs], FloatArray]
    """Inputs to probabilities of shape (n, n_classes) in the order of `Task.class_names`, or to shape (n,) for
    regression. What it says of one input must not depend on the others that it is given."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers worth keeping with the arm: training losses, sizes."""


@dataclass(frozen=True, slots=True)
class Subsample:
    """Row numbers of one draw; disjoint, each in the order drawn."""

    train: IntArray
    extra: IntArray
    test: IntArray


@dataclass(frozen=True, slots=True)
class Draw:
    """Names one draw from one task: what the arms of a trial, and the trials of several methods, have in common."""

    task: str
    num_train: int
    num_test: int
    subsample: int


@dataclass(frozen=True, slots=True)
class Trial:
    """The unit of work: one method on one draw, all arms."""

    draw: Draw
    method: str

    def __str__(self) -> str:
        draw = self.draw
        return (
            f"task {draw.task}, method {self.method}, num_train {draw.num_train}, "
            f"num_test {draw.num_test}, subsample {draw.subsample}"
        )


@dataclass(frozen=True, slots=True)
class WorkItem:
    """Trials on one draw whose methods share a base arm, and so are best done together."""

    trials: tuple[Trial, ...]
    has_base: bool
    """Whether that base arm is in the store already."""


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """One size of a design, and how often it is drawn from each of which tasks."""

    num_train: int
    num_test: int
    num_subsamples: int
    tasks: tuple[str, ...]
    """Classification only."""


@dataclass(frozen=True, slots=True)
class PlannedDesign:
    """What a spec asks for, as far as it is known before anything is run."""

    methods: tuple[str, ...]
    """Without controls."""
    points: tuple[DesignPoint, ...]
    """Those at which a task is drawn that is scored by accuracy."""
    seconds: Mapping[tuple[str, int, int], float] = field(default_factory=dict)
    """Of a trial by (method, num_train, num_test), where one was timed."""


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One fitted and scored model."""

    arm: str
    num_correct: int | None
    """None for regression."""
    score: float
    """Accuracy as a fraction, or R^2."""
    log_loss: float | None
    """Mean negative natural log-probability of the true class; this and the next two None for regression."""
    brier: float | None
    """Mean over texts of the squared distance of the probabilities from the truth, from 0 to 2."""
    macro_f1: float | None
    """Mean of F1 over classes."""
    fit_seconds: float
    predict_seconds: float
    metrics: Mapping[str, float]
    predictions: FloatArray
    """float32 (n_test, n_classes), or float64 (n_test,) for regression; scores are computed from just these numbers."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A finished trial, stored whole or not at all."""

    trial: Trial
    test_labels: IntArray | FloatArray
    arms: tuple[ArmResult, ...]
    """In the spec's order. Without the base arm where another method's trial on the same draw has it already."""


@dataclass(frozen=True, slots=True)
class TrialFailure:
    """A trial that could not be finished, and why."""

    trial: Trial
    error: str
    traceback: str
