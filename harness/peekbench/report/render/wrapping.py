"""Long names in several lines, broken where a reader would break them."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

PARTS = re.compile(r"(?<=[-_/.])(?=[^\W\d])")  # of a word: community-|datasets/|disaster_|response_|messages


def fold(text: str, width: int) -> list[str]:
    """Lines of at most `width` terminal cells: whole words, else their parts, else what fits; no word is lost."""
    return [line for paragraph in text.splitlines() or [""] for line in _fold_paragraph(paragraph, width)]


def _fold_paragraph(text: str, width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in re.findall(r"\S+\s*", text):
        for part in [word] if cell_len(word.rstrip()) <= width else PARTS.split(word):
            if line and cell_len((line + part).rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += part
            if cell_len(line.rstrip()) > width:
                *full, line = chop_cells(line, width)
                lines += full
    return [*lines, line.rstrip()]
