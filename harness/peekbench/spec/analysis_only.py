"""Specs that only analyze existing scores, such as published ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from peekbench.errors import ResultsError, SpecError
from peekbench.formatting import shorten
from peekbench.records.data import TableOptions
from peekbench.records.trials import Trial
from peekbench.spec.components import AnalysisSpec, ReportSpec, validate
from peekbench.spec.design import Counts, Name, Origin, SpecModel
from peekbench.spec.error_messages import MAX_MESSAGE
from peekbench.yaml_loader import read_text, read_yaml

if TYPE_CHECKING:
    import pandas as pd

EXPERIMENT_KEYS = ("tasks", "methods", "design")
"""Keys that only specs of experiments have."""


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


_ONE_OR_SEVERAL = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple), _ONE_OR_SEVERAL]


class Selection(SpecModel):
    """Selection of rows of a results table by their values; a column without values selects all rows."""

    task: Names = ()
    """Names of tasks."""
    method: Names = ()
    """Names of methods."""
    model: Names = ()
    """Names of language models."""
    num_train: Counts = ()
    """Numbers of train texts."""
    num_test: Counts = ()
    """Numbers of test texts."""

    def select_rows(self, results: pd.DataFrame) -> pd.DataFrame:
        """Return the selected rows of a results table.

        Raises
        ------
        ResultsError
            If a value does not occur in the table.
        """
        for column, values in self:
            for value in values:
                if not (results[column] == value).any():
                    known = shorten(", ".join(map(str, results[column].dropna().unique())), MAX_MESSAGE)
                    place = {"task": "--task, or only.task"}.get(column, f"only.{column}")
                    shown = shorten(repr(value), MAX_MESSAGE)
                    raise ResultsError(f"{place}: no score has {shown}; the scores have {known}")
            if values:
                results = results[results[column].isin(values)]
        return results.reset_index(drop=True)

    def select_trials(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials whose scores are among the selected rows."""
        return [
            trial
            for trial in trials
            if all(
                not values or value in values
                for values, value in (
                    (self.task, trial.draw.task), (self.method, trial.method),
                    (self.num_train, trial.draw.num_train), (self.num_test, trial.draw.num_test),
                )
            )
        ]  # fmt: skip


class AnalysisOnlySpec(SpecModel):
    """Analyses of existing scores."""

    name: Name
    """Name of the report and of its folder."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Meaning of columns of the table with names of their own, such as {seed: subsample}."""
    ignore: Names = ()
    """Columns of the table that say nothing about the scores."""
    pair_by_order: bool = False
    """Pair rows that have no number of the draw in the order in which they stand."""
    percent: bool = False
    """Read scores as percentages."""
    independent_tasks: bool = False
    """Different tasks have independent draws, although these have the same numbers."""
    earlier: Counts = ()
    """Subsamples per task, on average, at each earlier analysis of the table, if it was extended since."""
    only: Selection = Selection()
    """Selection of the scores; by default all."""
    analyses: Annotated[tuple[AnalysisSpec, ...], Field(min_length=1)]
    """Analyses of the report."""
    report: ReportSpec = ReportSpec()
    """Files of the report."""

    @property
    def table(self) -> TableOptions:
        """How to read the table."""
        return TableOptions(
            self.columns,
            self.ignore,
            self.pair_by_order,
            self.percent,
            self.independent_tasks,
            tasks=self.only.task,
            earlier=self.earlier,
        )


def is_analysis_only(path: Path) -> bool:
    """Return whether a YAML file is a spec that only analyzes scores; False if it cannot be read."""
    try:
        raw = read_yaml(read_text(path), str(path))
    except SpecError:
        return False
    return isinstance(raw, dict) and "analyses" in raw and raw.keys().isdisjoint(EXPERIMENT_KEYS)


def load_analysis_only(path: Path) -> AnalysisOnlySpec:
    """Read and validate a YAML spec that only analyzes scores.

    Parameters
    ----------
    path
        YAML file in UTF-8.

    Raises
    ------
    SpecError
        If the file cannot be read or is invalid; the message lists all errors with their places.
    """
    raw = read_yaml(read_text(path), str(path))
    return validate(AnalysisOnlySpec, raw, Origin(path.absolute().parent), str(path))
