"""Renders a report, or one of its tables, as a part of a notebook.

The HTML has no script, and its style affects no other part of the notebook. The colors follow the theme of JupyterLab
and VS Code, and otherwise the light or dark mode of the browser.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from peekbench.records.analysis import Table
from peekbench.report.document import Report
from peekbench.report.render.html import TEMPLATES, describe_verdicts, make_environment
from peekbench.report.render.printable import make_printable
from peekbench.report.render.renderers import LazyRenderer

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
    sections, controls = describe_verdicts(report.verdicts)
    return _render(
        "report", report=report, renderer=LazyRenderer(report.renderer), sections=sections, controls=controls
    )


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
