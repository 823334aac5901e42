"""Protocols of the callables that plugins register."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from peekbench.records.runs import Resources

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from peekbench.records.data import Dataset, Folders, Inputs, Labeled, Task
    from peekbench.records.figures import Figure
    from peekbench.records.report import Analysis, Report
    from peekbench.records.runs import PlannedDesign
    from peekbench.records.trials import Context, Predictor


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

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, use_attribute_docstrings=True)


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


class CheckOptions(Protocol[O_contra]):
    """Function that checks options against the files on this machine, quickly and without a download.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.

    Raises
    ------
    SpecError, DataError
        If no run can succeed with these options, for example because a folder does not exist.
    """

    def __call__(self, *, options: O_contra, folders: Folders) -> None:
        """Check the options."""


class CheckData(Protocol[O_contra]):
    """Function that checks whether a method can use the rows of a task, before their kinds are compared.

    Parameters
    ----------
    dataset
        Rows of the task, of any kind.
    options
        Options from the spec.

    Raises
    ------
    DataError
        If no fit with these options can use them, for example because values are missing; with the remedy.
    """

    def __call__(self, dataset: Dataset, *, options: O_contra) -> None:
        """Check the rows."""


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


class Analyzer(Protocol[O_contra]):
    """Pure function of the results table.

    Parameters
    ----------
    results
        Results table, whose columns `peekbench.results` documents. It must not be changed.
    options
        Options from the spec.

    Returns
    -------
    Analysis
        Tables, figures and verdicts.

    Raises
    ------
    ResultsError
        If the table does not suffice.

    Notes
    -----
    The analyzer of an entry with `sees_looks` also receives `looks`, the looks at the run (`peekbench.records.Looks`).
    That of an entry with `sees_predictions` also receives `predictions`: the answers to single texts
    (`peekbench.records.Predictions`), or None if they are not known.
    """

    def __call__(self, results: pd.DataFrame, *, options: O_contra) -> Analysis:
        """Analyze the results."""


class Observe(Protocol[O_contra]):
    """Function that returns an observer of one run.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec file and of the cache.

    Returns
    -------
    object
        An object with one or more of these methods, which are called in this order, each with one argument:
        `run_started(event)` once with a `peekbench.records.RunStarted`, `trial_finished(event)` for each trial with a
        `peekbench.records.TrialFinished`, `analysis_finished(analysis)` for each analysis of the report with a
        `peekbench.Analysis`, and `run_finished(event)` once with a `peekbench.records.RunFinished`.
    """

    def __call__(self, *, options: O_contra, folders: Folders) -> object:
        """Return an observer."""


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


class ResourcesOf(Protocol[O_contra]):
    """Function that tells what a fit needs while it runs, for executors that place work on machines.

    Parameters
    ----------
    options
        Options from the spec.
    folders
        Folders of the spec and the cache.

    Returns
    -------
    Resources
        Cores, memory in bytes, and GPUs or a fraction of one.
    """

    def __call__(self, *, options: O_contra, folders: Folders) -> Resources:
        """Tell the needs."""


Form: TypeAlias = Literal["svg", "inline svg", "png"]
"""Form of a picture. 'svg': a file with title and note, for light and dark backgrounds. 'inline svg': part of an HTML
page, which has title and note as text and sets the color of text and axes (`currentColor`). 'png': a file with title
and note on a white background.
"""


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


class WriteReport(Protocol):
    """Function that writes a report in a format.

    Parameters
    ----------
    report
        Report to write. Hidden characters in its texts are escapes, and very long texts are shortened. A format that
        writes more than a report has calls `report.read_run`, and raises a PeekbenchError if that is None.
    path
        File to write, with the suffix of the entry; for an entry without a suffix, an empty folder to fill. The files
        must be the same for the same report. They replace earlier ones when the function has returned.

    Raises
    ------
    PeekbenchError
        If a library that the format needs is not installed, or the report lacks what the format needs.
    """

    def __call__(self, report: Report, path: Path) -> object:
        """Write the report."""


def is_estimator(thing: Any) -> bool:
    """Return whether an object is an estimator, not a class of estimators."""
    kind = type(thing)  # a StackingClassifier has no `predict` before its fit, but its class does
    return not isinstance(thing, type) and all(hasattr(kind, name) for name in ("fit", "predict", "get_params"))
