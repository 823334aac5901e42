"""What report.json holds, as a schema that programs can rely on.

The version goes up when something is renamed, removed, or means something else; what is only added leaves it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from peekbench.records.analysis import Table, Verdict
from peekbench.records.figures import Figure
from peekbench.report.build.run_report import MethodFacts

SCHEMA_VERSION = 2


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
    """A report of peekbench. Scores are fractions, their differences too; numbers that are not finite are null."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    schema_version: Literal[2]
    """Goes up when something is renamed, removed, or means something else."""
    name: str
    headline: str
    """One line on what was judged."""
    verdicts: list[Verdict]
    """[low, high] is the interval of the estimate at the coverage `level`, region the half-width of what is too small
    to matter."""
    warnings: list[str]
    """What weakens the conclusions."""
    figures: list[Annotated[Figure, Field(discriminator="kind")]]
    tables: list[Table]
    """Rows in full precision, in the order of the columns; a column's unit says how people are shown it."""
    failures: list[FailureDocument]
    methods: list[MethodFacts]
    provenance: dict[str, str]
    """In words; `sessions` has it in full."""
    command: str
    """What repeats it, for a shell."""
    spec: dict[str, Any] = {}
    """Of a run: the spec with every default filled in."""
    data: dict[str, dict[str, Any]] = {}
    """Of a run: what is known of each task's data."""
    texts: dict[str, dict[str, Any]] = {}
    """Of a run: lengths, tokens and duplicates of each task's texts."""
    sessions: list[dict[str, Any]] = []
    """Of a run: versions, commit, machine and command of each session, and how many trials it made."""
    runs: list[str] = []
    """Of a comparison or leaderboard: the runs' files."""
    source: str = ""
    """Of scores that somebody made: their file."""


def report_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of report.json."""
    schema = ReportDocument.model_json_schema(mode="validation")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "peekbench report"}
