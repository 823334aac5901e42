"""What a report says as a whole: the answers with which it begins, its verdicts by question, and what they mean.

Is there a bias, how large is it, can it be trusted, and what comes next?
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never

from peekbench.formatting import SHARED_DRAWS, duration, format_signed, pluralize
from peekbench.records.report import Column, Extension, Inflation, MethodFacts, Report, RuleWorth, Statement, Table
from peekbench.records.verdicts import PosteriorEvidence, PredictionEvidence, Settling, TrialEvidence, Verdict
from peekbench.report.render.sentences import (
    add_rows_or_tasks,
    advise,
    find_settling,
    limit_to_biases,
    merge_settling,
    state,
    state_chance,
)
from peekbench.report.render.words import (
    MARKS,
    QUESTIONS,
    RULES,
    TERMS,
    capitalize,
    format_estimate,
    format_range,
    format_size,
    list_numbers,
    points,
)

MAX_NAMED = 3  # methods in an answer
CROSS_FITTING = ("cross", "leave-one-out")
"""Kinds of arms whose scores a benchmark can report instead of those of extra."""
NOT_HIGHER = ("equivalent", "biased down")
"""Decisions by which the scores under a rule do not exceed those of extra."""


TRUST, NEXT = "Trust it?", "What next?"
"""Questions whose answers every reader of verdicts needs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question that readers ask first, and its answer."""

    question: str
    short: str
    """The answer in a few words."""
    details: str = ""
    """Sentences that follow."""
    command: str = ""
    """Shell command to run next."""

    @property
    def text(self) -> str:
        """The answer in sentences."""
        return f"{self.short}. {self.details}".strip()


def answer(report: Report) -> list[Answer]:
    """Return the answers of a report about the question of its first verdict; none without a verdict on a method."""
    judged, controls = split_verdicts([lead for lead, _ in lead_verdicts(report.verdicts)])
    judged = [verdict for verdict in judged if ask_about(verdict.effect) == ask_about(judged[0].effect)]
    if not judged:
        return []
    trust, advice = _judge_run(report, judged, controls), _advise(report, judged, controls)
    return [_find_bias(judged), *_measure(judged), *_choose_rule(report, judged), trust, advice]


def _find_bias(judged: Sequence[Verdict]) -> Answer:
    counts = Counter(verdict.decision for verdict in judged)
    found = [decision for decision in MARKS if counts[decision]]
    outcome = "Cannot be seen"
    if found[0].startswith("biased"):
        outcome = "Yes"
    elif counts["inconclusive"]:
        outcome = "Undecided"
    elif counts["equivalent"]:
        outcome = "No"
    if len(judged) == 1:
        return Answer("Biased?", outcome, f"{judged[0].method} is {judged[0].decision}.")
    verb = "is" if counts[found[0]] == 1 else "are"
    first, *others = (f"{counts[decision]:,} {decision}" for decision in found)
    first = first.replace(" ", f" {verb} ", 1)
    return Answer("Biased?", outcome, f"Of {len(judged):,} methods, {', '.join((first, *others))}.")


def _measure(judged: Sequence[Verdict]) -> list[Answer]:
    """Return the range of the estimates; nothing if there are none."""
    unit = judged[0].unit
    known = [verdict for verdict in judged if verdict.estimate.is_known and verdict.unit == unit]
    if not known:
        return []
    region, *others = {verdict.region for verdict in known}
    negligible = f"Up to {format_size(region, unit)} is negligible." if region and not others else ""
    low, high = (end(known, key=lambda verdict: verdict.estimate.mean) for end in (min, max))
    if len(known) == 1:
        return [Answer("How large?", format_estimate(low.estimate, unit), negligible)]
    least, most = (format_signed(end.estimate.mean, unit) for end in (low, high))
    size = f"{least} ({low.method}) to {most}{points(unit)} ({high.method})"
    return [Answer("How large?", size, f"These are estimates of {len(known):,} methods, not an interval. {negligible}")]


def _choose_rule(report: Report, judged: Sequence[Verdict]) -> list[Answer]:
    """Return the rule that a benchmark can adopt; nothing unless rules were measured.

    A rule that was not measured for every method is not recommended.
    """
    question, rows = "Which rule?", judged[0].rows
    if not report.rules or not any(verdict.estimate.has_interval for verdict in judged):
        return []
    if all(verdict.decision == "equivalent" for verdict in judged):
        return [Answer(question, f"Adapting to all test {rows}", "The bias is negligible for every method.")]
    by_rule: dict[str, list[Verdict]] = {}
    for each in report.rules:
        if each.kind in CROSS_FITTING:
            by_rule.setdefault(each.rule, []).extend(each.verdicts)
    methods = {verdict.method for verdict in judged if verdict.estimate.has_interval}
    by_rule = {rule: each for rule, each in by_rule.items() if methods <= {verdict.method for verdict in each}}
    region = format_size(judged[0].region or 0.0, judged[0].unit)
    for rule, verdicts in by_rule.items():
        if all(verdict.decision == "equivalent" for verdict in verdicts):
            return [Answer(question, rule, f"Its scores differ from those of extra by less than {region}.")]
    for rule, verdicts in by_rule.items():
        if all(verdict.decision in NOT_HIGHER or verdict.size == "not above" for verdict in verdicts):
            known = f"It does not raise scores above those of extra by more than {region}"
            if any(verdict.decision == "biased down" for verdict in verdicts):
                return [Answer(question, rule, f"{known}, but lowers some: use more blocks, or independent {rows}.")]
            return [Answer(question, rule, f"{known}, but may lower them.")]
    return [Answer(question, f"Independent {rows}", "No other measured rule is known to give the same scores.")]


def _judge_run(report: Report, judged: Sequence[Verdict], controls: Sequence[Verdict]) -> Answer:
    problems = [f"{pluralize(len(report.failures), 'trial')} failed."] if report.failures else []
    problems += [f"{pluralize(len(report.warnings), 'warning')}." if report.warnings else "No warnings."]
    short = f"{len(controls)} of {pluralize(len(controls), 'control')} passed" if controls else "No controls"
    for outcome in ("undecided", "failed"):
        if names := [verdict.method for verdict in controls if verdict.decision == outcome]:
            short = f"Control {outcome}: {_list(names)}"
    with_interval = [each.evidence for each in judged if each.estimate.has_interval]
    evidence = [each for each in with_interval if isinstance(each, TrialEvidence)]
    if evidence and report.extension.of == "table":
        is_shared = any(each.num_shared for each in evidence)
        numbers = [each.num_shared or each.num_trials for each in evidence]
        units = " to ".join(f"{number:,}" for number in dict.fromkeys((min(numbers), max(numbers))))
        units += " subsamples, each averaged over tasks," if is_shared else " pairs of scores of a method"
        assumed = f"the {units} are independent samples{_assume_looks(report.extension)}"
        problems = [f"The intervals assume that {assumed}; a table does not show this.", *problems]
        if is_shared:
            problems.insert(1, SHARED_DRAWS)
    return Answer(TRUST, short, " ".join(problems))


def _assume_looks(extension: Extension) -> str:
    """Return a clause on the earlier analyses that the intervals of a table account for."""
    *before, _ = extension.earlier or (0,)
    if before:
        return f" and were analyzed before at {list_numbers(before)} subsamples per task only"
    option = "--earlier NUMBER" if extension.command else "earlier=[NUMBER]"
    return f", of which no part was analyzed before (otherwise: {option})" if extension.earlier else ""


def _advise(report: Report, judged: Sequence[Verdict], controls: Sequence[Verdict]) -> Answer:
    """Return what to do first: check the run, complete it, extend it, or report the uncontaminated scores."""
    question, decisions, effect = NEXT, {verdict.decision for verdict in judged}, judged[0].effect
    if failed := [control.method for control in controls if control.decision == "failed"]:
        return Answer(question, "Find the cause", f"Until you know why {_list(failed)} failed, trust no other verdict.")
    if report.failures:
        return Answer(question, "Repeat the failed trials", *_then_run("Correct the cause", report))
    if number := report.extension.num_missing:
        missing = pluralize(number, "trial is missing", "trials are missing")
        return Answer(question, "Finish the run", f"{missing}.", report.extension.command)
    named = [(verdict.method, verdict) for verdict in judged]
    named += [(f"{each.method} under {rule.rule}", each) for rule in report.rules for each in rule.verdicts]
    if undecided := {name: verdict for name, verdict in named if verdict.decision == "inconclusive"}:
        return _settle_all(report, undecided)
    if decisions & {"biased up", "biased down"}:
        scores = "the reference benchmark" if effect == "contamination" else "extra"
        return Answer(question, f"Report the scores of {scores}", f"The {effect} does not affect them.")
    if unchecked := [each.method for each in controls if each.decision == "undecided"]:
        return Answer(question, "More data", f"The run is too small to be checked by {_list(unchecked)}.")
    if "equivalent" in decisions:
        return Answer(question, "Nothing", f"The {effect} is negligible.")
    return Answer(question, "Check the methods", "They must use the unlabeled data and predict better than chance.")


def _is_unmeasured(verdict: Verdict) -> bool:
    """Return whether the noise of a task is unknown, so that no number of subsamples can be advised."""
    evidence = verdict.evidence
    return isinstance(evidence, TrialEvidence) and evidence.settling is None and not evidence.is_zero


def _measure_noise(report: Report) -> Answer:
    """Return how to measure the noise of tasks with a single subsample."""
    how = "set num_subsamples to at least 20"
    if report.extension.of == "table":
        how = "add them to the table"
    text = f"They measure the noise, which is unknown with one: {how}"
    return Answer(NEXT, "At least 20 subsamples per task", *_then_run(text, report))


def _settle_all(report: Report, needed: Mapping[str, Verdict]) -> Answer:
    """Return the number of subsamples that settles all open verdicts, or what to do if there is none."""
    question, extension = NEXT, report.extension
    settlings = {method: find_settling(verdict) for method, verdict in needed.items()}
    known = [method for method, settling in settlings.items() if settling and settling.advice]
    if extension.of == "runs":
        return Answer(question, "Extend the runs", "Their own reports state by how many subsamples:", extension.command)
    merged = merge_settling(settlings.values())
    if merged is None or merged.advice is None:
        if merged and merged.is_limited_by_rows:
            details = f"The rows of the tasks support too few subsamples to settle {_list(needed)}"
            remedy = f"{add_rows_or_tasks(merged)}, in a run with another name and seed"
            return Answer(question, "More rows or tasks", f"{details}: {remedy}.")
        if any(map(_is_unmeasured, needed.values())):
            return _measure_noise(report)
        details = "Draw larger test sets or more tasks, in a run with another name and seed."
        return Answer(question, f"No number of subsamples is known that settles {_list(needed)}", details)
    return Answer(
        question, f"{merged.advice.subsamples:,} more subsamples per task", *_extend(report, merged, needed, known)
    )


def _extend(report: Report, merged: Settling, needed: Mapping[str, Verdict], known: Sequence[str]) -> tuple[str, str]:
    """Return how to add subsamples, what they settle with which probability, and the command to run next."""
    extension, advice, first = report.extension, merged.advice, report.verdicts[0]
    assert advice is not None
    likely = state_chance(advice)
    if len(known) > 1 and advice.probability is not None:
        likely = f"with at least {advice.probability:.0%} probability each"
    likely += limit_to_biases(merged, format_size(first.region or 0.0, first.unit))
    how = "add them to each num_subsamples" if extension.of == "run" else "add them to the table"
    if extension.num_subsamples is not None:
        how = f"set num_subsamples to {extension.num_subsamples + advice.subsamples}"
    time = ""
    if extension.is_fixed:  # the new run repeats all subsamples
        how += ", name and seed to others, because planned looks fix the size of a run"
    elif extension.seconds:
        time = f" and take one worker about {duration(advice.subsamples * extension.seconds)}"
    settled = _list(known) if len(known) <= MAX_NAMED else f"{len(known):,} of {len(needed):,} open verdicts"
    extended = (
        f"On these {first.rows}, they settle {settled} {likely} (otherwise, the next report states a new number)"
        f"{time}: {how}"
    )
    return _then_run(extended, report)


def _then_run(text: str, report: Report) -> tuple[str, str]:
    """Return a sentence that a command continues, and the command, unless it was given in a session of Python."""
    extension = report.extension
    if extension.command:
        return f"{text}, then run:", extension.command
    if extension.earlier:
        return f"{text}, then analyze it with earlier={[*extension.earlier]}.", ""
    return f"{text}, then run it again.", ""


def _list(names: Iterable[str]) -> str:
    listed = list(names)
    if len(listed) > MAX_NAMED:
        listed = [*listed[: MAX_NAMED - 1], f"{len(listed) - MAX_NAMED + 1:,} others"]
    return " and ".join(filter(None, (", ".join(listed[:-1]), listed[-1])))


WITHIN_REGION = ("equivalent", "no signal")
"""Decisions whose interval lies within the region."""
CONTROLS = "Controls: methods whose bias is known in advance, which check this run"


def split_verdicts(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Return the verdicts on methods and the verdicts on controls."""
    judged = [verdict for verdict in verdicts if not verdict.control]
    return judged, [verdict for verdict in verdicts if verdict.control]


def verdict_sections(verdicts: Sequence[Verdict]) -> Iterator[tuple[str, list[tuple[Verdict, str]]]]:
    """Yield the heading and the verdicts of each section that has any: methods by question, then controls.

    Methods have the order of the leaderboard: those of equal sizes by their score of extra, if all scores are known.
    """
    by_question: dict[str, list[tuple[Verdict, str]]] = {}
    controls = []
    for lead, sentence in lead_verdicts(verdicts):
        if lead.control:
            controls.append((lead, sentence))
        else:
            by_question.setdefault(ask_about(lead.effect), []).append((lead, sentence))
    for question, answers in by_question.items():
        yield question, _rank(answers)
    if controls:
        yield CONTROLS, controls


def _rank(answers: list[tuple[Verdict, str]]) -> list[tuple[Verdict, str]]:
    scores: list[Any] = [getattr(lead.evidence, "extra", None) for lead, _ in answers]
    if None in scores:
        return answers
    groups = [[cell for cell in lead.parts if cell[0].startswith("num_")] for lead, _ in answers]
    places = sorted(range(len(answers)), key=lambda place: (groups.index(groups[place]), -scores[place]))
    return [answers[place] for place in places]


def ask_about(effect: str) -> str:
    """Return the question that the verdicts on an effect answer."""
    return QUESTIONS.get(effect, QUESTIONS["bias"])


def define_terms(verdict: Verdict) -> str:
    """Return what the words mean in which a verdict answers its question."""
    return TERMS.get(verdict.effect, TERMS["bias"]).format(rows=verdict.rows)


def explain_decisions(verdicts: Sequence[Verdict]) -> str:
    """Return what the intervals and the decisions mean; empty if there is no verdict."""
    if not verdicts:
        return ""
    judged, controls = split_verdicts(verdicts)
    of_any = judged or controls
    regions = {(verdict.region, verdict.unit) for verdict in of_any if verdict.region}
    band = "the region of practical equivalence"
    if len(regions) == 1:
        ((region, unit),) = regions
        band = f"±{format_size(region or 0.0, unit)}"
    return (
        f"{_name_levels(of_any)}Biased: the interval excludes 0 and extends beyond {band}. Equivalent: the interval "
        f"lies entirely within {band}. Inconclusive: neither."
    )


def _name_levels(verdicts: Sequence[Verdict]) -> str:
    known = [verdict for verdict in verdicts if not math.isnan(verdict.family.level)]
    levels = {f"{verdict.family.level:.0%}" for verdict in known if verdict.decision not in WITHIN_REGION}
    within = {f"{verdict.family.level:.0%}" for verdict in known if verdict.decision in WITHIN_REGION} - levels
    if not levels:
        levels, within = within, set()
    if len(levels) != 1:
        return ""
    shorter = "".join(f", {level} where equivalent" for level in within)
    return f"{levels.pop()} intervals{shorter}. "


def explain_adjustments(verdicts: Sequence[Verdict]) -> str:
    """Return for what intervals are adjusted, and why those of equivalent biases are shorter; can be empty."""
    judged, _ = split_verdicts(verdicts)
    size = max((verdict.family.size for verdict in judged), default=1)
    parts = [f"Intervals are adjusted for {size} configurations."] if size > 1 else []
    levels = {verdict.family.level for verdict in judged if _is_by_two_tests(verdict)}
    parts += [f"Two one-sided tests at {(1 - level) / 2:.0%} decide 'equivalent'." for level in sorted(levels)]
    return " ".join(parts)


def _is_by_two_tests(verdict: Verdict) -> bool:
    evidence = verdict.evidence
    return verdict.decision in WITHIN_REGION and isinstance(evidence, TrialEvidence) and not evidence.is_zero


def lead_verdicts(verdicts: Sequence[Verdict]) -> list[tuple[Verdict, str]]:
    """Return one verdict for each method, that of the first analysis, with its sentences and those on other analyses.

    An analysis that reaches the same decision is named with its estimate, or its sentences if it has none. An analysis
    that does not is quoted.
    """
    by_subject: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        by_subject.setdefault((verdict.method, verdict.effect), []).append(verdict)
    return [
        (lead, " ".join((capitalize(state(lead)), *(_compare(lead, other) for other in others))))
        for lead, *others in by_subject.values()
    ]


def _compare(lead: Verdict, other: Verdict) -> str:
    """Return a sentence on the verdict of another analysis about the same method."""
    name = other.analysis or "Another analysis"
    if other.decision == lead.decision:
        estimate = format_estimate(other.estimate, other.unit)
        return f"{name} agrees: {f'{estimate}.' if estimate else capitalize(state(other))}"
    if other.unit != lead.unit:  # the analysis is about another score, so it need not agree
        return f"In another score, the verdict of {name} is {other.decision}: {capitalize(state(other))}"
    return f"{name} does not agree, its verdict is {other.decision}: {capitalize(state(other))}"


def basis_of(verdict: Verdict) -> str:
    """Return the data that a verdict is based on, such as '5 tasks, 250 trials'; empty if it does not say."""
    match verdict.evidence:
        case TrialEvidence() | PosteriorEvidence() as evidence:
            basis = f"{pluralize(evidence.num_tasks, 'task')}, {pluralize(evidence.num_trials, 'trial')}"
            return f"{basis}, a posterior" if isinstance(evidence, PosteriorEvidence) else basis
        case PredictionEvidence() as evidence:
            answers = " and ".join(f"{number:,}" for number in evidence.num_answers)
            models = pluralize(evidence.num_references, "reference model")
            if evidence.num_families is not None:
                models += f" of {pluralize(evidence.num_families, 'family', 'families')}"
            return f"{models}, {answers} answers"
    return ""


def basis_in_words(verdict: Verdict) -> str:
    """Return the data that a verdict is based on, in parentheses; empty if it does not say."""
    return f" (Based on {basis}.)" if (basis := basis_of(verdict)) else ""


def find_method(verdict: Verdict, report: Report) -> MethodFacts | None:
    """Return the description of the method of a verdict."""
    return next((method for method in report.methods if method.name == verdict.name), None)


def put_into_words(table: Table) -> Table:
    """Return a table with its statements as sentences: as rows if it has no others, otherwise before its note."""
    sentences = [_put(statement) for statement in table.statements]
    sentences = [(subject, text) for subject, text in sentences if text]
    if not table.statements:
        return table
    if table.columns:
        note = " ".join((*(text for _, text in sentences), table.note))
        return replace(table, note=note, statements=())
    return replace(table, columns=(Column("rule"), Column("sentence")), rows=tuple(sentences), statements=())


def _put(statement: Statement) -> tuple[str, str]:
    match statement:
        case RuleWorth():
            return statement.rule, _state_rule(statement)
        case Inflation():
            return "", _state_inflation(statement)
        case _:
            assert_never(statement)


def _state_rule(worth: RuleWorth) -> str:
    """State a rule of a benchmark, what it was worth, and what would settle it if that is open.

    The rule of the arm test permits what it permits only if this is known to be negligible.
    """
    verdicts, kind = worth.verdicts, worth.kind
    if kind == "test" and any(verdict.decision != "equivalent" for verdict in verdicts):
        kind = "not test"
    num_tasks = [verdict.evidence.num_tasks for verdict in verdicts if isinstance(verdict.evidence, TrialEvidence)]
    few, many = min(num_tasks), max(num_tasks)
    tasks = pluralize(few, "task") if few == many else f"{few} to {many} tasks"
    estimates, unit, rows = [verdict.estimate for verdict in verdicts], verdicts[0].unit, verdicts[0].rows
    ends = format_range(min(estimate.low for estimate in estimates), max(estimate.high for estimate in estimates), unit)
    listed = ", ".join(f"{number} {decision}" for decision, number in worth.decisions.items())
    adjusted = "adjusted " if any(verdict.family.size > 1 for verdict in verdicts) else ""
    intervals = "interval" if len(verdicts) == 1 else "intervals"
    levels = " and ".join(sorted({f"{verdict.family.level:.0%}" for verdict in verdicts}))
    sizes = f" ({worth.sizes})" if worth.sizes else ""
    whose = "of methods that do" if kind == "not test" else "under this rule"
    rule = RULES[kind].format(blocks=worth.num_blocks, row=rows.removesuffix("s"))
    text = (
        f"{rule}. On these {rows} of {tasks}{sizes}, the mean score {whose} "
        f"differs from the mean score with independent {rows} by {ends}{points(unit)} "
        f"({adjusted}{levels} {intervals} of {pluralize(len(verdicts), 'method')}: {listed})."
    )
    if any(verdict.decision == "inconclusive" for verdict in verdicts):
        needed = merge_settling(map(find_settling, verdicts))
        band = format_size(verdicts[0].region or 0.0, verdicts[0].unit)
        text += f" Not settled: {advise(needed, band) if needed else 'what settles this is unknown'}."
    return text


def _state_inflation(inflation: Inflation) -> str:
    """State how much the score of the best configuration is inflated because it was chosen by this score."""
    estimate = inflation.estimate
    factor, digits = (100, 2) if inflation.unit == "difference" else (1, 4)
    interval = ""
    if estimate.has_interval:
        interval = f" [{factor * estimate.low:.{digits}f}, {factor * estimate.high:.{digits}f}]"
    texts = "" if inflation.num_texts is None else f" on {pluralize(inflation.num_texts, 'text')}"
    beginning = f"At {inflation.sizes}, the" if inflation.sizes else "The"
    return (
        f"{beginning} score of the best of {inflation.num_configurations} configurations, chosen by this score{texts}, "
        f"is inflated by {factor * estimate.mean:.{digits}f}{points(inflation.unit)}{interval}."
    )
