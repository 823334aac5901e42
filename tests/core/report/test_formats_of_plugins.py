"""Formats of report files that plugins add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forks import run_python
from typer.testing import CliRunner

from peekbench.cli.app import app
from peekbench.errors import PeekbenchError, PluginError
from peekbench.execution.runner import run
from peekbench.plugins.entries import ReportFormatEntry
from peekbench.plugins.registry import check_format
from peekbench.records import Report
from peekbench.report import write_report
from peekbench.report.render.json_report import render_json
from peekbench_testing import check_entry, sample_report
from peekbench_testing.runner import CheckOutcome

FILE = """
from peekbench import hookimpl
from peekbench.plugins import ReportFormatEntry


def write(report, path):
    path.write_text(report.name)


@hookimpl
def peekbench_report_formats():
    return [ReportFormatEntry(name="short", write=write, suffix=".txt", summary="the name")]
"""


def failed(outcomes: list[CheckOutcome]) -> list[str]:
    return [outcome.message for outcome in outcomes if not outcome.passed and outcome.was_run]


def test_a_plugin_writes_a_table_for_latex(tmp_path: Path) -> None:
    written = write_report(sample_report(), tmp_path, ["json", "toy.latex"])
    assert [path.name for path in written] == ["report.json", "report-toy.latex.tex"]
    assert r"news & 0.001 & 6 \\" in written[1].read_text(encoding="utf-8")


def test_hidden_characters_are_escaped_for_formats(tmp_path: Path) -> None:
    seen: list[Report] = []

    def write(report: Report, path: Path) -> None:
        seen.append(report)
        path.touch()

    entry = ReportFormatEntry(name="x", write=write, suffix=".x", summary="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("peekbench.report.render.files.find_format", lambda use: entry)
        write_report(Report("a", "\x1b[31mred"), tmp_path, ["my.x"])
    assert "\x1b" not in seen[0].headline


@pytest.mark.parametrize(("use", "problem"), [("toy.blot", "RuntimeError: no ink"), ("toy.number", "wrote no file")])
def test_a_format_that_fails_loses_no_other_file(use: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "report-toy.blot.txt").write_text("earlier")
    with pytest.raises(PeekbenchError, match=problem):
        write_report(sample_report(), tmp_path, [use, "json"])
    assert (tmp_path / "report-toy.blot.txt").read_text() == "earlier"
    assert (tmp_path / "report.json").read_text() == render_json(sample_report())


def test_a_format_does_not_replace_an_attachment(tmp_path: Path) -> None:
    def write(path: Path) -> None:
        path.write_text("mine")

    report = Report("a", "b", attachments={"report-toy.latex.tex": write})
    with pytest.raises(PeekbenchError, match=r"attaches a file of the same name, report-toy\.latex\.tex"):
        write_report(report, tmp_path, ["toy.latex"])
    assert (tmp_path / "report-toy.latex.tex").read_text() == "mine"


def test_a_format_is_a_folder(tmp_path: Path) -> None:
    names = [path.relative_to(tmp_path).as_posix() for path in write_report(sample_report(), tmp_path, ["toy.pages"])]
    assert names == ["toy.pages/0.txt", "toy.pages/deep/name.txt"]
    longer = replace(sample_report(), name="longer")
    write_report(longer, tmp_path, ["toy.pages"])
    assert (tmp_path / "toy.pages/deep/name.txt").read_text() == "longer"


def test_unknown_formats_are_refused_with_all_names() -> None:
    with pytest.raises(
        PluginError, match=r"'pdf' is not one of html, .*svg, png, exports\.csv, .*toy\.blot, toy\.latex"
    ):
        check_format("pdf")
    with pytest.raises(PluginError, match=r"no report format 'toy.latx'; did you mean toy.latex\?"):
        check_format("toy.latx")
    with pytest.raises(PluginError, match="one of the methods"):
        check_format("toy.vote")
    assert check_format("html") == "html"


@pytest.mark.slow
def test_specs_and_commands_name_formats(make_spec: Callable[..., Any]) -> None:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 3}
    spec = make_spec(design=design, analyses=["toy.count"], report={"formats": ["json", "toy.latex"]})
    run(spec)
    folder = Path("reports/small")
    assert CliRunner().invoke(app, ["report", "small"]).exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"report.json", "report-toy.latex.tex"}
    assert CliRunner().invoke(app, ["report", "small", "--format", "toy.latex", "--format", "markdown"]).exit_code == 0
    assert (folder / "report.md").exists()
    refused = CliRunner().invoke(app, ["report", "small", "--format", "toy.latx"])
    assert "did you mean toy.latex?" in str(refused.exception)


@pytest.mark.slow
def test_a_store_alone_imports_no_file(make_spec: Callable[..., Any]) -> None:
    Path("mine.py").write_text(FILE)
    spec = make_spec(
        design={"num_train": 12, "num_test": 30, "num_subsamples": 3},
        analyses=["toy.count"],
        report={"formats": ["json", "mine.py:short"]},
    )
    run(spec)
    code = "from peekbench.cli import main; main()"
    done = run_python(code, "report", "small")
    assert done.returncode == 2
    assert "mine.py is code that only a store names, which is not imported" in done.stderr
    assert [path.name for path in Path("reports/small").iterdir()] == ["report.json"]
    assert run_python(code, "report", "small", "--format", "mine.py:short").returncode == 0
    assert Path("reports/small/report-mine.py-short.txt").read_text() == "small"


@pytest.mark.slow
def test_contract_checks() -> None:
    assert failed(check_entry("toy.latex")) == []
    assert "no ink" in failed(check_entry("toy.blot"))[0]
    assert "wrote no file" in failed(check_entry("toy.number"))[0]
    with pytest.raises(PeekbenchError, match="no options"):
        check_entry("toy.latex", {"a": 1})
