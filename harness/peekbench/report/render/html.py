"""Renders a report as one HTML file that contains its style and script and loads nothing from a network.

The template engine escapes all text from data. The content security policy of the page forbids it to load anything
and to run any script except its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from peekbench.errors import PeekbenchError
from peekbench.formatting import NAME_PARTS, format_cell, format_signed, pluralize
from peekbench.plugins.protocols import Renderer
from peekbench.records.analysis import ControlOutcome, Decision, Verdict
from peekbench.records.figures import Figure, Forest
from peekbench.records.units import Unit
from peekbench.report.document import Report
from peekbench.report.render.alt_text import alt_text
from peekbench.report.render.cells import fold_intervals
from peekbench.report.render.per_method import parts_by_method, row_as_facts
from peekbench.report.render.printable import make_printable
from peekbench.report.render.renderers import LazyRenderer
from peekbench.report.render.ticks import Scale
from peekbench.report.render.verdict_texts import (
    CONTROLS,
    ask_about,
    find_method,
    scope_in_words,
    sentence_without_method,
    verdict_sections,
)

TEMPLATES = Path(__file__).parent / "templates"
MARKS: Mapping[Decision | ControlOutcome, str] = {
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
TONES: Mapping[str, str] = {
    **dict.fromkeys(("inert", "no signal", "undecided"), "inconclusive"),
    "passed": "equivalent",
    "failed": "biased-up",
}
"""CSS class of the colors of a control's outcome; other decisions have a class of their own."""
MEANINGS: Mapping[Decision, str] = {
    "biased up": "{}: the interval is above 0 and not entirely in the band",
    "biased down": "{}: the interval is below 0 and not entirely in the band",
    "equivalent": "{}: the interval is entirely in the band",
    "inconclusive": "the data do not decide: the interval contains 0 and is not entirely in the band",
    "inert": "the predictions do not depend on the unlabeled texts",
    "no signal": "the predictions are at chance, so a bias could not be seen",
}
FACTS: Mapping[str, Mapping[Decision, str]] = {
    "bias": {
        "biased up": "the test texts raise the score",
        "biased down": "the test texts lower the score",
        "equivalent": "the test texts make no relevant difference",
    },
    "contamination": {
        "biased up": "the score is higher than predicted",
        "biased down": "the score is lower than predicted",
        "equivalent": "the score is as predicted",
    },
}
"""What a decision says, by the effect that the verdicts are about."""
MAX_METHODS_PER_DECISION = 6  # that the overview names
MIN_ROWS_TO_FILTER = 8  # of a table
MAX_ROWS_WITHOUT_SCROLLING = 40  # of a table
MAX_FAILURES = 100  # with traceback; the JSON report has all


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
    topics = {
        topic: [table for table in report.tables if table.topic == topic] for topic in ("results", "methods", "data")
    }
    sections, controls = describe_verdicts(report.verdicts)
    return make_environment().get_template("report.html.j2").render(
        report=report,
        renderer=renderer or LazyRenderer(report.renderer),
        style=style,
        script=script,
        policy=_policy(script),
        sections=sections,
        topics=topics,
        methods=list(parts_by_method(report)),
        controls=controls,
        levels=sorted({f"{verdict.level:.0%}" for verdict in report.verdicts if verdict.level}),
        failures=report.failures[:MAX_FAILURES],
        spec=_as_yaml(report.details.get("spec")),
    )  # fmt: skip


def describe_verdicts(verdicts: Sequence[Verdict]) -> tuple[list[dict[str, Any]], list[Verdict]]:
    """Return what templates need of the verdicts, by the question that they answer, and those of controls."""
    by_question = dict(verdict_sections(verdicts))
    controls = by_question.pop(CONTROLS, [])
    by_question = by_question or {ask_about("bias"): []}
    return [_section(question, judged, controls) for question, judged in by_question.items()], controls


def _section(question: str, judged: Sequence[Verdict], controls: Sequence[Verdict]) -> dict[str, Any]:
    """Return what the template needs to explain and list the verdicts that answer a question."""
    effect = next((verdict.effect for verdict in judged if verdict.effect in FACTS), "bias")
    return {
        "effect": effect,
        "question": question,
        "meanings": {
            decision: text.format(FACTS[effect].get(decision))
            for decision, text in MEANINGS.items()
            if decision not in ("inert", "no signal") or any(verdict.decision == decision for verdict in judged)
        },
        "judged": judged,
        "is_accuracy": all(verdict.unit == "difference" for verdict in [*judged, *controls][:1]),
        "by_decision": {name: [verdict for verdict in judged if verdict.decision == name] for name in MEANINGS},
        "regions": sorted({(verdict.region, verdict.unit) for verdict in judged or controls if verdict.region}),
    }


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
        fold_intervals=fold_intervals,
        name_parts=NAME_PARTS.split,
        row_as_facts=row_as_facts,
        scales=_scales,
        find_method=find_method,
        without_method=sentence_without_method,
        tone=lambda decision: TONES.get(decision, decision.replace(" ", "-")),
        scope_in_words=scope_in_words,
        own_file=Markup,  # style and script are peekbench's own files
        drawing=_drawing,  # renderers escape text; nothing else bypasses escaping
    )
    environment.tests.update(forest=lambda figure: isinstance(figure, Forest))
    environment.globals.update(
        marks=MARKS,
        scale_of_forest=_scale_of_forest,
        max_methods_per_decision=MAX_METHODS_PER_DECISION,
        min_rows_to_filter=MIN_ROWS_TO_FILTER,
        max_rows_without_scrolling=MAX_ROWS_WITHOUT_SCROLLING,
    )
    return environment


def _drawing(figure: Figure, renderer: Renderer) -> str:
    """Return a figure as inline SVG, or its description and the reason if no renderer can draw it."""
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


def _scales(verdicts: Sequence[Verdict]) -> dict[Unit, Scale]:
    """Return one axis for all verdicts in the same unit, so that readers can compare them by eye."""
    scales = {}
    for unit in dict.fromkeys(verdict.unit for verdict in verdicts):
        same_unit = [verdict for verdict in verdicts if verdict.unit == unit]
        ends = [end for verdict in same_unit for end in (verdict.estimate, verdict.low, verdict.high, verdict.region)]
        scales[unit] = Scale.fitting([*ends, *(-verdict.region for verdict in same_unit if verdict.region)], unit)
    return scales


def _scale_of_forest(forest: Forest) -> Scale:
    intervals = [interval for _, group in forest.groups for interval in group]
    ends = [end for interval in intervals for end in (interval.estimate, interval.low, interval.high, interval.raw)]
    return Scale.fitting([*ends, -forest.region, forest.region], forest.unit)


def _as_yaml(spec: Any) -> str:
    return yaml.safe_dump(spec, sort_keys=False, allow_unicode=True, width=100) if spec else ""
