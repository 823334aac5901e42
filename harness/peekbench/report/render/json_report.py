"""Renders a report as JSON, for programs, and describes this form in a JSON Schema."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from peekbench.formatting import shorten
from peekbench.records.figures import Figure
from peekbench.records.report import MethodFacts, Report, Table
from peekbench.records.trials import MAX_ERROR, MAX_TRACEBACK
from peekbench.records.verdicts import Verdict
from peekbench.report.render.sentences import state

SCHEMA_VERSION = 12


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

    schema_version: Literal[12]
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
    """Rows in full precision, in the order of the columns; the unit of a column says how reports format it. A cell with
    an interval is an object, as the estimate of a verdict."""
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
    sessions: list[dict[str, Any]] = []
    """For a run: versions, commit, machine, command and number of trials of each session."""
    repeats: list[dict[str, Any]] = []
    """For a run: scores of fits and grades that were made twice, and how many predictions differ."""
    runs: list[str] = []
    """For a comparison: files of the runs."""
    source: str = ""
    """For a table of scores: its file."""


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of report.json."""
    schema = ReportDocument.model_json_schema(mode="validation")
    for definition in schema["$defs"].values():  # docstrings of records end with examples in Python
        if "description" in definition:
            definition["description"] = definition["description"].partition("\n\nExamples\n")[0]
        for field in definition.get("properties", {}).values():
            if isinstance(default := field.get("default"), float) and math.isnan(default):
                field |= {"default": None, "type": ["number", "null"]}  # JSON has no NaN
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "peekbench report"}


def render_json(report: Report) -> str:
    """Return the report as strict JSON in the form of `ReportDocument`, with numbers in full precision.

    Keys are sorted, and numbers that are not finite are null.
    """
    content: dict[str, Any] = {"schema_version": SCHEMA_VERSION, **report.details}
    for name in ("name", "headline", "warnings", "figures", "tables", "methods", "provenance", "command"):
        content[name] = getattr(report, name)
    content["verdicts"] = [
        {**asdict(verdict), "sentence": f"{verdict.method}: {state(verdict)}"} for verdict in report.verdicts
    ]
    content["failures"] = [
        {
            **failure.trial.draw._asdict(),
            "method": failure.trial.method,
            "error": shorten(failure.error, MAX_ERROR),
            "traceback": shorten(failure.traceback, MAX_TRACEBACK),
        }
        for failure in report.failures
    ]
    # JSON has no NaN and no infinity, which `dumps` writes as constants.
    plain = json.loads(json.dumps(content, default=asdict), parse_constant=lambda _: None)
    return json.dumps(plain, indent=1, sort_keys=True, allow_nan=False) + "\n"
