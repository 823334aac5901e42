"""The answers with which a report begins, and each verdict in one sentence.

Is there a bias, how large is it, can it be trusted, and what comes next?
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from peekbench.formatting import SHARED_DRAWS, duration, format_signed, pluralize
from peekbench.records.report import Extension, Report
from peekbench.records.verdicts import TrialEvidence, Verdict
from peekbench.report.render.advice import add_rows_or_tasks, merge, name_biases, settle, tell_briefly, tell_chance
from peekbench.report.render.sentences import (
    OUTCOMES,
    are_failures_open,
    capitalize,
    format_estimate,
    format_size,
    list_numbers,
    list_scores,
    name_score,
    points,
)
from peekbench.report.render.words import MARKS, ask_about, lead_verdicts, split_verdicts

MAX_NAMED = 3  # methods in an answer
SHORT: Mapping[tuple[str, str], str] = {
    ("bias", "biased up"): "Test {rows} raise {score}",
    ("bias", "biased down"): "Test {rows} lower {score}",
    ("bias", "equivalent"): "Test {rows} change {score} by less than {region}",
    ("bias", "not above"): "An increase of {score} by more than {region} is excluded",
    ("bias", "not below"): "A decrease of {score} by more than {region} is excluded",
    ("contamination", "biased up"): "The score is higher than predicted",
    ("contamination", "biased down"): "The score is lower than predicted",
    ("contamination", "equivalent"): "The score differs from the predicted one by less than {region}",
    ("bias", "inert"): "The predictions do not depend on the unlabeled {rows}",
    ("bias", "no signal"): "The predictions are at chance, so a bias could not be seen",
}
"""What a verdict states, by effect and decision, or by what an inconclusive one excludes."""
SIZES = {"beyond": " by more than {region}", "open": ", possibly by less than {region}"}
"""What is known about the size of a bias."""
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
    outcome = "Undecided" if counts["inconclusive"] else "No" if counts["equivalent"] else "Cannot be seen"
    outcome = "Yes" if found[0].startswith("biased") else outcome
    if len(judged) == 1:
        return Answer("Biased?", outcome, f"{judged[0].method} is {judged[0].decision}.")
    verb = "is" if counts[found[0]] == 1 else "are"
    listed = [f"{counts[decision]:,} {f'{verb} ' * (not place)}{decision}" for place, decision in enumerate(found)]
    return Answer("Biased?", outcome, f"Of {len(judged):,} methods, {', '.join(listed)}.")


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
    settling = {method: settle(verdict) for method, verdict in needed.items()}
    known = [method for method, each in settling.items() if each and each.advice]
    if extension.of == "runs":
        return Answer(question, "Extend the runs", "Their own reports state by how many subsamples:", extension.command)
    merged = merge(settling.values())
    if merged is None or merged.advice is None:
        if merged and merged.is_limited_by_rows:
            details = f"The rows of the tasks support too few subsamples to settle {_list(needed)}"
            remedy = f"{add_rows_or_tasks(merged)}, in a run with another name and seed"
            return Answer(question, "More rows or tasks", f"{details}: {remedy}.")
        if any(map(_is_unmeasured, needed.values())):
            return _measure_noise(report)
        details = "Draw larger test sets or more tasks, in a run with another name and seed."
        return Answer(question, f"No number of subsamples is known that settles {_list(needed)}", details)
    advice = merged.advice
    number, likely = advice.subsamples, tell_chance(advice)
    if len(known) > 1 and advice.probability is not None:
        likely = f"with at least {advice.probability:.0%} probability each"
    likely += name_biases(merged, format_size(report.verdicts[0].region or 0.0, report.verdicts[0].unit))
    how = "add them to each num_subsamples" if extension.of == "run" else "add them to the table"
    if extension.num_subsamples is not None:
        how = f"set num_subsamples to {extension.num_subsamples + number}"
    time = f" and take one worker about {duration(number * extension.seconds)}" * bool(extension.seconds)
    if extension.is_fixed:
        how += ", name and seed to others, because planned looks fix the size of a run"
        time = ""  # the new run repeats all subsamples
    settled = _list(known) if len(known) <= MAX_NAMED else f"{len(known):,} of {len(needed):,} open verdicts"
    extended = (
        f"On these {report.verdicts[0].rows}, they settle {settled} {likely} (otherwise, the next report states a "
        f"new number){time}: {how}"
    )
    return Answer(question, f"{number:,} more subsamples per task", *_then_run(extended, report))


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


def tell(lead: Verdict, verdicts: Sequence[Verdict]) -> str:
    """Return the estimate of a verdict with its interval, and what `summarize` returns."""
    return ". ".join(filter(None, (format_estimate(lead.estimate, lead.unit), summarize(lead, verdicts))))


def summarize(lead: Verdict, verdicts: Sequence[Verdict] = ()) -> str:
    """Return a verdict as one short sentence, with the scores of base and extra, and other decisions that differ.

    Parameters
    ----------
    lead
        Verdict of the first analysis.
    verdicts
        Verdicts of all analyses.
    """
    evidence, band = lead.evidence, format_size(lead.region or 0.0, lead.unit)
    if lead.control:
        return OUTCOMES[lead.control, str(lead.decision)]
    text = SHORT.get((lead.effect, lead.decision), lead.decision.capitalize()) + SIZES.get(lead.size, "")
    text = SHORT.get((lead.effect, lead.size), text)
    if isinstance(evidence, TrialEvidence) and are_failures_open(lead, evidence):
        text = f"Failures in up to {evidence.unseen_share:.1%} of trials could be unseen, and their losses matter"
    if settled := tell_briefly(settle(lead), band):
        text = f"{text}; {settled}" if lead.size else capitalize(settled)
    score = name_score(getattr(evidence, "score", "score"), lead.unit)
    text = text.format(rows=lead.rows, score=score, region=band)
    if isinstance(evidence, TrialEvidence) and (scores := list_scores(evidence, lead.unit)):
        text += f" ({scores})" if score in text else f" ({score}: {scores})"
    differing = (
        f"{other.analysis or 'another analysis'}: {other.decision}"
        for other in verdicts
        if (other.method, other.effect) == (lead.method, lead.effect) and other.decision != lead.decision
    )
    return "; ".join((text, *differing)) + "."
