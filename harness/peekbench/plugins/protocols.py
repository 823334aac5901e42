"""What the callables that a plugin registers must look like."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from peekbench.records.trials import TrialFailure, TrialResult, WorkItem

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records.analysis import Analysis
    from peekbench.records.data import Dataset, Folders, Inputs, Labeled, Task, TokenCounts
    from peekbench.records.figures import Figure
    from peekbench.records.trials import Context, PlannedDesign, Predictor


class Options(BaseModel):
    """Root of every plugin's options: what a user writes under `options:` in a spec."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


O_contra = TypeVar("O_contra", bound=Options, contravariant=True)


class DataSource(Protocol[O_contra]):
    """Loads a task's labeled rows; the same rows in the same order every time."""

    def __call__(self, *, options: O_contra, folders: Folders) -> Dataset: ...


class Pin(Protocol[O_contra]):
    """Says which options tie a thing to the version that is used here and now, such as `{"revision": "<full SHA>"}`."""

    def __call__(self, *, options: O_contra, folders: Folders) -> Mapping[str, Any]: ...


class Prefetch(Protocol[O_contra]):
    """Downloads or makes whatever is going to be needed, so that it is there without a network.

    Returns what a reader of the run should know of it, such as a model's commit; JSON values.
    """

    def __call__(self, *, options: O_contra, folders: Folders) -> Mapping[str, Any]: ...


class CountTokens(Protocol[O_contra]):
    """Counts a method's tokens in each text."""

    def __call__(self, texts: Sequence[str], *, options: O_contra, folders: Folders) -> TokenCounts: ...


class Method(Protocol[O_contra]):
    """Fits on the labeled train set and on unlabeled inputs, if there are any, and returns a predictor.

    A method is not told which arm it is in. `unlabeled` is None in the base arm.
    """

    def __call__(
        self, unlabeled: Inputs | None, train: Labeled, task: Task, *, options: O_contra, context: Context
    ) -> Predictor: ...


class Analyzer(Protocol[O_contra]):
    """A pure function of the results table, whose columns `peekbench.results` documents."""

    def __call__(self, results: pd.DataFrame, *, options: O_contra) -> Analysis: ...


class Audit(Protocol[O_contra]):
    """Examines tasks' data as they are, which needs no run.

    Parameters
    ----------
    tasks
        All rows of each task by the task's name, in the order in which its data source gives them.
    """

    def __call__(self, tasks: Mapping[str, Dataset], *, options: O_contra, context: Context) -> Analysis: ...


class Forecast(Protocol[O_contra]):
    """Says what an analysis can be expected to show of a design, before anything is run."""

    def __call__(self, design: PlannedDesign, *, options: O_contra) -> Analysis: ...


THREADS_VARIABLE = "PEEKBENCH_THREADS"
"""Environment variable by which an executor tells how many threads one fit may keep busy."""

Outcome: TypeAlias = TrialResult | TrialFailure


class Executor(Protocol[O_contra]):
    """Does the work items, in any order and anywhere, and yields the outcomes as they come, of one item or several.

    What is yielded at once is stored at once. Each time costs as much as a quick trial; what is not yielded is lost
    when the run is killed.

    `work` can be pickled, takes one item and returns its outcomes; it never raises for a method's faults. An item whose
    worker dies for good is yielded as one `TrialFailure` a trial. Closing the iterator stops all work. `work` itself
    holds BLAS and OpenMP to one thread, wherever it is called.
    """

    def __call__(
        self, items: Iterable[WorkItem], work: Callable[[WorkItem], Sequence[Outcome]], *, options: O_contra
    ) -> Generator[Sequence[Outcome], None, None]: ...


Form: TypeAlias = Literal["svg", "inline svg", "png"]
"""Of a picture. 'svg': a file, with title and note, readable on light and dark ground. 'inline svg': to stand in a
page, which brings title and note and sets the color of text and axes (`currentColor`). 'png': with title and note, on
white."""


class Renderer(Protocol):
    """Draws a figure: the same bytes for the same figure, its texts escaped.

    Raises PeekbenchError where the library that it draws with is not installed.
    """

    def __call__(self, figure: Figure, form: Form) -> bytes: ...
