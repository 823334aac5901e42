"""Convert a docstring to plain sentences without markup."""

from __future__ import annotations

import re
from collections.abc import Callable

from peekbench_docstrings.layout import find_paragraphs

UNREADABLE = "\0"  # replaces formulas, URLs and the like; a sentence that contains it is dropped

UNREADABLE_MARKUP = (
    r":(?:math|ref|doc):`[^`]*`|\$[^$]+\$|%\([^)]*\)[sdr]?|\{[^}]*\}|\w+://\S+|<[^<>\s]+@[^<>\s]+>| -> |"
    r"\b(?:also|and|by|from|in|of|see|to|with)\s+\[[\w., ]+\]_"  # a citation used as a noun
)
MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<![`:])`([^`'\s]+)'(?!`)"), r"'\1'"),  # quoted as in TeX
    (re.compile(r":(pep|rfc):`(\d+)`", re.IGNORECASE), lambda role: f"{role[1].upper()} {role[2]}"),
    (re.compile(r":math:`([^`\\^_{]*)`"), r"\1"),  # a bare variable
    (re.compile(r"(?<!:)`([^`<]+?)\s*<[^>`]*>`_{1,2}"), r"\1"),  # a link
    (re.compile(UNREADABLE_MARKUP, re.IGNORECASE), UNREADABLE),
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
MIN_SHARE_LETTERS = 0.6  # of the characters other than spaces; formulas have fewer letters


def extract_sentences(docstring: str) -> list[str]:
    """Return the readable sentences before the first section of a docstring, each on one line.

    Sentences that introduce a list or a formula, continue a formula, or contain unreadable markup are dropped.

    Parameters
    ----------
    docstring
        A docstring with its indentation.
    """
    sentences: list[str] = []
    for number, paragraph in enumerate(find_paragraphs(docstring)):
        for pattern, replacement in MARKUP:
            paragraph = pattern.sub(replacement, paragraph)
        for position, sentence in enumerate(SENTENCE.split(paragraph.strip())):
            continues_a_formula = number > 0 and position == 0 and sentence[:1].islower()
            if not (UNREADABLE in sentence or sentence.endswith(":") or continues_a_formula) and _is_readable(sentence):
                sentences.append(sentence)
        if sentences and sentences[-1][-1].isalnum():
            sentences[-1] += "."
    return sentences


def _is_readable(sentence: str) -> bool:
    characters = sentence.replace(" ", "")
    return sum(map(str.isalpha, characters)) > MIN_SHARE_LETTERS * len(characters)
