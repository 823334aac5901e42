"""Commands that show what there is: plugins, things, texts, schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from peekbench.cli.app import FAILED, app, load, make_console
from peekbench.errors import PeekbenchError


@app.command()
def describe(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML files.")],
) -> None:
    """Describe the tasks' texts as the design draws them: lengths, tokens, duplicates between train, extra and test.

    Example: peekbench describe specs/quickstart.yaml
    """
    from peekbench.data.text_statistics import describe_texts
    from peekbench.report import render_tables, text_tables

    for path in specs:
        experiment = load(path)
        tables = text_tables({task.name: describe_texts(experiment, task) for task in experiment.tasks})
        render_tables(tables, make_console())


@app.command("list")
def list_things(
    what: Annotated[str, typer.Argument(help="all, plugins, tasks, methods, analyses, audits or executors.")] = "all",
) -> None:
    """List what the installed plugins offer.

    Example: peekbench list methods
    """
    from peekbench.cli.catalogue import list_plugins, list_tasks, list_things

    lines = list_plugins() if what == "plugins" else list_tasks() if what == "tasks" else list_things(what)
    for line in lines:
        typer.echo(line)


@app.command()
def show(
    use: Annotated[str, typer.Argument(metavar="PLUGIN.THING", help="As in a spec's `use`.")],
    options: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Of a task: load its data with these, as YAML: '{path: reviews.csv}'."),
    ] = None,
) -> None:
    """Show one task, method, analysis, audit or executor with its options; of a task also texts and a prompt.

    Example: peekbench show hf.trec
    """
    from peekbench.cli.catalogue import describe
    from peekbench.spec.components import parse_options

    for number, paragraph in enumerate(describe(use, None if options is None else parse_options(options))):
        typer.echo(("\n" if number else "") + paragraph)


@app.command()
def check(
    use: Annotated[str, typer.Argument(metavar="PLUGIN.METHOD", help="As in a spec's `use`.")],
    options: Annotated[str, typer.Option(help="The method's options as YAML: '{num_components: 5}'.")] = "{}",
) -> None:
    """Check that a method keeps its contract: seeds, invariances, base arm, light import.

    Example: peekbench check classic.lsa --options '{num_components: 5}'
    """
    from peekbench.spec.components import parse_options
    from peekbench.testing import check_method

    outcomes = check_method(use, parse_options(options))
    for outcome in outcomes:
        typer.echo(f"{'passed' if outcome.passed else 'FAILED'}  {outcome.name}")
        if not outcome.passed:
            typer.echo(f"        {outcome.message}")
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(FAILED)


@app.command()
def schema(
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="Write it there instead of printing it."),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="That of report.json instead.")] = False,
) -> None:
    """Write the JSON schema of specs, options of the installed plugins included; or that of reports.

    Example: peekbench schema -o specs/schema.json
    """
    import json

    if report:
        from peekbench.report.render.json_schema import report_schema

        content = report_schema()
    else:
        from peekbench.spec.json_schema import broken_plugins, make_schema

        for message in broken_plugins().values():
            typer.echo(f"left out: {message}", err=True)
        content = make_schema()
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise PeekbenchError(f"cannot write {output}: {error.strerror}; choose another place") from error


@app.command()
def version() -> None:
    """Print the version.

    Example: peekbench version
    """
    from importlib.metadata import version as version_of

    typer.echo(version_of("peekbench"))
