"""Reports in a terminal, and forest plots in characters."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from peekbench.formatting import format_cell, visible_lines
from peekbench.records import Family, Report, TrialEvidence
from peekbench.records.figures import Forest, Interval
from peekbench.records.report import Column, Table
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench.records.verdicts import Estimate, Verdict
from peekbench.report import render_tables, render_text
from peekbench.report.render.terminal import ESTIMATE, ZERO, forest_as_text

HOSTILE = "[bold]x[/] \x1b[31m " + "long " * 99
LONG = "sentence_transformer_logistic_regression_with_self_training"


def printed(report: Report, width: int = 80, closing: Sequence[str] = (), *, full: bool = False, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=width, **options)
    render_text(report, console, closing, full=full)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def verdict(method: str, decision: Any = "equivalent", **parts: Any) -> Verdict:
    estimate = Estimate(0.001, -0.002, 0.004)
    parts = {"family": Family(level=0.95), "note": f"it is {decision}.", **parts}
    return Verdict(method, "bias", decision, estimate, 0.005, **parts)


def test_what_is_left_out_is_counted() -> None:
    decisions = ["equivalent"] * 30 + ["biased up"] * 10
    verdicts = [verdict(f"method-{number}", decision) for number, decision in enumerate(decisions)]
    verdicts = [
        replace(verdict, estimate=Estimate(number / 1e4, -0.01, 0.02)) for number, verdict in enumerate(verdicts)
    ]
    controls = [verdict(f"null-{number}", "passed", control="negative") for number in range(14)]
    controls.append(verdict("last", "failed", control="negative"))
    rows = tuple((f"method-{number}", 0.5) for number in range(40))
    table = Table("Leaderboard", (Column("method"), Column("extra", "fraction")), rows, overview=("method", "extra"))
    report = Report("many", "headline", (*verdicts, *controls), ("careful " * 50, *("careful",) * 19), tables=(table,))
    shown = printed(report, closing=["Report: x"])
    assert "... and 28 more: 28 equivalent" in shown
    assert shown.count("biased up     method-") == 10, "a bias is not left out"
    assert shown.index("failed        last") < shown.index("passed        null-0"), "a failure is not left out"
    assert "... and 28 more rows" in shown
    assert "(19 more warnings below.)" in " ".join(shown.split())
    assert "... and 15 more warnings" in shown
    assert shown.endswith("Report: x\n")
    full = printed(report, full=True)
    assert "... and" not in full
    assert full.count("biased up     method-") == 10 and full.count("It is biased up.") == 10


def test_details_follow_a_verdict() -> None:
    evidence = TrialEvidence(2, 8, "biased up", other_tasks="yes, by the t test")
    lead = verdict("lsa", "biased up", evidence=evidence, family=Family(3, 0.95), analysis="summary")
    report = Report("r", "h", (lead, verdict("lsa", analysis="bayes")))
    first, full = (" ".join(printed(report, full=full).split()) for full in (False, True))
    assert "Base: without unlabeled texts." in first
    assert "possibly by less than 0.50 points; bayes: equivalent." in first
    assert "Bias in other tasks: yes, by the t test." in full and "other tasks" not in first
    assert "95% intervals. Intervals of biases are adjusted for 3 methods, those of other" in first
    assert "bayes" not in printed(Report("r", "h", (lead, replace(lead, analysis="bayes"))))


def test_reports_without_verdicts_show_their_first_tables() -> None:
    tables = tuple(Table(f"Table {number}", (Column("n", "count"),), ((7,),)) for number in range(3))
    shown = printed(Report("r", "h", tables=(replace(tables[0], topic="data"), *tables[1:])))
    assert "Table 1" in shown and "Table 2" in shown and "Table 0" not in shown
    undrawn = Report("r", "h", (replace(verdict("lsa"), estimate=Estimate()),))
    assert "equivalent    lsa\n              Test texts change accuracy by less than" in printed(undrawn)


@pytest.mark.parametrize("full", [False, True])
def test_text_from_data_is_escaped(full: bool) -> None:
    failure = TrialFailure(Trial(Draw(HOSTILE, 5, 5, 0), HOSTILE), HOSTILE, HOSTILE)
    verdicts = (verdict(HOSTILE), verdict(HOSTILE, "passed", control="negative"))
    forest = Forest(HOSTILE, ((HOSTILE, (Interval(HOSTILE, 0.1, 0.0, 0.2),)),), HOSTILE)
    table = Table(HOSTILE, (Column(HOSTILE), Column("n", "number")), ((HOSTILE, 1.0),), HOSTILE)
    report = Report(HOSTILE, HOSTILE, verdicts, (HOSTILE,), (forest,), (table,), (failure,), {"x": HOSTILE})
    shown = printed(report, full=full)
    assert visible_lines(shown) == shown
    assert r"[bold]x[/] \x1b[31m" in shown
    assert "1 trial failed" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_colors_follow_the_terminal_and_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report("r", "h", (verdict("lsa", "biased up"),))
    terminal: dict[str, Any] = {"force_terminal": True, "color_system": "standard"}
    assert "\x1b[1;31mbiased up" in printed(report, **terminal)
    assert "\x1b" not in printed(report), "a file"
    monkeypatch.setenv("NO_COLOR", "1")
    plain = printed(report, **terminal)
    assert "\x1b[1mbiased up" in plain
    assert "31m" not in plain


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_is_cropped_and_columns_that_do_not_fit_are_named(width: int) -> None:
    names = [f"extra {number}" for number in range(8)]
    columns = (Column("method"), Column("tasks", "count"), *(Column(name, "difference") for name in names))
    rows: Any = tuple((f"{LONG}_{row}", 5, *(0.1 + row / 50 for _ in names)) for row in range(3))
    console = Console(file=io.StringIO(), width=width, color_system=None)
    render_tables([Table("Many", columns, rows)], console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    body, _, left_out = text.partition("A wider terminal also shows: ")
    num_left_out = len([name for name in left_out.split(",") if name.strip()])
    assert 0 < num_left_out < 8 or width == 120
    for row in range(3):
        assert body.count(format_cell(0.1 + row / 50, "difference")) == len(names) - num_left_out


@pytest.mark.parametrize("width", [60, 72, 120])
def test_verdicts_with_long_names_fit(width: int) -> None:
    verdicts = tuple(verdict(f"{LONG}_{number}", "biased up") for number in range(2))
    lines = printed(Report("r", "h", verdicts), width).splitlines()
    assert max(map(len, lines)) <= width
    intervals = [line for line in lines if "[-0.20, +0.40]" in line]
    assert len(intervals) == 2 and all(ESTIMATE in line for line in intervals)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_marks_match_the_axis(width: int) -> None:
    intervals = (
        Interval("zero", 0.0, 0.0, 0.0),
        Interval("up", 0.05, 0.03, 0.07),
        Interval("down", -0.1, -0.15, -0.02),
        Interval("a very long name of a task that is too long for its own column 数据集/很长的名字", 0.1, 0.1, 0.1),
    )
    lines = forest_as_text(Forest("f", (("method", intervals),)), width)
    assert all(cell_len(line) <= width for line in lines)
    _, zero, up, down, *rest, axis = lines
    origin = zero.index(ESTIMATE)
    assert down.index(ZERO) == up.index(ZERO) == origin
    # Twice the bias to the other side is twice as far from zero.
    distance = up.index(ESTIMATE) - origin
    assert distance > 0
    assert origin - down.index(ESTIMATE) == pytest.approx(2 * distance, abs=1.5)
    assert "+5.00 [ +3.00,  +7.00]" in up
    (tick,) = re.finditer(r"(?<= )0(?:\.0)?(?= )", axis)
    assert abs((tick.start() + tick.end() - 1) / 2 - origin) <= 1
    assert axis.endswith("points")
    assert "名字" in " ".join(rest).replace(" ", "") or width > 160
