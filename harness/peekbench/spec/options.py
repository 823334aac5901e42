"""Options of plugins: replace some of them, or read them from a command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from peekbench.errors import SpecError
from peekbench.plugins.protocols import Options
from peekbench.spec.error_messages import shorten
from peekbench.spec.yaml_loader import read_yaml


class StoredOptions(Options):
    """Options as a store has them, which the plugin's own model has validated before the run.

    The model may be unavailable now, or have other options.

    Examples
    --------
    >>> StoredOptions.model_validate({"num_components": 10}).model_dump()
    {'num_components': 10}
    """

    model_config = ConfigDict(extra="allow")


def merge(options: Options, differing: Mapping[str, Any]) -> Options:
    """Return options with some values replaced.

    Parameters
    ----------
    options
        Options of a plugin.
    differing
        Values to replace, as nested mappings.

    Raises
    ------
    ValidationError
        If the options' own model refuses the result.
    """
    return type(options).model_validate(_merge_values(options.model_dump(), differing))


def _merge_values(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for name, other in others.items():
        both = isinstance(merged.get(name), Mapping) and isinstance(other, Mapping)
        merged[name] = _merge_values(merged[name], other) if both else other
    return merged


def parse_options(text: str) -> dict[str, Any]:
    """Parse options that are given as YAML on a command line.

    Raises
    ------
    SpecError
        If the text is not a mapping.

    Examples
    --------
    >>> parse_options("{num_components: 5}")
    {'num_components': 5}
    """
    raw = read_yaml(text, "options")
    if not isinstance(raw, dict) or not all(isinstance(key, str) for key in raw):
        pairs = re.findall(r"(\w+) *[=:] *([^\s,]+)", shorten(text, 200))
        example = ", ".join(f"{name}: {value}" for name, value in pairs or [("name", "value")])
        raise SpecError(f"options: {shorten(repr(text))} is not a mapping; write it as '{{{example}}}'")
    return raw
