"""The application: its commands by name, each in a module that is imported when the command runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from peekbench.cli.added import find_commands, load_command, summarize_command
from peekbench.cli.output import echo, restore_stdout

COMMANDS = {
    "quickstart": ("run.quickstart", "Write quickstart.yaml, a spec to start from, and run it."),
    "validate": ("validate.validate", "Check specs, and whether the data suffice for the design."),
    "plan": ("plan.plan", "Estimate the work of a spec on this machine before a run."),
    "run": ("run.run", "Run a spec, or resume its run, and write the report."),
    "watch": ("watch.watch", "Watch a run that is going on."),
    "audit": ("analyze.audit", "Audit the tasks' data with the audits of SPEC, without a run."),
    "analyze": ("analyze.analyze", "Analyze the scores of a run or of any other tool."),
    "report": ("analyze.report", "Write the report of a run again, from its store."),
    "compare": ("analyze.compare", "Compare two runs."),
    "leaderboard": ("analyze.leaderboard", "Rank the methods of runs by their uncontaminated score."),
    "show": ("show.show", "Show what the installed plugins offer, or one entry."),
    "worker": ("cluster.worker", "Run one shard of a spec in a job of a batch cluster."),
    "merge": ("cluster.merge", "Put the results of shards into the store of a spec."),
    "backup": ("store.backup", "Copy the store of a run into one file."),
    "check-store": ("store.check_store", "Check the store of a run."),
}
"""Function and summary of each command of the core."""
GROUPS = {
    "Run": ("quickstart", "validate", "plan", "run", "watch", "audit"),
    "Read": ("analyze", "report", "compare", "leaderboard", "import"),
    "Write plugins": ("show", "new", "check"),
    "Clusters": ("worker", "merge", "backup", "check-store"),
}
"""Headings of `--help`, with the commands of peekbench below each, also of those that its libraries add."""
ADDED = "Added by other packages"
"""Heading of all other commands."""


class _Commands(Mapping[str, Any]):
    """The commands by name, also those that packages add; one is imported when it is taken."""

    def __getitem__(self, name: str) -> Any:
        if name in COMMANDS:
            module, _, attribute = COMMANDS[name][0].partition(".")
            function = getattr(import_module(f"peekbench.cli.{module}"), attribute)
        elif name in find_commands():
            function = load_command(name)
        else:
            raise KeyError(name)
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(function)
        return typer.main.get_command(single)

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys([*COMMANDS, *find_commands()])

    def __len__(self) -> int:
        return len(list(iter(self)))


class _Group(TyperGroup):
    """Takes the commands from their modules, and lists them below their headings."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Commands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        known = set(self.commands)
        sections = {heading: [name for name in names if name in known] for heading, names in GROUPS.items()}
        sections[ADDED] = sorted(known - {name for names in GROUPS.values() for name in names})
        for heading, names in sections.items():
            if names:
                with formatter.section(heading):
                    formatter.write_dl([(name, _summarize(name)) for name in names])


def _summarize(name: str) -> str:
    """Return the first paragraph about a command, without importing its module."""
    if name in COMMANDS:
        return COMMANDS[name][1]
    return " ".join(summarize_command(name).partition("\n\n")[0].split())


app = typer.Typer(
    name="peekbench",
    cls=_Group,
    help="Measure whether adapting to the unlabeled test texts inflates a method's score.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version  # noqa: PLC0415 - only this option needs it

        echo(version("peekbench"))
        raise typer.Exit


@app.callback()
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that precede a command."""
    context.call_on_close(restore_stdout)
