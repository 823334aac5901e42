"""Reads the navigation of the site from its configuration."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_project(configuration: Path) -> dict[str, Any]:
    """Return the table `project` of a file of Zensical, with the key `nav`."""
    project: dict[str, Any] = tomllib.loads(configuration.read_text(encoding="utf-8"))["project"]
    return project


def nav_pages(nav: Any, title: str = "") -> Iterator[tuple[str, str]]:
    """Yield the titles and the paths of the pages of a navigation, or of a part of it."""
    if isinstance(nav, str):
        yield title, nav
        return
    for name, part in nav.items() if isinstance(nav, dict) else ((title, part) for part in nav):
        yield from nav_pages(part, name)
