"""A run in Python: its results, predictions, failures and reports."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from peekbench.api.report_view import ReportView
from peekbench.data.labels import name_labels
from peekbench.errors import PeekbenchError, ResultsError, public
from peekbench.formatting import pluralize
from peekbench.records.answers import Predicted, find_answers, find_correct, find_true_probabilities
from peekbench.records.data import FloatArray, IntArray, Reference
from peekbench.records.trials import Trial
from peekbench.report.facts.reports import report_of_run
from peekbench.results.columns import COLUMNS, MAJORITY
from peekbench.results.paired_effects import paired_scores
from peekbench.results.read import load_results, read_store
from peekbench.store.reader import Store

if TYPE_CHECKING:
    from peekbench.execution.runner import RunSummary
    from peekbench.spec.experiment import ExperimentSpec

KEYS = ["method", "task", "num_train", "num_test", "subsample"]
"""Columns that identify a trial of a run."""
OF_TRIALS = [column.name for column in COLUMNS if not column.is_of_arm and column.name not in ("num_scored", MAJORITY)]
"""Columns of the results table that are those of all texts of a trial."""


class RunPredictions:
    """The predictions of a run, read from its store when they are asked for.

    Parameters
    ----------
    store
        Store of the run.

    Examples
    --------
    >>> import peekbench as pb
    >>> run = pb.load_run("quickstart")
    >>> rows = run.predictions.to_pandas(method="lsa-10", task="docstrings.numpy", subsample=0)
    >>> rows.groupby("arm")["probability"].count().to_dict()
    {'base': 400, 'extra': 400, 'test': 400}
    """

    def __init__(self, store: Path) -> None:
        self._store = store

    def __len__(self) -> int:
        """Return the number of finished trials."""
        with Store.open(self._store, verified=False) as store:
            return len(store.done())

    def __iter__(self) -> Iterator[Trial]:
        """Iterate over the finished trials in order of task, method, sizes and subsample."""
        with Store.open(self._store, verified=False) as store:
            done = store.done()
        return iter(sorted(done, key=lambda trial: (trial.draw.task, trial.method, *trial.draw[1:])))

    def __getitem__(self, trial: Trial) -> dict[str, Predicted]:
        """Return the predictions of a trial by arm.

        Raises
        ------
        KeyError
            If the trial is not finished.
        StoreError
            If predictions are missing, or are not those that were stored.
        """
        with Store.open(self._store, verified=False) as store:
            found = store.predictions(trial)
        if not found:
            raise KeyError(str(trial))
        return found

    @public
    def to_pandas(self, **where: Any) -> pd.DataFrame:
        """Return predictions as a table with one row for each test text in each arm, which `peekbench.analyze` takes.

        Parameters
        ----------
        **where
            Trials to read: a value, or a list or an array of values, of `method`, `task`, `num_train`, `num_test` and
            `subsample`.

        Returns
        -------
        pandas.DataFrame
            The columns of the results table that describe the trial, such as method, task and subsample; `arm`; `fit`,
            the number of the fit among those that predicted the text; `text`, the number of the text in the data of its
            task; `group`, that of its group, if a task has groups; `label`, its class or, in a multi-label task, tuple
            of labels; `prediction`; `correct`; and for classes `probability`, that of the prediction. In generation,
            `prediction` is the answer, or a tuple of several, and `grade` its mean grade; stores keep no references.
            Of other tasks, whose scores are no means over texts, `target` and `predicted_value`.

        Raises
        ------
        ResultsError
            If a name or a value is unknown.
        """
        trials = [trial for trial in self if _is_wanted(trial, where)]
        if not trials:
            raise ResultsError(
                f"no finished trial has {where or 'predictions'}; `list(run.predictions)` has the finished trials, and "
                "`run.failures` the errors of the others"
            )
        with Store.open(self._store, verified=False) as store:
            class_names = {task: facts["class_names"] for task, facts in store.tasks().items()}
            tables = [table for trial in trials for table in _as_tables(store, trial, class_names[trial.draw.task])]
            facts = read_store(store)[OF_TRIALS].drop_duplicates()
        rows = pd.concat(tables, ignore_index=True)
        if "group" in rows:  # in other tasks, each text is a group
            rows["group"] = rows["group"].fillna(rows["text"]).astype("int64")
        return facts.merge(rows, on=KEYS, how="right", validate="one_to_many")

    def __repr__(self) -> str:
        """Return the number of trials."""
        return f"<predictions of {pluralize(len(self), 'trial')}; to_pandas(method=..., task=...) reads them>"


def key_of(trial: Trial) -> dict[str, Any]:
    """Return the values that identify a trial, by column."""
    return {"method": trial.method, **trial.draw._asdict()}


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return list(value)
    return [value]


def _is_wanted(trial: Trial, where: dict[str, Any]) -> bool:
    key = key_of(trial)
    if unknown := where.keys() - key.keys():
        raise ResultsError(f"predictions are not told apart by {min(unknown)!r}; use one of {', '.join(KEYS)}")
    return all(key[name] in _as_list(value) for name, value in where.items())


def _as_tables(store: Store, trial: Trial, class_names: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Yield the predictions of a trial, one table for each arm."""
    (labels, texts), groups = store.test_rows(trial.draw), store.test_groups(trial.draw)
    generated = store.generated(trial)
    for arm, values in store.predictions(trial).items():
        fits, positions = np.divmod(np.arange(len(values)), len(texts))  # several fits predict the same texts
        columns: dict[str, Any] = {**key_of(trial), "arm": arm, "fit": fits, "text": texts[positions]}
        if groups is not None:
            columns["group"] = groups[positions]
        columns |= _describe_answers(labels[positions], values, class_names, generated.get(arm))
        yield pd.DataFrame(columns)


def _describe_answers(
    labels: IntArray | FloatArray, values: Predicted, class_names: Sequence[str], answers: list[Reference] | None
) -> dict[str, Any]:
    """Return the columns about answers, by name."""
    if answers is not None:
        return {"prediction": answers, "grade": values.numbers}
    if not class_names:
        return {"target": labels, "predicted_value": values.numbers}
    columns: dict[str, Any] = {
        "label": name_labels(labels, class_names),
        "prediction": name_labels(find_answers(values, labels), class_names),
        "correct": find_correct(values, labels),
    }
    if labels.ndim == 1:
        columns["probability"] = find_true_probabilities(values.numbers, find_answers(values, labels))
    return columns


class Run:
    """A run with its results.

    `peekbench.run`, `peekbench.measure` and `peekbench.load_run` return it.

    Parameters
    ----------
    spec
        Spec of the run.
    summary
        The store and the numbers of trials.

    Examples
    --------
    >>> import peekbench as pb
    >>> run = pb.load_run("quickstart")
    >>> float(run.arms.groupby("method")["bias"].mean()["controls.null"])
    0.0
    >>> report = run.report()  # at the end of a cell of a notebook, it shows its verdicts; so does `run`
    >>> len(report.verdicts)
    5
    """

    def __init__(self, spec: ExperimentSpec, summary: RunSummary) -> None:
        self.spec = spec
        """The experiment."""
        self.name = spec.name
        """Name of the run."""
        self.summary = summary
        """The numbers of trials, methods that were stopped, and planned looks."""
        self.store = summary.store.absolute()  # the notebook may change its folder
        """Full path of the SQLite file of the run."""
        self.planned = summary.planned
        """Number of trials of the spec."""
        self.resumed = summary.resumed
        """Number of trials that the store already had."""
        self.finished = summary.finished
        """Number of trials that this call has finished."""
        self.failed = summary.failed
        """Number of trials that failed; `failures` has their errors."""

    @cached_property
    def results(self) -> pd.DataFrame:
        """The results table: one row for each arm of each finished trial, see `peekbench.results.COLUMNS`."""
        return load_results(self.store)

    @cached_property
    def arms(self) -> pd.DataFrame:
        """One row for each trial, with the scores of its arms side by side, the boost and the bias, as fractions."""
        if self.results.empty:
            return pd.DataFrame(columns=[*KEYS, "base", "extra", "test", "boost", "bias"])
        return paired_scores(self.results)

    @property
    def predictions(self) -> RunPredictions:
        """Predictions for the test texts, which are read when they are asked for."""
        return RunPredictions(self.store)

    @property
    def failures(self) -> pd.DataFrame:
        """One row for each failed trial, with its error and traceback."""
        with Store.open(self.store, verified=False) as store:
            failures = store.failures()
        rows = [{**key_of(found.trial), "error": found.error, "traceback": found.traceback} for found in failures]
        return pd.DataFrame(rows, columns=[*KEYS, "error", "traceback"])

    @public
    def report(self, analyses: Sequence[str] | None = None, *, allow_incomplete: bool = False) -> ReportView:
        """Analyze the run.

        Parameters
        ----------
        analyses
            Names of the analyses; by default those of the spec.
        allow_incomplete
            Analyze a run with missing trials; a run with failed trials is always analyzed. The report warns of both.

        Returns
        -------
        ReportView
            Verdicts, tables and figures. A notebook shows them.

        Raises
        ------
        ResultsError
            If trials are missing and that is not allowed.
        """
        try:
            report = report_of_run(
                self.store, allow_incomplete=allow_incomplete, analyses=analyses or (), given=self.spec.code
            )
            return ReportView(report)
        except ResultsError as error:
            raise error.in_python() from error

    def _repr_html_(self) -> str:
        """Return the report, or why there is none. Showing a report is a look at the results, which the store keeps."""
        try:
            return self.report()._repr_html_()
        except PeekbenchError as error:
            return f"<pre>{html.escape(f'{self}: {error}')}</pre>"

    def __repr__(self) -> str:
        """Return the name and the numbers of trials."""
        done = f"{self.resumed + self.finished:,} of {pluralize(self.planned, 'trial')} done"
        if self.failed:
            done += f", {self.failed:,} failed"
        return f"<run {self.name}: {done}, in {self.summary.store}>"
