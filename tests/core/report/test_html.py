"""The HTML report as text; tests/browser tests the HTML report in a browser."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from peekbench.formatting import visible
from peekbench.records import Family, MethodFacts, Report
from peekbench.records.figures import Axis, Forest, Interval, Sample, Violins
from peekbench.records.report import Column, Table
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench.records.verdicts import Estimate, Verdict
from peekbench.report import alt_text, report_of_table
from peekbench.report.render.html import TEMPLATES, render_html
from peekbench.results.analyze import analyze

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script></style></title>",
    "' onclick='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe \u2066 \u200f rtl",
    "数据集 ünïcode \U0001f600",
    "a" * 500,
]
VOID = {"meta", "wbr", "input", "br", "img", "link"}


class Page(HTMLParser):
    """The elements of a page with their attributes, in order, and its visible text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes what is open"

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self.text += data

    def all(self, *tags: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


@pytest.fixture
def report(simulate: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.chdir(tmp_path)
    parts = [simulate(bias, method=method) for method, bias in (("lsa", 0.05), ("null", 0.0))]
    pd.concat(parts, ignore_index=True).to_csv("scores.csv", index=False)
    return report_of_table(analyze(Path("scores.csv")))


def hostile(text: str) -> Report:
    interval = Interval(text, 0.1, 0.0, 0.2)
    columns = (Column("method"), Column(text), Column("n", "number"))
    return Report(
        name=text,
        headline=text,
        verdicts=(
            Verdict(text, "bias", "inconclusive", Estimate(0.1, 0.0, 0.2), 0.005, family=Family(level=0.95), note=text),
        ),
        warnings=(text,),
        figures=(Forest(text, ((text, (interval,)),), text),),
        tables=tuple(
            Table(text, columns, ((text, text, 1.0), *more), text, topic)
            for topic in ("results", "methods", "data")
            for more in ((), ((text, "b", 2.0),))
        ),
        failures=(TrialFailure(Trial(Draw(text, 5, 5, 0), text), text, f"Traceback\n{text}"),),
        provenance={text: text},
        details={"spec": {text: text}},
        methods=(MethodFacts(text, text, text, text),),
        command=text,
    )


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_from_data_is_escaped(text: str) -> None:
    page = Page(render_html(hostile(text)))
    own = Page(render_html(hostile("plain")))
    assert [tag for tag, _ in page.elements if tag != "wbr"] == [tag for tag, _ in own.elements if tag != "wbr"]
    names = {(tag, name) for tag, attributes in own.elements for name in attributes}
    # The cell of a long text has a class.
    assert {(tag, name) for tag, attributes in page.elements for name in attributes} - names <= {("td", "class")}
    assert page.text.count(visible(text)) >= 20, "the text is shown, with control characters escaped"


def drawn(text: str) -> Report:
    return replace(
        hostile("plain"), figures=(Violins(text, Axis(text), ((text, (Sample(text, (0.1, 0.2, 0.4)),)),), text),)
    )


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_inline_drawings_contain_only_shapes_and_text(text: str) -> None:
    pytest.importorskip("matplotlib", reason="the extra 'figures' is not installed")
    page, without = Page(render_html(drawn(text))), Page(render_html(replace(hostile("plain"), figures=())))
    shapes = {"svg", "g", "defs", "path", "clippath", "rect", "text", "tspan", "title", "desc", "use", "figure"}
    assert {tag for tag, _ in page.elements} - {tag for tag, _ in without.elements} <= shapes | {"figcaption", "bdi"}
    assert len(page.all("svg")) == len(without.all("svg")) + 1
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)


def test_without_a_renderer_the_page_describes_the_figure_and_gives_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "peekbench_figures.drawing", raising=False)
    report = drawn("by <task>")
    text = Page(render_html(report)).text
    assert alt_text(report.figures[0]) in text
    assert "pip install 'peekbench[figures]'" in text


def test_only_style_script_and_drawings_bypass_escaping() -> None:
    for path in TEMPLATES.glob("*.j2"):
        raw = re.findall(r"\{\{[^}]*\|\s*(?:safe|own_file|drawing)[^}]*\}\}", path.read_text())
        assert set(raw) <= {"{{ style|own_file }}", "{{ script|own_file }}", "{{ figure|drawing(renderer) }}"}
        assert "autoescape" not in path.read_text()


def test_the_page_is_self_contained(report: Report) -> None:
    text = render_html(report)
    page = Page(text)
    assert not page.all("link", "iframe", "object", "embed", "form", "base")
    for attributes in (attributes for _, attributes in page.elements):
        assert attributes.get("href", "#").startswith("#")
        assert not {"src", "srcset", "action"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"@import|url\((?!#)", text)
    assert set(re.findall(r"https?://[^\"']*", text)) <= {
        f"http://www.w3.org/{name}" for name in ("2000/svg", "1999/xlink")
    }
    (policy,) = [meta["content"] for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


@pytest.mark.parametrize("make", [lambda report: report, lambda report: hostile("plain")], ids=["real", "all parts"])
def test_the_page_has_the_structure_that_assistive_technology_needs(
    make: Callable[[Report], Report], report: Report
) -> None:
    page = Page(render_html(make(report)))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels)), levels
    assert [len(page.all(tag)) for tag in ("main", "header", "footer", "nav")] == [1, 1, 1, 1]
    assert len(page.all("table")) == len(page.all("caption")) > 0
    assert all(attributes.get("scope") in ("col", "row") for attributes in page.all("th"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        assert attributes.get("aria-labelledby", ids[0]) in ids
        assert attributes.get("href", f"#{ids[0]}")[1:] in ids
    for svg in page.all("svg"):  # the numbers of hidden ones are beside them
        assert svg.get("aria-hidden") == "true" or svg.get("role") == "img"


def test_a_verdict_unfolds_to_its_sentences_and_its_method(report: Report) -> None:
    longer = replace(
        report,
        methods=(MethodFacts("lsa", "classic.lsa", "k 5", "components"), MethodFacts("null"), MethodFacts("lsa (x)")),
        verdicts=(
            *report.verdicts,
            Verdict("lsa (x) (n=5)", "bias", "biased down", parts=(("method", "lsa (x)"), ("n", 5)), note="Only of x."),
        ),
        tables=(*report.tables, Table("Losses", (Column("method"), Column("loss", "number")), (("lsa", 4.25),))),
    )
    text = render_html(longer)
    first, second, third = re.findall(
        r'<li class="[\w-]+" id="verdict-1-1-\d">.*?</details>\n</li>', text, flags=re.DOTALL
    )
    assert "(k 5): components." in first and "k 5" not in second + third
    assert "Only of x." in third and "Only of x." not in first + second


def test_failures_are_shown_with_tracebacks() -> None:
    failing = hostile("plain")
    many = replace(failing, failures=failing.failures * 150)
    page = Page(render_html(many))
    assert page.text.count("Traceback\nplain") == 20
    assert "130 more are in report.json" in page.text
    assert "150 trials failed" in page.text


def test_a_drawing_that_is_too_large_for_the_page_is_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peekbench.report.render.html.MAX_PARTS", 0)
    page = render_html(drawn("violin"), lambda figure, form: b"")
    assert "too large for this page" in page and alt_text(drawn("violin").figures[0]) in page
