"""The content of a report, which all formats share: parts of blocks, which each format draws in its own way.

A format is one file, which walks the blocks of `lay_out`; `files` lists it. Texts of blocks are printable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias

from peekbench.formatting import (
    capitalize,
    format_quantity,
    format_size,
    pluralize,
    points,
    shorten,
    visible,
    visible_lines,
)
from peekbench.records.report import Column, MethodFacts, Report, Table, Topic
from peekbench.records.trials import MAX_ERROR, Draw, Trial, TrialFailure
from peekbench.records.verdicts import PosteriorEvidence, Verdict
from peekbench.report.render.advice import Answer
from peekbench.report.render.answers import answer, list_warnings
from peekbench.report.render.fixed_texts import name_decision
from peekbench.report.render.pictures import Picture, name_figures
from peekbench.report.render.sentences import compare, leaves_failures_open, list_adjustments, state, state_briefly

MAX_TEXT = 20_000  # characters of a text in a report
MAX_FAILURES = 20  # with traceback; the JSON report has all
TERMS = (
    "Each method is scored three times. Base: without unlabeled {rows}. Extra: with independent ones. Test: with those "
    "of the test set. Bias: test - extra."
)
BACKGROUND = (
    "Boost is extra - base. Intervals cover the variation between random samples of the same data sets; those of "
    "equivalent biases belong to two one-sided tests."
)


TERMS_OF_FOLDS = (
    "Fits adapt to the test set without one fold, or with private {rows} in its place. Base: without unlabeled {rows}. "
    "Extra: on the fold that a fit did not adapt to. Test: on the others. All: after adapting to the whole test set. "
    "Bias: test - extra."
)
"""What the words in verdicts on designs with folds mean."""
BACKGROUND_OF_FOLDS = (
    "Boost is extra - base. Intervals cover the variation between divisions of this test set and seeds of the method; "
    "those of equivalent biases belong to two one-sided tests. Intervals for other {rows} also cover that these "
    "{rows} are a sample."
)
"""What intervals of designs with folds cover."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict of the first analysis on a method, in words that include those of other analyses."""

    verdict: Verdict
    short: str
    """One sentence."""
    details: str
    """All sentences."""
    basis: str
    """Data behind the verdict, such as '5 tasks, 250 trials'; empty if it does not say."""
    method: MethodFacts | None
    """Description of the method, if it is known."""

    @property
    def decision(self) -> str:
        """The decision, with the texts that it is limited to."""
        return name_decision(self.verdict)

    @property
    def summary(self) -> str:
        """The estimate with its interval, and one sentence."""
        return ". ".join(filter(None, (format_quantity(self.verdict.estimate, self.verdict.unit), self.short)))

    @property
    def explained(self) -> str:
        """All sentences, with the data behind the verdict."""
        return " ".join(filter(None, (self.details, self.basis and f"(Based on {self.basis}.)")))


@dataclass(frozen=True, slots=True)
class Findings:
    """Verdicts that answer one question, or those on controls."""

    heading: str
    findings: tuple[Finding, ...]
    definition: str = ""
    """What the words in the verdicts mean; empty for controls."""
    explanation: str = ""
    """What the decisions mean; empty for controls."""
    background: str = ""
    """What the intervals mean, for the details."""
    is_of_controls: bool = False


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A text of one or several lines."""

    text: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """A list of names and texts."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """A command, or lines of a file."""

    text: str


Block: TypeAlias = Answer | Findings | Paragraph | Table | Picture | TrialFailure | Facts | Code


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a report."""

    name: str
    """Identifier, such as 'tables'."""
    heading: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Content:
    """What a format shows of a report."""

    name: str
    headline: str
    parts: tuple[Part, ...]


def lay_out(report: Report) -> Content:
    """Arrange the parts of a report that have any content, in the order of all formats.

    Parameters
    ----------
    report
        The report.

    Examples
    --------
    >>> report = Report("scores", "1 method", (Verdict("lsa", "bias", "equivalent"),), warnings=("Few rows.",))
    >>> [part.name for part in lay_out(report).parts]
    ['answers', 'verdicts']
    """
    report = make_printable(report)
    sections = make_sections(report)
    tables: dict[Topic, list[Table]] = {"results": [], "methods": [], "data": []}
    for table in report.tables:
        tables[table.topic].append(table)
    answers = tuple(answer(report))
    parts = (
        Part("answers", "", answers),
        Part("verdicts", "Verdicts", tuple(sections)),
        Part("warnings", "Warnings", tuple(_warn(report, is_first_known=bool(answers)))),
        Part("tables", "Tables", tuple(tables["results"])),
        Part("figures", "Figures", tuple(name_figures(report))),
        Part("methods", "Methods", tuple(tables["methods"])),
        Part("failures", f"{pluralize(len(report.failures), 'trial')} failed", tuple(_list_failures(report.failures))),
        Part("data", "Data and overlap", tuple(tables["data"])),
        Part("provenance", "Provenance", tuple(_describe_provenance(report))),
    )
    return Content(report.name, report.headline, tuple(part for part in parts if part.blocks))


def _warn(report: Report, *, is_first_known: bool) -> Iterator[Paragraph]:
    """Yield the warnings, except the first one if the answers have it."""
    for warning in list_warnings(report)[is_first_known:]:
        yield Paragraph(warning, is_warning=True)


def _list_failures(failures: Sequence[TrialFailure]) -> Iterator[Block]:
    """Yield the first failures, and the number of the others."""
    yield from failures[:MAX_FAILURES]
    if (number := len(failures) - MAX_FAILURES) > 0:
        yield Paragraph(f"{number:,} more are in report.json.")


def _describe_provenance(report: Report) -> Iterator[Block]:
    facts = tuple((name, text) for name, text in report.provenance.items() if text != report.command)
    if facts:
        yield Facts(facts)
    if report.command:
        yield Paragraph("To reproduce this report:")
        yield Code(report.command)


def name_heading(column: Column) -> str:
    """Name a column, with the unit that its cells do not show."""
    return ",".join(filter(None, (column.name, points(column.unit))))


def find_findings(report: Report) -> list[Finding]:
    """Make one finding for each method, or for each of its effects: the verdict of the first analysis on it."""
    methods = {method.name: method for method in report.methods}
    return [
        Finding(
            lead,
            state_briefly(lead, others),
            " ".join((capitalize(state(lead)), *(compare(lead, other) for other in others))),
            basis_of(lead),
            methods.get(lead.name),
        )
        for lead, *others in report.judged
    ]


def make_sections(report: Report) -> list[Findings]:
    """Group the verdicts: those on methods, then those on controls, of which failed ones come first."""
    findings = find_findings(report)
    methods = [finding for finding in findings if not finding.verdict.control]
    controls = [finding for finding in findings if finding.verdict.control]
    sections = []
    if methods:
        sections.append(_describe_methods(report, methods))
    if controls:
        controls.sort(key=lambda finding: finding.verdict.decision == "passed")
        sections.append(Findings(CONTROLS, tuple(controls), is_of_controls=True))
    return sections


def _describe_methods(report: Report, findings: Sequence[Finding]) -> Findings:
    """Add to the findings on methods what their words and intervals mean."""
    verdicts = [finding.verdict for finding in findings]
    rows = verdicts[0].rows
    terms, background = TERMS, BACKGROUND
    design = report.details.get("spec", {}).get("design", {})
    if design.get("folds") or any(getattr(verdict.evidence, "has_folds", False) for verdict in verdicts):
        terms, background = TERMS_OF_FOLDS, BACKGROUND_OF_FOLDS
    return Findings(
        "Verdicts",
        tuple(findings),
        definition=terms.format(rows=rows) + _define_accuracy(report, verdicts),
        explanation=explain_decisions(verdicts),
        background=background.format(rows=rows),
    )


def _define_accuracy(report: Report, verdicts: Sequence[Verdict]) -> str:
    """Define accuracy if it is that of label sets or a mean grade, after a space; empty for other scores."""
    kinds = {facts.get("kind") for facts in report.details.get("data", {}).values()}
    scores = {getattr(verdict.evidence, "score", "score") for verdict in verdicts}
    if scores != {"score"}:
        return ""
    if kinds == {"generation"}:
        return " Accuracy: mean grade of the answers."
    if kinds != {"multilabel"}:
        return ""
    return f" Accuracy: subset accuracy, the share of {verdicts[0].rows} with exactly the right labels."


CONTROLS = "Controls: methods whose bias is known in advance, which check this run"


def explain_decisions(verdicts: Sequence[Verdict]) -> str:
    """Explain the decisions of verdicts, with the coverage of their intervals."""
    regions = {(verdict.region, verdict.unit) for verdict in verdicts if verdict.region}
    region = "the region of practical equivalence"
    if len(regions) == 1:
        ((width, unit),) = regions
        region = f"±{format_size(width or 0.0, unit)}"
    adjusted = ""
    largest = max(verdicts, key=lambda verdict: verdict.family.size)
    if listed := list_adjustments(largest):
        adjusted = f"Intervals of biases are adjusted for {listed}, those of other numbers are not. "
    unless = ""
    if any(map(leaves_failures_open, verdicts)):
        unless = ", or rare failures are not excluded"
    return (
        f"{_name_levels(verdicts)}{adjusted}Biased: the interval excludes 0 and extends beyond {region}. Equivalent: "
        f"the interval lies entirely within {region}. Inconclusive: neither{unless}."
    )


def _name_levels(verdicts: Sequence[Verdict]) -> str:
    """Name the level of the intervals, which is lower where a bias is equivalent to zero."""
    levels = {f"{verdict.family.level:.0%}" for verdict in verdicts if verdict.family.level > 0}
    level, *shorter = [*sorted(levels, reverse=True), ""]
    if not levels or len(levels) > 2:
        return ""
    return f"{level} intervals{''.join(f', {other} where equivalent' for other in shorter[:-1])}. "


def basis_of(verdict: Verdict) -> str:
    """Describe the data that a verdict is based on, such as '5 tasks, 250 trials'; empty if it does not say."""
    evidence = verdict.evidence
    if evidence is None:
        return ""
    basis = f"{pluralize(evidence.num_tasks, 'task')}, {pluralize(evidence.num_trials, 'trial')}"
    if isinstance(evidence, PosteriorEvidence):
        basis += ", a posterior"
    return basis


def make_printable(report: Report) -> Report:
    """Escape and shorten the texts of a report; all except messages, tracebacks and data become one line."""
    cleaned: Report = _clean(report, visible)
    return cleaned


OF_SEVERAL_LINES = dict.fromkeys(("warnings", "error", "traceback"), visible_lines)
"""Fields of a report and of its failures whose texts can have several lines, with the function that cleans them."""


def _clean(value: Any, escape: Callable[[str], str]) -> Any:
    """Clean the texts in nested records, sequences and mappings."""
    if isinstance(value, str):
        return escape(shorten(value, MAX_TEXT))
    if isinstance(value, tuple):
        cleaned = (_clean(item, escape) for item in value)
        if isinstance(value, Draw | Trial):
            return type(value)._make(cleaned)
        return tuple(cleaned)
    if isinstance(value, list):
        return [_clean(item, escape) for item in value]
    if isinstance(value, Mapping):
        return {_clean(key, escape): _clean(item, escape) for key, item in value.items()}
    if isinstance(value, TrialFailure):
        value = replace(value, error=shorten(value.error, MAX_ERROR))
    if is_dataclass(value) and not isinstance(value, type):
        escapes = {part.name: OF_SEVERAL_LINES.get(part.name, escape) for part in fields(value)}
        return replace(value, **{name: _clean(getattr(value, name), own) for name, own in escapes.items()})
    return value
