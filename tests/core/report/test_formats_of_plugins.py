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
from peekbench.errors import PeekbenchError
from peekbench.execution.runner import run
from peekbench.plugins.entries import ReportFormatEntry
from peekbench.records import Report
from peekbench.report import write_report
from peekbench.report.render.json_report import render_json
from peekbench_testing import sample_report

FILE = """
from peekbench import hookimpl
from peekbench.plugins import ReportFormatEntry


def write(report, path):
    path.write_text(report.name)


@hookimpl
def peekbench_report_formats():
    return [ReportFormatEntry(name="short", write=write, suffix=".txt", summary="the name")]
"""


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


def test_a_format_is_a_folder(tmp_path: Path) -> None:
    names = [path.relative_to(tmp_path).as_posix() for path in write_report(sample_report(), tmp_path, ["toy.pages"])]
    assert names == ["toy.pages/0.txt", "toy.pages/deep/name.txt"]
    longer = replace(sample_report(), name="longer")
    write_report(longer, tmp_path, ["toy.pages"])
    assert (tmp_path / "toy.pages/deep/name.txt").read_text() == "longer"


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
