"""Copies the pages of the repository to a folder and rewrites the links that leave it.

Pages are written for GitHub. A link to a page of the site becomes a link between pages; a link to any other file of the
repository leads to the file on GitHub.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
OTHER_PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/own_method.ipynb": "tutorials/notebook-own-method.md",
    "examples/own_scores.ipynb": "tutorials/notebook-own-scores.md",
    "examples/reading_a_run.ipynb": "tutorials/notebook-reading-a-run.md",
}
"""Pages of the site that are outside docs/, by their paths in the repository."""

FENCE = re.compile(r" *(`{3,}|~{3,})")
CODE = re.compile(r"(?<!`)(`+)(?!`)(?:.+?)(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(\]\()([^()\s]+)((?:\s+\"[^\"]*\")?\))")
DEFINITION = re.compile(r"^(\[[^\]]+\]:\s+)(\S+)()", re.MULTILINE)


class StagingError(Exception):
    """A page that cannot be part of the site, with the reason."""


def page_of(path: str) -> str | None:
    """Return where a file of the repository is on the site, or None if it is not on the site.

    Parameters
    ----------
    path
        Path from the root of the repository, with forward slashes.

    Examples
    --------
    >>> page_of("README.md"), page_of("docs/report.md"), page_of("specs/quickstart.yaml")
    ('index.md', 'report.md', None)
    """
    if path in OTHER_PAGES:
        return OTHER_PAGES[path]
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def stage(folder: Path, repository: str) -> None:
    """Copy all pages and pictures of the repository to a folder.

    Parameters
    ----------
    folder
        Folder of the staged pages.
    repository
        Address of the repository, to which links to other files lead.

    Raises
    ------
    StagingError
        If a link of a page leads to a file that does not exist.
    """
    shutil.copytree(ROOT / "docs", folder, dirs_exist_ok=True)
    for source in [*ROOT.glob("docs/**/*.md"), *(ROOT / name for name in OTHER_PAGES if name.endswith(".md"))]:
        path = source.relative_to(ROOT).as_posix()
        target = folder / str(page_of(path))
        target.write_text(rewrite_links(source.read_text(encoding="utf-8"), path, repository), encoding="utf-8")


def rewrite_links(text: str, path: str, repository: str) -> str:
    """Return a page with links as they are on the site.

    Parameters
    ----------
    text
        Markdown of the page.
    path
        Path of the page from the root of the repository.
    repository
        Address of the repository.

    Raises
    ------
    StagingError
        If a link leads to a file that does not exist.

    Examples
    --------
    >>> rewrite_links("[spec](../specs/quickstart.yaml)", "docs/report.md", "https://example.org/r")
    '[spec](https://example.org/r/blob/main/specs/quickstart.yaml)'
    """

    def rewrite(match: re.Match[str]) -> str:
        return match[1] + _rewrite_target(match[2], path, repository) + match[3]

    return outside_code(text, lambda part: DEFINITION.sub(rewrite, LINK.sub(rewrite, part)))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Return Markdown whose parts outside of code, fenced or inline, are changed by a function.

    Parameters
    ----------
    text
        Markdown of a page.
    change
        Function that is called with each part.

    Examples
    --------
    >>> outside_code("a `a` a", str.upper)
    'A `a` A'
    """
    changed: list[str] = []
    block: list[str] = []
    fence = ""

    def end_block() -> None:
        prose = "".join(block)
        start = 0
        for span in CODE.finditer(prose):
            changed.extend([change(prose[start : span.start()]), span[0]])
            start = span.end()
        changed.append(change(prose[start:]))
        block.clear()

    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line)
        if fence:
            changed.append(line)
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            end_block()
            fence = mark[1]
            changed.append(line)
        elif not line.strip():  # a blank line ends a paragraph, and so each code span
            end_block()
            changed.append(line)
        else:
            block.append(line)
    end_block()
    return "".join(changed)


def _rewrite_target(target: str, path: str, repository: str) -> str:
    address, separator, anchor = target.partition("#")
    if not address or re.match(r"[a-z][a-z0-9+.-]*:", address):
        return target
    found = PurePosixPath(os.path.normpath(PurePosixPath(path).parent / address)).as_posix()
    if not (ROOT / found).exists():
        raise StagingError(f"{path}: the link to {target} leads to {found}, which does not exist")
    page = page_of(found)
    if page is None:
        kind = "tree" if (ROOT / found).is_dir() else "blob"
        return f"{repository}/{kind}/main/{found}{separator}{anchor}"
    return os.path.relpath(page, PurePosixPath(str(page_of(path))).parent) + separator + anchor
