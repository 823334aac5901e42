"""A spec of analyses alone: what to make of scores that are there already, such as published ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from peekbench.errors import ResultsError, SpecError
from peekbench.records.trials import Trial
from peekbench.spec.components import AnalysisSpec, Counts, Name, SpecModel
from peekbench.spec.error_messages import describe
from peekbench.spec.experiment import ReportSpec
from peekbench.spec.yaml_loader import read_yaml

if TYPE_CHECKING:
    import pandas as pd

OF_EXPERIMENTS = ("tasks", "methods", "design")


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


class Selection(SpecModel):
    """Rows of a results table: those with one of these values; all, where there are none."""

    task: Names = ()
    method: Names = ()
    model: Names = ()
    num_train: Counts = ()
    num_test: Counts = ()

    def of(self, results: pd.DataFrame) -> pd.DataFrame:
        """The rows of a table.

        Raises
        ------
        ResultsError
            Where a value does not occur.
        """
        for column, wanted in self:
            for value in wanted:
                if not (results[column] == value).any():
                    known = ", ".join(map(str, results[column].dropna().unique()))
                    raise ResultsError(f"only.{column}: no score has {value!r}; the scores have {known}")
            if wanted:
                results = results[results[column].isin(wanted)]
        return results.reset_index(drop=True)

    def among(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those of some trials whose scores are among the rows."""
        return [
            trial
            for trial in trials
            if all(
                not wanted or value in wanted
                for wanted, value in (
                    (self.task, trial.draw.task), (self.method, trial.method),
                    (self.num_train, trial.draw.num_train), (self.num_test, trial.draw.num_test),
                )
            )
        ]  # fmt: skip


class AnalysisOnlySpec(SpecModel):
    """What to make of scores that are there already."""

    name: Name
    """Names the report, and its folder."""
    only: Selection = Selection()
    """Which of the scores; by default all."""
    analyses: Annotated[tuple[AnalysisSpec, ...], Field(min_length=1)]
    report: ReportSpec = ReportSpec()


def is_analysis_only(path: Path) -> bool:
    """Whether a YAML file asks for analyses alone; not, where it cannot be read."""
    try:
        raw = read_yaml(path.read_text("utf-8"), str(path))
    except (OSError, ValueError, SpecError):
        return False
    return isinstance(raw, dict) and "analyses" in raw and not any(key in raw for key in OF_EXPERIMENTS)


def load_analysis_only(path: Path) -> AnalysisOnlySpec:
    """Read and validate a YAML spec of analyses.

    Raises
    ------
    SpecError
        Where the file cannot be read, is no YAML, or does not fit; the message lists every fault with its place.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot read the spec {path}: {error}; give the path of a YAML file in UTF-8") from error
    try:
        return AnalysisOnlySpec.model_validate(read_yaml(text, str(path)))
    except ValidationError as error:
        raise SpecError(
            f"{path} does not fit:\n{describe(error)}\n"
            "A spec of analyses has name and analyses, and if need be only and report"
        ) from error
