"""Numbers of docs/atlas.json, as records."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

State: TypeAlias = Literal["judged", "inert", "at chance", "control"]


class Record(BaseModel):
    """A record that does not change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Effect(Record):
    """A mean difference between two arms, with the interval and the decision of `summary`."""

    mean: float
    low: float | None = None
    high: float | None = None
    decision: str = ""

    @property
    def sign(self) -> int:
        """1 or -1 if the interval excludes zero, else 0."""
        return (self.low is not None and self.low > 0) - (self.high is not None and self.high < 0)


class Method(Record):
    """One method on all tasks of a section."""

    name: str
    spec: str
    options: str
    """Options that differ from the defaults of the method, as JSON; empty if there are none."""
    state: State
    subsamples: int
    """Subsamples per task."""
    majority: float | None
    """Share of the most frequent class; None for language modeling."""
    base: float
    extra: float
    boost: Effect
    bias: Effect
    detectable: float | None
    """Smallest average bias that the run detects with a power of 80% at a level of 5%."""
    boosts: dict[str, Effect]
    """Boost on each task."""
    biases: dict[str, Effect]
    """Bias on each task."""
    seconds: float | None = None
    """Duration of the fits and predictions in a published table, one after the other, in seconds, if it has them."""


class Task(Record):
    """Data of one task."""

    rows: int
    classes: int | None
    """Number of classes; None for language modeling."""
    near_duplicates: float | None
    """Share of test texts with a near duplicate among the extra texts."""
    fingerprint: str
    """Hash of the texts and labels, shortened."""


class Section(Record):
    """Methods on the same tasks with the same sizes."""

    num_train: int
    num_test: int
    methods: list[Method]
    selection: Effect | None
    """Score of the method that is best on the scored texts, minus that of the method that is best on as many others."""

    def of_state(self, *states: State) -> list[Method]:
        """Return the methods in one of these states."""
        return [method for method in self.methods if method.state in states]


class Run(Record):
    """A finished run of a spec."""

    commit: str
    machine: str
    seconds: float
    """Duration of the fits and predictions, one after the other, in seconds."""


class Atlas(Record):
    """All numbers of the atlas."""

    runs: dict[str, Run]
    """Finished runs by spec."""
    tasks: dict[str, Task]
    """Data by the name of the task."""
    sections: dict[str, Section]
    words: Effect | None = None
    """Mean bias of LSA with the words of the train texts, minus that with all words."""
    placebo: float | None = None
    """Pairs of method and task of the replication that are biased, on average, if no bias is left."""


class Cell(Record):
    """A method on one official test set. Scores are fractions of right answers."""

    method: str
    task: str
    state: State
    base: float
    usual: float
    """Score of a fit that adapts to the whole test set."""
    publish: Effect
    """Score of texts that the fit did not adapt to, with an interval for other texts."""
    balanced: tuple[float, float]
    """Means over classes of the usual score and of the score to publish."""
    boost: float
    bias: Effect
    """On these texts."""
    others: Effect
    """The same bias for other texts of this kind."""
    seconds: float
    """CPU time of a fit and its predictions."""


class TestSet(Record):
    """An official test set and the methods of a spec."""

    train: int
    test: int
    classes: int
    majority: float
    methods: list[Cell]
    controls: dict[str, Effect]
    """Bias of the negative and the positive control."""
    order: dict[str, float]
    """Share of pairs of methods in another order than on the scores to publish, by what changes it."""


class Size(Record):
    """Factor by which the size of the bias changes if a quantity doubles, with an interval for other tasks."""

    quantity: str
    factor: Effect


class Official(Record):
    """Numbers of the official test sets and of the regression on sizes."""

    runs: dict[str, Run]
    sets: dict[str, dict[str, TestSet]]
    """Test sets by spec and task."""
    sizes: list[Size]
