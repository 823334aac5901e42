"""The first lines of a report, the same in all formats: what to publish, the verdict, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peekbench.formatting import capitalize, format_cell, format_quantity, format_size, list_numbers, pluralize, shorten
from peekbench.records.data import FLAGS
from peekbench.records.report import Extension, Report
from peekbench.records.verdicts import LooksTaken, TrialEvidence, Verdict
from peekbench.report.render.advice import Answer, advise_next, name_methods
from peekbench.report.render.fixed_texts import (
    find_outcome,
    has_published,
    list_with_alone,
    peeks_together,
    size_for_others,
    state_published,
    state_to_publish,
)
from peekbench.report.render.sentences import name_interval, state_together

QUESTION = "Does a method score higher if its unlabeled data come from the test set?"
MAX_PUBLISHED = 3  # methods whose scores to publish are answers
MAX_SHOWN = 240  # characters of an error in a warning


def answer(report: Report) -> list[Answer]:
    """Answer the questions of a reader; there are no answers without a verdict on a method.

    Examples
    --------
    >>> report = Report("scores", "1 method", (Verdict("lsa", "bias", "equivalent"),), warnings=("Few rows.",))
    >>> [(line.question, line.short) for line in answer(report)][1:]
    [('Biased?', 'No'), ('Checked?', 'No controls'), ('Warning', 'Few rows.'), ('What next?', 'Nothing')]
    """
    controls = [lead for lead, *_ in report.judged if lead.control]
    judged = [lead for lead, *_ in report.judged if not lead.control]
    if not judged:
        return []
    answers = [Answer("Question", QUESTION), *_publish(judged), _find_bias(report, judged)]
    answers += [*_measure(report, judged), _judge_run(report, judged, controls)]
    first, *others = [*list_warnings(report), ""]
    if first:
        more = ""
        if others[:-1]:
            more = f"({pluralize(len(others) - 1, 'more warning')} below.)"
        answers.append(Answer("Warning", first, more))
    return [*answers, advise_next(report, judged, controls)]


def list_warnings(report: Report) -> list[str]:
    """List the warning of failed trials, and the warnings of the report."""
    warnings = list(report.warnings)
    if report.failures:
        first = report.failures[0]
        number = pluralize(len(report.failures), "trial failed and is", "trials failed and are")
        error = f"{first.trial}: {shorten(first.error, MAX_SHOWN)}"
        warnings.insert(0, f"{number} excluded from all results. The first, {error}")
    return warnings


def _publish(judged: Sequence[Verdict]) -> Iterator[Answer]:
    """Yield the score to publish on an official test set, then the usual one, of each method; nothing without folds."""
    for verdict in filter(has_published, judged[:MAX_PUBLISHED]):
        suffix = ""
        if len(judged) > 1:
            suffix = f" ({verdict.method})"
        yield Answer(f"To publish{suffix}", *state_to_publish(verdict))
        yield Answer(f"Usual score{suffix}", *state_published(verdict))


def _find_bias(report: Report, judged: Sequence[Verdict]) -> Answer:
    """Return whether any method is biased, with what limits all verdicts."""
    short, details = find_outcome(judged)
    if with_alone := list_with_alone(judged):
        text = state_together(with_alone[0])
        if len(judged) > 1:
            text += f" ({with_alone[0].method})"
        if peeks_together(with_alone[0]):
            short = f"Yes: {text}"
        else:
            details += f" {capitalize(text)}."
    if report.has_one_run:
        short += ", for these fits"
    if report.has_copies:
        short += f", but copies of test {judged[0].rows} distort the scores"
    return Answer("Biased?", short, details)


def _measure(report: Report, judged: Sequence[Verdict]) -> Iterator[Answer]:
    """State the range of the estimates; nothing if there are none."""
    unit = judged[0].unit
    known = [verdict for verdict in judged if verdict.estimate.is_known and verdict.unit == unit]
    if all(verdict.decision == "inert" and peeks_together(verdict) for verdict in known):
        return
    region, *others = {verdict.region for verdict in known}
    details = []
    if any(map(peeks_together, judged)):
        details.append(f"This is the effect of fits that adapt to the test {judged[0].rows} (test - extra).")
    low, high = (end(known, key=lambda verdict: verdict.estimate.mean) for end in (min, max))
    if len(known) == 1:
        size = format_quantity(low.estimate, unit)
        if low.family.level > 0 and low.estimate.low < low.estimate.high:
            details.append(f"The {name_interval(low, ',')} is in brackets.")
        details.append(size_for_others(low))
    else:
        size = f"{format_cell(low.estimate.mean, unit)} to {format_quantity(high.estimate.mean, unit)}"
        details.append(f"These are the estimates of {low.method} and {high.method}, not an interval.")
    if any(map(_is_early, known)) and not report.extension.num_missing:
        details.append("Because the run stopped early, estimates tend to be too far from 0; intervals allow for this.")
    if region and not others:
        details.append(f"Up to {format_size(region, unit)} is negligible.")
    yield Answer("How large?", size, " ".join(filter(None, details)))


def _is_early(verdict: Verdict) -> bool:
    """Return whether a bias was found at a planned look before the last one, which large estimates reach."""
    looks: LooksTaken | None = getattr(verdict.evidence, "looks", None)
    return verdict.decision.startswith("biased") and looks is not None and 0 < looks.share < 1


def _judge_run(report: Report, judged: Sequence[Verdict], controls: Sequence[Verdict]) -> Answer:
    short, details = "No controls", []
    if controls:
        num_controls = len({verdict.name for verdict in controls})
        short = f"{num_controls} of {pluralize(num_controls, 'control')} passed"
        details.append("The bias of a control is known in advance.")
    for outcome in ("undecided", "failed"):
        if names := [verdict.method for verdict in controls if verdict.decision == outcome]:
            short = f"Control {outcome}: {name_methods(names)}"
    if report.extension.of == "table":
        details.append(_assume(report.extension, [verdict for verdict in judged if verdict.estimate.has_interval]))
    return Answer("Checked?", short, " ".join(details))


def _assume(extension: Extension, verdicts: Sequence[Verdict]) -> str:
    """Return a sentence on what the intervals of a table assume, which the table does not show; empty without any."""
    evidence = [verdict.evidence for verdict in verdicts if isinstance(verdict.evidence, TrialEvidence)]
    if not evidence:
        return ""
    noun = "pairs of scores of a method"
    if any(facts.num_shared for facts in evidence):
        noun = "subsamples (draws of rows, or seeds), each averaged over tasks,"
    numbers = [facts.num_shared or facts.num_trials for facts in evidence]
    units = f"{' to '.join(f'{number:,}' for number in dict.fromkeys((min(numbers), max(numbers))))} {noun}"
    option = f"`{FLAGS['earlier'] if extension.command else 'earlier'}`"
    looks = f", of which no part was analyzed before (otherwise, state {option})"
    if extension.earlier[:-1]:
        looks = f" and were analyzed before at {list_numbers(extension.earlier[:-1])} subsamples per task only"
    return f"The intervals assume that the {units} are independent samples{looks}; a table does not show this."
