"""Turns notebooks into pages: text cells as they are, code cells as blocks."""

from __future__ import annotations

import json
from pathlib import Path

from website.staging import OTHER_PAGES, ROOT, rewrite_links


def write_notebooks(folder: Path, repository: str) -> None:
    """Write a page for each notebook in `examples/`.

    Parameters
    ----------
    folder
        Folder of the staged pages.
    repository
        Address of the repository, to which links to other files lead.
    """
    for path in OTHER_PAGES:
        if path.endswith(".ipynb"):
            target = folder / OTHER_PAGES[path]
            target.parent.mkdir(exist_ok=True)
            source = f"{repository}/blob/main/{path}"
            note = f"This page is the notebook [`{path}`]({source}); run it to see its output."
            page = rewrite_links(f"{notebook_text(ROOT / path)}\n\n{note}\n", path, repository)
            target.write_text(page, encoding="utf-8")


def notebook_text(path: Path) -> str:
    """Return the cells of a notebook as Markdown.

    Parameters
    ----------
    path
        Notebook whose first cell begins with a heading.
    """
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = ["".join(cell["source"]) for cell in cells]
    return "\n\n".join(
        part if cell["cell_type"] == "markdown" else f"```python\n{part}\n```"
        for cell, part in zip(cells, parts, strict=True)
    )
