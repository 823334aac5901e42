"""Sentences on what to do: what would settle a verdict, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from peekbench.data.preflight import MAX_USES
from peekbench.formatting import duration, format_cell, format_size, join_words, pluralize
from peekbench.records.report import Extension, Report
from peekbench.records.verdicts import Advice, Settling, TrialEvidence, Verdict
from peekbench.report.render.fixed_texts import fixed_texts_of, has_published, name_decision, peeks_together


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
    def sentence(self) -> str:
        """The answer in a few words, with a period."""
        if self.short.endswith((".", "?")):
            return self.short
        return f"{self.short}."

    @property
    def text(self) -> str:
        """The answer in sentences."""
        return f"{self.sentence} {self.details}".strip()


MAX_NAMED = 3  # methods in an answer
NEXT = "What next?"
ADD = {"run": "add {number} to each num_subsamples", "table": "add them to the table"}
"""How to add subsamples."""
LIKELY = 0.8  # probability of a verdict from which subsamples are advised
NOISY = 0.25  # share of texts on which extra and test disagree that makes a method noisy


def name_methods(names: Sequence[str]) -> str:
    """Return the names of methods in words, or the first ones and the number of the others."""
    if len(names) > MAX_NAMED:
        names = [*names[: MAX_NAMED - 1], f"{len(names) - MAX_NAMED + 1:,} others"]
    return join_words(names)


def advise_next(report: Report, judged: Sequence[Verdict], controls: Sequence[Verdict]) -> Answer:
    """Advise the first thing to do: check the run, complete it, extend it, or report the uncontaminated scores."""
    decisions, effect = {verdict.decision for verdict in judged}, judged[0].effect
    if report.has_copies:
        details, command = _then_run("Change the task as the warning says", report)
        return Answer(NEXT, "Remove the copies", details, command and f"{command} --fresh")
    if failed := [control.method for control in controls if control.decision == "failed"]:
        names = name_methods(failed)
        return Answer(NEXT, "Find the cause", f"Until you know why {names} failed, trust no other verdict.")
    if report.failures:
        return Answer(NEXT, "Repeat the failed trials", *_then_run("Correct the cause", report))
    if number := report.extension.num_missing:
        missing = pluralize(number, "trial is missing", "trials are missing")
        return Answer(NEXT, "Finish the run", f"{missing}.", report.extension.command)
    answers = []
    if decisions & {"biased up", "biased down"} or any(map(peeks_together, judged)):
        answers.append(_report_scores(judged))
    undecided = {verdict.method: verdict for verdict in judged if verdict.decision == "inconclusive"}
    equal = [name for name, verdict in undecided.items() if getattr(verdict.evidence, "is_zero", False)]
    if equal and report.extension.of == "table":
        answers.append(_check_columns(equal))
        undecided = {name: verdict for name, verdict in undecided.items() if name not in equal}
    if undecided:
        answers.append(_settle_all(report, undecided))
    if answers:
        first, *others = answers
        details = " ".join((first.details, *(other.text for other in others)))
        return replace(first, details=details, command=answers[-1].command)
    if unchecked := [control.method for control in controls if control.decision == "undecided"]:
        return Answer(NEXT, "More data", f"The run is too small to be checked by {name_methods(unchecked)}.")
    if "equivalent" in decisions:
        where = ""
        if any(name_decision(verdict).endswith("these " + verdict.rows) for verdict in judged):
            where = f" on these {judged[0].rows}; only more test {judged[0].rows} can show it for others"
        return Answer(NEXT, "Nothing", f"The {effect} is negligible{where}.")
    return Answer(NEXT, "Check the methods", "They must use the unlabeled data and predict better than chance.")


def _report_scores(judged: Sequence[Verdict]) -> Answer:
    """Return which scores neither a bias nor the other texts of a prediction affect."""
    rows = judged[0].rows
    if any(map(peeks_together, judged)):
        reason = f"Each {rows.removesuffix('s')} is predicted by itself, by a fit that did not see it."
        return Answer(NEXT, "Report the score of alone", reason)
    if any(map(has_published, judged)):
        reason = f"No {rows.removesuffix('s')} is predicted by a fit that adapted to it."
        return Answer(NEXT, "Report the score to publish", reason)
    reason = f"Their fits did not see the test {rows}, so the {judged[0].effect} does not affect them."
    return Answer(NEXT, "Report the extra scores", reason)


def _settle_all(report: Report, needed: Mapping[str, Verdict]) -> Answer:
    """Return the number of subsamples that settles all open verdicts, or what to do if there is none."""
    names, extension = name_methods(list(needed)), report.extension
    if extension.of == "runs":
        return Answer(NEXT, "Extend the runs", "The report of each run states by how many subsamples.")
    if advice := merge_advice(map(find_settling, needed.values())):
        return Answer(NEXT, "Add subsamples", *_extend(report, advice, needed))
    if any(map(find_settling, needed.values())):
        return Answer(NEXT, "Report the interval", f"{names}: {_give_up(list(needed.values()))}.")
    text = f"They measure the noise, which is unknown: {_state_how(extension, 20)}"
    return Answer(NEXT, "At least 20 more subsamples per task", *_then_run(text, report))


def _check_columns(names: Sequence[str]) -> Answer:
    """Return what to do about columns of the same scores: more subsamples would decide nothing."""
    reason = f"The columns extra and test are equal in all trials of {name_methods(names)}: "
    return Answer(
        NEXT, "Check the table", f"{reason}if one is a copy, correct it; otherwise, the test texts had no effect."
    )


def _give_up(verdicts: Sequence[Verdict]) -> str:
    """Return clauses on what more subsamples would do for verdicts that they hardly settle, and what is known."""
    settlings = [(settling, verdict) for verdict in verdicts if (settling := find_settling(verdict)) is not None]
    needed, widest = max(settlings, key=lambda pair: pair[0].half_width or 0.0)
    unit, rows, of_widest, text = widest.unit, widest.rows, "", ""
    if len(verdicts) > 1:
        of_widest = f" of {widest.method}"
    if needed.maximum:
        text = f"{needed.maximum:,} more subsamples per task settle this with less than {LIKELY:.0%} probability"
        if needed.half_width is not None:
            text += f" (the interval{of_widest} would be about ±{format_size(needed.half_width, unit)})"
        text += "; "
    if (bound := needed.limit) is None:
        text += "larger test sets or other tasks have less noise"
    else:
        text += f"once each of the {bound.num_rows:,} {rows} of {bound.task} was tested {MAX_USES} times, more "
        text += f"subsamples narrow the interval for these {rows} only (for others, add {rows} or use other tasks)"
    shares = {verdict.method: getattr(verdict.evidence, "disagreement", None) or 0.0 for verdict in verdicts}
    if noisy := [name for name, share in shares.items() if share >= NOISY]:
        text += f"; extra and test disagree on {max(shares.values()):.0%} of the {rows} "
        text += f"(fits of {name_methods(noisy)} that average several seeds may agree more)"
    limits = [(max(-verdict.estimate.low, verdict.estimate.high), verdict.method) for verdict in verdicts]
    widest_first = sorted(((limit, name) for limit, name in limits if limit > 0), reverse=True)
    listed = [f"{of_widest and f'of {name} '}beyond ±{format_size(limit, unit)}" for limit, name in widest_first[:2]]
    if listed:
        text += f"; report that a bias {join_words(listed)} is excluded"
    return text


def _extend(report: Report, advice: Advice, needed: Mapping[str, Verdict]) -> tuple[str, str]:
    """Return how to add subsamples, what they settle with which probability, and the command to run next."""
    extension, number = report.extension, f"{advice.subsamples:,} more"
    known = [verdict for verdict in needed.values() if getattr(find_settling(verdict), "advice", None) is not None]
    settled, likely = name_methods([verdict.method for verdict in known]), _state_chance(advice)
    if len(known) > 1 and advice.probability is not None:
        likely = f"with at least {advice.probability:.0%} probability each, given these results"
    if any(map(fixed_texts_of, known)):
        settled += f" on these {known[0].rows}"
    if any(getattr(verdict.evidence, "num_tasks", 1) > 1 for verdict in known):
        number += " per task"
    how = _state_how(extension, advice.subsamples)
    if (seconds := advice.subsamples * (extension.seconds or 0)) >= 1:
        how += f" (about {duration(seconds)} with one worker)"
    return _then_run(f"{number} settle {settled} {likely}: {how}", report)


def _state_how(extension: Extension, number: int) -> str:
    """Return how to add a number of subsamples, in the form of a spec or of Python."""
    if extension.num_subsamples is None:
        return ADD[extension.of].format(number=number)
    if extension.command:
        return f"set num_subsamples to {extension.num_subsamples + number}"
    return f"set num_subsamples={extension.num_subsamples + number}"


def _then_run(text: str, report: Report) -> tuple[str, str]:
    """Return a sentence that a command continues, and the command, unless it was given in a session of Python."""
    extension = report.extension
    if extension.command:
        return f"{text}, then run:", extension.command
    if extension.earlier:
        return f"{text}, then analyze it with earlier={[*extension.earlier]}.", ""
    return f"{text}, then run it again.", ""


def explain_inconclusive(verdict: Verdict, evidence: TrialEvidence) -> str:
    """Say what an inconclusive verdict lacks: trials for any test, or what would settle it."""
    trials = pluralize(evidence.num_trials, "trial")
    if evidence.num_shared:
        trials = f"{pluralize(evidence.num_shared, 'subsample')} that {evidence.num_tasks} tasks share"
    reason = ""
    if evidence.is_zero:
        reason = f"{trials} are too few to exclude a bias that is not negligible"
        if evidence.settling is None or evidence.settling.advice is None:
            return reason
        reason += "; "
    elif evidence.has_too_few:
        reason = f"{trials} cannot support a verdict at this level"
        if evidence.is_extended:
            reason += ", so the interval is extended to 0"
        reason += "; "
    elif evidence.is_extended:
        p_value = format_cell(evidence.p_zero, "p_value")
        reason = f"the interval is extended to 0, because a second test does not exclude it (p = {p_value}); "
    if (settling := evidence.settling) is None:
        return f"{reason}the noise is unknown; draw at least 20 more subsamples per task to measure it"
    if (advice := settling.advice) is None:
        return f"{reason}{_give_up([verdict])}"
    return f"{reason}{advice.subsamples:,} more subsamples per task settle this {_state_chance(advice)}"


def find_settling(verdict: Verdict) -> Settling | None:
    """Find the subsamples that would settle an inconclusive verdict; None if it is not known."""
    return getattr(verdict.evidence, "settling", None)


def merge_advice(needed: Iterable[Settling | None]) -> Advice | None:
    """Merge the advice on several verdicts; None if there is none.

    Examples
    --------
    >>> merge_advice([Settling(Advice(40, 0.8)), Settling(Advice(60, 0.82)), None])
    Advice(subsamples=60, probability=0.8)
    """
    advice = [settling.advice for settling in needed if settling and settling.advice]
    if not advice:
        return None
    probabilities = (each.probability for each in advice if each.probability is not None)
    return Advice(max(each.subsamples for each in advice), min(probabilities, default=None))


def _state_chance(advice: Advice) -> str:
    """Return when subsamples settle a verdict: with a probability, or if further trials are like those so far."""
    if advice.probability is None:
        return "if no further trial has a bias either"
    return f"with {advice.probability:.0%} probability, given these results"
