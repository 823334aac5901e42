"""Convert a docstring to plain sentences without markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from inspect import cleandoc
from itertools import groupby, zip_longest

UNDERLINE = re.compile(r"([-=~^*#.\"'`_])\1{2,}\s*")
SECTIONS = frozenset(
    {
        "arguments", "args", "attributes", "example", "examples", "keyword arguments", "methods", "note", "notes",
        "other parameters", "parameters", "raises", "receives", "references", "return", "return value", "returns",
        "see also", "usage", "warning", "warnings", "warns", "yields",
    }
)  # fmt: skip
SECTION = re.compile(
    r"(?:args|raises|returns?|yields|examples?|usage|notes?|see also|references?|"
    r"(?:\w+ )?(?:arguments|parameters|attributes|options|methods|variables|functions|classes|exceptions))\s*:{1,2}",
    re.IGNORECASE,
)
FIELD = re.compile(r":[\w *]+:(?:\s|$)|@(?:param|type|keyword|raises?|return|rtype)\b")
LEGAL = re.compile(r"copyright|\(c\) \d{4}|permission to|licen[sc]e", re.IGNORECASE)
CODE = re.compile(
    r">>> |\.\.\. |\$ |% |In \[\d|#!|import \w+$|from \w\S* import |\(?[\w.]+(?:\[.*\]|, ?[\w\[\]]+)*,?\)? [-+*]?= ?\S"
)
BULLET = re.compile(r"(?:[-*+o\u2022]|\(?\d+[.)]|\(?[a-z]\)) +\S")
DEFINITION = re.compile(r"[\w.*'\"()]+(?:, [\w.*'\"()]+)* *(?:--?|:|=|  ) *\S|[\w.]+\([^()]*\)")
TABLE = re.compile(r"[=+-]{2,}[ =+|-]*|\|.*\||\+-.*")
SIGNATURE = re.compile(
    r"(?:\w+ ?= ?)?[\w.]+ ?\((?:[^()]|\([^()]*\))*\)(?: *[-=]> *[\w\[\](),. ]+?)?(?: *$| +--? +| *: +)\n?"
    r"|\w[\w()]* (?:\[|\| ).*\n",  # of a debugger command: longlist | ll
    re.MULTILINE,
)


def find_paragraphs(docstring: str) -> Iterator[str]:
    """Yield the paragraphs of running text before the first section, including their markup.

    Parameters
    ----------
    docstring
        A docstring with its indentation.
    """
    has_text = False
    blocks = _blocks(cleandoc(docstring))
    for block, following in zip_longest(blocks, blocks[1:], fillvalue=[""]):
        lines, is_last = _before_section(block, has_text)
        if lines and not lines[0].startswith(" "):
            lines = _before_list(lines if has_text else _after_signatures(lines))
            if lines:
                has_text = True
                text = "\n".join(lines)
                yield f"{text}:" if following[0].lstrip().startswith(".. math") else text
        if is_last:
            return


def _blocks(text: str) -> list[list[str]]:
    """Split a text into blocks of lines at empty lines."""
    groups = groupby(text.expandtabs().splitlines(), key=lambda line: bool(line.strip()))
    return [list(lines) for is_block, lines in groups if is_block]


def _before_section(block: list[str], has_text: bool) -> tuple[list[str], bool]:
    """Return the lines of a block before a section heading, and whether there is such a heading.

    A title at the start of the docstring, where `has_text` is false, is dropped and does not count as a heading.
    """
    lines: list[str] = []
    for line in block:
        if UNDERLINE.fullmatch(line):
            title = lines.pop() if lines else ""
            if has_text or lines or title.strip().lower() in SECTIONS:
                return lines, True
        elif SECTION.fullmatch(line.strip()) or FIELD.match(line.strip()) or LEGAL.search(line):
            return lines, True
        else:
            lines.append(line)
    return lines, False


def _after_signatures(lines: list[str]) -> list[str]:
    """Drop the signatures at the start of a block; a signature may have several lines."""
    text = "\n".join(lines)
    while signature := SIGNATURE.match(text):
        text = text[signature.end() :]
    return text.splitlines()


def _before_list(lines: list[str]) -> list[str]:
    """Return the lines of a block before a list, code, a table or a directive."""
    if sum(bool(DEFINITION.match(line)) for line in lines) > max(1, len(lines) // 2):
        return []
    for position, line in enumerate(lines):
        if any(pattern.match(line.strip()) for pattern in (CODE, BULLET, TABLE)) or line.startswith((".. ", "   ")):
            return lines[:position]
    return lines


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
