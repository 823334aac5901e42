"""The program `peekbench`: its commands by name, exit statuses, and signals such as that of Ctrl-C.

Exit statuses: 0 success, 2 an error that the user can fix, 3 failed trials, 4 a verdict that `--fail-on` names, and 128
plus the number of the signal that ended the command, such as 130 for Ctrl-C.

A command is a function for typer in a module, which is imported when the command runs, and a row of `COMMANDS`.
Installed packages add commands as entry points of the group `peekbench.commands`.
"""

from __future__ import annotations

import ast
import atexit
import gc
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from peekbench.cli import output
from peekbench.cli.output import echo, restore_stdout
from peekbench.errors import PeekbenchError, RunWarning
from peekbench.plugins.names import OF_FEW, find_nearest
from peekbench.standard_streams import protect_streams

COMMANDS = {
    "quickstart": ("run.quickstart", "Write quickstart.yaml, a spec to start from, and run it."),
    "validate": ("validate.validate", "Check specs, and whether the data suffice for the design."),
    "plan": ("plan.plan", "Estimate the work of a spec on this machine before a run."),
    "run": ("run.run", "Run a spec, or resume its run, and write the report."),
    "analyze": ("analyze.analyze", "Analyze the scores of a run or of any other tool."),
    "report": ("analyze.report", "Write the report of a run again, from its store."),
    "compare": ("analyze.compare", "Rank the methods of runs by their uncontaminated score."),
    "show": ("show.show", "Show what the installed plugins offer, or one entry."),
}
"""Function and summary of each command of the core."""
GROUPS = {
    "Run": ("quickstart", "validate", "plan", "run"),
    "Read": ("analyze", "report", "compare", "import"),
    "Write plugins": ("show", "new", "check"),
}
"""Headings of `--help`, with the commands of peekbench below each, also of those that its libraries add."""
MEANT = {"list": "show", "ls": "show", "init": "quickstart", "resume": "run", "version": "--version"}
"""Commands of other programs that are spelled differently here."""
ADDED = "Added by other packages"
"""Heading of all other commands."""

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals of Ctrl-C, of batch systems, and of a terminal that closes."""
SHUTDOWN_SECONDS = 3.0
"""Time in which a command ends after a signal; it ignores further signals until then."""
GARBAGE_THRESHOLD = 50_000
"""New objects after which the interpreter looks for garbage: the default, 700, triggers hundreds of collections during
imports."""


@cache
def find_commands() -> Mapping[str, EntryPoint]:
    """Find the commands that packages add, without importing them."""
    return {point.name: point for point in sorted(entry_points(group="peekbench.commands"))}


def summarize_command(name: str) -> str:
    """Read the docstring of a command from its source, so that `peekbench --help` imports no module of a package."""
    point = find_commands()[name]
    spec = find_spec(point.module)
    if spec is None or spec.origin is None:
        return ""
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == point.attr:
            return ast.get_docstring(node) or ""
    return ""


class _Commands(Mapping[str, Any]):
    """The commands by name, also those that packages add; one is imported when it is taken."""

    def __getitem__(self, name: str) -> Any:
        if name in COMMANDS:
            module, _, attribute = COMMANDS[name][0].partition(".")
            function = getattr(import_module(f"peekbench.cli.{module}"), attribute)
        elif name in find_commands():
            function = find_commands()[name].load()
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

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in self.commands:
            near = MEANT.get(args[0]) or find_nearest(args[0], self.commands, OF_FEW) or "--help"
            raise PeekbenchError(f"no command {args[0]!r}; try `peekbench {near}`")
        return super().resolve_command(ctx, args)

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
def take_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that precede a command."""
    context.call_on_close(restore_stdout)


class _Interrupt(KeyboardInterrupt):
    """Ends a command after a signal.

    A class of its own, because `python -m peekbench` exits with the status of SIGINT after a plain KeyboardInterrupt
    that passed through `exec`, which the standard library uses to make data classes, even if it was caught.
    """


class _Signals:
    """Lets signals end this process in the same way as Ctrl-C, and ignores those that follow at once."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self._last = -math.inf
        self._is_running = True

    def start(self) -> None:
        """Handle signals from now on."""
        _handle_signals(self._interrupt)

    def _interrupt(self, number: int, frame: object) -> None:
        self.received.append(number)
        if self._is_running and time.monotonic() - self._last > SHUTDOWN_SECONDS:
            self._last = time.monotonic()
            raise _Interrupt

    def stop(self) -> None:
        """Let signals interrupt nothing more."""
        self._is_running = False


def _handle_signals(handler: Callable[[int, object], object] | signal.Handlers) -> None:
    for number in SIGNALS:
        # `nohup` and shells ignore signals on purpose for the commands that they start in the background.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Print warnings to users in one line, without a place in the source code."""
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: object) -> None:
            if issubclass(category, RunWarning):
                output.note(f"peekbench: warning: {message}")
            else:
                show_other(message, category, *place)  # type: ignore[arg-type]

        warnings.showwarning = show  # type: ignore[assignment]
        warnings.simplefilter("always", RunWarning)
        yield


def run_command() -> int:
    """Run the command of `sys.argv` and return its exit status."""
    output.be_quiet(False)
    try:
        with _plain_warnings():
            app()
    except PeekbenchError as error:
        echo(output.describe_error(error, sys.argv[1:]), err=True)
        return output.ERROR
    except MemoryError:
        echo("peekbench: the memory is full; close other programs, raise its limit, or use less data", err=True)
        return output.ERROR
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or output.SUCCESS
        echo(f"peekbench: {ended.code}", err=True)
        return output.ERROR
    return output.SUCCESS


def main() -> None:
    """Run the command `peekbench` and end the process."""
    gc.set_threshold(GARBAGE_THRESHOLD)
    protect_streams()
    atexit.register(_handle_signals, signal.SIG_IGN)  # the interpreter restores other handlers before it ends
    signals = _Signals()
    try:
        signals.start()
        status = output.exit_status(run_command())
        signals.stop()
    except KeyboardInterrupt:
        status = output.INTERRUPTED
        signals.stop()
    if status == output.INTERRUPTED and signals.received:
        status = 128 + signals.received[0]
    _handle_signals(lambda *_: os._exit(status))  # the command has ended; what is left can take long, such as threads
    gc.freeze()  # the interpreter would search all objects for garbage, a sixth of the time of a short command
    sys.exit(status)
