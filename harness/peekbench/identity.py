"""Decides whether two labels, answers, references, groups or names are the same value, for every source of them.

Two values are

- `equal` if their keys are: the text `'1'`, the number `1.0` and the text `' 1.0'` have the key `'1'`;
- `alike` if only their normalized texts are equal, as those of `'Yes.'` and `'yes'`: callers refuse them or report
  that they count as the same;
- otherwise `different`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from typing import Literal, TypeAlias

Sameness: TypeAlias = Literal["equal", "alike", "different"]

WHOLE = re.compile(r"(-?[0-9]+)\.0+")
"""A whole number as programs write it that store it as a float."""
FINAL = " .!?,;:"
"""Punctuation at the end of a text that does not make it a different one."""
MEANINGFUL = ("<super>", "<sub>", "<fraction>")
"""Compatibility forms that mean something else: 10² is not 102."""
VARIATIONS = range(0xFE00, 0xFE10)
"""Characters that select how the one before is drawn, as that of the colored heart."""


class _Forms(dict[int, str]):
    """The plain form of each character that has occurred: empty if it is invisible."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        form = unicodedata.normalize("NFKC", character)
        if unicodedata.decomposition(character).startswith(MEANINGFUL):
            form = character
        is_control = unicodedata.category(character) in ("Cc", "Cf")
        if code in VARIATIONS or (is_control and not character.isspace()):
            form = ""
        self[code] = form
        return form


_forms = _Forms()


DIFFERENCES = "case, spaces, punctuation at the end or the encoding of characters"
"""What `normalize` removes, in words."""


def key_of(value: object) -> str | None:
    """Return the text of a value, the same for 1 in Parquet, ' 1' in CSV and 1.0 in a data frame.

    Parameters
    ----------
    value
        A text, a whole number, a truth value, or one of them as numpy has it.

    Returns
    -------
    str or None
        The text without outer white space, empty if the value is missing; None if the value is of another type.

    Examples
    --------
    >>> [key_of(value) for value in (1, 1.0, " 1", "1.0", True, None, float("nan"), 0.5)]
    ['1', '1', '1', '1', 'true', '', '', None]
    """
    if getattr(value, "ndim", None) == 0:
        value = value.item()  # type: ignore[attr-defined]
    if isinstance(value, str):
        text = value.strip()
        if whole := WHOLE.fullmatch(text):
            return whole[1]
        return text
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, float) and value != value:
        return ""
    return None


def normalize(text: str) -> str:
    r"""Return a text without differences that do not make it a different one.

    These are case, white space, punctuation at the end, invisible characters, and characters that Unicode encodes in
    several ways, such as letters with accents and digits of full width. Whole numbers lose their decimal zeros.

    Parameters
    ----------
    text
        Any text.

    Examples
    --------
    >>> normalize(" New\u00a0 York. "), normalize("the\u0301") == normalize("TH\u00c9\u200b"), normalize("12.0")
    ('new york', True, '12')
    """
    text = unicodedata.normalize("NFC", text.translate(_forms)).lower()  # `casefold` would make Maße and Masse equal
    text = " ".join(text.split())
    return key_of(text.rstrip(FINAL) or text) or ""  # '?' is not the empty text


def compare(one: object, other: object) -> Sameness:
    """Return whether two values are equal, alike or different.

    Parameters
    ----------
    one, other
        Labels, answers, references, groups or names. A value that has no key is equal only to itself.

    Examples
    --------
    >>> compare(1, "1.0"), compare("Yes.", "yes"), compare("Masse", "Ma\u00dfe")
    ('equal', 'alike', 'different')
    """
    keys = [key_of(value) for value in (one, other)]
    texts = [str(value) if own is None else own for own, value in zip(keys, (one, other), strict=True)]
    if texts[0] == texts[1]:
        return "equal"
    if None not in keys and normalize(texts[0]) == normalize(texts[1]):
        return "alike"
    return "different"


def find_alike(keys: Iterable[str]) -> list[list[str]]:
    """Return the groups of different keys that are alike, in their order.

    Parameters
    ----------
    keys
        Keys of values, as `key_of` returns them.

    Examples
    --------
    >>> find_alike(["yes", "no", "Yes", "maybe", "yes."])
    [['yes', 'Yes', 'yes.']]
    """
    variants: dict[str, list[str]] = defaultdict(list)
    for value in dict.fromkeys(keys):
        variants[normalize(value)].append(value)
    return [values for values in variants.values() if len(values) > 1]
