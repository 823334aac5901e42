"""Renders a report as one HTML file that contains its style and script and loads nothing from a network.

The template engine escapes all text from data. The content security policy of the page forbids it to load anything
and to run any script except its own.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from peekbench.errors import PeekbenchError
from peekbench.formatting import NAME_PARTS, format_cell, format_signed, pluralize
from peekbench.plugins.protocols import Renderer
from peekbench.records.figures import Figure, Forest
from peekbench.records.report import Cell, Report, Table
from peekbench.records.trials import TrialFailure
from peekbench.records.verdicts import ControlOutcome, Decision, Estimate, Unit
from peekbench.report.render.advice import Answer
from peekbench.report.render.content import (
    Code,
    Facts,
    Finding,
    Findings,
    Paragraph,
    lay_out,
    make_printable,
    name_heading,
)
from peekbench.report.render.pictures import Picture, Scale, alt_text, groups_of, make_renderer

TEMPLATES = Path(__file__).parent / "templates"
BLOCKS = (Answer, Findings, Paragraph, Table, Picture, TrialFailure, Facts, Code)
"""Types that templates ask for, by their names in lower case."""
MARKS: dict[Decision | ControlOutcome, str] = {
    "biased up": "▲",
    "biased down": "▼",
    "equivalent": "≈",
    "inconclusive": "?",
    "inert": "∅",
    "no signal": "∅",
    "passed": "✓",
    "undecided": "?",
    "failed": "✗",
}
TONES = {
    **dict.fromkeys(("inert", "no signal", "undecided"), "inconclusive"),
    "passed": "equivalent",
    "failed": "biased-up",
}
"""CSS class of the colors of a control's outcome; other decisions have a class of their own."""
LIMITS = {
    "max_with_sentences": 8,  # verdicts that show their sentences without a click
    "min_rows_to_filter": 8,  # of a table or a plot
    "max_rows_without_scrolling": 40,  # of a table
    "max_ticks": 6,  # that fit on a phone
}
MAX_PARTS = 250  # distributions or curves of a drawing, which are 0.3 MB
MARGIN = 0.04  # share of the length of an axis, on either side
TOO_LARGE = "This drawing is too large for this page; the report formats svg and png have it (report.formats)."


def render_html(report: Report, renderer: Renderer | None = None) -> str:
    """Return the report as an HTML page.

    Parameters
    ----------
    report
        Report to render.
    renderer
        Function that draws figures; by default that of the renderer that the report names.
    """
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    spec = make_printable(report).details.get("spec")
    return _make_environment().get_template("report.html.j2").render(
        content=lay_out(report),
        renderer=renderer or make_renderer(report.renderer),
        style=style,
        script=script,
        policy=_policy(script),
        spec=yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=100) if spec else "",
        origin=_describe_origin(report),
    )  # fmt: skip


def _describe_origin(report: Report) -> str:
    """Return the date and the version of the last session of a run; of this page, if it is about no single run."""
    if sessions := report.details.get("sessions"):
        return f"Run on {sessions[-1]['started'][:10]} with peekbench {sessions[-1]['peekbench']}"
    return f"Written on {datetime.now(UTC):%Y-%m-%d} with peekbench {version('peekbench')}"


def _make_environment() -> Environment:
    """Return the template engine, which escapes all text from data."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        format_cell=format_cell,
        format_signed=format_signed,
        pluralize=pluralize,
        cell_number=cell_number,
        name_heading=name_heading,
        name_parts=NAME_PARTS.split,
        plots=_make_plots,
        percent=lambda share: f"{share * 100:.2f}%",
        tone=lambda decision: TONES.get(decision, decision.replace(" ", "-")),
        own_file=Markup,  # style and script are peekbench's own files
        drawing=_draw,  # renderers escape text; nothing else bypasses escaping
    )
    environment.tests.update({block.__name__.lower(): _make_test(block) for block in (*BLOCKS, Forest)})
    environment.globals.update(LIMITS, marks=MARKS, scale_of_forest=_scale_of_forest)
    return environment


def _make_test(block: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, block)


def _make_plots(findings: Sequence[Finding]) -> list[tuple[Scale, list[Finding]]]:
    """Return the verdicts in the same unit with one axis, so that readers can compare them by eye."""
    by_unit: dict[Unit, list[Finding]] = {}
    for finding in findings:
        by_unit.setdefault(finding.verdict.unit, []).append(finding)
    plots = []
    for unit, members in by_unit.items():
        ends: list[float | None] = []
        for verdict in (finding.verdict for finding in members):
            region = verdict.region or 0.0
            ends += [verdict.estimate.mean, *verdict.estimate.limits, region, -region]
        plots.append((Scale.fitting(ends, unit, MARGIN), members))
    return plots


def _scale_of_forest(forest: Forest) -> Scale:
    """Make one axis for all intervals of a forest plot."""
    intervals = [interval for _, group in forest.groups for interval in group]
    ends = [end for interval in intervals for end in (interval.estimate, interval.low, interval.high, interval.raw)]
    return Scale.fitting([*ends, -forest.region, forest.region], forest.unit, MARGIN)


def cell_number(cell: Cell) -> float | None:
    """Return the number by which rows are sorted; None if a cell has none."""
    if isinstance(cell, Estimate):
        cell = next((number for number in (cell.mean, cell.low) if not math.isnan(number)), None)
    if isinstance(cell, bool) or not isinstance(cell, int | float) or not math.isfinite(cell):
        return None
    return cell


def _draw(figure: Figure, renderer: Renderer) -> str:
    """Return a figure as inline SVG, or its description and the reason if it is too large or cannot be drawn."""
    if sum(len(members) for _, members in groups_of(figure)) > MAX_PARTS:
        return Markup('<p class="note">{} {}</p>').format(TOO_LARGE, alt_text(figure))
    try:
        return Markup(renderer(figure, "inline svg").decode())  # noqa: S704 - renderers escape text
    except PeekbenchError as error:
        return Markup('<p class="note">{} ({})</p>').format(alt_text(figure), error)


def _policy(script: str) -> str:
    """Return the content security policy: only the script with this hash may run; drawings have inline styles."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


CLASS = "peekbench-report"
LIGHT_THEMES = 'body:is([data-jp-theme-light="true"], .vscode-light)'
DARK_THEMES = 'body:is([data-jp-theme-light="false"], .vscode-dark, .vscode-high-contrast)'
COLORS = re.compile(r"^ *:root \{(.*?)\}", flags=re.DOTALL | re.MULTILINE)
PAGE_RULES = re.compile(r"^ *(?:html|body) \{.*?\}\n", flags=re.DOTALL | re.MULTILINE)
FRAME = """
  :scope { background: var(--ground); color: var(--ink); padding: 0.75rem 1rem; max-width: 64rem;
    overflow-wrap: anywhere;
    font: 0.9375rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
  .verdicts li, .overview li { list-style: none; }
"""


def render_notebook(report: Report) -> str:
    """Return the verdicts and figures of a report as a part of a notebook.

    Parameters
    ----------
    report
        Report to render.
    """
    return (
        _make_environment()
        .get_template("notebook.html.j2")
        .render(content=lay_out(report), renderer=make_renderer(report.renderer), style=_style(), name=CLASS)
    )


@cache
def _style() -> str:
    """Return the style of reports, limited to elements of the class `CLASS`."""
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    light, dark = COLORS.findall(css)[:2]
    css = PAGE_RULES.sub("", css).replace(":root", ":scope")
    themes = f"{LIGHT_THEMES} :scope {{{light}}}\n{DARK_THEMES} :scope {{{dark}}}\n"
    return f"@scope (.{CLASS}) {{\n{css}{themes}{FRAME}}}"
