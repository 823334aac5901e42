"""The boundary to code of plugins and users: every call of such code goes through it.

A call passes arguments by name, checks the type of what comes back, and raises an error that names the called code if
that code raises an exception or ends the process.
"""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from peekbench.errors import ContractError, PeekbenchError, PluginError
from peekbench.formatting import shorten
from peekbench.plugins.local_code import is_installed
from peekbench.plugins.names import Code, Reference, resolve
from peekbench.plugins.protocols import Options

CORE = Path(__file__).resolve().parents[1]
NONE_IN_BASE = "in the arm base, `unlabeled` is None"
"""Note to an exception about None there, which its message repeats."""
MAX_MESSAGE = 500  # characters of the exception's message
NOT_FAILURES = (PeekbenchError, KeyboardInterrupt, GeneratorExit, MemoryError)
"""Exceptions that a call lets through: they have a message or a handler of their own."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """Code of a plugin or a user, as errors name it.

    Examples
    --------
    >>> from peekbench.errors import PluginError
    >>> source = Foreign("data source my_file.py:load", "my_file.py:load")
    >>> try:
    ...     source.call({}.popitem)
    ... except PluginError as error:
    ...     print(str(error).partition(";")[0])
    data source my_file.py:load: KeyError: 'popitem(): dictionary is empty'
    """

    name: str
    """Kind and name, such as 'analysis my_file.py:analyze'."""
    use: str = ""
    """Name in specs, for the command that checks the plugin; empty if there is none."""
    options: Options | None = None
    """Options of the call, for the same command."""

    def call(
        self,
        function: Callable[..., Any],
        arguments: Mapping[str, Any] | None = None,
        returns: type[Any] = object,
        **keywords: Any,
    ) -> Any:
        """Call a function.

        Parameters
        ----------
        function
            Function, or a reference to it.
        arguments
            Arguments that the function may also take by position, by name, in the order of the protocol.
        returns
            Type that it must return.
        **keywords
            Arguments that it takes by name only.

        Raises
        ------
        PluginError
            If the function raises an exception or ends the process. The exception is the cause of the error.
        ContractError
            If its parameters have the names of the arguments in another order, or it returns another type.
        """
        if isinstance(function, Reference):
            function = resolve(function.target)
        positional, named = self.bind(function, arguments or {})
        with self.guard():
            result = function(*positional, **named, **keywords)
        if not isinstance(result, returns):
            raise ContractError(f"{self.name} returned a {type(result).__name__}; return {_public_name(returns)}")
        return result

    def bind(
        self, function: Callable[..., Any], arguments: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Return arguments by position and by name: by name if the function has all of the names.

        Examples
        --------
        >>> Foreign("grader mine").bind(lambda reference, answer: 0, {"answer": "7", "reference": "8"})
        ((), {'answer': '7', 'reference': '8'})
        """
        names, takes_all = _parameter_names(function)
        known = [name for name in arguments if name in names]
        if takes_all or len(known) == len(arguments):
            return (), arguments
        order = list(arguments)
        if any(names.index(name) != order.index(name) for name in known):
            wanted = ", ".join(f"`{name}`" for name in order)
            raise ContractError(f"{self.name} has the parameters {', '.join(names)}; name them {wanted}, in any order")
        return tuple(arguments.values()), {}

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Raise a `PluginError` for exceptions of the block, and if it ends the process."""
        try:
            yield
        except NOT_FAILURES:
            raise
        except BaseException as error:  # also the panic of a Rust library
            raise PluginError(f"{self.name}: {describe_exception(error)}; {self._remedy(error)}") from error

    def _remedy(self, error: BaseException) -> str:
        if isinstance(error, SystemExit):
            return "return a value or raise an exception instead of ending the process"
        if self.use:
            return f"`{check_command(self.use, self.options)}` prints the traceback"
        return "correct this code"


def _parameter_names(function: Callable[..., Any]) -> tuple[list[str], bool]:
    """Return the names of the parameters that can be passed by name, and whether the function takes all others so."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [], False
    names = [item.name for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
    kinds = {item.kind for item in parameters}
    takes_all = inspect.Parameter.VAR_KEYWORD in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds
    return names, takes_all


def _public_name(kind: type[Any]) -> str:
    """Return the name under which plugins import a type."""
    if kind.__name__ in ("Analysis", "Dataset", "Predictor"):
        return f"peekbench.{kind.__name__}"
    if kind.__module__.partition(".")[0] == "peekbench":
        return f"peekbench.records.{kind.__name__}"
    return f"a value of type {kind.__name__}"


def describe_failure(error: BaseException, note: str) -> tuple[str, str]:
    """Return a line and the traceback of an exception, for a store; `note` tells where it was raised."""
    error.add_note(note)
    message = f"{type(error).__name__}: {error}"
    if place := find_place(error):
        message += f" ({place})"
    if NONE_IN_BASE in error.__notes__:
        message += f"; {NONE_IN_BASE}"
    return message, "".join(traceback.format_exception(error))


def describe_exception(error: BaseException, caller: Path = CORE) -> str:
    """Return the type, the message and the place of an exception: where the user's code raised it, if it did.

    Places in the core and in the folder of the caller are left out.
    """
    described = f"{type(error).__name__}: {' '.join(shorten(str(error), MAX_MESSAGE).split())}".removesuffix(": ")
    if place := find_place(error, caller):
        described += f" ({place})"
    return described


def find_place(error: BaseException, caller: Path = CORE) -> str:
    """Return the innermost place outside of the core, the caller and the libraries; empty if there is none."""
    for frame in traceback.extract_tb(error.__traceback__)[::-1]:
        path = Path(frame.filename)
        is_own = path.is_absolute() and not {CORE, caller} & set(path.resolve().parents) and not is_installed(path)
        if is_own and frame.name.startswith("<"):
            return f"{_relative(path)}, line {frame.lineno}"
        if is_own:
            return f"{_relative(path)}, line {frame.lineno}, in {frame.name}"
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
