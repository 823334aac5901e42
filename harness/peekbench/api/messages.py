"""Messages of the core that name options of the command line, in the words of Python."""

from __future__ import annotations

import re
import shlex

from peekbench.errors import ResultsError
from peekbench.records.table_options import TableOptions

WORD = r"('(?:[^']|'\"'\"')*'|[^\s=,;]+)"
ARGUMENTS = (
    (re.compile(rf"--map {WORD}=([\w.-]+)"), lambda match: f"columns={{{_quote(match[1])}: {match[2]!r}}}"),
    (re.compile(rf"--ignore {WORD}"), lambda match: f"ignore=[{_quote(match[1])}]"),
    (re.compile(r"--percent"), "percent=True"),
    (re.compile(r"--pair-by-order"), "pair_by_order=True"),
    (re.compile(r"--allow-incomplete"), "allow_incomplete=True"),
    (re.compile(r"--lower-is-better"), "lower_is_better=True"),
    (re.compile(r"--region ([\w.-]+)"), r"region=\1"),
)
"""Options of the command line that messages name, and the arguments that mean the same."""


def _quote(word: str) -> str:
    """Return the word of a shell command, with or without quotation marks, as a string of Python."""
    return repr("".join(shlex.split(word)))


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


def explain_table(error: ResultsError, options: TableOptions) -> str:
    """Return a message about a table, with all arguments that make it readable if the error knows them.

    Parameters
    ----------
    error
        The error, with arguments of the command line.
    options
        What the user said about the table.
    """
    columns, ignore = dict(options.columns), [options.ignore] if isinstance(options.ignore, str) else [*options.ignore]
    arguments = iter(error.arguments)
    for option in arguments:
        if option == "--map":
            source, _, target = next(arguments).rpartition("=")
            columns[source] = target
        elif option == "--ignore":
            ignore.append(next(arguments))
    keywords = [f"columns={columns}"] * bool(columns) + [f"ignore={ignore}"] * bool(ignore)
    keywords += ["pair_by_order=True"] * ("--pair-by-order" in error.arguments)
    return in_python(error.problem) + (f":\n  {', '.join(keywords)}" if error.arguments else "")
