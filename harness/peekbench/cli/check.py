"""The command that checks entries of plugins against their contracts."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from traceback import format_exception
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from peekbench.cli.app import app
from peekbench.cli.output import FAILED, echo
from peekbench.errors import PluginError, SpecError
from peekbench.formatting import pluralize

if TYPE_CHECKING:
    from peekbench.records.data import SourceRef


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
    timeout: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(min=0.001, help="Seconds that each fit and each prediction of a method may take. Default: 300."),
    ] = None,
    traceback: Annotated[bool, typer.Option("--traceback", help="Print the tracebacks of failed checks.")] = False,
) -> None:
    """Check an entry of a plugin, such as a method or a data source, against its contract.

    Example: peekbench check classic.lsa --options '{num_components: 5}'
    """
    from peekbench.spec.components import parse_options  # noqa: PLC0415 - for a fast --help
    from peekbench.testing.pytest_checks import find_kinds, iterate_checks  # noqa: PLC0415 - for a fast --help

    kinds = find_kinds(use)
    values, source = parse_options(options), _find_source(task, task_options)
    num_failed = num_left = 0
    for kind in kinds:
        if len(kinds) > 1:
            echo(f"{kind} {use}:")
        try:
            for outcome in iterate_checks(kind, use, values, source, timeout):
                if outcome.was_run:
                    note = f" ({outcome.message})" if outcome.passed and outcome.message else ""
                    echo(f"{'passed ' if outcome.passed else 'FAILED '} {outcome.name}{note}")
                    if not outcome.passed:
                        num_failed += 1
                        echo(indent(outcome.traceback.rstrip() if traceback else outcome.message, "    "))
                else:
                    num_left += 1
        except PluginError as error:
            if traceback and error.__cause__ is not None:
                echo("".join(format_exception(error.__cause__)), err=True)
            raise
    if num_left:
        echo(f"{pluralize(num_left, 'other check')} not run; correct the failed ones first")
    if num_failed:
        raise typer.Exit(FAILED)


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
