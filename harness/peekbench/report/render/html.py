"""Renders a report as one HTML file that contains its style and script and loads nothing from a network.

The template engine escapes all text from data. The content security policy of the page forbids it to load anything
and to run any script except its own.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from peekbench.errors import PeekbenchError
from peekbench.formatting import NAME_PARTS, TICK_STEPS, format_cell, format_signed, pluralize, tick_decimals, with_sign
from peekbench.plugins.protocols import Renderer
from peekbench.records.figures import Figure, Forest, Interval
from peekbench.records.report import Report, Table
from peekbench.records.verdicts import Unit, Verdict
from peekbench.report.render.answers import (
    CONTROLS,
    answer,
    basis_of,
    define_terms,
    explain_adjustments,
    explain_decisions,
    find_method,
    verdict_sections,
)
from peekbench.report.render.content import cell_number, cell_text, count_key_columns, make_printable
from peekbench.report.render.pictures import alt_text, make_renderer
from peekbench.report.render.sentences import state_briefly
from peekbench.report.render.words import MARKS, TONES

TEMPLATES = Path(__file__).parent / "templates"
MAX_PARTS = 250  # distributions or curves of a drawing, which are 0.3 MB
MAX_WITH_SENTENCES = 8  # verdicts that show their sentences without a click
MIN_ROWS_TO_FILTER = 8  # of a table or a plot
MAX_ROWS_WITHOUT_SCROLLING = 40  # of a table
MAX_FAILURES = 100  # with traceback; the JSON report has all

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
    report = make_printable(report)
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return make_environment().get_template("report.html.j2").render(
        **_describe(report),
        renderer=renderer or make_renderer(report.renderer),
        style=style,
        script=script,
        policy=_policy(script),
        failures=report.failures[:MAX_FAILURES],
        spec=_as_yaml(report.details.get("spec")),
        origin=_describe_origin(report),
    )  # fmt: skip


def _describe_origin(report: Report) -> str:
    """Return the date and the version of the last session of a run; of this page, if it is about no single run."""
    if sessions := report.details.get("sessions"):
        return f"Run on {sessions[-1]['started'][:10]} with peekbench {sessions[-1]['peekbench']}"
    return f"Written on {datetime.now(UTC):%Y-%m-%d} with peekbench {version('peekbench')}"


def _describe(report: Report) -> dict[str, Any]:
    """Return what templates need of a report: its answers, its verdicts by question, the controls, and the figures."""
    by_question = dict(verdict_sections(report.verdicts))
    controls = by_question.pop(CONTROLS, [])
    forests, figures = _split_figures(report, {lead.method for lead, _ in (*chain(*by_question.values()), *controls)})
    return {
        "report": report,
        "answers": answer(report),
        "sections": [(question, _plots(leads)) for question, leads in by_question.items()],
        "controls": controls,
        "control_plots": _plots(controls),
        "forests": forests,
        "figures": figures,
    }


def _plots(leads: Sequence[tuple[Verdict, str]]) -> list[tuple[Scale, list[tuple[Verdict, str]]]]:
    """Return the verdicts in the same unit with one axis, so that readers can compare them by eye."""
    plots = []
    for unit in dict.fromkeys(lead.unit for lead, _ in leads):
        same_unit = [each for each in leads if each[0].unit == unit]
        ends = [end for lead, _ in same_unit for end in (lead.estimate.mean, *lead.estimate.limits)]
        regions = [lead.region for lead, _ in same_unit if lead.region]
        plots.append((Scale.fitting([*ends, *regions, *(-region for region in regions)], unit), same_unit))
    return plots


def _split_figures(
    report: Report, methods: Collection[str]
) -> tuple[dict[str, list[tuple[Forest, Sequence[Interval]]]], list[Figure]]:
    """Return the groups of forest plots that are each about one of the methods, by method, and all other figures."""
    by_method: dict[str, list[tuple[Forest, Sequence[Interval]]]] = {method: [] for method in methods}
    others: list[Figure] = []
    for figure in report.figures:
        if isinstance(figure, Forest) and all(heading in by_method for heading, _ in figure.groups):
            for heading, intervals in figure.groups:
                by_method[heading].append((figure, intervals))
        else:
            others.append(figure)
    return by_method, others


def make_environment() -> Environment:
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
        cell_text=cell_text,
        cell_number=cell_number,
        count_key_columns=count_key_columns,
        name_parts=NAME_PARTS.split,
        find_method=find_method,
        basis_of=basis_of,
        state_briefly=state_briefly,
        tone=lambda decision: TONES.get(decision, decision.replace(" ", "-")),
        own_file=Markup,  # style and script are peekbench's own files
        drawing=_drawing,  # renderers escape text; nothing else bypasses escaping
    )
    environment.tests.update(forest=lambda figure: isinstance(figure, Forest))
    environment.globals.update(
        marks=MARKS,
        scale_of_forest=_scale_of_forest,
        max_with_sentences=MAX_WITH_SENTENCES,
        define_terms=define_terms,
        explain_adjustments=explain_adjustments,
        explain_decisions=explain_decisions,
        min_rows_to_filter=MIN_ROWS_TO_FILTER,
        max_rows_without_scrolling=MAX_ROWS_WITHOUT_SCROLLING,
    )
    return environment


def _drawing(figure: Figure, renderer: Renderer) -> str:
    """Return a figure as inline SVG, or its description and the reason if it is too large or cannot be drawn."""
    groups = getattr(figure, {"violins": "columns", "curves": "panels"}.get(figure.kind, "groups"))
    if sum(len(parts) for _, parts in groups) > MAX_PARTS:
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


def _scale_of_forest(forest: Forest, own: Sequence[Interval] = ()) -> Scale:
    """Return one axis for all intervals of a forest plot, or one for some of them."""
    intervals = own or [interval for _, group in forest.groups for interval in group]
    ends = [end for interval in intervals for end in (interval.estimate, interval.low, interval.high, interval.raw)]
    return Scale.fitting([*ends, -forest.region, forest.region], forest.unit)


def _as_yaml(spec: Any) -> str:
    return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=100) if spec else ""


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
    report = make_printable(report)
    return _render("report", **_describe(report), renderer=make_renderer(report.renderer))


def render_notebook_table(table: Table) -> str:
    """Return a table as a part of a notebook."""
    report = make_printable(Report("", "", tables=(table,)))
    return _render("table", report=report)


def _render(part: str, **values: Any) -> str:
    return make_environment().get_template("notebook.html.j2").render(part=part, style=_style(), name=CLASS, **values)


@cache
def _style() -> str:
    """Return the style of reports, limited to elements of the class `CLASS`."""
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    light, dark = COLORS.findall(css)[:2]
    css = PAGE_RULES.sub("", css).replace(":root", ":scope")
    themes = f"{LIGHT_THEMES} :scope {{{light}}}\n{DARK_THEMES} :scope {{{dark}}}\n"
    return f"@scope (.{CLASS}) {{\n{css}{themes}{FRAME}}}"


MAX_TICKS = 6  # that fit on a phone
MARGIN = 0.04  # share of the width, on either side


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis from `low` to `high`."""

    low: float
    high: float
    unit: Unit

    @classmethod
    def fitting(cls, values: Iterable[float | None], unit: Unit) -> Scale:
        """Return an axis that contains zero and all finite values, with a margin.

        Parameters
        ----------
        values
            Values to show; None and values that are not finite are ignored.
        unit
            Unit of the values.
        """
        finite = [0.0, *(value for value in values if value is not None and math.isfinite(value))]
        low, high = min(finite), max(finite)
        if low == high:
            low, high = (-0.01, 0.01) if unit == "difference" else (-1.0, 1.0)
        margin = (high - low) * MARGIN
        return cls(low - margin, high + margin, unit)

    def position(self, value: float) -> str:
        """Return the position of a value, limited to the axis, as a percentage."""
        share = (self._limit(value) - self.low) / (self.high - self.low)
        return f"{share * 100:.2f}%"

    def width(self, low: float, high: float) -> str:
        """Return the width between two values, limited to the axis, as a percentage."""
        return f"{(self._limit(high) - self._limit(low)) / (self.high - self.low) * 100:.2f}%"

    def _limit(self, value: float) -> float:
        return min(max(value, self.low), self.high)

    def ticks(self) -> list[tuple[str, str]]:
        """Return (position, label) of a few round numbers, including zero."""
        factor = 100 if self.unit == "difference" else 1
        span = (self.high - self.low) * factor
        step = next((step for step in TICK_STEPS if span / step <= MAX_TICKS), TICK_STEPS[-1])
        first, last = math.ceil(self.low * factor / step), math.floor(self.high * factor / step)
        return [
            (self.position(number * step / factor), with_sign(number * step, tick_decimals(step)))
            for number in range(first, last + 1)
        ]
