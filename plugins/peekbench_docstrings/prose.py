"""Turns a docstring into plain sentences, without markup."""

from __future__ import annotations

import re
from collections.abc import Callable

from peekbench_docstrings.layout import paragraphs

HOLE = "\0"  # what cannot be read aloud; its sentence is left out

UNREADABLE = (
    r":(?:math|ref|doc):`[^`]*`|\$[^$]+\$|%\([^)]*\)[sdr]?|\{[^}]*\}|\w+://\S+|<[^<>\s]+@[^<>\s]+>| -> |"
    r"\b(?:also|and|by|from|in|of|see|to|with)\s+\[[\w., ]+\]_"  # a citation that stands for a noun
)
MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<![`:])`([^`'\s]+)'(?!`)"), r"'\1'"),  # quoted as in TeX
    (re.compile(r":(pep|rfc):`(\d+)`", re.IGNORECASE), lambda role: f"{role[1].upper()} {role[2]}"),
    (re.compile(r":math:`([^`\\^_{]*)`"), r"\1"),  # a bare variable
    (re.compile(r"(?<!:)`([^`<]+?)\s*<[^>`]*>`_{1,2}"), r"\1"),  # a link
    (re.compile(UNREADABLE, re.IGNORECASE), HOLE),
    (re.compile(r":[\w:+-]+:`([^`<]+?)\s*<[^>`]*>`"), r"\1"),  # a role with a title
    (re.compile(r"(?::[\w:+-]+:)?`~[^`]*?([^`.]+)`"), r"\1"),
    (re.compile(r":[\w:+-]+:`!?([^`]*)`"), r"\1"),
    (re.compile(r" ?\[[\w., ]+\]_(?!\w)"), ""),  # a citation
    (re.compile(r"`+([^`]*)`+_{0,2}"), r"\1"),
    (re.compile(r"(?<![\w*])\*\*?([^\s*](?:[^*]*[^\s*])?)\*\*?(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w|])\|([^\s|][^|]*)\|(?![\w|])"), r"\1"),
    (re.compile(r"\\\s|\\(?=[*_`|])"), ""),
    (re.compile(r"\s+(?=[.,;:!?)](?:\s|$))"), ""),
    (re.compile(r"\s+"), " "),
)
SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)(?<!cf\.) (?=[\"'(]?[A-Z\0])")
LEAST_LETTERS = 0.6  # of a sentence's characters that are no spaces; formulas have fewer


def sentences(docstring: str) -> list[str]:
    """The sentences of a docstring's first part, each on one line; what introduces a list or a formula is left out."""
    found: list[str] = []
    for number, paragraph in enumerate(paragraphs(docstring)):
        for pattern, replacement in MARKUP:
            paragraph = pattern.sub(replacement, paragraph)
        for position, sentence in enumerate(SENTENCE.split(paragraph.strip())):
            continues_a_formula = number > 0 and position == 0 and sentence[:1].islower()
            if not (HOLE in sentence or sentence.endswith(":") or continues_a_formula) and _is_readable(sentence):
                found.append(sentence)
        if found and found[-1][-1].isalnum():
            found[-1] += "."
    return found


def _is_readable(sentence: str) -> bool:
    characters = sentence.replace(" ", "")
    return sum(map(str.isalpha, characters)) > LEAST_LETTERS * len(characters)
