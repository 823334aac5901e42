"""Formats numbers, counts and foreign text for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from peekbench.records.verdicts import Estimate, Unit

UNKNOWN = "-"

HIDDEN_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, except tab and line feed
    "\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"  # direction, zero width
    "\u2028\u2029\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # separators and other format characters
    "\ud800-\udfff\ufffe\uffff]"  # lone surrogates and noncharacters, which files and XML cannot contain
)


def visible(text: str) -> str:
    r"""Return text on one line, with control characters, direction marks and characters of zero width as escapes.

    A terminal or a browser would obey them, or hide them from the reader.

    Parameters
    ----------
    text
        Text from data, such as a name or a cell.

    Examples
    --------
    >>> print(visible("\x1b[31mred and \u202etfel ot thgir\n"))
    \x1b[31mred and \u202etfel ot thgir\n
    """
    return visible_lines(text).replace("\n", r"\n").replace("\t", r"\t")


def visible_lines(text: str) -> str:
    r"""Return text as `visible` does, but with its line feeds and tabs.

    Parameters
    ----------
    text
        Text of several lines, such as a message or a traceback.

    Examples
    --------
    >>> print(visible_lines("one\n\x1btwo"))
    one
    \x1btwo
    """
    return HIDDEN_CHARACTERS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def shorten(text: str, limit: int) -> str:
    """Return text, without its middle if it is longer than a limit. Its end begins with a whole word, such as a path.

    Parameters
    ----------
    text
        Any text.
    limit
        Number of characters to keep. The note about those left out is not counted.

    Examples
    --------
    >>> shorten("a problem, its place, and a remedy", 20)
    'a problem, its[14 characters left out]remedy'
    """
    if len(text) <= limit:
        return text
    end = limit // 5
    word = len(text) - text.rfind(" ", 0, len(text) - end) - 1
    if word <= limit // 2:
        end = word
    left_out = pluralize(len(text) - limit, "character")
    return f"{text[: limit - end]}[{left_out} left out]{text[len(text) - end :]}"


def pluralize(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun in singular or plural.

    Parameters
    ----------
    number
        The count.
    noun
        Noun in singular.
    plural
        Noun in plural; `noun` + 's' by default.

    Examples
    --------
    >>> pluralize(1, "trial"), pluralize(1200, "trial"), pluralize(2, "analysis", "analyses")
    ('1 trial', '1,200 trials', '2 analyses')
    """
    if number != 1:
        noun = plural or f"{noun}s"
    return f"{number:,} {noun}"


def list_names(names: Sequence[str], limit: int) -> str:
    """Return the first names of a list, and the number of the others.

    Parameters
    ----------
    names
        The names.
    limit
        Number of names to list.

    Examples
    --------
    >>> list_names(["a", "b", "c"], 2), list_names(["a", "b"], 2)
    ('a, b and 1 more', 'a, b')
    """
    listed = ", ".join(names[:limit])
    if len(names) > limit:
        listed += f" and {len(names) - limit:,} more"
    return listed


def join_words(words: Sequence[str]) -> str:
    """Return a list in words.

    Examples
    --------
    >>> join_words(["a", "b", "c"]), join_words(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def list_numbers(numbers: Sequence[int]) -> str:
    """Return a list of numbers in words.

    Examples
    --------
    >>> list_numbers([20, 1200])
    '20 and 1,200'
    """
    return join_words([f"{number:,}" for number in numbers])


def capitalize(text: str) -> str:
    """Return a clause as the beginning of a sentence.

    Examples
    --------
    >>> capitalize("the F1 of LSA")
    'The F1 of LSA'
    """
    return text[:1].upper() + text[1:]


FORMATS: Mapping[Unit, str] = {"count": "{:,.0f}", "p_value": "{:.3f}", "seconds": "{:,.0f} s", "number": "{:z.4g}"}
"""Formats of most numbers, by unit."""


def format_cell(value: str | int | float | bool | Estimate | None, unit: Unit) -> str:
    """Return the cell of a table as text; that of an estimate has its interval, if this is known.

    Parameters
    ----------
    value
        A cell in full precision.
    unit
        Unit of its column, see `peekbench.records.Unit`.

    Examples
    --------
    >>> format_cell(0.7153, "fraction"), format_cell(0.0123, "difference"), format_cell(None, "count")
    ('71.5%', '+1.23', '-')
    >>> format_cell(Estimate(0.0123, 0.004, 0.0206), "difference"), format_cell(Estimate(low=0.5, high=0.9), "fraction")
    ('+1.23 [+0.40, +2.06]', '[50.0%, 90.0%]')
    """
    if isinstance(value, Estimate):
        parts = []
        if value.is_known:
            parts.append(format_cell(value.mean, unit))
        if value.has_interval:
            parts.append(f"[{format_cell(value.low, unit)}, {format_cell(value.high, unit)}]")
        return " ".join(parts) or UNKNOWN
    if value is None:
        return UNKNOWN
    if isinstance(value, str | bool) or unit == "text":
        return str(value)
    if unit in ("difference", "change"):
        return format_signed(value, unit)
    if unit == "fraction":
        return f"{value:.1%}"
    if unit == "spread":
        return f"{value * 100:.2f}"
    if unit == "p_value" and value < 0.001:
        return "<0.001"
    if unit == "seconds" and value < 10:
        return f"{value:.3f} s"
    return FORMATS[unit].format(value)


def points(unit: Unit) -> str:
    """Return the name of the unit of numbers that are formatted without it, to follow them; empty if it has none.

    Examples
    --------
    >>> points("difference"), points("fraction")
    (' points', '')
    """
    if unit in ("difference", "spread"):
        return " points"
    return ""


def format_quantity(value: str | int | float | bool | Estimate | None, unit: Unit) -> str:
    """Return a value as `format_cell` does, with its unit; empty if it is unknown.

    Examples
    --------
    >>> format_quantity(Estimate(0.0147, 0.0091, 0.0203), "difference"), format_quantity(Estimate(), "difference")
    ('+1.47 [+0.91, +2.03] points', '')
    """
    text = format_cell(value, unit)
    if text == UNKNOWN:
        return ""
    return text + points(unit)


def format_size(value: float, unit: Unit) -> str:
    """Return the size of a difference with its unit.

    Examples
    --------
    >>> format_size(0.005, "difference"), format_size(0.005, "change")
    ('0.50 points', '0.0050')
    """
    if unit == "difference":
        return f"{value * 100:.2f} points"
    return f"{value:.4f}"


def format_range(low: float, high: float, unit: Unit) -> str:
    """Return the ends of an interval.

    Examples
    --------
    >>> format_range(-0.001, 0.004, "difference")
    '-0.10 to +0.40'
    """
    return f"{format_signed(low, unit)} to {format_signed(high, unit)}"


def duration(seconds: float) -> str:
    """Return seconds as text.

    Examples
    --------
    >>> duration(4), duration(125), duration(11_400)
    ('4 s', '2 min 05 s', '3 h 10 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def format_signed(value: float, unit: Unit) -> str:
    """Return the difference of two scores with its sign.

    Parameters
    ----------
    value
        The difference; a fraction if `unit` is 'difference'.
    unit
        'difference' for percentage points; other units leave the value unchanged.

    Examples
    --------
    >>> format_signed(0.0123, "difference"), format_signed(-0.0123, "change")
    ('+1.23', '-0.0123')
    """
    if unit == "difference":
        return with_sign(value * 100, 2)
    return with_sign(value, 4)


def with_sign(number: float, digits: int) -> str:
    """Return a rounded number with its sign. Numbers that round to zero have no sign.

    Examples
    --------
    >>> with_sign(1.5, 1), with_sign(-0.001, 2)
    ('+1.5', '0.00')
    """
    text = f"{number:+.{digits}f}"
    if float(text) == 0:
        return text[1:]
    return text


SHARED_DRAWS = (
    "Subsamples with the same number are taken as one draw of all tasks; if different tasks have independent draws, "
    "use --independent-tasks (in Python, independent_tasks=True)."
)

TICK_STEPS = tuple(digit * 10.0**power for power in range(-6, 10) for digit in (1, 2, 5))
"""Distances between the round numbers on an axis, in ascending order."""

NAME_PARTS = re.compile(r"(?<=[-_/.])(?=[^\W\d])")
"""Positions at which a long name may be broken: community-|datasets/|disaster_|response_|messages."""


def tick_decimals(step: float) -> int:
    """Return the number of decimals that numbers on an axis need.

    Parameters
    ----------
    step
        Distance between two numbers, one of `TICK_STEPS`.

    Examples
    --------
    >>> tick_decimals(0.5), tick_decimals(0.02), tick_decimals(10.0)
    (1, 2, 0)
    """
    return max(0, -math.floor(math.log10(step) + 1e-9))
