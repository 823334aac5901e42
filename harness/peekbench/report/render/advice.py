"""Sentences on what to do: what would settle a verdict, which rule a benchmark can adopt, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from peekbench.formatting import (
    duration,
    format_cell,
    format_quantity,
    format_range,
    format_size,
    join_words,
    pluralize,
    points,
)
from peekbench.records.report import Column, Inflation, Report, RuleWorth, Statement, Table
from peekbench.records.verdicts import Advice, Settling, TrialEvidence, Verdict
from peekbench.report.render.answers import Answer
from peekbench.report.render.fixed_texts import has_published, is_mean, name_decision

RULES: Mapping[str, str] = {
    "test": "Methods may adapt to the unlabeled {row}s of the test set",
    "not test": "Methods must not adapt to the unlabeled {row}s of the test set",
    "cross": (
        "The test {row}s are divided into {blocks} blocks, and a model that predicts a block has not adapted to any of "
        "its {row}s"
    ),
    "leave-one-out": "A model that predicts a test {row} has not adapted to this {row}",
    "prequential": (
        "The test {row}s arrive in a fixed order, and a model that predicts a {row} has adapted neither to it nor to "
        "any later one"
    ),
    "stream": (
        "The test {row}s arrive in {blocks} blocks in a fixed order, and a model that predicts a block has adapted to "
        "no later block"
    ),
    "blocks": (
        "The test {row}s are divided into {blocks} blocks, and a model that predicts a block has adapted to no other "
        "block"
    ),
    "batches": "The test {row}s are divided into {blocks} batches, and each is predicted by itself",
    "alone": "Each test {row} is predicted by itself",
    "single": "A model that predicts a test {row} has adapted to no other test {row}",
}
"""Rules of a benchmark that the arms implement, by kind of arm; 'not test' is the opposite of that of 'test'."""
MAX_NAMED = 3  # methods in an answer
WITHOUT_OWN_TEXTS = ("cross", "leave-one-out", "prequential")
"""Kinds of arms whose scores a benchmark can report instead of those of extra: no text is predicted by a fit to it."""
PREDICTED_ALONE = ("batches", "alone")
"""Kinds of arms that predict fewer texts together by the fits of extra."""
NOT_HIGHER = ("equivalent", "biased down")
"""Decisions by which the scores under a rule do not exceed those of extra."""
NEXT = "What next?"
ADD = {"run": "add them to each num_subsamples", "table": "add them to the table"}
"""How to add subsamples."""


def name_methods(names: Sequence[str]) -> str:
    """Return the names of methods in words, or the first ones and the number of the others."""
    if len(names) > MAX_NAMED:
        names = [*names[: MAX_NAMED - 1], f"{len(names) - MAX_NAMED + 1:,} others"]
    return join_words(names)


def choose_rule(report: Report, judged: Sequence[Verdict]) -> list[Answer]:
    """Return the rule that a benchmark can adopt, which was measured for all methods; nothing unless rules were."""
    methods = {verdict.method for verdict in judged if verdict.estimate.has_interval}
    joint = _find_joint(report)
    if not report.rules or not (methods or joint):
        return []
    rows, region = judged[0].rows, format_size(judged[0].region or 0.0, judged[0].unit)
    rule, reason = f"Independent {rows}", "No other measured rule is known to give the same scores."
    by_rule: dict[str, list[Verdict]] = {}
    for worth in report.rules:
        if worth.kind in WITHOUT_OWN_TEXTS:
            by_rule.setdefault(worth.rule, []).extend(worth.verdicts)
    by_rule = {
        name: verdicts for name, verdicts in by_rule.items() if methods <= {verdict.method for verdict in verdicts}
    }
    equal = [name for name, verdicts in by_rule.items() if _are_all(verdicts, ("equivalent",))]
    not_higher = [
        name
        for name, verdicts in by_rule.items()
        if all(verdict.decision in NOT_HIGHER or verdict.size == "not above" for verdict in verdicts)
    ]
    if joint:
        rule = [*joint.values()][-1]
        reason = f"The scores of {name_methods([*joint])} depend on the {rows} that are predicted together."
    elif _are_all(judged, ("equivalent",)):
        rule, reason = f"Adapting to all test {rows}", "The bias is negligible for every method."
    elif equal:
        rule, reason = equal[0], f"Its scores differ from those of extra by less than {region}."
    elif not_higher:
        rule, reason = not_higher[0], f"It does not raise scores above those of extra by more than {region}"
        if any(verdict.decision == "biased down" for verdict in by_rule[rule]):
            reason += f", but lowers some: use more blocks, or independent {rows}."
        else:
            reason += ", but may lower them."
    return [Answer("Which rule?", rule, reason)]


def _find_joint(report: Report) -> dict[str, str]:
    """Return the methods whose scores are known to depend on the texts that are predicted together, with an arm.

    It is the same for all: the one that predicts the fewest together, as a benchmark has one rule.
    """
    of_batches = [worth for worth in report.rules if worth.kind in PREDICTED_ALONE]
    fewest = max(of_batches, key=lambda worth: (worth.kind == "alone", int(worth.num_blocks or 0)), default=None)
    return {
        verdict.method: fewest.rule
        for worth in of_batches
        for verdict in worth.verdicts
        if fewest and verdict.decision in ("biased up", "biased down")
    }


def _are_all(verdicts: Sequence[Verdict], decisions: Sequence[str]) -> bool:
    return all(verdict.decision in decisions for verdict in verdicts)


def advise_next(report: Report, judged: Sequence[Verdict], controls: Sequence[Verdict]) -> Answer:
    """Advise the first thing to do: check the run, complete it, extend it, or report the uncontaminated scores."""
    decisions, effect = {verdict.decision for verdict in judged}, judged[0].effect
    copied = [found for verdict in judged if (found := getattr(verdict.evidence, "copied", None)) is not None]
    if not all(found.are_few for found in copied):
        return Answer(NEXT, "Remove the copies", "See the warning.")
    if failed := [control.method for control in controls if control.decision == "failed"]:
        names = name_methods(failed)
        return Answer(NEXT, "Find the cause", f"Until you know why {names} failed, trust no other verdict.")
    if report.failures:
        return Answer(NEXT, "Repeat the failed trials", *_then_run("Correct the cause", report))
    if number := report.extension.num_missing:
        missing = pluralize(number, "trial is missing", "trials are missing")
        return Answer(NEXT, "Finish the run", f"{missing}.", report.extension.command)
    named = [(verdict.method, verdict) for verdict in judged]
    named += [(f"{verdict.method} under {worth.rule}", verdict) for worth in report.rules for verdict in worth.verdicts]
    if undecided := {name: verdict for name, verdict in named if verdict.decision == "inconclusive"}:
        return _settle_all(report, undecided)
    if joint := _find_joint(report):
        reason = f"The scores of {name_methods([*joint])} depend on the {judged[0].rows} that are predicted together"
        scores = f"Report the scores of {[*joint.values()][-1]}"
        return Answer(NEXT, scores, f"{reason}; those of extra are for {judged[0].rows} that arrive together.")
    if decisions & {"biased up", "biased down"}:
        reason = f"The {effect} does not affect them."
        if not all(map(is_mean, judged)) and any(map(has_published, judged)):
            reason = f"No {judged[0].rows.removesuffix('s')} is predicted by a fit that adapted to it."
        return Answer(NEXT, "Report the scores of extra", reason)
    if unchecked := [control.method for control in controls if control.decision == "undecided"]:
        return Answer(NEXT, "More data", f"The run is too small to be checked by {name_methods(unchecked)}.")
    if "equivalent" in decisions:
        where = ""
        if any(name_decision(verdict).endswith("these " + verdict.rows) for verdict in judged):
            where = f" on these {judged[0].rows}; only more test {judged[0].rows} can show it for others"
        return Answer(NEXT, "Nothing", f"The {effect} is negligible{where}.")
    return Answer(NEXT, "Check the methods", "They must use the unlabeled data and predict better than chance.")


def _is_all_right(verdict: Verdict) -> bool:
    """Return whether the accuracies of extra and test are all 100%, so no answer can become right."""
    evidence, is_accuracy = verdict.evidence, verdict.unit == "difference"
    return isinstance(evidence, TrialEvidence) and is_accuracy and evidence.is_zero and evidence.extra == 1


def _settle_all(report: Report, needed: Mapping[str, Verdict]) -> Answer:
    """Return the number of subsamples that settles all open verdicts, or what to do if there is none."""
    names, extension = name_methods(list(needed)), report.extension
    merged = merge_settling(map(find_settling, needed.values()))
    if all(map(_is_all_right, needed.values())):
        rows = next(iter(needed.values())).rows
        return Answer(NEXT, f"Harder {rows}", f"All answers of {names} are right, so no score can rise.")
    if extension.of == "runs":
        return Answer(NEXT, "Extend the runs", "Their own reports state by how many subsamples:", extension.command)
    if merged is not None and merged.advice is not None:
        number = f"{merged.advice.subsamples:,} more subsamples per task"
        return Answer(NEXT, number, *_extend(report, merged.advice, needed))
    if merged is not None and merged.is_limited_by_rows:
        details = f"The rows of the tasks support too few subsamples to settle {names}"
        remedy = f"{_add_rows_or_tasks(merged)}, in a run with another name and seed"
        return Answer(NEXT, "More rows or tasks", f"{details}: {remedy}.")
    if any(map(_is_unmeasured, needed.values())):
        how = {"table": ADD["table"]}.get(extension.of, "set num_subsamples to at least 20")
        text = f"They measure the noise, which is unknown with one: {how}"
        return Answer(NEXT, "At least 20 subsamples per task", *_then_run(text, report))
    details = "Draw larger test sets or more tasks, in a run with another name and seed."
    return Answer(NEXT, f"No number of subsamples is known that settles {names}", details)


def _is_unmeasured(verdict: Verdict) -> bool:
    """Return whether the noise of a task is unknown, so that no number of subsamples can be advised."""
    evidence = verdict.evidence
    return isinstance(evidence, TrialEvidence) and evidence.settling is None and not evidence.is_zero


def _extend(report: Report, advice: Advice, needed: Mapping[str, Verdict]) -> tuple[str, str]:
    """Return how to add subsamples, what they settle with which probability, and the command to run next."""
    extension, first = report.extension, report.verdicts[0]
    settlings = {method: find_settling(verdict) for method, verdict in needed.items()}
    known = [method for method, settling in settlings.items() if settling and settling.advice]
    settled, likely = name_methods(known), _state_chance(advice)
    if len(known) > MAX_NAMED:
        settled = f"{len(known):,} of {len(needed):,} open verdicts"
    if len(known) > 1 and advice.probability is not None:
        likely = f"with at least {advice.probability:.0%} probability each"
    likely += _limit_to_biases(advice, first)
    how = ADD[extension.of]
    if extension.num_subsamples is not None:
        how = f"set num_subsamples to {extension.num_subsamples + advice.subsamples}"
    time = ""
    if extension.is_fixed:  # the new run repeats all subsamples
        how += ", name and seed to others, because planned looks fix the size of a run"
    elif extension.seconds:
        time = f" and take one worker about {duration(advice.subsamples * extension.seconds)}"
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
        tests = "sign flips of the trials, or a t test corrected for skewness,"
        if evidence.failure_loss:
            tests = "sign flips of the trials, or a t test that allows for skewness and for the stated failures,"
        p_value = format_cell(evidence.p_zero, "p_value")
        reason = f"the interval is extended to 0, because {tests} do not exclude it (p = {p_value}); "
    if evidence.settling is None:
        return f"{reason}the noise is unknown; draw at least 20 subsamples per task to measure it"
    return f"{reason}{_advise(evidence.settling, verdict)}"


def find_settling(verdict: Verdict) -> Settling | None:
    """Find the subsamples that would settle an inconclusive verdict; None if it is not known."""
    return getattr(verdict.evidence, "settling", None)


def merge_settling(needed: Iterable[Settling | None]) -> Settling | None:
    """Merge the advice on several verdicts, without those that no number of subsamples settles; None if unknown.

    Examples
    --------
    >>> merge_settling([Settling(Advice(40, 0.8)), Settling(Advice(60, 0.82)), None]).advice
    Advice(subsamples=60, probability=0.8)
    """
    known = [settling for settling in needed if settling]
    known = [settling for settling in known if settling.advice] or known
    if not known:
        return None
    return Settling(
        _largest([settling.advice for settling in known]),
        max(settling.maximum for settling in known),
        any(settling.is_limited_by_rows for settling in known),
        max((settling.num_tasks for settling in known if settling.num_tasks is not None), default=None),
    )


def _largest(numbers: Sequence[Advice | None]) -> Advice | None:
    known = [advice for advice in numbers if advice]
    if len(known) < len(numbers):
        return None
    probabilities = (advice.probability for advice in known if advice.probability is not None)
    return Advice(max(advice.subsamples for advice in known), min(probabilities, default=None))


def _state_chance(advice: Advice) -> str:
    """Return when subsamples settle a verdict: with a probability, or if further trials are like those so far."""
    if advice.probability is None:
        return "if no further trial has a bias either"
    return f"with {advice.probability:.0%} probability"


def _limit_to_biases(advice: Advice, verdict: Verdict) -> str:
    """Return a clause on the biases for which advice holds; empty without a region, and if no trial has a bias."""
    if advice.probability is None or not verdict.region:
        return ""
    return f" if the bias is near zero or at least {format_size(verdict.region, verdict.unit)}"


def _advise(needed: Settling, verdict: Verdict) -> str:
    """Return a clause on what settles a verdict."""
    if (advice := needed.advice) is not None:
        number = f"{advice.subsamples:,} more subsamples per task settle this {_state_chance(advice)}"
        return number + _limit_to_biases(advice, verdict)
    if needed.is_limited_by_rows:
        return f"the rows of the tasks are too few to settle this with more subsamples; {_add_rows_or_tasks(needed)}"
    return f"it takes more than {needed.maximum:,} more subsamples per task to settle this"


def advise_briefly(needed: Settling | None) -> str:
    """Return a clause on what probably settles a verdict; empty if nothing is known that does."""
    if needed is None:
        return ""
    if needed.advice is not None:
        return f"{needed.advice.subsamples:,} more subsamples per task probably settle it"
    if needed.is_limited_by_rows:
        return _add_rows_or_tasks(needed)
    return ""


def _add_rows_or_tasks(limited: Settling) -> str:
    """Advise more data if the rows of the tasks do not support the subsamples that settle verdicts."""
    if limited.num_tasks:
        return f"add rows, or use about {limited.num_tasks:,} tasks like these"
    return "add rows or tasks"


def put_into_words(table: Table) -> Table:
    """Return a table with its statements as sentences: as rows if it has no others, otherwise before its note."""
    sentences = [_put(statement) for statement in table.statements]
    if not table.statements:
        return table
    if table.columns:
        note = " ".join((*(text for _, text in sentences), table.note))
        return replace(table, note=note, statements=())
    return replace(table, columns=(Column("rule"), Column("sentence")), rows=tuple(sentences), statements=())


def _put(statement: Statement) -> tuple[str, str]:
    if isinstance(statement, Inflation):
        return "", _state_inflation(statement)
    return statement.rule, _state_rule(statement)


def _state_rule(worth: RuleWorth) -> str:
    """State a rule of a benchmark, what it was worth, and what would settle it if that is open.

    The rule of the arm test permits what it permits only if this is known to be negligible.
    """
    verdicts, kind, whose = worth.verdicts, worth.kind, "under this rule"
    if kind == "test" and not _are_all(verdicts, ("equivalent",)):
        kind, whose = "not test", "of methods that do"
    unit, rows = verdicts[0].unit, verdicts[0].rows
    num_tasks = [verdict.evidence.num_tasks for verdict in verdicts if isinstance(verdict.evidence, TrialEvidence)]
    tasks = pluralize(min(num_tasks), "task")
    if min(num_tasks) < max(num_tasks):
        tasks = f"{min(num_tasks)} to {max(num_tasks)} tasks"
    if worth.sizes:
        tasks += f" ({worth.sizes})"
    lowest = min(verdict.estimate.low for verdict in verdicts)
    highest = max(verdict.estimate.high for verdict in verdicts)
    listed = ", ".join(f"{number} {decision}" for decision, number in worth.decisions.items())
    levels = " and ".join(sorted({f"{verdict.family.level:.0%}" for verdict in verdicts}))
    intervals = f"{levels} intervals of {len(verdicts)} methods"
    if len(verdicts) == 1:
        intervals = f"{levels} interval of 1 method"
    if any(verdict.family.size > 1 for verdict in verdicts):
        intervals = f"adjusted {intervals}"
    rule = RULES[kind].format(blocks=worth.num_blocks, row=rows.removesuffix("s"))
    reference = f"with independent {rows}"
    if kind in PREDICTED_ALONE:
        reference = f"of {rows} that are predicted together"
    text = (
        f"{rule}. On these {rows} of {tasks}, the mean score {whose} differs from the mean score {reference} by "
        f"{format_range(lowest, highest, unit)}{points(unit)} ({intervals}: {listed})."
    )
    if any(verdict.decision == "inconclusive" for verdict in verdicts):
        needed = merge_settling(map(find_settling, verdicts))
        text += f" Not settled: {_advise(needed, verdicts[0]) if needed else 'what settles this is unknown'}."
    return text


def _state_inflation(inflation: Inflation) -> str:
    """State how much the score of the best configuration is inflated because it was chosen by this score."""
    best = f"The score of the best of {inflation.num_configurations} configurations"
    if inflation.sizes:
        best += f" with {inflation.sizes}"
    chosen = "chosen by this score"
    if inflation.num_texts is not None:
        chosen += f" on {pluralize(inflation.num_texts, 'text')}"
    stated = f"{best}, {chosen}, is inflated by {format_quantity(inflation.estimate, inflation.unit)}."
    if not inflation.is_of_texts:
        stated += " If all subsamples test the same texts, the luck of these texts adds to it."
    return stated
