"""The commands `check` and `new`."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from traceback import format_exception
from typing import Annotated, Any

import typer

from peekbench.cli.output import FAILED, echo
from peekbench.errors import PluginError, SpecError
from peekbench.formatting import pluralize, shorten
from peekbench.records.data import SourceRef
from peekbench.spec.components import TaskSpec, make_component
from peekbench.yaml_loader import read_yaml
from peekbench_testing.contracts import find_kinds, iterate_checks
from peekbench_testing.new_plugin import list_commands, make_plugin, write_plugin


def check(
    use: Annotated[str, typer.Argument(metavar="PLUGIN.THING", help="Name as in a spec's `use`.")],
    options: Annotated[str, typer.Option(help="Options of the entry, as YAML: '{num_components: 5}'.")] = "{}",
    task: Annotated[
        str | None,
        typer.Option(metavar="PLUGIN.TASK", help="Data source to check a method on. Default: synthetic rows."),
    ] = None,
    task_options: Annotated[
        str | None,
        typer.Option(help="Options of the data source, as YAML: '{path: reviews.csv}'."),
    ] = None,
) -> None:
    """Check an entry of a plugin, such as a method or a data source, against its contract.

    Example: peekbench check classic.lsa --options '{num_components: 5}'
    """
    kinds = find_kinds(use)
    values, source = _parse_options(options), _find_source(task, task_options)
    num_failed = num_left = 0
    for kind in kinds:
        if len(kinds) > 1:
            echo(f"{kind} {use}:")
        try:
            for outcome in iterate_checks(kind, use, values, source):
                if outcome.was_run:
                    note = f" ({outcome.message})" if outcome.passed and outcome.message else ""
                    echo(f"{'passed ' if outcome.passed else 'FAILED '} {outcome.name}{note}")
                    if not outcome.passed:
                        num_failed += 1
                        echo(indent("\n".join(filter(None, (outcome.message, outcome.traceback.rstrip()))), "    "))
                else:
                    num_left += 1
        except PluginError as error:
            if error.__cause__ is not None:
                echo("".join(format_exception(error.__cause__)), err=True)
            raise
    if num_left:
        echo(f"{pluralize(num_left, 'other check')} not run; correct the failed ones first")
    if num_failed:
        raise typer.Exit(FAILED)


def _find_source(task: str | None, options: str | None) -> SourceRef | None:
    """Return the data source that a command line names, with options as YAML."""
    if task is None:
        if options is not None:
            raise SpecError("--task-options are options of a task; name the task with --task")
        return None
    spec = make_component(TaskSpec, task, _parse_options(options or "{}"))
    return SourceRef(spec.use, spec.raw_options(), Path.cwd())


def _parse_options(text: str) -> dict[str, Any]:
    """Return options that are given as YAML on a command line."""
    raw = read_yaml(text, "options")
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        raise SpecError(f"options: {shorten(repr(text), 200)} is not a mapping; write it as '{{name: value}}'")
    return raw


def new(
    kind: Annotated[
        str,
        typer.Argument(metavar="KIND", help="method, source, analysis, executor, observer, renderer or format."),
    ],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name in specs: my_method, or my_data.tickets for an entry of another name."
        ),
    ],
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for the files. Default: peekbench-NAME."),
    ] = None,
) -> None:
    """Write a new plugin: a working example to edit, with tests, a spec and CI. Existing files are never overwritten.

    Example: peekbench new method my_method
    """
    plugin = make_plugin(kind, name)
    folder = Path(plugin.distribution) if folder is None else folder
    for path in write_plugin(plugin, folder):
        echo(f"written: {path}")
    echo("\nTo install, check and use the plugin:\n")
    for command in list_commands(plugin, folder):
        echo(f"    {command}")
    echo(f"\nThen edit {folder / 'src' / plugin.package / '__init__.py'}.")
    echo(f"Delete runs/{plugin.name}.sqlite before you run edited code, because stored trials are not repeated.")
