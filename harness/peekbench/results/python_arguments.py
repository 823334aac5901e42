"""Turns the options of the command line in messages about tables into arguments of Python."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from peekbench.errors import ResultsError
from peekbench.records.data import TableOptions

WORD = r"((?:'(?:[^']|'\"'\"')*'|[^\s,;:'])+)"
"""A word of a shell command, of which parts can be quoted."""
ARGUMENTS = (
    (re.compile(rf"--map {WORD}"), lambda match: "columns={{{!r}: {!r}}}".format(*_split(match[1]))),
    (re.compile(rf"--ignore {WORD}"), lambda match: f"ignore={shlex.split(match[1])}"),
    (re.compile(rf"--task {WORD}"), lambda match: f"tasks={shlex.split(match[1])}"),
    (re.compile(r"--percent"), "percent=True"),
    (re.compile(r"--pair-by-order"), "pair_by_order=True"),
    (re.compile(r"--independent-tasks"), "independent_tasks=True"),
    (re.compile(r"--allow-incomplete"), "allow_incomplete=True"),
    (re.compile(r"--earlier -?\d+(?: --earlier -?\d+)*"), lambda match: f"earlier={_numbers(match[0])}"),
    (re.compile(r"--region ([\w.-]+)"), r"region=\1"),
)
"""Options of the command line that messages name, and the arguments that mean the same."""


def _split(word: str) -> tuple[str, str]:
    """Return the column and the target of a mapping, as it is typed in a shell."""
    source, _, target = "".join(shlex.split(word)).rpartition("=")
    return source, target


def _numbers(options: str) -> list[int]:
    return [int(number) for number in re.findall(r"-?\d+", options)]


def in_python(message: str) -> str:
    """Return a message with arguments of Python instead of options of the command line.

    Examples
    --------
    >>> in_python("4 trials are missing; --allow-incomplete analyzes the others")
    '4 trials are missing; allow_incomplete=True analyzes the others'
    """
    for option, argument in ARGUMENTS:
        message = option.sub(argument, message)
    return message


@contextmanager
def python_messages(options: TableOptions) -> Iterator[None]:
    """Name arguments of Python in errors about a table, all that make it readable if an error knows them.

    Parameters
    ----------
    options
        What the user said about the table.
    """
    try:
        yield
    except ResultsError as error:
        message = in_python(error.problem)
        if error.added is not None:
            message += f":\n  {_keywords(error.added.combine(options))}"
        raise ResultsError(message) from error


def _keywords(options: TableOptions) -> str:
    given = {
        "columns": dict(options.columns), "ignore": [*options.ignored], "pair_by_order": options.pair_by_order,
        "percent": options.percent, "independent_tasks": options.independent_tasks, "region": options.region,
        "tasks": [*options.tasks], "earlier": [*options.earlier_numbers],
    }  # fmt: skip
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value)
