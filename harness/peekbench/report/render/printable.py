"""Removes control characters from reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from peekbench.report.document import Report

CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def make_printable(report: Report) -> Report:
    """Return the report without control characters, which data or messages may contain and a terminal would obey."""
    cleaned: Report = _clean(report)
    return cleaned


def _clean(value: Any) -> Any:
    """Replace control characters in nested records, tuples and mappings."""
    if isinstance(value, str):
        return CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, tuple):
        return tuple(map(_clean, value))
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _clean(getattr(value, part.name)) for part in fields(value)})
    return value
