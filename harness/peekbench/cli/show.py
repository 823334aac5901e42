"""The command that shows what plugins offer, and the schemas of specs and reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from peekbench.cli.app import app
from peekbench.cli.output import echo
from peekbench.errors import PeekbenchError


@app.command()
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name as in a spec's `use`; a kind, such as tasks or methods; 'plugins'; 'spec-schema' or "
            "'report-schema' for the JSON schema of specs, with the options of all installed plugins, or of "
            "report.json; 'all'.",
        ),
    ] = "all",
    options: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(help="Options to load the data of a task with, as YAML: '{path: reviews.csv}'."),
    ] = None,
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="File to write a schema to, instead of printing it."),
    ] = None,
) -> None:
    """Show what the installed plugins offer, or one entry with its options; for a task also texts and a prompt.

    Example: peekbench show hf.trec
    """
    from peekbench.cli.catalog import HEADINGS, describe, list_lines  # noqa: PLC0415 - for a fast --help
    from peekbench.cli.inputs import refuse_run  # noqa: PLC0415 - for a fast --help
    from peekbench.plugins.local_code import split_name  # noqa: PLC0415 - for a fast --help
    from peekbench.plugins.registry import is_known  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.components import parse_options  # noqa: PLC0415 - for a fast --help

    if name in ("spec-schema", "report-schema"):
        text = json.dumps(_schema(name), indent=1, sort_keys=True) + "\n"
        if output is None:
            echo(text, end="")
        else:
            _write(text, output)
        return
    if output is not None:
        raise PeekbenchError(f"--output is for spec-schema and report-schema, not for {name}; leave it out")
    if name in HEADINGS:
        for line in list_lines(name):
            echo(line)
        return
    if not is_known(split_name(name)[0]):
        refuse_run(name)
    for number, paragraph in enumerate(describe(name, None if options is None else parse_options(options))):
        echo(("\n" if number else "") + paragraph)


def _write(text: str, path: Path) -> None:
    from peekbench.cache import atomic_write  # noqa: PLC0415 - for a fast --help

    try:
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PeekbenchError(f"cannot write {path}: {error.strerror or error}; choose another path") from error


def _schema(name: str) -> dict[str, Any]:
    if name == "report-schema":
        from peekbench.report.render.json_report import report_schema  # noqa: PLC0415 - for a fast --help

        return report_schema()
    from peekbench.spec.json_schema import broken_plugins, make_schema  # noqa: PLC0415 - for a fast --help

    for message in broken_plugins().values():
        echo(f"warning: left out: {message}", err=True)
    return make_schema()
