"""Reports as terminal text, Markdown, JSON and files."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from peekbench.errors import PeekbenchError
from peekbench.formatting import format_cell
from peekbench.records import Report, TrialEvidence
from peekbench.records.figures import Axis, Forest, Interval, Violins
from peekbench.records.report import Column, Table
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench.records.verdicts import Estimate, Verdict
from peekbench.report import render_text, report_of_table, write_report
from peekbench.report.render.html import cell_number
from peekbench.report.render.json_report import render_json
from peekbench.report.render.markdown import escape, render_markdown
from peekbench.results.analyze import AnalysisOptions, analyze

HOSTILE = "[bold]task[/] <script>alert(1)</script> | `x` @team #1 \x1b[31m"


@pytest.fixture
def report(simulate: Callable[..., Any]) -> Report:
    results = simulate({"task0": 0.1, "task1": -0.05, "task2": 0.0, "task3": 0.02, "task4": 0.0}, method="lsa")
    report = report_of_table(analyze(results, AnalysisOptions(origin="scores.csv")))
    return replace(report, provenance={"commit": "abc"})


def hostile() -> Report:
    failure = TrialFailure(Trial(Draw(HOSTILE, 5, 5, 0), HOSTILE), HOSTILE, f"Traceback\n```\n</details>{HOSTILE}")
    return Report(
        name=HOSTILE,
        headline=HOSTILE,
        verdicts=(Verdict(HOSTILE, "bias", "inconclusive", note=HOSTILE),),
        warnings=(HOSTILE,),
        figures=(Forest(HOSTILE, ((HOSTILE, (Interval(HOSTILE, 0.1, 0.0, 0.2),)),), HOSTILE),),
        tables=(Table(HOSTILE, (Column(HOSTILE), Column("n", "number")), ((HOSTILE, math.nan),), HOSTILE),),
        failures=(failure,),
        provenance={"x": HOSTILE},
        details={"inf": [math.inf]},
    )


def as_text(report: Report) -> str:
    console = Console(file=io.StringIO(), width=120, color_system=None)
    render_text(report, console, full=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_markdown_is_escaped() -> None:
    text = render_markdown(hostile())
    outside = re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "1 trial failed" in outside
    assert "<script>" not in outside
    assert "@team" not in outside
    assert outside.count("<details>") == outside.count("</details>") == 2, "of the verdict and of the failure"
    assert "\x1b" not in text
    assert escape("# a | b\n<i> *x*") == "\\# a \\| b &lt;i&gt; \\*x\\*"
    assert escape("- x") == "\\- x"


def test_a_fence_is_longer_than_the_backticks_in_its_lines() -> None:
    text = render_markdown(hostile())
    body = text[text.index("1 trial failed") :]
    assert "````text" in body
    assert body.count("````") == 2


def test_rows_of_markdown_tables_have_one_cell_per_column(report: Report) -> None:
    for line in render_markdown(replace(report, name="x")).splitlines():
        if line.startswith("|"):
            counts = {len(table.columns) + 1 for table in report.tables}
            assert line.replace("\\|", "").count("|") in counts


def test_an_estimate_and_its_interval_share_a_cell() -> None:
    columns = (Column("method"), Column("tasks", "count"), Column("bias", "difference"), Column("others", "change"))
    rows = (("a", 5, Estimate(0.0147, 0.0091, 0.0203), Estimate(low=-1.5, high=2)), ("b", 5, Estimate(0.01), None))
    table = Table("t", columns, rows)
    assert [[format_cell(cell, column.unit) for cell, column in zip(row, columns, strict=True)] for row in rows] == [
        ["a", "5", "+1.47 [+0.91, +2.03]", "[-1.5000, +2.0000]"],
        ["b", "5", "+1.00", "-"],
    ]
    assert [cell_number(row[2]) for row in rows] == [0.0147, 0.01]
    assert table.spread()[1][1] == ("b", 5, 0.01, None, None, None, None, None)


def test_json_is_strict_and_has_full_precision(report: Report) -> None:
    content = json.loads(render_json(report), parse_constant=lambda name: pytest.fail(name))
    assert content["verdicts"][0]["estimate"] == asdict(report.verdicts[0].estimate)
    cell = report.tables[1].rows[0][2]
    assert isinstance(cell, Estimate)
    assert Estimate(**content["tables"][1]["rows"][0][2]).limits == cell.limits
    assert list(content) == sorted(content)
    strange = json.loads(render_json(hostile()))
    assert strange["inf"] == [None]
    assert strange["tables"][0]["rows"] == [[HOSTILE, None]]
    assert strange["failures"][0]["traceback"].startswith("Traceback")


@pytest.mark.slow
def test_equal_reports_have_equal_bytes(report: Report, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_report(report, tmp_path / name, (*report.formats, "svg"))
    files = {path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.*")}
    assert {Path("report.html"), Path("report.json"), Path("figures/terminal.svg")} <= files
    assert sum(path.suffix == ".svg" for path in files) == 1 + len(report.figures) > 1
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


def test_only_chosen_formats_are_written_and_unwritable_folders_are_errors(report: Report, tmp_path: Path) -> None:
    assert [path.name for path in write_report(report, tmp_path / "a", ["json"])] == ["report.json"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["report.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(PeekbenchError, match="file/report.html"):
        write_report(report, tmp_path / "file")


def test_text_formats_name_the_figures_that_they_leave_out() -> None:
    figures = (Forest("shown", (("m", (Interval("a", 0.1, 0.0, 0.2),)),)), Violins("a violin", Axis("bias"), ()))
    report = Report("r", "", figures=figures)
    for text in (as_text(report), render_markdown(report)):
        assert "shown" in text and "a violin The formats html, svg and png draw this figure" in " ".join(text.split())
    assert "a violin" not in as_text(replace(report, figures=figures[:1]))


def test_verdicts_of_two_analyses_lead_once_per_method() -> None:
    lead = Verdict("lsa", "bias", "biased up", Estimate(0.02, 0.01, 0.03), 0.005, note="it rises.")
    agreeing = replace(lead, estimate=Estimate(0.03, 0.01, 0.03), analysis="bayes.hierarchical")
    differing = replace(lead, decision="inconclusive", note="R-hat is 1.2.", analysis="other.analysis")
    other_score = replace(differing, unit="change", note="log loss is open.", analysis="summary")
    tapt = replace(lead, method="tapt", evidence=TrialEvidence(5, 20, other_tasks="not established"))
    report = Report("r", "h", (lead, agreeing, differing, other_score, tapt))
    text = " ".join(as_text(report).split())
    assert "by more than 0.50 points; other.analysis: inconclusive; summary: inconclusive. It rises." in text
    assert "bayes.hierarchical agrees: +3.00 [+1.00, +3.00] points." in text
    assert "other.analysis does not agree, its verdict is inconclusive: R-hat is 1.2." in text
    assert "In another score, the verdict of summary is inconclusive: Log loss is open." in text
    assert "Bias in other tasks: not established." in text
    first, _, unfolded = render_markdown(report).partition("<details>")
    assert "**biased up**. +2.00 \\[+1.00, +3.00\\] points. Test texts raise accuracy by more than 0.50 points" in first
    assert "bayes.hierarchical agrees" in unfolded and "other tasks: not established" in unfolded
    assert "agrees" not in first and "other tasks" not in first
    assert len(json.loads(render_json(report))["verdicts"]) == 5
