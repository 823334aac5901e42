"""Formats of report files, which specs choose and reports are written in."""

from __future__ import annotations

from typing import Literal, TypeAlias

ReportFormat: TypeAlias = Literal["html", "text", "markdown", "json", "cards", "svg", "png"]
"""'cards' is one Markdown file per method; 'svg' and 'png' are one picture per figure."""

DEFAULT_FORMATS: tuple[ReportFormat, ...] = ("html", "text", "markdown", "json", "cards")
