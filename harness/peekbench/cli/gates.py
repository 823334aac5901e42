"""The option `--fail-on`: decisions at which a command ends with a status of its own."""

from __future__ import annotations

from collections.abc import Iterator
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
from peekbench.results import label_configuration

BIASED, FAILED_CONTROLS = "biased", "controls failed"
DECISIONS = (BIASED, *get_args(Decision), FAILED_CONTROLS)

FailOnOption = Annotated[
    str | None,
    typer.Option(
        "--fail-on", metavar="DECISIONS", help="End with status 4 if a verdict is one of these: biased,inconclusive."
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
    """Finds the verdicts at which a command fails."""

    names: tuple[str, ...]
    """Decisions, both directions of a bias, or the failure of any control, without repetitions."""

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Parse a value of `--fail-on`. Case does not matter; spaces can be hyphens or underscores.

        Examples
        --------
        >>> Gate.parse("biased, no-signal")
        Gate(names=('biased', 'no signal'))
        """
        names = [" ".join(part.lower().replace("-", " ").replace("_", " ").split()) for part in text.split(",")]
        for name in names:
            if name not in DECISIONS:
                raise _unknown_decision(name)
        return cls(tuple(dict.fromkeys(names)))

    @property
    def value(self) -> str:
        """The value of the option that makes this gate."""
        return ",".join(name.replace(" ", "-") for name in self.names)

    @property
    def option(self) -> str:
        """The option that makes this gate, as in messages."""
        return f"--fail-on {self.value}"

    def check(self, name: str, *, num_methods: int, num_controls: int) -> None:
        """Refuse a gate that could never fail, because no verdict can have one of its decisions.

        Parameters
        ----------
        name
            Name of the run or the table, for errors.
        num_methods, num_controls
            Methods and controls that have, or will have, a verdict on their bias.
        """
        if self.names == (FAILED_CONTROLS,):
            if not num_controls:
                raise PeekbenchError(
                    f"{self.option}: {name} has no verdict on a control; leave out {FAILED_CONTROLS}, or add a method "
                    "such as controls.null to the spec"
                )
        elif not num_methods:
            raise PeekbenchError(
                f"{self.option}: {name} has no verdict on the bias of a method, so it could never fail; use scores "
                "with the arms extra and test of a method that is not a control, and an analysis that reaches "
                "verdicts, such as summary"
            )

    def judge(self, report: Report) -> Judgment:
        """Judge the configurations of a report by their leading verdicts, as in the report: of the first analysis.

        A table cannot exempt a method from the gate: one that it calls a control is judged as a method too. A report
        without a verdict that could have one of the decisions is an error.
        """
        biases = [verdict for verdict in report.verdicts if verdict.effect == "bias"]
        leads = {subject: next(filter(subject.matches, biases), None) for subject in report.subjects}
        methods = [subject for subject in leads if not subject.control or report.extension.of == "table"]
        controls = [subject for subject in leads if subject.control]
        self.check(
            report.name,
            num_methods=sum(leads[subject] is not None for subject in methods),
            num_controls=sum(leads[subject] is not None for subject in controls),
        )
        if self.names == (FAILED_CONTROLS,):
            methods = []
        if FAILED_CONTROLS not in self.names:
            controls = []
        found = [text for subject in methods for text in self._describe_method(leads[subject])]
        found += [text for subject in controls for text in _describe_control(leads[subject])]
        unjudged = [gap for subject in methods for gap in self._find_gap(subject, leads[subject])]
        unjudged += [gap for subject in controls for gap in _name_gap(subject, leads[subject])]
        return Judgment(tuple(found), tuple(unjudged), len(methods) + len(controls))

    def _describe_method(self, verdict: Verdict | None) -> Iterator[str]:
        """Yield a verdict that has one of the decisions, in words."""
        if verdict is None:
            return
        decision = decision_of(verdict)
        if decision in self.names or (BIASED in self.names and decision.startswith(BIASED)):
            yield f"{verdict.method} is {decision}"

    def _find_gap(self, subject: Subject, verdict: Verdict | None) -> Iterator[str]:
        """Yield what is missing for the verdict on a method, so that the gate could not fail because of it."""
        is_open = verdict is not None and decision_of(verdict) == "inconclusive" and not verdict.is_possible
        if verdict is not None and is_open and "inconclusive" not in self.names:
            yield f"{verdict.method}: no verdict is possible with so few trials, or with this fit; add subsamples"
        else:
            yield from _name_gap(subject, verdict)


def _unknown_decision(name: str) -> PeekbenchError:
    problem = f"no decision is called {name!r}"
    if not name:
        problem = "the name of a decision is missing"
    nearest = "decisions"
    if near := find_nearest(name, DECISIONS, OF_FEW):
        nearest = f"did you mean {near}? Decisions"
    return PeekbenchError(f"--fail-on: {problem}; {nearest} are {', '.join(DECISIONS)}")


def _describe_control(verdict: Verdict | None) -> Iterator[str]:
    if verdict is not None and verdict.decision == "failed":
        yield f"control {verdict.method} failed"


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


def parse_gate(value: str | None) -> Gate | None:
    """Parse the value of `--fail-on`; None if it is not given."""
    return None if value is None else Gate.parse(value)


def apply_gate(gate: Gate | None, report: Report) -> None:
    """End the command with the status `GATED` if a verdict of a report has a decision of the gate.

    If a verdict is missing, it ends with the status `ERROR`.
    """
    if gate is None:
        return
    judgment = gate.judge(report)
    if judgment.found:
        echo(f"peekbench: {gate.option}: {', '.join(judgment.found)} ({judgment})", err=True)
    if judgment.unjudged:
        listed = "\n  ".join(judgment.unjudged)
        echo(f"peekbench: {gate.option}: {judgment}; without a verdict:\n  {listed}", err=True)
    if judgment.found:
        raise typer.Exit(GATED)
    if judgment.unjudged:
        raise typer.Exit(ERROR)
    note(f"{gate.option}: passed ({judgment})")
