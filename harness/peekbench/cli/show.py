"""The command that shows what plugins offer, and the schemas of specs and reports."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from peekbench.cli.catalog import HEADINGS, describe, list_lines
from peekbench.cli.output import echo
from peekbench.report.render.json_report import report_schema
from peekbench.spec.components import parse_options
from peekbench.spec.json_schema import broken_plugins, make_schema


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
        str | None,
        typer.Option(help="Options to load the data of a task with, as YAML: '{path: reviews.csv}'."),
    ] = None,
) -> None:
    """Show what the installed plugins offer, or one entry with its options; for a task also texts and a prompt.

    Example: peekbench show hf.trec
    """
    if name in ("spec-schema", "report-schema"):
        echo(json.dumps(_schema(name), indent=1, sort_keys=True))
        return
    if name in HEADINGS:
        for line in list_lines(name):
            echo(line)
        return
    given = None
    if options is not None:
        given = parse_options(options)
    paragraphs = describe(name, given)
    echo(next(paragraphs))
    for paragraph in paragraphs:
        echo(f"\n{paragraph}")


def _schema(name: str) -> dict[str, Any]:
    if name == "report-schema":
        return report_schema()

    for message in broken_plugins().values():
        echo(f"warning: left out: {message}", err=True)
    return make_schema()
