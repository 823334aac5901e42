"""The page of all commands, with what `--help` says about each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from peekbench.cli.app import app
from website.reference.markdown import GENERATED, code, page, plain, table

HELP = "help"


def command_names() -> list[str]:
    """Return the names of all commands."""
    return sorted(_group().commands)


def write_commands() -> dict[str, str]:
    """Return the page of all commands."""
    group = _group()
    context = typer.Context(group, info_name="peekbench")
    sections = [part for name in command_names() for part in _command(name)]
    return {
        "commands.md": page(
            "Commands",
            "`peekbench COMMAND --help`, or `-h`, prints the same descriptions. [Commands](../usage/commands.md) "
            "groups the commands by purpose, and lists the exit statuses.",
            GENERATED,
            table(["option of `peekbench`", "meaning"], _rows(group, context)),
            *sections,
        )
    }


def _group() -> Any:
    return typer.main.get_command(app)


def _command(name: str) -> Iterator[str]:
    command = _group().commands[name]
    context = typer.Context(command, info_name=f"peekbench {name}")
    yield f"## peekbench {name}"
    summary, _, details = command.help.partition("\n\n")
    yield plain(" ".join(summary.split()))
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    for paragraph in details.split("\n\n"):
        heading, _, example = " ".join(paragraph.split()).partition(": ")
        yield f"{heading}:\n\n```sh\n{example}\n```" if heading == "Example" else plain(" ".join(paragraph.split()))
    yield table(["argument or option", "meaning"], _rows(command, context))


def _rows(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and parameter.name != HELP:
            yield code(" ".join(record[0].split())), plain(" ".join(record[1].split()))
