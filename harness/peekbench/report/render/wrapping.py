"""Wraps long names at the positions at which a reader would break them."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

from peekbench.formatting import NAME_PARTS


def wrap(text: str, width: int) -> list[str]:
    """Return lines of at most `width` terminal cells.

    Lines break between words, else between the parts of a name, else anywhere; no character is lost.
    """
    return [line for paragraph in text.splitlines() or [""] for line in _wrap_paragraph(paragraph, width)]


def _wrap_paragraph(text: str, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in re.findall(r"\S+\s*", text):
        for part in [word] if cell_len(word.rstrip()) <= width else NAME_PARTS.split(word):
            if line and cell_len((line + part).rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += part
            if cell_len(line.rstrip()) > width:
                *full, line = chop_cells(line, width)
                lines += full
    return [*lines, line.rstrip()]
