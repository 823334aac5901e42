"""Sentences on what to do: what would settle a verdict, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from peekbench.data.preflight import MAX_USES
from peekbench.formatting import (
    duration,
    format_cell,
    format_size,
    join_words,
    pluralize,
)
from peekbench.records.report import Extension, Report
from peekbench.records.verdicts import Advice, Settling, TrialEvidence, Verdict
from peekbench.report.render.fixed_texts import fixed_texts_of, has_published, name_decision


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
        return Answer(NEXT, "Remove the copies", "See the warning.")
    if failed := [control.method for control in controls if control.decision == "failed"]:
        names = name_methods(failed)
        return Answer(NEXT, "Find the cause", f"Until you know why {names} failed, trust no other verdict.")
    if report.failures:
        return Answer(NEXT, "Repeat the failed trials", *_then_run("Correct the cause", report))
    if number := report.extension.num_missing:
        missing = pluralize(number, "trial is missing", "trials are missing")
        return Answer(NEXT, "Finish the run", f"{missing}.", report.extension.command)
    if undecided := {verdict.method: verdict for verdict in judged if verdict.decision == "inconclusive"}:
        return _settle_all(report, undecided)
    if decisions & {"biased up", "biased down"}:
        if any(map(has_published, judged)):
            reason = f"No {judged[0].rows.removesuffix('s')} is predicted by a fit that adapted to it."
            return Answer(NEXT, "Report the score to publish", reason)
        reason = f"Their fits did not see the test {judged[0].rows}, so the {effect} does not affect them."
        return Answer(NEXT, "Report the extra scores", reason)
    if unchecked := [control.method for control in controls if control.decision == "undecided"]:
        return Answer(NEXT, "More data", f"The run is too small to be checked by {name_methods(unchecked)}.")
    if "equivalent" in decisions:
        where = ""
        if any(name_decision(verdict).endswith("these " + verdict.rows) for verdict in judged):
            where = f" on these {judged[0].rows}; only more test {judged[0].rows} can show it for others"
        return Answer(NEXT, "Nothing", f"The {effect} is negligible{where}.")
    return Answer(NEXT, "Check the methods", "They must use the unlabeled data and predict better than chance.")


def _settle_all(report: Report, needed: Mapping[str, Verdict]) -> Answer:
    """Return the number of subsamples that settles all open verdicts, or what to do if there is none."""
    names, extension = name_methods(list(needed)), report.extension
    merged = merge_settling(map(find_settling, needed.values()))
    if extension.of == "runs":
        return Answer(NEXT, "Extend the runs", "The report of each run states by how many subsamples.")
    if merged is not None and merged.advice is not None:
        return Answer(NEXT, "Add subsamples", *_extend(report, merged.advice, needed))
    if merged is not None:
        return Answer(NEXT, "Report the interval", f"{names}: {_give_up(merged, list(needed.values()))}.")
    text = f"They measure the noise, which is unknown: {_state_how(extension, 20)}"
    return Answer(NEXT, "At least 20 more subsamples per task", *_then_run(text, report))


def _give_up(needed: Settling, verdicts: Sequence[Verdict]) -> str:
    """Return a clause that verdicts cannot be settled, with what binds them and what is known instead."""
    unit, how = verdicts[0].unit, f"{needed.maximum:,} more subsamples per task"
    if needed.limit is not None:
        how = f"all {needed.limit.num_rows:,} {verdicts[0].rows} of {needed.limit.task} in {MAX_USES} test sets each"
    text = "this cannot be settled with these data"
    widths = [verdict.estimate.high - verdict.estimate.low for verdict in verdicts]
    if needed.half_width is not None and needed.half_width >= max(widths) / 2:
        text += ": a further extension would not narrow the interval"
    elif needed.half_width is not None:
        text += f": with {how}, the interval would be about ±{format_size(needed.half_width, unit)}"
    noisy = {verdict.method: share for verdict in verdicts if (share := _find_noise(verdict)) >= NOISY}
    if noisy:
        text += (
            f", because extra and test disagree on {max(noisy.values()):.0%} of the {verdicts[0].rows} "
            f"(fits of {name_methods(list(noisy))} that average several seeds may agree more)"
        )
    limits = [abs(limit) for verdict in verdicts for limit in verdict.estimate.limits if limit is not None]
    if limits:
        text += f"; report that a bias beyond ±{format_size(max(limits), unit)} is excluded"
    return text


def _find_noise(verdict: Verdict) -> float:
    """Return the share of texts on which extra and test disagree; 0 if it is unknown."""
    return getattr(verdict.evidence, "disagreement", None) or 0.0


def _extend(report: Report, advice: Advice, needed: Mapping[str, Verdict]) -> tuple[str, str]:
    """Return how to add subsamples, what they settle with which probability, and the command to run next."""
    extension, number = report.extension, f"{advice.subsamples:,} more"
    known = [
        verdict
        for verdict in needed.values()
        if (settling := find_settling(verdict)) is not None and settling.advice is not None
    ]
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
        reason = f"{trials} are too few to exclude a bias that is not negligible; "
    elif evidence.has_too_few:
        reason = f"{trials} cannot support a verdict at this level"
        if evidence.is_extended:
            reason += ", so the interval is extended to 0"
        reason += "; "
    elif evidence.is_extended:
        p_value = format_cell(evidence.p_zero, "p_value")
        reason = f"the interval is extended to 0, because a second test does not exclude it (p = {p_value}); "
    if evidence.settling is None:
        return f"{reason}the noise is unknown; draw at least 20 more subsamples per task to measure it"
    return f"{reason}{_advise(evidence.settling, verdict)}"


def find_settling(verdict: Verdict) -> Settling | None:
    """Find the subsamples that would settle an inconclusive verdict; None if it is not known."""
    return getattr(verdict.evidence, "settling", None)


def merge_settling(needed: Iterable[Settling | None]) -> Settling | None:
    """Merge the advice on several verdicts, or return the least precise one that nothing settles; None if unknown.

    Examples
    --------
    >>> merge_settling([Settling(Advice(40, 0.8)), Settling(Advice(60, 0.82)), None]).advice
    Advice(subsamples=60, probability=0.8)
    """
    known = [settling for settling in needed if settling]
    if not known:
        return None
    if advice := [settling.advice for settling in known if settling.advice]:
        probabilities = (each.probability for each in advice if each.probability is not None)
        return Settling(Advice(max(each.subsamples for each in advice), min(probabilities, default=None)))
    return max(known, key=lambda settling: settling.half_width or 0.0)


def _state_chance(advice: Advice) -> str:
    """Return when subsamples settle a verdict: with a probability, or if further trials are like those so far."""
    if advice.probability is None:
        return "if no further trial has a bias either"
    return f"with {advice.probability:.0%} probability, given these results"


def _advise(needed: Settling, verdict: Verdict) -> str:
    """Return a clause on what settles a verdict."""
    if (advice := needed.advice) is not None:
        return f"{advice.subsamples:,} more subsamples per task settle this {_state_chance(advice)}"
    return _give_up(needed, [verdict])
