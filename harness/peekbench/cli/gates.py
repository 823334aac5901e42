"""The option `--fail-on`: gates, which end a command with a status of their own if a verdict has a decision."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, get_args

import typer

from peekbench.cli.output import ERROR, GATED, echo, note
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize
from peekbench.plugins.names import OF_FEW, find_nearest
from peekbench.records import Report
from peekbench.records.report import Subject
from peekbench.records.verdicts import Decision, Verdict
from peekbench.report.render.sentences import decision_of
from peekbench.results import IN_RULES, label_configuration

BIASED, FAILED_CONTROLS = "biased", "controls failed"

FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="[RULE:]DECISION[,...]",
        help="End with status 4 if a method's verdict on its bias is one of these, such as biased,inconclusive; or its "
        "verdict under a rule, as in cross-10:higher,inconclusive. Repeatable.",
    ),
]


@dataclass(frozen=True, slots=True)
class Judgment:
    """What a gate found in a report."""

    found: tuple[str, ...]
    """Verdicts at which the command fails, in words."""
    unjudged: tuple[str, ...]
    """Configurations without a verdict on all their tasks, and why."""
    number: int
    """Number of verdicts that the gate needs."""

    def __str__(self) -> str:
        """Return how many verdicts were judged."""
        return f"{self.number - len(self.unjudged)} of {pluralize(self.number, 'verdict')} judged"


@dataclass(frozen=True, slots=True)
class Gate:
    """Finds the verdicts at which a command fails, for one use of `--fail-on`."""

    names: tuple[str, ...]
    """Decisions, both directions of a bias, or the failure of any control, without repetitions."""
    rule: str = ""
    """Arm whose difference from extra is judged instead of the bias, such as 'cross-10'."""

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Return the gate of a value of `--fail-on`. Case does not matter; spaces can be hyphens or underscores.

        Examples
        --------
        >>> Gate.parse("biased, no-signal")
        Gate(names=('biased', 'no signal'), rule='')
        >>> Gate.parse("cross-10: higher").rule
        'cross-10'
        """
        rule, _, listed = text.rpartition(":")
        if "," in rule:
            before, _, rule = rule.rpartition(",")
            options = shlex.join(["--fail-on", before.strip(), "--fail-on", f"{rule.strip()}:{listed.strip()}"])
            raise PeekbenchError(f"--fail-on {text}: a rule needs an option of its own: {options}")
        rule = rule.strip()
        known = [BIASED, *get_args(Decision), FAILED_CONTROLS]
        if rule == "test":  # its verdict is that on the bias
            rule = ""
        if rule:
            known[-1:-1] = IN_RULES.values()
        names = [" ".join(part.lower().replace("-", " ").replace("_", " ").split()) for part in listed.split(",")]
        for name in names:
            if name not in known:
                raise _unknown_decision(name, known)
        return cls(tuple(dict.fromkeys(names)), rule)

    @property
    def value(self) -> str:
        """The value of the option that makes this gate."""
        names = ",".join(name.replace(" ", "-") for name in self.names)
        return f"{self.rule}:{names}".removeprefix(":")

    @property
    def option(self) -> str:
        """The option that makes this gate, as in messages."""
        return f"--fail-on {self.value}"

    def check(self, name: str, *, num_methods: int, num_controls: int, rules: Collection[str]) -> None:
        """Refuse a gate that could never fail, because no verdict can have one of its decisions.

        Parameters
        ----------
        name
            Name of the run or the table, for errors.
        num_methods, num_controls
            Methods and controls that have, or will have, a verdict on their bias.
        rules
            Arms other than test that have, or will have, a verdict of their own.
        """
        problem = ""
        if self.rule and self.rule not in rules:
            listed = ", ".join(("test", *sorted(rules)))
            problem = f"has no verdict on the rule {self.rule}, so it could never fail; its rules are {listed}"
        elif self.names == (FAILED_CONTROLS,) and not num_controls:
            problem = (
                f"has no verdict on a control; leave out {FAILED_CONTROLS}, or add a method such as controls.null to "
                "the spec"
            )
        elif self.names != (FAILED_CONTROLS,) and not num_methods:
            problem = (
                "has no verdict on the bias of a method, so it could never fail; use scores with the arms extra and "
                "test of a method that is not a control, and an analysis that reaches verdicts, such as summary"
            )
        if problem:
            raise PeekbenchError(f"{self.option}: {name} {problem}")

    def judge(self, report: Report) -> Judgment:
        """Judge the configurations of a report by their leading verdicts, as in the report: of the first analysis.

        A table cannot exempt a method from the gate: one that it calls a control is judged as a method too. A report
        without a verdict that could have one of the decisions is an error.
        """
        biases = [verdict for verdict in report.verdicts if verdict.effect == "bias"]
        judged = biases
        if self.rule:
            judged = [verdict for rule in report.rules if rule.rule == self.rule for verdict in rule.verdicts]
        methods = [subject for subject in report.subjects if not subject.control or report.extension.of == "table"]
        controls = [subject for subject in report.subjects if subject.control]
        self.check(
            report.name,
            num_methods=sum(_find(subject, biases) is not None for subject in methods),
            num_controls=sum(_find(subject, biases) is not None for subject in controls),
            rules={rule.rule for rule in report.rules},
        )
        if self.names == (FAILED_CONTROLS,):
            methods = []
        if FAILED_CONTROLS not in self.names:
            controls = []
        of_methods = [(subject, _find(subject, judged)) for subject in methods]
        of_controls = [(subject, _find(subject, biases)) for subject in controls]
        found = [self._describe(verdict) for _, verdict in of_methods if verdict is not None and self._fails(verdict)]
        failed = (verdict for _, verdict in of_controls if verdict is not None and verdict.decision == "failed")
        found += [f"control {verdict.method} failed" for verdict in failed]
        unjudged = [gap for subject, verdict in of_methods for gap in self._find_gap(subject, verdict)]
        unjudged += [gap for subject, verdict in of_controls for gap in _name_gap(subject, verdict)]
        return Judgment(tuple(found), tuple(unjudged), len(methods) + len(controls))

    def _word(self, verdict: Verdict) -> str:
        """Return the decision as it is called: under a rule, in its own word."""
        decision = decision_of(verdict)
        if self.rule:
            return IN_RULES.get(decision, decision)
        return decision

    def _fails(self, verdict: Verdict) -> bool:
        """Return whether a verdict has one of the decisions."""
        decision = decision_of(verdict)
        is_biased = BIASED in self.names and decision.startswith(BIASED)
        return is_biased or decision in self.names or self._word(verdict) in self.names

    def _describe(self, verdict: Verdict) -> str:
        text = f"{verdict.method} is {self._word(verdict)}"
        if self.rule:
            text += f" under {self.rule}"
        return text

    def _find_gap(self, subject: Subject, verdict: Verdict | None) -> Iterator[str]:
        """Yield what is missing for the verdict on a method, so that the gate could not fail because of it."""
        is_open = verdict is not None and decision_of(verdict) == "inconclusive" and not verdict.is_possible
        if verdict is not None and is_open and "inconclusive" not in self.names:
            yield f"{verdict.method}: no verdict is possible with so few trials, or with this fit; add subsamples"
        else:
            yield from _name_gap(subject, verdict)


def _unknown_decision(name: str, known: Sequence[str]) -> PeekbenchError:
    problem = f"no decision is called {name!r}"
    if not name:
        problem = "the name of a decision is missing"
    nearest = "decisions"
    if near := find_nearest(name, known, OF_FEW):
        nearest = f"did you mean {near}? Decisions"
    return PeekbenchError(f"--fail-on: {problem}; {nearest} are {', '.join(known)}")


def _find(subject: Subject, verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the leading verdict on a configuration."""
    return next(filter(subject.matches, verdicts), None)


def _name_gap(subject: Subject, verdict: Verdict | None) -> Iterator[str]:
    """Yield what is missing for a verdict on all tasks of a configuration."""
    label = verdict.method if verdict else label_configuration(dict(subject.cells))
    if subject.lost_tasks:
        tasks = ", ".join(subject.lost_tasks)
        yield f"{label}: no complete trial of {tasks}; add the missing rows, or remove all rows of this method or task"
    elif verdict is None:
        remedy = ""
        if subject.control:
            remedy = "; to judge a method that a table calls a control: --ignore control"
        yield f"{label}: no analysis reached a verdict{remedy}"


def parse_gates(values: Sequence[str] | None) -> list[Gate]:
    """Return a gate for each use of `--fail-on`."""
    return [Gate.parse(value) for value in values or ()]


def apply_gates(gates: Sequence[Gate], report: Report) -> None:
    """End the command with the status `GATED` if a verdict of a report has a decision of a gate.

    If a verdict is missing, it ends with the status `ERROR`.
    """
    judgments = {gate.option: gate.judge(report) for gate in gates}
    for option, judgment in judgments.items():
        if judgment.found:
            echo(f"peekbench: {option}: {', '.join(judgment.found)} ({judgment})", err=True)
        if judgment.unjudged:
            listed = "\n  ".join(judgment.unjudged)
            echo(f"peekbench: {option}: {judgment}; without a verdict:\n  {listed}", err=True)
        elif not judgment.found:
            note(f"{option}: passed ({judgment})")
    controls = [str(dict(subject.cells)["method"]) for subject in report.subjects if subject.control]
    if gates and controls and report.extension.of == "table":
        note(f"The table calls {', '.join(controls)} controls; `--fail-on` judges them as methods, too")
    if any(judgment.found for judgment in judgments.values()):
        raise typer.Exit(GATED)
    if any(judgment.unjudged for judgment in judgments.values()):
        raise typer.Exit(ERROR)
