"""Reports in Python: tables by name, figures on axes, and what a notebook shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import peekbench as pb
from peekbench.api.report_view import FigureView, ReportView
from peekbench.formatting import format_quantity
from peekbench.records import Axis, Curve, Curves, Densities, Figure, Forest, Interval, Sample, Violins
from peekbench.records.report import Report
from peekbench.results.analyze import AnalysisOptions
from peekbench.results.analyze import analyze as run_analyses

SAMPLES = (("a", (Sample("tickets", (0.01, 0.03, -0.02), mark=0.0),)), ("b", (Sample("news", (0.0, 0.1)),)))
CURVE = Curve("lsa", (50.0, 200.0), (0.61, 0.68), (0.6, 0.6), (0.7, 0.7))
FIGURES: tuple[Figure, ...] = (
    Forest("forest", (("lsa", (Interval("tickets", 0.012, -0.004, 0.028),)),), region=0.01),
    Violins("violins", Axis("bias"), SAMPLES),
    Densities("densities", Axis("bias"), SAMPLES, level=0.89),
    Curves(
        "curves", Axis("size", "count", is_log=True), Axis("accuracy", "fraction"), (("x", (CURVE,)), ("y", (CURVE,)))
    ),
)


@pytest.fixture
def scores(simulate: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    return simulate(0.03, tasks=2, subsamples=20, method="<script>alert(1)</script>")


def test_a_report_has_the_verdicts_tables_and_files_of_its_analyses(scores: pd.DataFrame, tmp_path: Path) -> None:
    report = pb.analyze(scores, ["summary"])
    (expected,) = run_analyses(scores, AnalysisOptions(["summary"])).analyses
    assert report.verdicts == expected.verdicts
    table = report.tables["bias by task"]
    frame = table.to_pandas()
    names, rows = table.record.spread()
    assert (list(frame.columns), frame.to_numpy().tolist()) == (names, list(map(list, rows)))
    assert {"bias", "bias, low", "bias, high"} <= set(names)
    assert report.tables[0].title == report.tables.titles[0]
    assert {path.name for path in report.save(tmp_path / "folder", ["html", "json"])} == {"report.html", "report.json"}
    (verdict,) = report.verdicts
    assert f"{verdict.method}: {format_quantity(verdict.estimate, verdict.unit)}. Test texts raise" in str(report)
    assert len(set(re.findall(r"\[[+-][^]]*\]", str(report)))) == 1, "one interval"
    assert "Checked?" in str(report) and "What next?" in str(report)
    with pytest.raises(pb.PeekbenchError, match="no table has the title 'nonsense'; the titles are: "):
        report.tables["nonsense"]


class Elements(HTMLParser):
    """Collects the elements of a page, and checks that each is closed."""

    VOID = ("wbr", "br", "img")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.names.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_notebook_shows_verdicts_and_figures_without_scripts(scores: pd.DataFrame) -> None:
    report = pb.analyze(scores)
    page = report._repr_html_()
    shown = Elements(page)
    assert not {"script", "link", "iframe", "html", "body"} & set(shown.names)
    assert "&lt;script&gt;" in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert "biased up" in page
    assert shown.names.count("figure") == len(report.figures) > 0
    assert all(title in page for title in ("Biased?", "Leaderboard, by accuracy of extra"))


def test_the_style_is_limited_to_the_report_and_follows_the_theme() -> None:
    style = re.search(r"<style>(.*)</style>", ReportView(Report("a", "b"))._repr_html_(), flags=re.DOTALL)
    assert style
    assert style[1].startswith("@scope (.peekbench-report) {")
    assert style[1].count("{") == style[1].count("}")
    assert not re.search(r":root|^ *(html|body) \{", style[1], flags=re.MULTILINE)
    assert 'data-jp-theme-light="false"]' in style[1]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.kind)
def test_a_notebook_shows_each_kind_of_figure(figure: Figure) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("arviz_stats")
    view = FigureView(figure)
    assert (view._repr_html_() or "").startswith("<svg")
    assert figure.title in repr(view)
