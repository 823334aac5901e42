"""The tasks of the study (arXiv 2410.00179), which `tasks.toml` defines."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from peekbench_hf.definition import HubFiles, HubTask, Location, WebFile


def _make_task(name: str, fields: Mapping[str, Any]) -> HubTask:
    classes = fields["classes"]
    if isinstance(classes, list):
        classes = {label: label for label in classes}
    locations = tuple(map(_make_location, fields["locations"]))
    changes = {"classes": classes, "locations": locations, "text": tuple(fields["text"])}
    return HubTask(name=name, **{**fields, **changes})


def _make_location(fields: Mapping[str, str]) -> Location:
    if "url" in fields:
        return WebFile(**fields)
    return HubFiles(**fields)


_DEFINITIONS = tomllib.loads(files("peekbench_hf").joinpath("tasks.toml").read_text(encoding="utf-8"))
TASKS = tuple(_make_task(name, fields) for name, fields in _DEFINITIONS.items())
