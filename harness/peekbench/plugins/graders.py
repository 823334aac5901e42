"""Graders of generated answers: functions of an answer and a reference that return a grade from 0 to 1.

A task names one: 'exact', 'number', 'choice', or a function in a file or a module, such as `my_file.py:grade`.
"""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.errors import ContractError, PeekbenchError, PluginError
from peekbench.formatting import shorten
from peekbench.identity import compare
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.local_code import load_module
from peekbench.plugins.names import locate_code, names_code, split_name

if TYPE_CHECKING:
    from peekbench.records.data import Grader

NUMBER = re.compile(
    r"(?<![\w.])([-+\u2212]?)\$?(\d{1,3}(?:,\d{3})+(?!\d)|\d+|(?=\.\d))(\.\d+)?(?:e([-+]?\d{1,3})(?!\w)|\s*/\s*(\d+))?",
    re.ASCII | re.IGNORECASE,
)  # fmt: skip
"""Sign, digits, decimals, and exponent or denominator of a number, but not of a part of a word, such as A1."""
MAX_DIGITS = 1000
"""A longer number, such as the digit that a model repeats without end, equals none: to convert it takes too long."""
STATED = re.compile(r"(?i:answer|choice|option)(?i:\s+is|\s*:)*[\s*(]*(?:([A-Z])(?!\w)|([a-z])\W*$)")
"""Letter after such a word, as in 'The answer is **A**' and 'answer: a', but not 'the answer is a cat'."""
LETTER = re.compile(r"[({]([A-Z])[)}]|(?<!\w)([A-Z])(?=[).:]|\s*$)")
ALONE = re.compile(r"\W*([A-Za-z])\W*")


def exact(answer: str, reference: str) -> bool:
    """Return whether an answer is the reference, except for case, spaces and punctuation at its end.

    Invisible characters and the encoding of characters do not count either; see `peekbench.identity`.

    Parameters
    ----------
    answer, reference
        Texts.

    Returns
    -------
    bool
        Whether both are equal.

    Examples
    --------
    >>> exact(" new  York.", "New York"), exact("in New York", "New York")
    (True, False)
    """
    return compare(answer, reference) != "different"


def number(answer: str, reference: str) -> bool:
    """Return whether the last number of an answer is the last number of the reference.

    Numbers can have separators of thousands, decimals, an exponent, a sign and a currency, and can be fractions or
    percentages: a percentage equals its number, with or without the sign, and not a share. A number of more than 1,000
    digits equals none.

    Parameters
    ----------
    answer
        Text, such as the solution of a problem that ends with the result.
    reference
        Text that contains a number.

    Returns
    -------
    bool
        Whether both are equal; False for an answer without a number.

    Raises
    ------
    ValueError
        If the reference has no number.

    Examples
    --------
    >>> number("3 boxes of 400 are 1,200.0 in total.", "#### 1200"), number("About 1,2", "12")
    (True, False)
    >>> number("It is 50%.", "50"), number("1/2", "0.5")
    (True, True)
    """
    expected = _last_number(reference)
    if expected is None:
        raise ValueError("the reference contains no number; use another grader, such as exact")
    return _last_number(answer) == expected


def _last_number(text: str) -> Fraction | None:
    found = NUMBER.findall(text)
    if not found:
        return None
    sign, digits, decimals, exponent, denominator = found[-1]
    if max(map(len, found[-1])) > MAX_DIGITS:
        return None
    value = Fraction(f"{digits.replace(',', '') or 0}{decimals}e{exponent or 0}")
    if sign and sign != "+":
        value = -value
    if int(denominator or 0):
        value /= int(denominator)
    return value


def choice(answer: str, reference: str) -> bool:
    """Return whether an answer chooses the letter of the reference.

    The letter is the one after the last 'answer', 'choice' or 'option', as in 'The answer is (A)'; otherwise the last
    capital letter in parentheses or braces, before a parenthesis, period or colon, or at the end; otherwise the only
    letter.

    Parameters
    ----------
    answer
        Text that names a letter.
    reference
        The letter, alone or as in '(A)'.

    Returns
    -------
    bool
        Whether both are the same letter; False for an answer without one.

    Raises
    ------
    ValueError
        If the reference names no letter.

    Examples
    --------
    >>> [choice(answer, "A") for answer in ("A", "(A)", "a.", "Answer: A", "A) a cat", "The answer is (B).", "A cat")]
    [True, True, True, True, True, False, False]
    """
    expected = _find_letter(reference)
    if expected is None:
        raise ValueError("the reference names no letter, such as A or (A); use another grader, such as exact")
    return _find_letter(answer) == expected


def _find_letter(text: str) -> str | None:
    if alone := ALONE.fullmatch(text):
        return alone[1].upper()
    for pattern in (STATED, LETTER):
        if found := list(pattern.finditer(text)):
            letter: str = next(filter(None, found[-1].groups()))
            return letter.upper()
    return None


MAX_SHOWN = 100  # characters of an answer and of a reference
GRADERS: Mapping[str, Grader] = {"exact": exact, "number": number, "choice": choice}


def find_grader(grader: str | Grader, folder: Path) -> Grader:
    """Return the grader of a name.

    Parameters
    ----------
    grader
        'exact', 'number', 'choice', a function in code, such as `my_file.py:grade`, or a function, which is returned.
    folder
        Folder where relative paths start.

    Returns
    -------
    Grader
        Function of an answer and a reference.

    Raises
    ------
    PluginError
        If there is no such grader, or its parameters are not `answer` and `reference`.

    Examples
    --------
    >>> find_grader("number", Path())("It is 4.", "4")
    True
    """
    if not isinstance(grader, str):
        return OwnGrader(grader, getattr(grader, "__name__", type(grader).__name__))
    if grader in GRADERS:
        return GRADERS[grader]
    if not names_code(grader):
        raise PluginError(
            f"no grader {grader!r}; use {', '.join(GRADERS)}, or a function of an answer and a reference in a file, "
            "such as `my_file.py:grade`"
        )
    code, name = split_name(locate_code(grader, folder))
    found: Any = getattr(load_module(code), name, None)
    if not callable(found):
        raise PluginError(f"{code.rstrip(':')} has no function {name!r}; write `def {name}(answer, reference)` there")
    return OwnGrader(found, grader)


@dataclass(frozen=True, slots=True)
class OwnGrader:
    """A user's function that grades answers. It takes the answer and the reference by name."""

    function: Callable[..., Any]
    name: str
    """Name for messages."""

    def __post_init__(self) -> None:
        """Refuse parameters of other names, because their order is not known."""
        try:
            inspect.signature(self.function).bind(answer="", reference="")
        except (TypeError, ValueError) as error:
            raise PluginError(
                f"grader {self.name} cannot be called with an answer and a reference: {error}; name its parameters "
                "`answer` and `reference`, or write `def grade(answer, reference)` that calls it"
            ) from error

    def __call__(self, answer: str, reference: str) -> float:
        """Return the grade of an answer.

        Raises
        ------
        ContractError
            If the function fails, or returns no number from 0 to 1. The message names the answer and the reference.
        """
        try:
            found = Foreign(f"grader {self.name}").call(self.function, {"answer": answer, "reference": reference})
            grade = _as_grade(found)
        except PeekbenchError as error:
            raise ContractError(f"{error}; {_describe_pair(answer, reference)}") from error
        if not 0 <= grade <= 1:
            raise ContractError(
                f"grader {self.name} returned {shorten(repr(found), MAX_SHOWN)}; return a number from 0 to 1; "
                f"{_describe_pair(answer, reference)}"
            )
        return grade


def _as_grade(found: Any) -> float:
    """Return a grade as a number; NaN if it is none."""
    if isinstance(found, str):
        return math.nan
    try:
        return float(found)
    except (TypeError, ValueError):
        return math.nan


def _describe_pair(answer: str, reference: str) -> str:
    return f"it graded the answer {shorten(repr(answer), MAX_SHOWN)} by {shorten(repr(reference), MAX_SHOWN)}"


def describe_grader(grader: str | Grader) -> str:
    """Return a text that differs if a grader differs: its name, or the source of its module."""
    if isinstance(grader, str):
        return grader
    while isinstance(grader, partial):
        grader = grader.func
    name = getattr(grader, "__qualname__", type(grader).__qualname__)
    try:
        return f"{name} {inspect.getsource(sys.modules[grader.__module__])}"
    except (OSError, TypeError, KeyError):
        return name
