"""The JSON Schema of report.json.

The version increases if a field is renamed, removed or changes its meaning. A new field does not change it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from peekbench.records.analysis import Table, Verdict
from peekbench.records.figures import Figure
from peekbench.report.document import MethodFacts

SCHEMA_VERSION = 4


class FailureDocument(BaseModel):
    """A trial that failed."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    task: str
    method: str
    num_train: int
    num_test: int
    subsample: int
    error: str
    traceback: str


class ReportDocument(BaseModel):
    """A report of peekbench. Scores and their differences are fractions; numbers that are not finite are null."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    schema_version: Literal[4]
    """Increases if a field is renamed, removed or changes its meaning."""
    name: str
    headline: str
    """One line that says what was analyzed."""
    verdicts: list[Verdict]
    """[low, high] is the interval of the estimate with coverage `level`; `region` is the half-width of the region of
    practical equivalence."""
    warnings: list[str]
    """Reasons to trust the conclusions less."""
    figures: list[Annotated[Figure, Field(discriminator="kind")]]
    tables: list[Table]
    """Rows in full precision, in the order of the columns; the unit of a column says how reports format it."""
    failures: list[FailureDocument]
    methods: list[MethodFacts]
    provenance: dict[str, str]
    """Versions, machine and command in words; `sessions` has them in full."""
    command: str
    """Shell command that makes the report again."""
    identifier: str = ""
    """For a run: hash of what its numbers depend on, equal for the same experiment on every machine."""
    spec: dict[str, Any] = {}
    """For a run: the spec with all defaults filled in."""
    data: dict[str, dict[str, Any]] = {}
    """For a run: description of each task's data."""
    texts: dict[str, dict[str, Any]] = {}
    """For a run: lengths, tokens and duplicates of each task's texts."""
    sessions: list[dict[str, Any]] = []
    """For a run: versions, commit, machine, command and number of trials of each session."""
    runs: list[str] = []
    """For a comparison or a leaderboard: files of the runs."""
    source: str = ""
    """For a table of scores: its file."""


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of report.json."""
    schema = ReportDocument.model_json_schema(mode="validation")
    for definition in schema["$defs"].values():  # docstrings of records end with examples in Python
        if "description" in definition:
            definition["description"] = definition["description"].partition("\n\nExamples\n")[0]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "peekbench report"}
