"""Errors that tell a user what is wrong, where, and what to do about it.

The command line prints a `PeekbenchError` without a traceback and exits with status 2. An exception in the code of a
plugin or a user becomes a `PluginError` that says where in the code it was raised; that of a fit is stored with its
traceback. Any other exception is a defect of peekbench and keeps its traceback.

In Python, the traceback of a `PeekbenchError` ends at the call of a public function. The exception that caused it is
`error.__context__`, with its own traceback; in Python's development mode (`python -X dev`), nothing is left out.

    PeekbenchError
    ├── SpecError
    ├── PluginError
    ├── DataError
    ├── StoreError
    │   └── StoredTrialsError
    ├── ResultsError
    ├── HostError
    └── ContractError

    RunWarning
"""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

CORE = f"{Path(__file__).parent}{os.sep}"


class PeekbenchError(Exception):
    """Base class of all errors that the input or the machine causes, not the code.

    Examples
    --------
    >>> import peekbench
    >>> try:
    ...     peekbench.load_spec("missing.yaml")
    ... except peekbench.PeekbenchError as error:
    ...     print(error)
    cannot read the spec missing.yaml: No such file or directory; give the path of a YAML file in UTF-8
    """

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class SpecError(PeekbenchError):
    """A spec that cannot be read, or does not match the plugins that it names.

    Examples
    --------
    >>> import peekbench as pb
    >>> try:
    ...     pb.run({"name": "small", "tasks": ["docstrings.numpy"], "metods": ["classic.lsa"]})
    ... except pb.PeekbenchError as error:
    ...     print(type(error).__name__, "metods" in str(error))
    SpecError True
    """


class PluginError(PeekbenchError):
    """A plugin that is missing, cannot be imported, registers wrong entries, or whose code raises an exception.

    Examples
    --------
    >>> import peekbench as pb
    >>> try:
    ...     pb.measure(print, tasks=["docstrings.numpy"])
    ... except pb.PeekbenchError as error:
    ...     print(type(error).__name__)
    PluginError
    """


class DataError(PeekbenchError):
    """Data that cannot be loaded, or has too few rows for a design.

    Examples
    --------
    >>> import peekbench
    >>> raise peekbench.DataError("reviews.csv has no column 'text'; name the column in options.text")
    Traceback (most recent call last):
    peekbench.errors.DataError: reviews.csv has no column 'text'; name the column in options.text
    """


class HostError(PeekbenchError):
    """A machine that differs from the main process of a run, or lacks what the run needs.

    Examples
    --------
    >>> raise HostError("node-7 has numpy 2.0, and the main process has 2.1")
    Traceback (most recent call last):
    peekbench.errors.HostError: node-7 has numpy 2.0, and the main process has 2.1
    """


class StoreError(PeekbenchError):
    """A run's store that is damaged, locked, not writable, or not a peekbench store.

    Examples
    --------
    >>> raise StoreError("store runs/tapt.sqlite: no such file; `peekbench run SPEC` creates one")
    Traceback (most recent call last):
    peekbench.errors.StoreError: store runs/tapt.sqlite: no such file; `peekbench run SPEC` creates one
    """


class StoredTrialsError(StoreError):
    """Stored trials that a run must not extend, but can delete to start again.

    Examples
    --------
    >>> print(StoredTrialsError("the seed has changed. Give the spec another name"))
    the seed has changed. Give the spec another name, or delete the stored trials with fresh=True
    """

    arguments = ("--fresh",)
    """Arguments with which the command of the run deletes the trials."""

    @property
    def problem(self) -> str:
        """Problem, place and remedy, without the arguments."""
        return f"{self.args[0]}, or delete the stored trials"

    def __str__(self) -> str:
        """Return the problem, and the argument of functions."""
        return f"{self.problem} with fresh=True"


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that an error names, as users of the command line and of Python write it.

    Examples
    --------
    >>> error = ResultsError("4 trials are missing; use ", Argument("--allow-incomplete", "allow_incomplete=True"))
    >>> print(error.in_python())
    4 trials are missing; use allow_incomplete=True
    """

    command: str
    """As the command line takes it."""
    python: str
    """As functions take it."""

    def __str__(self) -> str:
        """Return the argument of the command line."""
        return self.command


class ResultsError(PeekbenchError):
    """A results table that is malformed, or lacks trials.

    Parameters
    ----------
    *parts
        Problem, place and remedy: parts of a text, of which some are an `Argument`.
    added
        `TableOptions` that make the command work, if they are added to it.

    Examples
    --------
    >>> import pandas as pd, peekbench as pb
    >>> try:
    ...     pb.analyze(pd.DataFrame({"task": ["news", "news"], "extra": [0.71, 0.73]}))
    ... except pb.PeekbenchError as error:
    ...     print(type(error).__name__)
    ResultsError
    """

    def __init__(self, *parts: str | Argument, added: Any = None) -> None:
        super().__init__(*parts)
        self.added = added
        """Options that make the command work; None if none are known."""

    @property
    def problem(self) -> str:
        """Problem, place and remedy, without the options."""
        return "".join(map(str, self.args))

    @property
    def arguments(self) -> list[str]:
        """The options as arguments of the command line."""
        if self.added is None:
            return []
        return [*self.added.arguments()]

    def __str__(self) -> str:
        """Return the problem, and the arguments in a line of their own."""
        if not self.arguments:
            return self.problem
        return f"{self.problem}:\n  {shlex.join(self.arguments)}"

    def in_python(self, given: Any = None) -> ResultsError:
        """Return the error with arguments of functions.

        Parameters
        ----------
        given
            `TableOptions` that the failed call has, which one that works must have as well.
        """
        problem = "".join(getattr(part, "python", part) for part in self.args)
        options = self.added
        if options is not None and given is not None:
            options = options.combine(given)
        if options is not None and options.given:
            problem += f":\n  {options.argument.python}"
        return ResultsError(problem)


class ContractError(PeekbenchError):
    """A plugin's callable that violates its protocol.

    Examples
    --------
    >>> raise ContractError("predictions have shape (45, 2); return one column for each of the 3 classes")
    Traceback (most recent call last):
    peekbench.errors.ContractError: predictions have shape (45, 2); return one column for each of the 3 classes
    """


def public(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function that users call raise each `PeekbenchError` without the frames and errors inside peekbench.

    Examples
    --------
    >>> @public
    ... def read(path):
    ...     try:
    ...         return {}[path]
    ...     except KeyError as error:
    ...         raise DataError("no such file") from error
    >>> try:
    ...     read("a.csv")
    ... except DataError as error:
    ...     print(error, repr(error.__cause__), repr(error.__context__), sep="; ")
    no such file; None; KeyError('a.csv')
    """

    @wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except PeekbenchError as error:
            if sys.flags.dev_mode:
                raise
            raise error.with_traceback(None) from None

    return call


class RunWarning(UserWarning):
    """Failed trials, or other trouble of a run, after which `peekbench.run` returns the trials that succeeded.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RunWarning)  # failed trials end a script
    ...     warnings.warn("2 of 40 trials failed", RunWarning)
    Traceback (most recent call last):
    peekbench.errors.RunWarning: 2 of 40 trials failed
    """


def warn_of_run(message: str) -> None:
    """Warn with a `RunWarning` about the first line outside of peekbench, which called one of its functions.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_run("2 of 40 trials failed")
    >>> caught[0].category.__name__
    'RunWarning'
    """
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(CORE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RunWarning, stacklevel=level)
