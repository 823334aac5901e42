"""Protocols of the callables that plugins register."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from peekbench.records.hosts import Capacity, Host, Resources
from peekbench.records.trials import TrialFailure, TrialResult, WorkItem

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records.analysis import Analysis
    from peekbench.records.data import Dataset, Folders, Inputs, Labeled, Task, TokenCounts
    from peekbench.records.figures import Figure
    from peekbench.records.trials import Context, PlannedDesign, Predictor


class Options(BaseModel):
    """Base class of a plugin's options, which users write under `options:` in a spec.

    Options are immutable, and unknown options are errors. The docstring below an option is shown to users.

    Raises
    ------
    pydantic.ValidationError
        If a value is invalid.

    Examples
    --------
    >>> import peekbench
    >>> from pydantic import Field
    >>> class Lsa(peekbench.Options):
    ...     num_components: int = Field(default=100, ge=1)
    >>> Lsa(num_components=10)
    Lsa(num_components=10)
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


O_contra = TypeVar("O_contra", bound=Options, contravariant=True)


class DataSource(Protocol[O_contra]):
    """Function that loads the labeled rows of a task.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.

    Returns
    -------
    Dataset
        The same rows in the same order at every call.

    Raises
    ------
    DataError
        If the rows cannot be loaded.
    """

    def __call__(self, *, options: O_contra, folders: Folders) -> Dataset:
        """Load the rows."""
        ...


class Pin(Protocol[O_contra]):
    """Function that finds the version of data or a model in use.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.

    Returns
    -------
    Mapping
        Options that select this version, such as `{"revision": "<full SHA>"}`.
    """

    def __call__(self, *, options: O_contra, folders: Folders) -> Mapping[str, Any]:
        """Find the version."""
        ...


class Prefetch(Protocol[O_contra]):
    """Function that downloads or builds all that a run needs, so that the run needs no network.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.

    Returns
    -------
    Mapping
        Facts for the report, such as a model's commit, as JSON values. If they have the key `sha256`, a mapping from
        files to digests, a run whose stored trials used other files is not continued.
    """

    def __call__(self, *, options: O_contra, folders: Folders) -> Mapping[str, Any]:
        """Download or build."""
        ...


class CountTokens(Protocol[O_contra]):
    """Function that counts a method's tokens in texts.

    Parameters
    ----------
    texts
        Texts, (n_texts,).
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.

    Returns
    -------
    TokenCounts
        Number of tokens of each text, and the method's limit.
    """

    def __call__(self, texts: Sequence[str], *, options: O_contra, folders: Folders) -> TokenCounts:
        """Count the tokens."""
        ...


class Method(Protocol[O_contra]):
    """Function that fits a method. It is not told which arm it is in.

    Parameters
    ----------
    unlabeled
        Unlabeled inputs, (n_test,), or None in the base arm.
    train
        Labeled train set.
    task
        Facts about the task.
    options
        Options from the spec.
    context
        Seed, number of threads and folders.

    Returns
    -------
    Predictor
        Predictor of class probabilities, (n_test, n_classes), or of targets, (n_test,).
    """

    def __call__(
        self, unlabeled: Inputs | None, train: Labeled, task: Task, *, options: O_contra, context: Context
    ) -> Predictor:
        """Fit the method."""
        ...


class Analyzer(Protocol[O_contra]):
    """Pure function of the results table.

    Parameters
    ----------
    results
        Results table, whose columns `peekbench.results` documents. It must not be changed.
    options
        Options from the spec.
    looks
        Looks at the run, as `peekbench.records.Looks`, only if the entry declares `sees_looks`.
    predictions
        Predictions of the run, as `peekbench.records.Predictions`, or None if the results are not from a run, only if
        the entry declares `sees_predictions`.

    Returns
    -------
    Analysis
        Tables, figures and verdicts.

    Raises
    ------
    ResultsError
        If the table does not suffice.
    """

    def __call__(self, results: pd.DataFrame, *, options: O_contra) -> Analysis:
        """Analyze the results."""
        ...


class Audit(Protocol[O_contra]):
    """Function that examines the tasks' data, without a run.

    Parameters
    ----------
    tasks
        All rows of each task by the task's name, in the order in which its data source gives them.
    options
        Options from the spec.
    context
        Seed, number of threads and folders.

    Returns
    -------
    Analysis
        Tables, figures and warnings.
    """

    def __call__(self, tasks: Mapping[str, Dataset], *, options: O_contra, context: Context) -> Analysis:
        """Examine the data."""
        ...


class Forecast(Protocol[O_contra]):
    """Function that forecasts what an analysis of a planned design can show.

    Parameters
    ----------
    design
        Design, before a run.
    options
        Options from the spec.

    Returns
    -------
    Analysis
        Tables and warnings.
    """

    def __call__(self, design: PlannedDesign, *, options: O_contra) -> Analysis:
        """Forecast the analysis."""
        ...


class ResourcesOf(Protocol[O_contra]):
    """Function that tells what a fit needs while it runs, for executors that place work on machines.

    Parameters
    ----------
    options
        Options from the spec.

    Returns
    -------
    Resources
        Cores, memory in bytes, and GPUs or a fraction of one.
    """

    def __call__(self, *, options: O_contra) -> Resources:
        """Tell the needs."""
        ...


THREADS_VARIABLE = "PEEKBENCH_THREADS"
"""Environment variable in which an executor gives the number of CPU threads that one fit may use."""

NODE_VARIABLE = "PEEKBENCH_NODE"
"""Environment variable in which an executor gives the name of a machine, instead of its host name."""

Outcome: TypeAlias = TrialResult | TrialFailure
"""Outcome of a trial."""

Event: TypeAlias = Outcome | Host | Capacity
"""What an executor yields: outcomes, and what does the work."""


class Work(Protocol):
    """The work of a run. An executor sends it, pickled, to processes on any machine, and calls it for each item.

    It limits BLAS and OpenMP to one thread, and its outcomes depend neither on the process nor on the order of items.

    Examples
    --------
    This executor does one item after the other:

    >>> def execute(items, work, *, options):
    ...     for item in items:
    ...         yield list(work(item))
    """

    @property
    def timeout(self) -> float | None:
        """Seconds that a trial may take; None if there is no limit. The executor ends a trial that takes longer."""
        ...

    def __call__(self, item: WorkItem) -> Iterator[Outcome]:
        """Load the data and the methods of an item, and return an iterator that runs its trials.

        Parameters
        ----------
        item
            Trials on one draw.

        Yields
        ------
        Outcome
            The outcome of each trial, in the order of the item, once the trial has ended; a `TrialFailure` if a method
            raises an exception.

        Raises
        ------
        PeekbenchError
            If the work cannot go on, because a plugin is missing or data have changed. End the run with this error.
        ContractError
            If the iterator of the item before is not exhausted. A copy of the work for each thread or process avoids
            this: `pickle.loads(pickle.dumps(work))`.
        """
        ...

    def prepare(self, data: Mapping[str, bytes] = ...) -> Host:
        """Prepare a machine other than that of the main process. Call it once per machine, before its first item.

        It imports the plugins, compares their code, the versions of libraries and the data with those of the main
        process, and downloads what the methods need.

        Parameters
        ----------
        data
            Return values of `pack_data`, by task, for tasks whose data this machine cannot read. All its processes
            then find the data in the cache.

        Returns
        -------
        Host
            What the machine is. The executor yields it before the first outcome of this machine.

        Raises
        ------
        MissingDataError
            If the machine cannot read the data of tasks. Call `prepare` again with these data.
        PeekbenchError
            If the machine differs from that of the main process, or cannot be prepared. It must not do any work.
        """
        ...

    def pack_data(self, task: str) -> bytes:
        """Return the data of a task, in the main process, for `prepare` on a machine that cannot read them."""
        ...

    def needs(self, item: WorkItem) -> Resources:
        """Return what the trials of an item need while they run."""
        ...


class Executor(Protocol[O_contra]):
    """Generator that does the work items of a run, in any order and in any process.

    Parameters
    ----------
    items
        Work items, each with one or several trials. Take an item when there is room for it, rather than all at once:
        after each batch of outcomes, the core decides which items remain. It calls the executor again if some do.
    work
        Function that does one item and yields the outcomes of its trials. It can be pickled.
    options
        Options from the spec. `peekbench run --workers` sets the option `workers`.

    Yields
    ------
    Sequence of Event
        Outcomes of one or several trials, which the core stores at once. To store takes as long as a quick trial, and
        outcomes that are not yielded are lost if the run is killed. Of a trial whose worker crashed for good, yield a
        `TrialFailure`. A trial that is yielded again is ignored; one that never is, ends the run with an error. The
        `Host` of each machine other than that of the main process precedes its outcomes, and a `Capacity` tells how
        many machines and workers there are. An empty sequence, about once a second, lets the core report that the work
        continues. Closing the generator must stop all work.
    """

    def __call__(
        self, items: Iterable[WorkItem], work: Work, *, options: O_contra
    ) -> Generator[Sequence[Event], None, None]:
        """Do the work."""
        ...


Form: TypeAlias = Literal["svg", "inline svg", "png"]
"""Form of a picture. 'svg': a file with title and note, for light and dark backgrounds. 'inline svg': part of an HTML
page, which has title and note as text and sets the color of text and axes (`currentColor`). 'png': a file with title
and note on a white background."""


class Renderer(Protocol):
    """Function that draws a figure.

    Parameters
    ----------
    figure
        Figure to draw.
    form
        Form of the picture.

    Returns
    -------
    bytes
        The picture: the same bytes for the same figure, with escaped texts.

    Raises
    ------
    PeekbenchError
        If a library that the renderer needs is not installed.
    """

    def __call__(self, figure: Figure, form: Form) -> bytes:
        """Draw the figure."""
        ...
