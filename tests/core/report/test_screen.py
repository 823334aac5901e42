"""The short view of a report: it fits one screen, and leaves out nothing without a word."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from peekbench.formatting import visible
from peekbench.records import Family, Report, TrialEvidence
from peekbench.records.report import Column, Table
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench.records.verdicts import Estimate, Verdict
from peekbench.report import render_screen, report_of_table
from peekbench.report.render.screen import MAX_LINES
from peekbench.results.analyze import analyze

HOSTILE = "[bold]x[/] \x1b[31m " + "long " * 99


def on_screen(report: Report, width: int = 80, closing: Sequence[str] = (), **options: Any) -> str:
    console = Console(file=io.StringIO(), width=width, **options)
    render_screen(report, console, closing)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def verdict(method: str, decision: Any = "equivalent", **parts: Any) -> Verdict:
    estimate = Estimate(0.001, -0.002, 0.004)
    parts = {"family": Family(level=0.95), "note": f"it is {decision}.", **parts}
    return Verdict(method, "bias", decision, estimate, 0.005, **parts)


@pytest.fixture
def readme(simulate: Callable[..., Any]) -> Report:
    """A report of the size of the experiment in the README: 7 tasks, 2 methods and a control, 4 design points."""
    names = {"lsa-10": 0.02, "finetune.tapt": 0.0, "controls.null": 0.0}
    parts = [
        simulate(bias, tasks=7, subsamples=6, num_test=num_test, method=name).assign(
            num_train=num_train, control="negative" if name == "controls.null" else ""
        )
        for name, bias in names.items()
        for num_train in (50, 100)
        for num_test in (200, 500)
    ]
    results = pd.concat(parts, ignore_index=True).astype(parts[0].dtypes.to_dict())
    null = results["method"] == "controls.null"
    results.loc[null, "score"] = 0.5
    results.loc[null, "num_correct"] = results.loc[null, "num_test"] // 2
    report = report_of_table(Path("my_experiment.yaml"), results, analyze(results, ["summary"]))
    return replace(report, warnings=("Some texts of a task are in several sets. " * 5,) * 4)


@pytest.mark.slow
def test_the_experiment_of_the_readme_fits_one_screen(readme: Report) -> None:
    closing = ["Report: reports/my_experiment/report.html", "        and report.txt", "All tables: peekbench report x"]
    for width in (80, 120):
        lines = on_screen(readme, width, closing).splitlines()
        assert len(lines) <= MAX_LINES == 45
        assert max(map(len, lines)) <= width
        shown = "\n".join(lines)
        for judged in readme.verdicts:
            label = judged.method.replace("num_train=", "").replace("num_test=", "")
            (line,) = [line for line in lines if label in line and "[" in line]
            assert line.startswith(judged.decision)
            assert f"{judged.estimate.mean * 100:+.2f}".replace("+0.00", "0.00") in line
        assert "In parentheses: num_train, num_test. 95% intervals" in shown
        assert "Leaderboard, by accuracy of extra" in shown
        assert shown.count("Warning: Some texts") + shown.count("more warning") >= 2
        assert lines[-3:] == closing


def test_what_is_left_out_is_counted() -> None:
    decisions = ["equivalent"] * 30 + ["biased up"] * 10
    verdicts = [verdict(f"method-{number}", decision) for number, decision in enumerate(decisions)]
    controls = [verdict(f"null-{number}", "passed", control="negative") for number in range(9)]
    controls.append(verdict("last", "failed", control="negative"))
    rows = tuple((f"method-{number}", 0.5) for number in range(40))
    table = Table("Leaderboard", (Column("method"), Column("extra", "fraction")), rows, overview=("method", "extra"))
    report = Report("many", "headline", (*verdicts, *controls), ("careful",) * 20, tables=(table,))
    shown = on_screen(report)
    assert len(shown.splitlines()) <= MAX_LINES
    listed = shown.count("equivalent    method-")
    assert f"... and {40 - listed} more: {30 - listed} equivalent, 10 biased up" in shown
    assert shown.index("failed        last") < shown.index("passed        null-0"), "a failure is not left out"
    assert "more rows" in shown
    assert f"... and {20 - shown.count('Warning: careful')} more warnings" in shown


def test_details_follow_a_verdict_unless_space_is_short() -> None:
    evidence = TrialEvidence(2, 8, "biased up", other_tasks="none found")
    family = Family(3, 0.95, unadjusted="inconclusive")
    lead = verdict("lsa", "biased up", evidence=evidence, family=family)
    report = Report("r", "h", (replace(lead, analysis="summary"), replace(verdict("lsa"), analysis="bayes")))
    shown = on_screen(report)
    assert "size open; unadjusted: inconclusive; bias in other tasks: none found; bayes:" in " ".join(shown.split())
    assert "95% intervals adjusted for 3 configurations, from 2 tasks, 8 trials." in shown
    evidence = replace(evidence, log_likelihood=Estimate(0.01, 0.005, 0.015))
    known = replace(lead, estimate=replace(lead.estimate, level=0.98333), evidence=evidence)
    other = replace(known, method="svd", estimate=replace(lead.estimate, level=0.95))
    shown = " ".join(on_screen(Report("r", "h", (known, other))).split())
    assert "bias in other tasks: none found; but the log loss improves by 0.0100" in shown
    assert "adjusted for 3 configurations (95% to 98.33% each), from 2 tasks, 8 trials." in shown
    agreeing = replace(report, verdicts=(lead, replace(lead, analysis="bayes")))
    assert "bayes" not in on_screen(agreeing)


def test_reports_without_verdicts_show_their_first_tables() -> None:
    tables = tuple(Table(f"Table {number}", (Column("n", "count"),), ((7,),)) for number in range(3))
    shown = on_screen(Report("r", "h", tables=(replace(tables[0], topic="data"), *tables[1:])))
    assert "Table 1" in shown and "Table 2" in shown and "Table 0" not in shown
    undrawn = Report("r", "h", (replace(verdict("lsa"), estimate=Estimate()),))
    assert "equivalent    lsa: It is equivalent." in on_screen(undrawn)


def test_text_from_data_is_escaped_and_bounded() -> None:
    failure = TrialFailure(Trial(Draw(HOSTILE, 5, 5, 0), HOSTILE), HOSTILE, HOSTILE)
    verdicts = (verdict(HOSTILE), verdict(HOSTILE, "passed", control="negative"))
    shown = on_screen(Report(HOSTILE, HOSTILE, verdicts, (HOSTILE,), failures=(failure,)))
    assert visible(shown) == shown
    assert r"[bold]x[/] \x1b[31m" in shown
    assert "1 trial failed" in shown
    assert len(shown.splitlines()) <= MAX_LINES
    assert max(map(len, shown.splitlines())) <= 80


def test_colors_follow_the_terminal_and_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report("r", "h", (verdict("lsa", "biased up"),))
    terminal: dict[str, Any] = {"force_terminal": True, "color_system": "standard"}
    assert "\x1b[1;31mbiased up" in on_screen(report, **terminal)
    assert "\x1b" not in on_screen(report), "a file"
    monkeypatch.setenv("NO_COLOR", "1")
    plain = on_screen(report, **terminal)
    assert "\x1b[1mbiased up" in plain
    assert "31m" not in plain


def test_a_narrow_terminal_breaks_no_label() -> None:
    names = ["lsa-10", "lsa-50", "classic.self_training"]
    lines = on_screen(Report("small", "", tuple(map(verdict, names))), width=60).splitlines()
    assert max(map(len, lines)) <= 60
    for name in ("lsa-10 ", "lsa-50 ", "classic.se…"):
        (line,) = [line for line in lines if name in line]
        assert "+0.10 [-0.20, +0.40] points" in line
    alike = [verdict(f"{'long_' * 4}{number}{'_long' * 4}") for number in range(2)]
    shown = on_screen(Report("small", "", tuple(alike)), width=60)
    assert all(each.method in shown for each in alike), "shortened names would be equal"


@pytest.mark.parametrize("width", [72, 80])
def test_long_names_stay_on_a_line_and_columns_that_do_not_fit_are_named(width: int) -> None:
    name = "sentence_transformer_logistic_regression_with_self_training"
    effects = tuple(
        Column(name, "difference")
        for effect in ("boost", "bias")
        for name in (effect, f"{effect}, low", f"{effect}, high")
    )
    scores = tuple(Column(arm, "fraction") for arm in ("extra", "base", "test"))
    columns = (Column("method"), *scores, Column("verdict"), *effects)
    overview = tuple(column.name for column in columns if "," not in column.name)
    row = (name, 0.5, 0.5, 0.5, "biased up", 0.01, 0.0, 0.02, 0.02, 0.01, 0.03)
    table = Table("Leaderboard", columns, (row,), overview=overview)
    report = Report(
        "r", "h", (verdict(name, "biased up"), verdict("lsa")), tables=(replace(table, rows=table.rows * 2),)
    )
    shown = on_screen(report, width=width)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= width
    long_name = next(number for number, line in enumerate(lines) if line.startswith("biased up"))
    assert "…" in lines[long_name] if width == 72 else lines[long_name] == f"biased up     {name}"
    assert "●" in lines[long_name + 1], "the interval stands below the name"
    heading = lines[next(number for number, line in enumerate(lines) if line.startswith("Leaderboard")) + 1 :]
    missing = [column for column in overview if column not in " ".join(heading).partition("A wider terminal")[0]]
    assert (missing == []) is (width > 72)
    assert not missing or f"A wider terminal also shows: {', '.join(missing)}" in shown
