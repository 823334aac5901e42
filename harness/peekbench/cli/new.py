"""The command that writes the files of a new plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, Optional

import typer

from peekbench.cli.app import app
from peekbench.cli.output import echo
from peekbench.errors import PeekbenchError


@app.command()
def new(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="method, source, analysis, audit, executor, observer or renderer.")
    ],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name in specs: my_method, or my_data.tickets for an entry of another name."
        ),
    ],
    folder: Annotated[
        Optional[Path],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(metavar="FOLDER", help="Folder for the files. Default: peekbench-NAME."),
    ] = None,
    author: Annotated[str, typer.Option(metavar="AUTHOR", help="Author of the plugin.")] = "",
    install: Annotated[
        bool, typer.Option("--install", help="Also install the plugin with pip, in editable mode.")
    ] = False,
) -> None:
    """Write a new plugin: a working example to edit, with tests, a spec and CI. Existing files are never overwritten.

    Example: peekbench new method my_method
    """
    from peekbench.cli.scaffold.new_plugin import list_commands, make_plugin, write_plugin  # noqa: PLC0415 - fast --help

    plugin = make_plugin(kind, name, author)
    folder = Path(plugin.distribution) if folder is None else folder
    for path in write_plugin(plugin, folder):
        echo(f"written: {path}")
    commands = list_commands(plugin, folder)
    if install:
        _install(folder)
        commands = commands[1:]
    echo(f"\nTo {'' if install else 'install, '}check and use the plugin:\n")
    for command in commands:
        echo(f"    {command}")
    echo(f"\nThen edit {folder / 'src' / plugin.package / '__init__.py'}.")
    echo(f"Delete runs/{plugin.name}.sqlite before you run edited code, because stored trials are not repeated.")


def _install(folder: Path) -> None:
    """Install a distribution into the environment of this process."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--editable", str(folder)]
    if subprocess.run(pip, check=False).returncode:  # noqa: S603 - the user asks for it
        raise PeekbenchError(
            f"pip cannot install {folder}, whose files are complete; repair the cause and use "
            f"`pip install --editable {quote(str(folder))}`"
        )
