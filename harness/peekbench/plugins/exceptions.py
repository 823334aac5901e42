"""Turns exceptions that the code of a plugin raises into errors of one line: the problem, its place, and the remedy."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from peekbench.errors import PeekbenchError, PluginError
from peekbench.formatting import shorten
from peekbench.plugins.local_code import is_installed
from peekbench.plugins.names import Code
from peekbench.plugins.protocols import Options

CORE = Path(__file__).resolve().parents[1]
MAX_MESSAGE = 500  # characters of the exception's message


@contextmanager
def one_line_errors(caller: str, use: str, options: Options | None = None) -> Iterator[None]:
    """Raise a `PluginError` instead of exceptions that no user of the plugin can interpret.

    Raises
    ------
    PluginError
        For any exception but a `PeekbenchError`. It is the cause of the error, with its traceback.

    Examples
    --------
    >>> from peekbench.errors import PluginError
    >>> try:
    ...     with one_line_errors("data source my_file.py:load", "my_file.py:load"):
    ...         {}["column"]
    ... except PluginError as error:
    ...     print(str(error).partition(" (")[0])
    data source my_file.py:load: KeyError: 'column'
    """
    try:
        yield
    except PeekbenchError:
        raise
    except Exception as error:
        raise PluginError(
            f"{caller}: {describe_exception(error)}; `{check_command(use, options)} --traceback` prints the traceback"
        ) from error


def describe_exception(error: BaseException, caller: Path = CORE) -> str:
    """Return the type, the message and the place of an exception: where the user's code raised it, if it did.

    Places in the core and in the folder of the caller are left out.
    """
    described = f"{type(error).__name__}: {' '.join(shorten(str(error), MAX_MESSAGE).split())}".removesuffix(": ")
    if place := find_place(error, caller=caller) or find_place(error, caller=caller, is_own=False):
        described += f" ({place})"
    return described


def find_place(error: BaseException, *, caller: Path = CORE, is_own: bool = True) -> str:
    """Return the innermost place outside of the core and the libraries, or the outermost outside of the core."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not {CORE, caller} & set(Path(frame.filename).resolve().parents)
    ]
    if is_own:
        frames = [frame for frame in frames[::-1] if Path(frame.filename).is_absolute()]
        frames = [frame for frame in frames if not is_installed(Path(frame.filename))]
    for frame in frames:
        place = f"{_relative(Path(frame.filename))}, line {frame.lineno}"
        if frame.name.startswith("<"):
            return place
        return f"{place}, in {frame.name}"
    return ""


def _relative(path: Path) -> Path:
    """Return a path from the working folder on, if it is in there."""
    if path.is_relative_to(Path.cwd()):
        return path.relative_to(Path.cwd())
    return path


def check_command(use: str, options: Options | None = None) -> str:
    """Return the command that checks an entry.

    Examples
    --------
    >>> check_command("classic.lsa")
    'peekbench check classic.lsa'
    """
    if isinstance(use, Code) and use.path:  # relative to the folder of a spec, but commands start at the working folder
        use = f"{_relative(use.path)}:{use.rpartition(':')[2]}"
    command = f"peekbench check {quote(use)}"
    if options and (values := options.model_dump(mode="json", exclude_defaults=True)):
        command += f" --options {quote(json.dumps(values))}"
    return command
