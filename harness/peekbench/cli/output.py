"""Options that commands share, options in records, and all that commands print.

Text from data, file names and errors cannot control the terminal, because `echo` and the console of `make_console`
escape control characters.
"""

from __future__ import annotations

import errno
import inspect
import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO, get_type_hints

import typer

from peekbench.errors import PeekbenchError, ResultsError, StoredTrialsError
from peekbench.formatting import shorten, visible_lines
from peekbench.records.data import FLAGS, TableOptions

if TYPE_CHECKING:
    from rich.console import Console


MAX_MESSAGE = 10_000  # characters of an error message or a warning
SUCCESS, ERROR, FAILED, GATED, INTERRUPTED = 0, 2, 3, 4, 130
"""Exit statuses: success, an error that the user can fix, failed trials, a verdict of `--fail-on`, interrupted."""
_is_quiet: ContextVar[bool] = ContextVar("_is_quiet", default=False)
_results: ContextVar[TextIO | None] = ContextVar("_results", default=None)
"""The standard output, while what others print goes to the standard error."""


def describe_error(error: PeekbenchError, arguments: Sequence[str], place: str = "") -> str:
    """Return the message about an error of a command, with the complete command that works if the error knows it."""
    if not isinstance(error, ResultsError | StoredTrialsError) or not error.arguments:
        return f"peekbench: {place}{error}"
    given = list(arguments)
    while "--task" in error.arguments and "--task" in given:  # its tasks replace those that were chosen
        position = given.index("--task")
        del given[position : position + 2]
    return f"peekbench: {place}{error.problem}:\n  {shlex.join(['peekbench', *given, *error.arguments])}"


def exit_status(status: int) -> int:
    """Return the exit status of a command, after its output is flushed.

    Parameters
    ----------
    status
        Status of the command's work.

    Returns
    -------
    int
        The same status, or `ERROR` if the work succeeded but its output is lost for another reason than a reader that
        closed the pipe.
    """
    sys.stdout.flush()
    problem = getattr(sys.stdout, "problem", None)
    if problem is None or problem.errno == errno.EPIPE:
        return status
    echo(
        f"peekbench: cannot write to the standard output: {problem.strerror}; output is missing there, but files and "
        "stores are complete. Redirect the output to another place",
        err=True,
    )
    return status or ERROR


def echo(text: str, *, err: bool = False, end: str = "\n") -> None:
    """Print text with its control characters escaped.

    Parameters
    ----------
    text
        Text to print.
    err
        Print to the standard error; long messages are shortened.
    end
        Text to print after it.
    """
    stream = sys.stderr if err else _results.get() or sys.stdout
    stream.write(visible_lines(shorten(text, MAX_MESSAGE) if err else text) + end)
    stream.flush()


def keep_results_apart() -> None:
    """Send what methods, observers and analyses print in this process to the standard error from now on.

    The standard output then has only what `echo` and consoles print. What worker processes print goes there anyway.
    """
    if _results.get() is None:
        _results.set(sys.stdout)
        sys.stdout = sys.stderr


def restore_stdout() -> None:
    """Undo `keep_results_apart`."""
    if (stdout := _results.get()) is not None:
        sys.stdout = stdout
        _results.set(None)


def be_quiet(quiet: bool = True) -> None:
    """Let `note` and `warn` print nothing from now on, or again if `quiet` is False."""
    _is_quiet.set(quiet)


def note(text: str) -> None:
    """Print what is neither a result nor an error to the standard error, unless `--quiet` is given."""
    if not _is_quiet.get():
        echo(text, err=True)


def warn(text: str) -> None:
    """Print a warning to the standard error, unless `--quiet` is given."""
    note(f"warning: {text}")


def fail(message: str, status: int) -> NoReturn:
    """Print an error message and exit."""
    echo(f"peekbench: {message}", err=True)
    raise typer.Exit(status)


def make_console(*, err: bool = False) -> Console:
    """Return a console that prints to the standard output, or error, and escapes control characters."""
    from peekbench.progress import PrintableConsole  # noqa: PLC0415 - few commands need rich

    return PrintableConsole(stderr=err, file=None if err else _results.get())


def take_records(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command take its options in records: those of a parameter that is a data class are the fields."""
    signature = inspect.signature(function, eval_str=True)
    records: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    parameters = []
    for name, parameter in signature.parameters.items():
        if name not in records:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(records[name], include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in fields(records[name])
        ]

    @wraps(function)
    def call(**values: Any) -> None:
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in fields(record)})
        function(**values)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Name, spec or store of a run.")]
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="YAML spec of an experiment.")]
StoreOption = Annotated[Path | None, typer.Option("--store", metavar="FILE", help="Store. Default: runs/NAME.sqlite.")]
ReportsOption = Annotated[Path, typer.Option("--reports", metavar="FOLDER", help="Folder for reports.")]
WorkersOption = Annotated[int | None, typer.Option("--workers", min=1, help="Override the option `workers`.")]
KeepGoingOption = Annotated[bool, typer.Option("--keep-going", help="Do not stop methods whose first ten trials fail.")]
ChangedCodeOption = Annotated[
    bool,
    typer.Option("--allow-changed-code", help="Resume although the code of a method changed; the report warns of it."),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Delete the stored trials first.")]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Analyze the complete trials if trials are missing.")
]


@dataclass(frozen=True, slots=True)
class TableFlags:
    """Options of commands that read tables of scores of other tools: the fields of `TableOptions` that users set."""

    columns: Annotated[
        list[str] | None,
        typer.Option(
            FLAGS["columns"],
            metavar="COLUMN=TARGET",
            help="Meaning of a column or of an arm, such as seed=subsample or none=base; repeatable.",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option(FLAGS["ignore"], metavar="COLUMN", help="Column to ignore; repeatable.")
    ] = None
    percent: Annotated[bool, typer.Option(FLAGS["percent"], help="Read scores as percentages.")] = False
    independent_tasks: Annotated[
        bool, typer.Option(FLAGS["independent_tasks"], help="Draws of different tasks are independent.")
    ] = False
    region: Annotated[
        float | None, typer.Option(FLAGS["region"], metavar="WIDTH", min=0, help="Largest bias that is negligible.")
    ] = None
    tasks: Annotated[
        list[str] | None, typer.Option(FLAGS["tasks"], metavar="TASK", help="Task to read; repeatable. Default: all.")
    ] = None
    earlier: Annotated[
        list[int] | None,
        typer.Option(
            FLAGS["earlier"],
            metavar="NUMBER",
            min=1,
            help="Subsamples per task at an earlier analysis of a table that grew; repeatable, ascending.",
        ),
    ] = None

    def read(self) -> TableOptions:
        """Return how to read the table."""
        given: dict[str, Any] = {option.name: getattr(self, option.name) for option in fields(self)}
        given["columns"] = _parse_mapping(self.columns or ())
        return TableOptions(**{name: value for name, value in given.items() if value is not None})


def _parse_mapping(arguments: Iterable[str]) -> dict[str, str]:
    """Return the mapping of columns that arguments such as 'seed=subsample' give."""
    mapping: dict[str, str] = {}
    for argument in arguments:
        source, _, target = (part.strip() for part in argument.rpartition("="))
        if not source or not target:
            raise ResultsError(f"--map {argument}: not a mapping; write COLUMN=TARGET, such as seed=subsample")
        if mapping.setdefault(source, target) != target:
            raise ResultsError(f"--map names two targets for the column {source!r}; name one")
    return mapping
