"""Commands that show plugins and what they offer, texts, and schemas."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Optional

import typer

from peekbench.cli.app import app, load_any
from peekbench.cli.output import echo, make_console
from peekbench.cli.plugin_option import PluginOption
from peekbench.errors import PeekbenchError


@app.command()
def describe(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="Specs, or names or stores of runs.")],
    plugin: PluginOption = None,
) -> None:
    """Describe the tasks' texts as the design draws them: lengths, tokens, duplicates between train, extra and test.

    Example: peekbench describe specs/quickstart.yaml
    """
    from peekbench.data.text_statistics import describe_texts  # noqa: PLC0415 - for a fast --help
    from peekbench.report import render_tables, text_tables  # noqa: PLC0415 - for a fast --help

    for path in specs:
        experiment = load_any(path)
        tables = text_tables({task.name: describe_texts(experiment, task) for task in experiment.tasks})
        render_tables(tables, make_console())


@app.command("list")
def list_things(
    heading: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="Kind of entries, such as tasks or methods; 'plugins' for the plugins, or 'all'."
        ),
    ] = "all",
    plugin: PluginOption = None,
) -> None:
    """List what the installed plugins offer.

    Example: peekbench list methods
    """
    from peekbench.cli.catalog import list_lines  # noqa: PLC0415 - for a fast --help

    for line in list_lines(heading):
        echo(line)


@app.command()
def show(
    use: Annotated[str, typer.Argument(metavar="PLUGIN.THING", help="Name as in a spec's `use`.")],
    options: Annotated[
        Optional[str],  # noqa: UP045 - typer evaluates the annotation
        typer.Option(help="Options to load the data of a task with, as YAML: '{path: reviews.csv}'."),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Show an entry of a plugin, such as a task or a method, with its options; for a task also texts and a prompt.

    Example: peekbench show hf.trec
    """
    from peekbench.cli.catalog import describe  # noqa: PLC0415 - for a fast --help
    from peekbench.cli.inputs import refuse_run  # noqa: PLC0415 - for a fast --help
    from peekbench.plugins.entry_names import split_name  # noqa: PLC0415 - for a fast --help
    from peekbench.plugins.registry import is_known  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.options import parse_options  # noqa: PLC0415 - for a fast --help

    if not is_known(split_name(use)[0]):
        refuse_run(use)
    for number, paragraph in enumerate(describe(use, None if options is None else parse_options(options))):
        echo(("\n" if number else "") + paragraph)


@app.command()
def schema(
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="File to write, instead of printing."),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Print the schema of report.json instead.")] = False,
    plugin: PluginOption = None,
) -> None:
    """Print the JSON schema of specs, with the options of all installed plugins.

    Example: peekbench schema -o specs/schema.json
    """
    import json  # noqa: PLC0415 - for a fast --help

    from peekbench.cache import atomic_write  # noqa: PLC0415 - for a fast --help

    if report:
        from peekbench.report.render.json_report import report_schema  # noqa: PLC0415 - for a fast --help

        content = report_schema()
    else:
        from peekbench.spec.json_schema import broken_plugins, make_schema  # noqa: PLC0415 - for a fast --help

        for message in broken_plugins().values():
            echo(f"warning: left out: {message}", err=True)
        content = make_schema()
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    if output is None:
        echo(text, end="")
        return
    try:
        is_replaced = output.is_file() or not output.exists()  # a device or a pipe must stay what it is
        with atomic_write(output) if is_replaced else nullcontext(output) as file:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PeekbenchError(f"cannot write {output}: {error.strerror or error}; choose another path") from error
