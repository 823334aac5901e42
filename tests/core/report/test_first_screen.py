"""What readers see without a click: the same first lines, and one interval of the bias of each method."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from rich.console import Console

import peekbench as pb
from peekbench.api.report_view import ReportView
from peekbench.formatting import format_cell, format_quantity
from peekbench.records import Family, Report, TrialEvidence
from peekbench.records.report import Extension
from peekbench.records.verdicts import Advice, Estimate, FixedTexts, Settling, Verdict
from peekbench.report import render_text
from peekbench.report.render.answers import QUESTION
from peekbench.report.render.html import render_html
from peekbench.report.render.markdown import render_markdown


class VisibleText(HTMLParser):
    """Text of a page, without that of closed `details`, whose `summary` is visible."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self._closed: list[bool] = []
        self._num_summaries = 0
        self.feed(page)

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


def in_page(report: ReportView, end: str = "<section") -> str:
    page = render_html(report.document)
    return VisibleText(page[page.index("<main") : page.index(end)]).text


SCREENS: dict[str, Callable[[ReportView], str]] = {
    "terminal": in_terminal,
    "html": lambda report: (
        VisibleText(render_html(report.document).partition("<main")[2].partition('id="tables-2"')[0]).text
    ),
    "markdown": lambda report: render_markdown(report.document).partition("<details>")[0].replace("\\", ""),
    "python": repr,
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
    for unfolded in ("t test", "num_train", "one-sided", "other tasks"):
        assert unfolded not in flat, unfolded


OPEN = TrialEvidence(5, 60, settling=Settling(Advice(120, 0.81)))
UP = Verdict("lsa", "bias", "biased up", Estimate(0.02, 0.01, 0.03), 0.005, family=Family(1, 0.95))
SAME = Verdict("pca", "bias", "equivalent", Estimate(-0.001, -0.002, 0.001), 0.005, family=Family(1, 0.9))
UNSETTLED = replace(SAME, decision="inconclusive", estimate=Estimate(0.002, -0.01, 0.014), evidence=OPEN)
NULL = Verdict("null", "bias", "passed", Estimate(0.0, -0.1, 0.1), 0.005, control="negative")
RUN = Extension("peekbench run r.yaml", "run", num_subsamples=12, seconds=1.5)
OTHERS = FixedTexts("inconclusive", Estimate(0.02, -0.01, 0.05), Estimate(0.69, 0.65, 0.73, level=0.95))
OFFICIAL = replace(OPEN, published=0.7, extra=0.69, num_texts=200, fixed_texts=OTHERS)
SIZES = [
    replace(one, method=f"{one.name} (num_train={size})", parts=(("method", one.name), ("num_train", size)))
    for one in (UP, replace(SAME, decision="inert"))
    for size in (20, 50)
]
REPORTS = {
    "official": Report("r", "h", (replace(UP, evidence=OFFICIAL), NULL), extension=RUN),
    "table": Report("r", "h", (replace(SAME, evidence=TrialEvidence(1, 40)),), extension=Extension(earlier=(20,))),
    "methods": Report("r", "h", (*SIZES, NULL, replace(NULL, method="leak", decision="failed")), extension=RUN),
    "generation": Report("r", "h", (UP,), ("Few prompts.", "Long answers."), extension=RUN),
    "groups": Report(
        "r", "h", (replace(UP, rows="rows", decision="biased down", estimate=Estimate(-0.02, -0.03, -0.01)),)
    ),
    "unsettled": Report("r", "h", (UNSETTLED, NULL), extension=RUN),
    "compared": Report("r", "h", (UP, UNSETTLED), extension=Extension(of="runs")),
}
"""Reports of the kinds of runs that readers have."""
FIRST_LINES = {
    "official": """
To publish: 69.0% [65.0%, 73.0%] on 200 test texts. No text is predicted by a fit that adapted to it
    (extra). 95% interval for these fits on other texts of this kind.
Usual score: 70.0% for one fit that adapts to all test texts. Fits profit by 2.00 points from the test texts
    that they adapt to (+1.00 to +3.00).
Biased? On these texts yes; for other texts of this kind unknown. lsa is biased up on these texts.
How large? +2.00 [+1.00, +3.00] points. The 95% interval is in brackets. For other texts of this kind:
    [-1.00, +5.00] points. Up to 0.50 points is negligible.
Checked? 1 of 1 control passed. The bias of a control is known in advance.
What next? Report the extra scores. Their fits did not see the test texts, so the bias does not affect them.
""",
    "table": """
Biased? No. pca is equivalent.
How large? -0.10 [-0.20, +0.10] points. The 90% interval is in brackets. Up to 0.50 points is negligible.
Checked? No controls. The intervals assume that the 40 pairs of scores of a method are independent samples,
    of which no part was analyzed before (otherwise, state `earlier`); a table does not show this.
What next? Nothing. The bias is negligible.
""",
    "methods": """
Biased? Yes. Of 4 configurations of 2 methods, 2 are biased up, 2 inert (predictions do not depend on the
    unlabeled data).
How large? -0.10 (pca (num_train=20)) to +2.00 points (lsa (num_train=20)). These are estimates of 4
    configurations of 2 methods, not an interval. Up to 0.50 points is negligible.
Checked? Control failed: leak. The bias of a control is known in advance.
What next? Find the cause. Until you know why leak failed, trust no other verdict.
""",
    "generation": """
Biased? Yes. lsa is biased up.
How large? +2.00 [+1.00, +3.00] points. The 95% interval is in brackets. Up to 0.50 points is negligible.
Checked? No controls.
Warning: Few prompts. (1 more warning below.)
What next? Report the extra scores. Their fits did not see the test texts, so the bias does not affect them.
""",
    "groups": """
Biased? Yes. lsa is biased down.
How large? -2.00 [-3.00, -1.00] points. The 95% interval is in brackets. Up to 0.50 points is negligible.
Checked? No controls.
What next? Report the extra scores. Their fits did not see the test rows, so the bias does not affect them.
""",
    "unsettled": """
Biased? Undecided. pca is inconclusive.
How large? +0.20 [-1.00, +1.40] points. The 90% interval is in brackets. Up to 0.50 points is negligible.
Checked? 1 of 1 control passed. The bias of a control is known in advance.
What next? 120 more subsamples per task. On these texts, they settle pca with 81% probability (otherwise,
    the next report states a new number) and take one worker about 3 min 00 s: set num_subsamples to 132,
    then run: peekbench run r.yaml
""",
    "compared": """
Biased? Yes. Of 2 methods, 1 is biased up, 1 inconclusive.
How large? +0.20 (pca) to +2.00 points (lsa). These are estimates of 2 methods, not an interval. Up to 0.50
    points is negligible.
Checked? No controls.
What next? Extend the runs. The report of each run states by how many subsamples.
""",
}
"""The first lines after the question, as Python prints them."""


def squeeze(text: str) -> str:
    """Leave out what differs between the interfaces: white space, colons and marks of Markdown."""
    return re.sub(r"[\s:*\\`]|^> ", "", text)


@pytest.mark.parametrize("name", REPORTS)
def test_the_first_lines_are_the_same_in_all_interfaces(name: str) -> None:
    report = ReportView(REPORTS[name])
    expected = f"Question: {QUESTION}\n{FIRST_LINES[name].lstrip()}"
    assert squeeze(repr(report).partition("\n")[2]).startswith(squeeze(expected))
    for screen in (in_terminal, in_page, in_markdown):
        assert squeeze(expected) in squeeze(screen(report)), screen


def in_markdown(report: ReportView) -> str:
    return render_markdown(report.document).replace("```sh", "")
