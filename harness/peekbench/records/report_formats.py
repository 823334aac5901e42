"""Formats of report files, which specs choose and reports are written in."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

ReportFormat: TypeAlias = Literal["html", "text", "markdown", "json", "cards", "svg", "png"]
"""Formats of peekbench itself. 'cards' is one Markdown file per method; 'svg' and 'png' are one picture per figure."""

OWN_FORMATS: tuple[str, ...] = get_args(ReportFormat)
"""Names that no format of a plugin can have."""
DEFAULT_FORMATS: tuple[ReportFormat, ...] = ("html", "text", "markdown", "json", "cards")
