"""Reference pages, written from the code when the site is built."""

from __future__ import annotations

from pathlib import Path

from website.reference.api import write_api
from website.reference.commands import write_commands
from website.reference.hooks import write_hooks
from website.reference.options import write_options
from website.reference.records import write_records
from website.reference.schemas import write_schemas


def write_reference(folder: Path) -> None:
    """Write all reference pages.

    Parameters
    ----------
    folder
        Folder of the staged pages, in which `reference` is created.
    """
    pages = {
        **write_commands(),
        **write_options(),
        **write_hooks(),
        **write_records(),
        **write_schemas(),
        **write_api(),
    }
    for name, text in pages.items():
        path = folder / "reference" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
