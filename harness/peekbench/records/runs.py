"""What is known of a run besides its trials: its design, looks at it, its machines, and the events of its course."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from peekbench.records.trials import Control, Trial

if TYPE_CHECKING:
    import pandas as pd

LookMethod: TypeAlias = Literal["group_sequential", "confidence_sequence"]
"""How verdicts account for planned looks."""

Settled: TypeAlias = Literal["biased", "equivalent"]
"""Kind of verdict at which a run may stop."""

Size: TypeAlias = tuple[str, int, int]
"""Method, num_train and num_test."""

OWN_FORMATS = ("html", "markdown", "json", "svg", "png")
"""Formats of reports of peekbench itself, whatever the names of plugins; 'svg' and 'png' are one picture per figure."""
DEFAULT_FORMATS = OWN_FORMATS[:3]


@dataclass(frozen=True, slots=True)
class Looks:
    """What an analysis needs to know about the looks at a run or a table.

    Examples
    --------
    The second of four planned looks:

    >>> looks = Looks(True, "group_sequential", fractions=(0.25, 0.5), maximum=100)
    >>> looks.fractions[-1]
    0.5

    A run that now has 40 trials of a method and was reported after 10 and after 20 of them:

    >>> Looks(True, earlier={("lsa", 50, 200): (10, 20)}).earlier_of("lsa", 50, 200)
    (10, 20)
    """

    is_run: bool = False
    """Whether a run computed the scores, so that they are not rounded; those of other tables may be."""
    method: LookMethod | Literal[""] = ""
    """How the design accounts for looks; empty if it plans none."""
    fractions: tuple[float, ...] = ()
    """Share of the maximum number of subsamples at every look so far, ascending. The last is the present one."""
    maximum: int = 0
    """Largest number of subsamples per task that the design planned at its first look."""
    earlier: Mapping[Size, tuple[int, ...]] = field(default_factory=dict)
    """Trials at earlier looks that no design planned, and after which their number was changed, by configuration."""
    of_methods: Mapping[str, Looks] = field(default_factory=dict)
    """Looks at the run of each method, if the results are those of several runs."""

    def of(self, method: str) -> Looks:
        """Return the looks at the run that a method is from."""
        return self.of_methods.get(method, self)

    @property
    def are_repeated(self) -> bool:
        """Whether a run was looked at before the present look."""
        return len(self.fractions) > 1 or any(
            (self.earlier, *(of_method.are_repeated for of_method in self.of_methods.values()))
        )

    def earlier_of(self, method: str, num_train: int | None, num_test: int | None) -> tuple[int, ...]:
        """Return the numbers of trials of a configuration at earlier unplanned looks, ascending."""
        return self.earlier.get((method, num_train or 0, num_test or 0), ())


@dataclass(frozen=True, slots=True)
class PlannedLook:
    """A planned look at the results of a run, and what it found."""

    subsamples: int
    """Subsamples per task, at the test size with the most."""
    maximum: int
    """Largest number of these subsamples that the design allows."""
    fraction: float
    """Share of the maximum at this look."""
    decisions: Mapping[str, str]
    """Verdicts on the bias by method, without controls."""
    stops: bool
    """Whether the verdict on every method is one at which the design stops."""


@dataclass(frozen=True, slots=True)
class DesignPoint:
    """One pair of sizes of a design, with the number of subsamples and the tasks drawn at it."""

    num_train: int
    """Number of labeled texts for training."""
    num_test: int
    """Number of test texts and of extra texts."""
    num_subsamples: int
    """Number of subsamples of each task; their harmonic mean if tasks differ."""
    tasks: tuple[str, ...]
    """Classification tasks only."""


@dataclass(frozen=True, slots=True)
class PlannedDesign:
    """The design of a spec, as far as it is known before a run.

    Examples
    --------
    >>> design = PlannedDesign(("lsa",), (DesignPoint(50, 200, 20, ("tickets",)),))
    >>> design.points[0].num_subsamples
    20
    """

    methods: tuple[str, ...]
    """Names of the methods without controls."""
    points: tuple[DesignPoint, ...]
    """Points at which at least one task scored by accuracy is drawn."""
    looks: Looks = field(default_factory=Looks)
    """All planned looks, at shares of `num_subsamples`."""
    num_scored_sets: int = 1
    """Sets that each trial scores, see `design.crossover`."""
    stops_at: tuple[Settled, ...] = ()
    """Verdicts at which the run stops early."""
    variances: Mapping[tuple[str, int, int], float] | None = None
    """With folds: variance of the bias between divisions by (method, num_train, num_test), as far as a pilot measured
    it. None without folds."""
    results: pd.DataFrame | None = None
    """Results of the run so far, if its store has any."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a trial needs while it runs.

    Examples
    --------
    >>> needs = Resources(gpus=0.5) | Resources(cpus=2)
    >>> needs.cpus, needs.gpus
    (2, 0.5)
    """

    cpus: float = 1
    """CPU cores."""
    memory: int = 0
    """Main memory in bytes; 0 if unknown."""
    gpus: float = 0
    """GPUs; several trials share one GPU if this is a fraction."""
    gpu_memory: int = 0
    """Memory of one GPU in bytes, by which the executor `local` lets trials share it; 0 if unknown."""
    is_estimate: bool = False
    """Whether `gpu_memory` is an estimate, and a fit may need more: workers then divide what is left of a GPU."""
    is_gpu_optional: bool = False
    """Whether trials also run on a machine without a GPU."""

    def __or__(self, other: Resources) -> Resources:
        """Return the larger of each need."""
        return Resources(
            max(self.cpus, other.cpus),
            max(self.memory, other.memory),
            max(self.gpus, other.gpus),
            max(self.gpu_memory, other.gpu_memory),
            self.is_estimate or other.is_estimate,
            all(needs.is_gpu_optional for needs in (self, other) if needs.gpus),
        )


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that does work of a run, as `Work.prepare` describes it."""

    name: str
    """Name that the outcomes of this machine have."""
    machine: Mapping[str, Any] = field(default_factory=dict)
    """Processor, cores, memory in bytes, and operating system, as JSON values."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions of the installed distributions that differ from those of the main process, by name."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Machines and workers that an executor has at present."""

    hosts: int
    """Number of machines."""
    workers: int
    """Number of workers on all machines."""


RunStatus: TypeAlias = Literal["finished", "failed", "interrupted"]
"""How a run ended: 'finished' if no trial failed in it, 'interrupted' by Ctrl-C or a signal, otherwise 'failed'."""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run starts, or is resumed.

    Examples
    --------
    >>> event = RunStarted("0f3a", "tickets", {"seed": 1}, Path("runs/tickets.sqlite"), planned=40, stored=0)
    >>> event.stored > 0  # whether the run is resumed
    False
    """

    store_id: str
    """Random id of the run's store, 32 hexadecimal digits, which a run keeps when it is resumed."""
    name: str
    """Name of the run, from its spec."""
    spec: Mapping[str, Any]
    """The spec as JSON values, with all defaults filled in."""
    store: Path
    """File with the results, as an absolute path."""
    planned: int
    """Trials of the spec, the stored ones included."""
    stored: int
    """Trials that the store already has. They have no `trial_finished`."""


@dataclass(frozen=True, slots=True)
class ArmScores:
    """Scores and costs of one arm of a trial."""

    scores: Mapping[str, float | int | None]
    """Scores by name, see `peekbench.results.SCORES`; None if a score is undefined for the kind of task."""
    metrics: Mapping[str, float]
    """Numbers that the method recorded."""
    fit_seconds: float
    """Seconds of the fit."""
    predict_seconds: float
    """Seconds of the predictions for the test inputs."""


@dataclass(frozen=True, slots=True)
class TrialFinished:
    """A trial has finished or failed, and is stored.

    Examples
    --------
    >>> from peekbench.records import Draw
    >>> event = TrialFinished(Trial(Draw("tickets", 50, 200, 0), "lsa"), number=1, planned=40, arms={}, error="OSError")
    >>> event.failed
    True
    """

    trial: Trial
    """The trial that finished or failed."""
    number: int
    """Number of the trial in the order in which trials finish, from 1. The trials that were already stored when the run
    started count first."""
    planned: int
    """Trials of the spec."""
    arms: Mapping[str, ArmScores]
    """Scores by arm; empty if the trial failed. The arm base is missing if the trial of another method on the same draw
    has it."""
    error: str = ""
    """Type and message of the error; empty if the trial did not fail."""

    @property
    def failed(self) -> bool:
        """Whether the trial failed."""
        return self.error != ""


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A run has ended, and its report, if there is one, is written."""

    status: RunStatus
    """How the run ended."""
    planned: int
    """Trials of the spec."""
    stored: int
    """Trials that were already stored when the run started."""
    finished: int
    """Trials that finished since then. The sum may be smaller than `planned` if the run stopped at a planned look."""
    failed: int
    """Trials that failed since then."""
    report: Path | None = None
    """Folder with the report's files, as an absolute path; None if there is no report."""
    error: str = ""
    """Type and message of the error that ended the run; empty if there is none."""


@dataclass(frozen=True, slots=True)
class StoredMethod:
    """What reports need of a method's entry."""

    control: Control
    """Role in testing the run itself; empty for other methods."""
    summary: str
    """One line for lists."""
    metrics: Mapping[str, str]
    """Descriptions, by name, of the metrics that the method's fits record."""
