"""What readers see without a click: one interval of the bias of each method, beside its scores."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pandas as pd
import pytest
from rich.console import Console

import peekbench as pb
from peekbench.api.report_view import ReportView
from peekbench.formatting import format_cell, format_quantity
from peekbench.records import TrialEvidence
from peekbench.report import render_text
from peekbench.report.render.html import render_html
from peekbench.report.render.markdown import render_markdown


class VisibleText(HTMLParser):
    """Text of a page up to its second table, without that of closed `details`, whose `summary` is visible."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self._closed: list[bool] = []
        self._num_summaries = 0
        self.feed(page[page.index("<main") : page.index('id="tables-2"')])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "details":
            self._closed.append("open" not in dict(attrs))
        self._num_summaries += tag == "summary"

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self._closed.pop()
        self._num_summaries -= tag == "summary"

    def handle_data(self, data: str) -> None:
        if sum(self._closed) <= self._num_summaries:
            self.text += data


def in_terminal(report: ReportView) -> str:
    console = Console(file=io.StringIO(), width=100, force_jupyter=False)
    with console.capture() as captured:
        render_text(report.document, console)
    return captured.get()


SCREENS: dict[str, Callable[[ReportView], str]] = {
    "terminal": in_terminal,
    "html": lambda report: VisibleText(render_html(report.document)).text,
    "markdown": lambda report: render_markdown(report.document).partition("<details>")[0].replace("\\", ""),
    "python": str,
}


@pytest.fixture(scope="module")
def report(simulate: Callable[..., pd.DataFrame]) -> ReportView:
    """Return a report on three methods, of which one is equivalent, on five tasks."""
    biases = {"up": 0.03, "down": -0.03, "same": 0.0}
    parts = [simulate(bias, method=name, subsamples=20, num_test=4000, noise=0.003) for name, bias in biases.items()]
    return pb.analyze(pd.concat(parts, ignore_index=True))


@pytest.mark.parametrize("screen", SCREENS)
def test_each_bias_has_one_interval_and_stands_beside_its_scores(screen: str, report: ReportView) -> None:
    shown = SCREENS[screen](report)
    flat = " ".join(shown.split()).replace("[ ", "[")
    decisions = {verdict.method: verdict for verdict in report.verdicts}
    assert decisions["same"].decision == "equivalent"
    boosts = report.tables["Leaderboard"].to_pandas()["boost, low"]
    known = {
        format_cell(low, "difference") for low in (*boosts, *(verdict.estimate.low for verdict in report.verdicts))
    }
    assert set(re.findall(r"\[([+-][\d.]+),", flat)) <= known
    for verdict in report.verdicts:
        evidence = verdict.evidence
        assert isinstance(evidence, TrialEvidence) and evidence.base is not None and evidence.extra is not None
        assert format_quantity(verdict.estimate, "difference").removesuffix(" points") in flat
        assert f"(base {evidence.base:.1%}, extra {evidence.extra:.1%})" in flat
    if screen != "python":
        assert "Base: without unlabeled texts." in flat
        assert "95% intervals, 90% where equivalent." in flat
    for unfolded in ("t test", "adjusted", "num_train", "one-sided", "other tasks"):
        assert unfolded not in flat, unfolded
