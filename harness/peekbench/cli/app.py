"""The application that commands are registered with, and the options and helpers that commands share."""

from __future__ import annotations

import inspect
from copy import copy
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Optional, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command_name
from typer.models import CommandInfo

from peekbench.cli.added import find_commands, load_command, summarize_command
from peekbench.cli.output import echo, restore_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peekbench.spec.experiment import ExperimentSpec

GROUPS = {
    "Run": ("quickstart", "validate", "plan", "run", "watch", "audit"),
    "Read": ("analyze", "report", "compare", "leaderboard", "import"),
    "Write plugins": ("show", "new", "check"),
    "Clusters": ("worker", "merge", "backup", "check-store"),
}
"""Headings of `--help`, with the commands of peekbench below each, also of those that its libraries add."""
ADDED = "Added by other packages"
"""Heading of all other commands."""


class _Group(TyperGroup):
    """Lists the commands below their headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections = {heading: [name for name in names if name in self.commands] for heading, names in GROUPS.items()}
        sections[ADDED] = sorted(self.commands.keys() - {name for names in GROUPS.values() for name in names})
        limit = formatter.width - 6 - max(map(len, self.commands))
        for heading, names in sections.items():
            if names:
                with formatter.section(heading):
                    formatter.write_dl([(name, self.commands[name].get_short_help_str(limit)) for name in names])


app = typer.Typer(
    name="peekbench",
    cls=_Group,
    help="Measure whether adapting to the unlabeled test texts inflates a method's score.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def select(arguments: Sequence[str]) -> typer.Typer:
    """Return the application with only the command that the arguments name, or else with all commands.

    Typer inspects the parameters of every command that it has before it calls one.
    """
    selected = copy(app)
    name = arguments[0] if arguments else ""
    if of_core := [command for command in app.registered_commands if _name_of(command) == name]:
        selected.registered_commands = of_core
    elif name in find_commands():
        selected.registered_commands = [CommandInfo(name, callback=load_command(name))]
    else:
        names = {_name_of(command) for command in app.registered_commands}
        for other in find_commands().keys() - names:
            listed = CommandInfo(other, callback=_do_nothing, help=summarize_command(other))
            selected.registered_commands = [*selected.registered_commands, listed]
    return selected


def _do_nothing() -> None:
    """Stand for the function of a command that is only listed."""


def _name_of(command: CommandInfo) -> str:
    return command.name or get_command_name(command.callback.__name__ if command.callback else "")


def take_records(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command take its options in records: those of a parameter that is a data class are the fields."""
    signature = inspect.signature(function, eval_str=True)
    records: dict[str, Any] = {
        name: each.annotation for name, each in signature.parameters.items() if is_dataclass(each.annotation)
    }
    parameters = []
    for name, parameter in signature.parameters.items():
        if name not in records:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(records[name], include_extras=True)
        parameters += [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name]
            )
            for each in fields(records[name])
        ]

    @wraps(function)
    def call(**values: Any) -> None:
        for name, record in records.items():
            values[name] = record(**{each.name: values.pop(each.name) for each in fields(record)})
        function(**values)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def complete_runs(incomplete: str) -> list[str]:
    """Return the names of the stored runs that complete the beginning of an argument; if none does, files do."""
    names = (path.stem for path in Path("runs").glob("*.sqlite"))
    return sorted(name for name in names if name.startswith(incomplete))


RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", autocompletion=complete_runs, help="Name, spec or store of a run.")
]
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="YAML spec of an experiment.")]
StoreOption = Annotated[
    Optional[Path],  # noqa: UP045 - typer evaluates the annotation
    typer.Option("--store", metavar="FILE", help="Store of the run. Default: runs/NAME.sqlite."),
]
ReportsOption = Annotated[Path, typer.Option("--reports", metavar="FOLDER", help="Folder for reports.")]
WorkersOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--workers", min=1, help="Override the executor's option `workers`. It changes no number."),
]
KeepGoingOption = Annotated[
    bool, typer.Option("--keep-going", help="Try all trials of a method even if its first ten fail alike.")
]
ChangedCodeOption = Annotated[
    bool,
    typer.Option(
        "--allow-changed-code",
        help="Go on although the code of a method changed; the report warns that versions are mixed.",
    ),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Delete the trials of an earlier run of the same name.")]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Analyze the complete trials if trials are missing.")
]


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        from importlib.metadata import version  # noqa: PLC0415 - for a fast --help

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


def load(path: Path, workers: int | None = None) -> ExperimentSpec:
    """Load a spec, with another number of workers if one is given."""
    from peekbench.cli.inputs import find_spec  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.experiment import load_spec  # noqa: PLC0415 - for a fast --help

    return _set_workers(load_spec(find_spec(path)), workers)


def load_any(argument: Path, workers: int | None = None) -> ExperimentSpec:
    """Load a spec, or that of a run which is given by its name or its store."""
    from peekbench.cli.inputs import load_experiment  # noqa: PLC0415 - for a fast --help

    return _set_workers(load_experiment(argument), workers)


def _set_workers(spec: ExperimentSpec, workers: int | None) -> ExperimentSpec:
    return spec if workers is None else spec.with_executor_options(workers=workers)


def run_path(run: str) -> Path:
    """Return the store of a run that is given by its name, its spec or its store."""
    from peekbench.cli.inputs import find_store  # noqa: PLC0415 - for a fast --help

    return find_store(run)


def scores_path(source: str | Path) -> Path:
    """Return the store of a run, as `run_path` does, or the path of a file or folder of scores."""
    from peekbench.cli.inputs import find_scores  # noqa: PLC0415 - for a fast --help

    return find_scores(str(source))


def fail(message: str, status: int) -> NoReturn:
    """Print an error message and exit."""
    echo(f"peekbench: {message}", err=True)
    raise typer.Exit(status)
