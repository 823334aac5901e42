"""Parts of Markdown pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GENERATED = "*This page is generated from the code of the installed peekbench.*"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    r"""Return a Markdown table, or nothing if there are no rows.

    Examples
    --------
    >>> print(table(["a", "b"], [["1", "x | y"]]))
    | a | b |
    |---|---|
    | 1 | x \| y |
    """
    lines = ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join([f"| {' | '.join(headings)} |", "|" + "---|" * len(headings), *lines]) if lines else ""


def code(text: str) -> str:
    """Return text as code, also text that contains backticks.

    Examples
    --------
    >>> code("a"), code("a`b")
    ('`a`', '``a`b``')
    """
    if not text:
        return ""
    marks = "``" if "`" in text else "`"
    return f"{marks}{text}{marks}"


def plain(text: str) -> str:
    r"""Return text without meaning in Markdown, except that code in backticks stays code.

    Examples
    --------
    >>> plain("a < b, `x < y` and [0, 1]")
    'a &lt; b, `x < y` and \\[0, 1\\]'
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a lone backtick
        return _escape(text).replace("`", "\\`")
    return "`".join(part if number % 2 else _escape(part) for number, part in enumerate(parts))


def _escape(text: str) -> str:
    for character in "\\*_[]{}":
        text = text.replace(character, "\\" + character)
    return text.replace("&", "&amp;").replace("<", "&lt;")


def page(title: str, *parts: str) -> str:
    """Return a page with a heading from its parts; empty parts are left out."""
    return "\n\n".join([f"# {title}", *(part for part in parts if part)]) + "\n"
