"""The nouns that flow through peekbench: what sources return, methods get, runs store and analyses give.

Frozen records without behaviour. Accuracies and other scores are fractions, times are seconds. numpy is imported for
the type checker only, so that reading a spec stays quick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from peekbench.figures import Figure

    IntArray: TypeAlias = NDArray[np.int64]
    FloatArray: TypeAlias = NDArray[np.floating[Any]]
    Inputs: TypeAlias = Sequence[str] | FloatArray
    """Texts, or rows of features of shape (n, n_features)."""
else:  # plugins import these names at run time, where annotations are not evaluated
    IntArray = FloatArray = Inputs = Any

TaskKind: TypeAlias = Literal["classification", "regression"]
Control: TypeAlias = Literal["", "negative", "positive"]
"""What is known beforehand of a method: no bias (negative), a planted one (positive), or, as of all others, nothing."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a plugin may look for files and keep some."""

    spec: Path
    """Folder that relative paths in options start from: the spec file's own."""
    cache: Path
    """Folder for whatever is dear to compute and safe to delete."""


@dataclass(frozen=True, slots=True)
class SourceRef:
    """How a task's data are loaded: the entry in the data source plugin, and its options as the spec has them."""

    use: str
    options: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()


@dataclass(frozen=True, slots=True)
class Task:
    """What a method is told about the task at hand."""

    name: str
    """As in the spec and in every table."""
    kind: TaskKind
    class_names: tuple[str, ...]
    """In the order of the labels 0, 1, ...; empty for regression."""
    instruction: str
    """One or two sentences for prompts: what a text is and what to answer; may be empty."""
    source: SourceRef
    """Hand it to `peekbench.load_dataset` to load the task's data again, as somebody who has seen them would."""

    @property
    def num_classes(self) -> int:
        return len(self.class_names)


@dataclass(frozen=True, slots=True)
class Dataset:
    """All labeled rows of a task, from which train, extra and test are drawn."""

    inputs: Inputs
    """Texts, length n, or features of shape (n, n_features). Any sequence will do, a memory-mapped one too."""
    labels: Sequence[int] | IntArray | FloatArray
    """Shape (n,): class indices 0..C-1, or a regression's targets."""
    class_names: tuple[str, ...] = ()
    kind: TaskKind = "classification"
    instruction: str = ""
    fingerprint: str = ""
    """Identifies the content; where it is empty, the core hashes inputs and labels."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Whatever a reader of the run should know, JSON-serialisable. Reports show `dropped`, rows left out by reason,
    and `version`, or else `revision`, a commit."""


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What there is to say of a task without loading it; None or empty where it is not known."""

    num_classes: int | None = None
    num_rows: int | None = None
    characters: tuple[int, int] | None = None
    """25th and 75th percentile of the texts' lengths."""
    licence: str = ""
    class_names: tuple[str, ...] = ()
    instruction: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else is shown of a task that cannot be loaded here, as `Dataset.details`."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """How long texts are for a method."""

    counts: Sequence[int]
    """Tokens of each text, before any are cut off."""
    limit: int | None = None
    """Tokens that the method can see; those behind are cut off."""


@dataclass(frozen=True, slots=True)
class Labeled:
    """Inputs with their labels, of equal length."""

    inputs: Inputs
    labels: IntArray | FloatArray


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


# What an analysis gives.

Unit: TypeAlias = Literal["text", "count", "fraction", "difference", "spread", "number", "change", "p_value", "seconds"]
"""How a column is shown: a fraction as per cent, a difference of two fractions as signed percentage points, its spread
(a standard error) as points without a sign, a change (what two other numbers differ by) as it is, with its sign."""
Topic: TypeAlias = Literal["results", "methods", "data"]
Cell: TypeAlias = str | int | float | bool | None
Decision: TypeAlias = Literal["biased up", "biased down", "equivalent", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    unit: Unit = "text"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """What a reader must know to read it right; one paragraph."""
    topic: Topic = "results"
    """Which part of a report it belongs to."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an analysis concludes about one method."""

    method: str
    """As the report names it: the method's label, with its model where it has one."""
    effect: str
    """'bias' or 'boost', or what else was judged."""
    decision: Decision
    sentence: str
    """The conclusion in plain words, interval included."""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    """Coverage that [low, high] is meant to have."""
    region: float | None = None
    """Half-width of the region of practical equivalence around 0 that the decision was made with."""
    basis: str = ""
    """What it rests on, in a few words: '5 tasks, 250 trials'."""
    unit: Unit = "difference"
    """Of estimate, low, high and region: 'difference' for those of fractions, 'change' for others."""
    control: Control = ""
    """Whether it is on a method whose bias is known beforehand, so that it judges the run, not the method."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analyzer returns: no file, no printing, the report does that."""

    name: str
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    warnings: tuple[str, ...] = ()
    """What weakens the conclusions: holes in the design, failed diagnostics."""
    attachments: Mapping[str, Callable[[Path], None]] = field(default_factory=dict, repr=False, compare=False)
    """Files to stand next to the report: name to what writes it to a path. Called only when a report is written."""
