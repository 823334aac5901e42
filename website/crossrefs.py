"""Links names in code to their reference: commands, entries of plugins, and public names of Python."""

from __future__ import annotations

import html as markup
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from peekbench.plugins.entries import KINDS
from website.reference.api import MODULES, public_names
from website.reference.commands import command_names
from website.reference.hooks import HOOKS, entry_types
from website.reference.options import entries_of

PIECE = re.compile(r"<[^>]*>|[^<]+")
CLOSED_IN = ("a", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "nav", "title", "script", "summary")
"""Elements in which code is no link."""
OPTIONS_OF_COMMAND = re.compile(r"^peekbench ([a-z][a-z-]+)( .*)?$", re.DOTALL)


def find_targets() -> dict[str, str]:
    """Return the page and anchor of each name that code can mention.

    Entries have their names in specs, commands are `peekbench NAME`, and Python names are as users write them: with
    the module, with `pb.`, and alone if they begin with a capital letter, because other words could mean anything.
    """
    targets: dict[str, str] = {}
    for kind in KINDS:
        targets |= {use: f"reference/{kind.heading}.html#{use}" for use in entries_of(kind)}
        targets[kind.hook] = f"reference/{HOOKS}".replace(".md", f".html#peekbench.plugins.entries.{kind.hook}")
    targets = {name: target for name, target in targets.items() if "." in name or name.startswith("peekbench_")}
    targets |= {f"peekbench {name}": f"reference/commands.html#peekbench-{name}" for name in command_names()}
    entries = {entry.__name__ for entry in entry_types()}
    for module in reversed(MODULES):  # a name of several modules is described on the page of the first one
        targets[module] = f"reference/python/{module}.html"
        for name in public_names(module):
            page = f"reference/python/{module}.html#{module}.{name}"
            if name in entries:
                page = f"reference/hooks.html#peekbench.plugins.{name}"
            targets[f"{module}.{name}"] = page
            if name[0].isupper() and not name.isupper():
                targets[name] = page
            if module == "peekbench":
                targets[f"pb.{name}"] = page
    targets["peekbench"] = ""
    return {name: target for name, target in targets.items() if target}


def link_names(page: str, path: str, targets: Mapping[str, str]) -> str:
    """Return an HTML page in which the first mention of each name in a section is a link.

    Parameters
    ----------
    page
        The page.
    path
        Its path in the folder of the site.
    targets
        Pages and anchors by name, as `find_targets` returns them.

    Examples
    --------
    >>> link_names("<p><code>peekbench run</code></p>", "usage.html", {"peekbench run": "commands.html#run"})
    '<p><a href="commands.html#run"><code>peekbench run</code></a></p>'
    """
    start = page.find("<article")
    start = max(start, 0)
    depth = 0
    linked: set[str] = set()
    pieces = PIECE.findall(page[start:])
    for place, piece in enumerate(pieces):
        name, is_end = _tag(piece)
        if name in CLOSED_IN:
            depth += -1 if is_end else 1
            if name in ("h1", "h2", "h3"):
                linked.clear()
        elif piece == "<code>" and not depth and pieces[place + 2 : place + 3] == ["</code>"]:
            target = _target(markup.unescape(pieces[place + 1]), targets)
            if target and target not in linked and target != path:
                linked.add(target)
                address = os.path.relpath(target, PurePosixPath(path).parent)
                pieces[place] = f'<a href="{address}"><code>'
                pieces[place + 2] = "</code></a>"
    return page[:start] + "".join(pieces)


def _tag(piece: str) -> tuple[str, bool]:
    match = re.match(r"<(/?)([a-z0-9]+)", piece)
    return (match[2], bool(match[1])) if match else ("", False)


def _target(text: str, targets: Mapping[str, str]) -> str:
    text = " ".join(text.split())
    if text in targets:
        return targets[text]
    if command := OPTIONS_OF_COMMAND.match(text):
        return targets.get(f"peekbench {command[1]}", "")
    return targets.get(text.partition("(")[0], "") if text.endswith(")") and "." in text else ""


def link_site(html: Path) -> None:
    """Link names in code on all pages of the site.

    Parameters
    ----------
    html
        Folder of the HTML pages, which are changed.
    """
    targets = find_targets()
    for file in html.rglob("*.html"):
        path = file.relative_to(html).as_posix()
        if path != "404.html" and not path.startswith("gallery/"):
            file.write_text(link_names(file.read_text(encoding="utf-8"), path, targets), encoding="utf-8")
