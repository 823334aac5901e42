"""Leaderboards of several runs, and the JSON Schema of reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from analysis_tables import table_rows

from peekbench.errors import ResultsError
from peekbench.execution.runner import run
from peekbench.records import Report
from peekbench.report import report_of_comparison, report_of_run
from peekbench.report.render.json_report import ReportDocument, render_json, report_schema

Run = Callable[..., Path]
DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
def make_run(make_spec: Callable[..., Any]) -> Run:
    def make(name: str, **parts: Any) -> Path:
        spec = make_spec(name=name, **parts)
        return run(spec, store=f"{name}.sqlite").store

    return make


def table(report: Report, title: str) -> list[dict[str, Any]]:
    (matching,) = [table for table in report.tables if table.title.startswith(title)]
    return table_rows(matching)


@pytest.mark.slow
def test_changed_data_are_named(make_run: Run) -> None:
    tasks = [{"use": "toy.words", "name": "a"}, {"use": "toy.words", "name": "b", "options": {"seed": 2}}]
    ranking = report_of_comparison([make_run("before"), make_run("after", tasks=tasks)])
    assert [warning for warning in ranking.warnings if "different data of b," in warning]


def test_a_leaderboard_of_several_runs_uses_their_common_tasks(make_run: Run) -> None:
    one = make_run("one")
    two = make_run("two", tasks=[{"use": "toy.words", "name": "a"}], methods=["toy.vote"])
    report = report_of_comparison([one, two])
    leaderboard = table(report, "Leaderboard")
    assert {row["method"] for row in leaderboard} == {"one: toy.vote", "one: toy.constant", "two: toy.vote"}
    assert any("task b" in warning for warning in report.warnings)
    assert not any("different data" in warning for warning in report.warnings)
    scores = {row["method"]: row["extra"] for row in leaderboard}
    ties = {row["method"]: row["tie"] for row in leaderboard}
    assert scores["one: toy.vote"] == scores["two: toy.vote"], "on the task that both runs have"
    assert ties["one: toy.vote"] == ties["two: toy.vote"]
    alone = report_of_comparison([one])
    assert {row["method"] for row in table(alone, "Leaderboard")} == {"toy.vote", "toy.constant"}


def test_runs_without_a_common_task_cannot_be_ranked(make_run: Run, tmp_path: Path) -> None:
    one = make_run("one", tasks=[{"use": "toy.words", "name": "a"}])
    other = make_run("other", tasks=[{"use": "toy.words", "name": "z"}])
    with pytest.raises(ResultsError, match="no task in common"):
        report_of_comparison([one, other])
    with pytest.raises(ResultsError, match="duplicated"):
        report_of_comparison([one, one])
    Path("scores.csv").write_text("task,num_test,extra,test\n" + "a,30,0.5,0.6\na,30,0.6,0.6\n")
    mixed = report_of_comparison([one, Path("scores.csv")])
    assert "Excluded, because at least one run lacks it: arm base" in mixed.warnings


@pytest.mark.slow
def test_json_reports_match_the_schema(make_run: Run) -> None:
    one, two = make_run("one"), make_run("two")
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    reports = [report_of_run(one), report_of_comparison([one]), report_of_comparison([one, two])]
    for report in reports:
        content = json.loads(render_json(report))
        assert list(validator.iter_errors(content)) == []
        assert content.keys() <= ReportDocument.model_fields.keys(), "every field is documented"
        del content["verdicts"]
        assert list(validator.iter_errors(content))
    assert json.loads((DOCS / "report.schema.json").read_text()) == schema, "peekbench show report-schema > docs/..."


def test_runs_with_a_failed_trial_are_compared_and_ranked_with_a_warning(make_run: Run, tmp_path: Path) -> None:
    faulty = {"use": "toy.faulty", "name": "faulty", "options": {"marker": str(tmp_path / "marker")}}
    before, after = make_run("before"), make_run("after", methods=["toy.vote", faulty])
    for report in (report_of_comparison([before, after]), report_of_comparison([after])):
        assert any("after: The design has missing trials, and only complete" in warning for warning in report.warnings)
