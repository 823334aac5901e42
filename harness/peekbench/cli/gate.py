"""The option `--fail-on`: lets a command fail if verdicts on the bias of methods have certain decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Optional, get_args

import typer

from peekbench.cli.app import fail
from peekbench.cli.output import GATED
from peekbench.errors import PeekbenchError
from peekbench.records.verdicts import Decision

if TYPE_CHECKING:
    from peekbench.records import Report
    from peekbench.records.verdicts import Verdict

FailOnOption = Annotated[
    Optional[str],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(
        "--fail-on",
        metavar="DECISION[,...]",
        help="End with status 4 if a method's verdict on its bias is one of these, such as biased,inconclusive.",
    ),
]
BIASED, FAILED_CONTROLS = "biased", "controls failed"
DECISIONS: tuple[str, ...] = get_args(Decision)
NAMES = (BIASED, *DECISIONS, FAILED_CONTROLS)
"""What users can write: a decision, both directions of a bias, or the failure of any control."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Finds the verdicts at which a command fails."""

    names: tuple[str, ...]
    """Names of `NAMES` without repetitions."""

    @classmethod
    def parse(cls, text: str | None) -> Gate | None:
        """Return the gate that a user wrote; None for an option that was not given.

        Capital letters do not matter, and spaces can be hyphens or underscores.

        Raises
        ------
        PeekbenchError
            If a name is missing or unknown.

        Examples
        --------
        >>> Gate.parse("biased, no-signal")
        Gate(names=('biased', 'no signal'))
        """
        if text is None:
            return None
        names = [_normalize(part) for part in text.split(",")]
        for name in names:
            if name not in NAMES:
                close = get_close_matches(name, NAMES, n=1)
                problem = f"no decision is called {name!r}" if name else "the name of a decision is missing"
                nearest = f"did you mean {close[0]}? " if close else ""
                raise PeekbenchError(f"--fail-on: {problem}; {nearest}Decisions are {', '.join(NAMES)}")
        return cls(tuple(dict.fromkeys(names)))

    def argument(self) -> str:
        """Return the value of the option that makes this gate."""
        return ",".join(name.replace(" ", "-") for name in self.names)

    def describe(self, report: Report) -> str:
        """Return a line on the verdicts at which a command fails; empty if there is none.

        A method is judged by its leading verdict, as in the report: that of the first analysis.

        Raises
        ------
        PeekbenchError
            If the report has no verdict that could have one of the decisions.
        """
        from peekbench.report.render.words import (  # noqa: PLC0415 - for a fast --help
            lead_verdicts,
            split_verdicts,
        )

        biases = [verdict for verdict, _ in lead_verdicts(report.verdicts) if verdict.effect == "bias"]
        methods, controls = split_verdicts(biases)
        if not methods and self.names != (FAILED_CONTROLS,):
            raise PeekbenchError(
                f"--fail-on {self.argument()}: {report.name} has no verdict on the bias of a method, so it could never "
                "fail; use scores with the arms extra and test of a method that is not a control, and an analysis that "
                "reaches verdicts, such as summary"
            )
        if not controls and FAILED_CONTROLS in self.names:
            raise PeekbenchError(
                f"--fail-on {self.argument()}: {report.name} has no verdict on a control; add a method such as "
                f"controls.null, or leave out {FAILED_CONTROLS}"
            )
        found = ", ".join(self._find(methods, controls))
        return f"--fail-on {self.argument()}: {found}" if found else ""

    def _find(self, methods: list[Verdict], controls: list[Verdict]) -> Iterator[str]:
        for verdict in methods:
            if verdict.decision in self.names or (BIASED in self.names and verdict.decision.startswith(BIASED)):
                yield f"{verdict.method} is {verdict.decision}"
        if FAILED_CONTROLS in self.names:
            yield from (f"control {verdict.method} failed" for verdict in controls if verdict.decision == "failed")


def apply_gate(gate: Gate | None, report: Report) -> None:
    """End the command with the status `GATED` if a verdict of a report has a decision of the gate."""
    if gate is not None and (problem := gate.describe(report)):
        fail(problem, GATED)


def _normalize(name: str) -> str:
    return " ".join(name.lower().replace("-", " ").replace("_", " ").split())
