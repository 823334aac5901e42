"""Makes the texts of reports printable: hidden characters become escapes, and very long texts are shortened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from peekbench.formatting import shorten, visible
from peekbench.records.trials import MAX_ERROR, Draw, Trial, TrialFailure
from peekbench.report.document import Report

MAX_TEXT = 20_000  # characters of a text in a report


def make_printable(report: Report) -> Report:
    """Return the report without characters that a terminal or a browser would obey or hide, and with bounded texts."""
    cleaned: Report = _clean(report)
    return cleaned


def _clean(value: Any) -> Any:
    """Clean the texts in nested records, sequences and mappings."""
    if isinstance(value, str):
        return visible(shorten(value, MAX_TEXT))
    if isinstance(value, tuple):
        cleaned = map(_clean, value)
        return type(value)._make(cleaned) if isinstance(value, Draw | Trial) else tuple(cleaned)
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, TrialFailure):
        value = replace(value, error=shorten(value.error, MAX_ERROR))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _clean(getattr(value, part.name)) for part in fields(value)})
    return value
