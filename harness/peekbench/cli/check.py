"""The command that checks entries of plugins against their contracts."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from traceback import format_exception
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from peekbench.cli.app import app
from peekbench.cli.output import FAILED, echo
from peekbench.errors import PluginError, SpecError
from peekbench.formatting import pluralize

if TYPE_CHECKING:
    from peekbench.records.data import SourceRef
    from peekbench.testing import CheckOutcome


@app.command()
def check(
    use: Annotated[str, typer.Argument(metavar="PLUGIN.THING", help="Name as in a spec's `use`.")],
    options: Annotated[str, typer.Option(help="Options of the entry, as YAML: '{num_components: 5}'.")] = "{}",
    task: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(
            metavar="PLUGIN.TASK", help="Data source to check a method or an audit on. Default: synthetic rows."
        ),
    ] = None,
    task_options: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Options of the data source, as YAML: '{path: reviews.csv}'."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Seconds after which a check is ended and fails.")
    ] = 300,
    traceback: Annotated[bool, typer.Option("--traceback", help="Print the tracebacks of failed checks.")] = False,
) -> None:
    """Check an entry of a plugin, such as a method or a data source, against its contract.

    Example: peekbench check classic.lsa --options '{num_components: 5}'
    """
    from peekbench.plugins.local_code import bind  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.components import parse_options  # noqa: PLC0415 - for a fast --help
    from peekbench.testing.pytest_checks import find_kinds, iterate_checks  # noqa: PLC0415 - for a fast --help
    from peekbench.testing.runner import Watch, watching  # noqa: PLC0415 - for a fast --help

    bind([use], Path.cwd())
    kinds = find_kinds(use)
    values, source = parse_options(options), _find_source(task, task_options)
    num_failed = 0
    for kind in kinds:
        if len(kinds) > 1:
            echo(f"{kind} {use}:")
        outcomes = []
        progress = Progress()
        try:
            with watching(Watch(progress.announce, time_limit)):
                for outcome in iterate_checks(kind, use, values, source):
                    progress.clear()
                    outcomes.append(outcome)
                    note = f" ({outcome.message})" if outcome.passed and outcome.message else ""
                    if outcome.was_run:  # the others are counted
                        echo(f"{'passed ' if outcome.passed else 'FAILED '} {outcome.name}{note}")
        except PluginError as error:
            if traceback and error.__cause__ is not None:
                echo("".join(format_exception(error.__cause__)), err=True)
            raise
        num_failed += _print_failures(outcomes, with_traceback=traceback)
    if num_failed:
        raise typer.Exit(FAILED)


class Progress:
    """A line on the standard error about the check that is running; on a terminal, the next output replaces it."""

    def __init__(self) -> None:
        self._width = 0
        self._is_terminal = sys.stderr.isatty()

    def announce(self, name: str, position: int, num_checks: int) -> None:
        """Show which check is running."""
        line = f"running check {position} of {num_checks}: {name}"
        self.clear()
        echo(line, err=True, end="\r" if self._is_terminal else "\n")
        self._width = len(line)

    def clear(self) -> None:
        """Remove the line from a terminal."""
        if self._is_terminal and self._width:
            echo(" " * self._width, err=True, end="\r")
        self._width = 0


def _find_source(task: str | None, options: str | None) -> SourceRef | None:
    from peekbench.records.data import SourceRef  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.components import (  # noqa: PLC0415 - for a fast --help
        TaskSpec,
        make_component,
        parse_options,
    )

    if task is None:
        if options is not None:
            raise SpecError("--task-options are options of a task; name the task with --task")
        return None
    spec = make_component(TaskSpec, task, parse_options(options or "{}"))
    return SourceRef(spec.use, spec.raw_options(), Path.cwd())


def _print_failures(outcomes: list[CheckOutcome], *, with_traceback: bool) -> int:
    """Print each problem once, with the checks that found it, and return the number of failed checks."""
    failed = [outcome for outcome in outcomes if not outcome.passed and outcome.was_run]
    by_problem = defaultdict(list)
    for outcome in failed:
        by_problem[outcome.problem or outcome.message].append(outcome)
    for problem, found_by in by_problem.items():
        if len(found_by) == 1:
            echo(f"\n{found_by[0].name}:\n    {found_by[0].message}")
        else:
            echo(f"\n{pluralize(len(found_by), 'check')} of {len(outcomes)} failed in the same way:\n    {problem}")
        if with_traceback:
            echo("\n" + found_by[0].traceback.rstrip())
    if num_left := sum(not outcome.was_run for outcome in outcomes):
        echo(f"\n{pluralize(num_left, 'other check')} not run; correct the failed ones first")
    return len(failed)
