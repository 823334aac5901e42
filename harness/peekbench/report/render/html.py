"""The report as one HTML file that asks nothing of a network: its style and script stand in it.

Whatever comes from data reaches the page through a template engine that escapes it. The page's own policy forbids it to
load anything, and to run any script but the one that it brings.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.errors import PeekbenchError
from peekbench.formatting import format_cell, format_signed, pluralize
from peekbench.records.analysis import Decision, Verdict
from peekbench.records.figures import Figure, Forest
from peekbench.records.units import Unit
from peekbench.report.build.per_method import about, as_facts, parts_by_method
from peekbench.report.build.run_report import Report, printable, split_verdicts
from peekbench.report.render.alt_text import alt_text
from peekbench.report.render.cells import as_shown
from peekbench.report.render.renderers import find_renderer
from peekbench.report.render.ticks import Scale
from peekbench.report.render.wrapping import PARTS
from peekbench.results.decisions import ControlOutcome, control_outcome

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
MARKS: Mapping[Decision, str] = {"biased up": "▲", "biased down": "▼", "equivalent": "≈", "inconclusive": "?"}
MEANINGS: Mapping[Decision, str] = {
    "biased up": "seeing the test texts raises the score: interval above 0, not all of it in the band",
    "biased down": "seeing them lowers the score: interval below 0, not all of it in the band",
    "equivalent": "seeing them makes no difference that matters: interval wholly in the band",
    "inconclusive": "too unsure to say: interval around 0, not all of it in the band",
}
OUTCOMES: Mapping[ControlOutcome, tuple[str, str]] = {
    "passed": ("✓", "equivalent"),
    "undecided": ("?", "inconclusive"),
    "failed": ("✗", "biased-up"),
}
"""Mark, and the class of its colors."""
MOST_NAMED = 6  # methods of one decision, on top
FEWEST_TO_FILTER = 8  # rows of a table
MOST_WHOLE = 40  # rows of a table; longer ones scroll in a window of their own
MOST_FAILURES = 100  # with their tracebacks; JSON has all


def render_html(report: Report) -> str:
    """All of the report, for people."""
    report = printable(report)
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    topics = {
        topic: [table for table in report.tables if table.topic == topic] for topic in ("results", "methods", "data")
    }
    judged, controls = split_verdicts(report.verdicts)
    return _environment().get_template("report.html.j2").render(
        report=report,
        style=style,
        script=script,
        policy=_policy(script),
        topics=topics,
        methods=list(parts_by_method(report)),
        judged=judged,
        controls=controls,
        by_decision={mark: [one for one in judged if one.decision == mark] for mark in MARKS},
        most_named=MOST_NAMED,
        levels=sorted({f"{one.level:.0%}" for one in report.verdicts if one.level}),
        regions=sorted({(one.region, one.unit) for one in judged or controls if one.region}),
        failures=report.failures[:MOST_FAILURES],
        spec=_as_yaml(report.record.get("spec")),
    )  # fmt: skip


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Style and script are the project's own files, and renderers escape; nothing else goes around escaping.
    environment.filters.update(
        format_cell=format_cell,
        format_signed=format_signed,
        pluralize=pluralize,
        as_shown=as_shown,
        own_file=Markup,
    )
    environment.filters.update(rendered=_rendered)
    environment.filters.update(scales=_scales, about=about, outcome=control_outcome)
    environment.tests.update(forest=lambda figure: isinstance(figure, Forest))
    environment.filters.update(parts=PARTS.split, without_name=_without_name, facts=as_facts)
    environment.globals.update(outcomes=OUTCOMES, marks=MARKS, meanings=MEANINGS, scale_of_forest=_scale_of_forest)
    environment.globals.update(fewest_to_filter=FEWEST_TO_FILTER, most_whole=MOST_WHOLE)
    return environment


def _rendered(figure: Figure, renderer: str) -> str:
    """A drawing to stand in the page, or, where nothing can draw, what it would show and why it does not."""
    from markupsafe import Markup

    try:
        return Markup(find_renderer(renderer)(figure, "inline svg").decode())  # noqa: S704 - renderers escape
    except PeekbenchError as error:
        return Markup('<p class="note">{} ({})</p>').format(alt_text(figure), error)


def _policy(script: str) -> str:
    """What the page may do; the script is known by its hash. Drawings carry styles of their own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _without_name(verdict: Verdict) -> str:
    """Its sentence, below a heading that names the method."""
    sentence = verdict.sentence.removeprefix(f"{verdict.method}: ")
    return sentence[:1].upper() + sentence[1:]


def _scales(verdicts: Sequence[Verdict]) -> dict[Unit, Scale]:
    """One axis for all verdicts in the same unit, so that they can be compared by eye."""
    found = {}
    for unit in dict.fromkeys(verdict.unit for verdict in verdicts):
        alike = [verdict for verdict in verdicts if verdict.unit == unit]
        ends = [value for one in alike for value in (one.estimate, one.low, one.high, one.region)]
        found[unit] = Scale.fitting([*ends, *(-one.region for one in alike if one.region)], unit)
    return found


def _scale_of_forest(forest: Forest) -> Scale:
    intervals = [interval for _, group in forest.groups for interval in group]
    ends = [end for one in intervals for end in (one.estimate, one.low, one.high, one.raw)]
    return Scale.fitting([*ends, -forest.region, forest.region], forest.unit)


def _as_yaml(spec: Any) -> str:
    if not spec:
        return ""
    import yaml

    return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=100)
