"""What readers see without a click: the same first lines, and one interval of the bias of each method."""

from __future__ import annotations

import io
import random
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import counting
import pandas as pd
import pytest
import yaml
from commands import run_command
from peekbench_toy import Words, words
from rich.console import Console

import peekbench as pb
from peekbench.api.report_view import ReportView
from peekbench.formatting import format_cell, format_quantity
from peekbench.records import Folders, TrialEvidence
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
    "html": lambda report: in_page(report, 'id="tables-2"'),
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


def of_reviews(**options: str) -> list[dict[str, Any]]:
    return [{"use": "files", "name": "reviews", "options": options}]


def count(smallest: int) -> dict[str, Any]:
    return {"use": "counting.py:fit", "name": "count", "options": {"smallest": smallest}}


def design(num_train: Any, num_test: int, num_subsamples: int) -> dict[str, Any]:
    return {"num_train": num_train, "num_test": num_test, "num_subsamples": num_subsamples}


OFFICIAL, ALL = of_reviews(path="train.csv", test_path="test.csv"), of_reviews(path="all.csv")
GROUPS = of_reviews(path="all.csv", group="author")
SUMS = {"use": "arithmetic.sums", "name": "sums", "options": {"operations": ["+"]}}
NULL = "controls.null"
SPECS: dict[str, tuple[list[dict[str, Any]], list[Any], Any]] = {
    "official": (OFFICIAL, [count(8), NULL], "official"),
    "methods": (ALL, [count(5), {**count(1), "name": "all-words"}, NULL], design([60, 120], 150, 10)),
    "generation": ([SUMS], ["counting.py:add"], design(20, 100, 10)),
    "groups": (GROUPS, [count(6), NULL], design(60, 150, 20)),
    "unsettled": (ALL, [count(2), NULL], design(60, 60, 5)),
}
"""Tasks, methods and design of each kind of run."""
FIRST_LINES = {
    "official": """
To publish: 81.3% [77.6%, 85.1%] on 400 test texts (41.8% without unlabeled texts). No text is predicted by a
    fit that adapted to it (extra). 95% interval for these fits on other texts of this kind.
Usual score: 83.0% for one fit that adapts to all these test texts. Fits profit by 1.11 points from the test texts
    that they adapt to (+0.58 to +1.64). Chance and adapting to more texts change this score by +0.56
    points.
Biased? Yes, on these texts and for other texts of this kind. count is biased up.
How large? +1.11 [+0.58, +1.64] points. The 95% interval is in brackets. For other texts of this kind:
    [+0.04, +2.18] points. Because the run stopped early, estimates tend to be too far from 0; intervals allow
    for this. Up to 0.50 points is negligible.
Checked? 1 of 1 control passed. The bias of a control is known in advance.
What next? Report the score to publish. No text is predicted by a fit that adapted to it.
""",
    "table": """
Biased? No. tapt is equivalent.
How large? +0.02 [-0.04, +0.07] points. The 90% interval is in brackets. Up to 0.50 points is negligible.
Checked? No controls. The intervals assume that the 20 subsamples (draws of rows, or seeds), each averaged over
    tasks, are independent samples, of which no part was analyzed before (otherwise, state `earlier`); a
    table does not show this.
What next? Nothing. The bias is negligible.
""",
    "methods": """
Biased? Yes. Of 4 configurations (2 methods with several test sets, sizes or models), 1 is biased up, 1
    inconclusive, 2 inert (predictions do not depend on the unlabeled data).
How large? 0.00 to +3.57 points. These are the estimates of all-words (num_train=60) and count (num_train=60),
    not an interval. Up to 0.50 points is negligible.
Checked? 1 of 1 control passed. The bias of a control is known in advance.
What next? Report the extra scores. Their fits did not see the test texts, so the bias does not affect them.
    Add subsamples. 38 more settle count (num_train=120) with 81% probability, given these results: set
    num_subsamples to 48, then run: peekbench run methods.yaml
""",
    "generation": """
Biased? Yes. add is biased up.
How large? +21.19 [+16.05, +26.78] points. The 95% interval is in brackets. Because the run stopped early,
    estimates tend to be too far from 0; intervals allow for this. Up to 0.50 points is negligible.
Checked? No controls.
What next? Report the extra scores. Their fits did not see the test texts, so the bias does not affect them.
""",
    "groups": """
Biased? Yes. count is biased up.
How large? +6.28 [+4.52, +8.76] points. The 95% interval is in brackets. Because the run stopped early,
    estimates tend to be too far from 0; intervals allow for this. Up to 0.50 points is negligible.
Checked? 1 of 1 control passed. The bias of a control is known in advance.
What next? Report the extra scores. Their fits did not see the test texts, so the bias does not affect them.
""",
    "unsettled": """
Biased? Undecided. count is inconclusive.
How large? +3.00 [-1.02, +7.02] points. The 95% interval is in brackets. Up to 0.50 points is negligible.
Checked? 1 of 1 control passed. The bias of a control is known in advance.
Warning: Too few subsamples for a verdict: 5 subsamples of reviews; add subsamples: each of these tasks
    needs at least 6.
What next? Add subsamples. 50 more settle count with 81% probability, given these results: set
    num_subsamples to 55, then run: peekbench run unsettled.yaml
""",
}
"""The first lines after the question, as Python prints them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what the six kinds of users have: texts, some by several authors, a table of scores, specs and methods."""
    folder, rng = tmp_path_factory.mktemp("first_screens"), random.Random(0)
    shutil.copy(counting.__file__, folder)
    made = words(options=Words(num_rows=900, noise=0.7), folders=Folders(folder, folder))
    texts = pd.DataFrame({"text": made.inputs, "label": made.labels, "author": [row // 3 for row in range(900)]})
    for name, rows in {"train": texts[:150], "test": texts[150:550], "all": texts}.items():
        rows.to_csv(folder / f"{name}.csv", index=False)
    scores = [(task, number, 1000, rng.randint(690, 750)) for task in "abc" for number in range(20)]
    table = pd.DataFrame(scores, columns=["task", "subsample", "num_test", "extra"]).assign(method="tapt")
    table["test"] = (table["extra"] + [rng.randint(-3, 3) for _ in scores]) / 1000
    table["extra"] /= 1000
    table.to_csv(folder / "scores.csv", index=False)
    options = {"executor": {"use": "local", "options": {"in_process": True}}, "report": {"formats": ["json"]}}
    for name, parts in SPECS.items():
        spec = dict(zip(("tasks", "methods", "design"), parts, strict=True))
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, **options, **spec}))
    return folder


def squeeze(text: str) -> str:
    """Leave out what differs between interfaces, such as white space and marks of Markdown, and between machines."""
    return re.sub(r"\(about[^()]*withoneworker\)", "", re.sub(r"[\s:*\\`]|^> |--", "", text))


EXPLAINED = {
    r"subsamples?": r"random draws|random divisions|draws of rows",
    r"folds?": r"parts \(folds",
    r"configurations?": r"methods with several",
    r"tie": r"share a letter",
    r"boost": r"extra - base",
    r"inert": r"do not depend on the unlabeled",
    r"looks?": r"planned analyses",
    r"arms?|famil\w+|regions?": r"not explained, so not used",
}
"""Terms beyond the six that a report needs, to what explains them at their first use."""


@pytest.mark.parametrize("name", FIRST_LINES)
def test_the_first_lines_are_the_same_in_all_interfaces(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    if name == "table":
        printed, report = run_command("analyze", "scores.csv").stdout, pb.analyze("scores.csv")
    else:
        printed, report = run_command("run", f"{name}.yaml").stdout, pb.load_run(name).report()
    expected = squeeze(f"Question: {QUESTION}\n{FIRST_LINES[name].lstrip()}")
    assert expected in squeeze(printed)
    shown = " ".join(printed.split())
    for term, explanation in EXPLAINED.items():
        if used := re.search(rf"\b({term})\b", shown):
            assert re.search(explanation, shown[: used.end() + 700]), term
    assert squeeze(repr(report).partition("\n")[2]).startswith(expected)
    for screen in (in_page, in_markdown):
        assert expected in squeeze(screen(report)), screen


def in_markdown(report: ReportView) -> str:
    return render_markdown(report.document).replace("```sh", "")
