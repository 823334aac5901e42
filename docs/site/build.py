"""Builds the documentation site in `site/html/`: `python docs/site/build.py`.

It copies `docs/` and the pages of the root to `site/source/`, writes the reference, renders everything with Zensical
(`zensical.toml`), and checks the links of the HTML pages. mkdocstrings writes the Python reference from docstrings;
the settings of specs and the options of entries are those of `peekbench show spec-schema`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from typer.testing import CliRunner

from peekbench.cli.app import COMMANDS, app
from peekbench.cli.show import describe_type
from peekbench.plugins.entries import KINDS, kind_of
from peekbench.spec.components import COMPONENTS
from peekbench.spec.json_schema import make_schema

ROOT = Path(__file__).parents[2]
CONFIGURATION = Path(__file__).with_name("zensical.toml")
REPOSITORY = "https://github.com/peekbench/peekbench/blob/main"
ROOT_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
LINK = re.compile(r"(?<=\]\()([^()\s#]+)(?=[#)])")


def page_of(path: str) -> str | None:
    """Return the page of the site that shows a file of the repository, or None."""
    return ROOT_PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)


def stage(source: Path) -> None:
    """Copy all pages; links to other files of the repository lead to GitHub."""
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("site"))
    for path in [*ROOT_PAGES, *(page.relative_to(ROOT).as_posix() for page in ROOT.glob("docs/**/*.md"))]:
        page = str(page_of(path))
        text = (ROOT / path).read_text(encoding="utf-8")
        text = LINK.sub(lambda link, path=path, page=page: rewrite(link[0], path, page), text)  # type: ignore[misc]
        (source / page).write_text(text, encoding="utf-8")


def rewrite(link: str, path: str, page: str) -> str:
    """Return a link of a file of the repository as it is on its page of the site."""
    found = os.path.normpath(PurePosixPath(path).parent / link)
    if not (ROOT / found).exists():
        return link
    target = page_of(found)
    return os.path.relpath(target, PurePosixPath(page).parent) if target else f"{REPOSITORY}/{found}"


def reference_pages(modules: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Iterate over the names and texts of the pages of commands, hooks, specs, entries and public modules."""
    yield "commands", "# Commands\n" + "".join(map(help_of, sorted(COMMANDS)))
    hooks = (f"::: peekbench.plugins.entries.{kind.hook}\n" for kind in KINDS)
    yield "hooks", "\n".join(["# Hooks\n\n[peekbench](python/peekbench.md) describes the entries.\n", *hooks])
    yield from schema_pages(make_schema()["$defs"])
    described: set[int] = set()
    for module in modules:
        yield f"python/{module}", f"# {module}\n\n" + "\n".join(f"::: {name}\n" for name in names(module, described))


def help_of(command: str) -> str:
    """Return the section of a command with its `--help`."""
    shown = CliRunner().invoke(app, [command, "--help"], prog_name="peekbench", env={"COLUMNS": "90"}).output
    return f"\n## peekbench {command}\n\n```text\n{shown.strip()}\n```\n"


def names(module: str, described: set[int]) -> Iterator[str]:
    """Iterate over the names that a module exports and that no earlier page describes."""
    imported = import_module(module)
    own = [name for name, value in vars(imported).items() if getattr(value, "__module__", None) == module]
    for name in sorted(getattr(imported, "__all__", own)):
        value = getattr(imported, name)
        if not name.startswith("_") and not isinstance(value, ModuleType) and id(value) not in described:
            described.add(id(value))
            yield f"{module}.{name}"


def schema_pages(definitions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Iterate over the page of the settings of a spec and the pages of entries with their options."""
    headings = {component.__name__: kind_of(component.entry_type).heading for component in COMPONENTS}
    links = {name: f"[{name}](#{name.lower()})" for name in definitions if not name.startswith("options of ")}
    links |= {name: f"[{heading}]({heading}.md)" for name, heading in headings.items()}
    types = {name: {"const": link} for name, link in links.items()}
    settings = ["# Settings of a spec\n"]
    for name in sorted(links, key=lambda name: (name != "ExperimentSpec", name)):
        shapes = [part for part in definitions[name].get("anyOf", [definitions[name]]) if "properties" in part]
        if name not in headings:
            description = definitions[name].get("description", "")
            settings.append(f"## {name}\n\n{description}\n\n{table(rows(shapes[0], types))}")
            continue
        entries = [shape for shape in shapes if "enum" in shape["properties"]["use"]]
        common = {key: value for key, value in shapes[0]["properties"].items() if key not in ("use", "options")}
        sections = [f"# {headings[name].capitalize()}\n\n{table(rows({'properties': common}, types))}"]
        for use, options in ((entry["properties"]["use"], entry["properties"].get("options", {})) for entry in entries):
            described = table(rows(referred(options, definitions), definitions)) or "It has no options."
            sections.append(f"## `{use['enum'][0]}`\n\n{use.get('description', '')}\n\n{described}")
        yield headings[name], "\n\n".join(sections)
    yield "spec", "\n\n".join(settings)


def referred(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the options that a schema refers to, or an empty one."""
    references = [part.get("$ref", "").rpartition("/")[2] for part in (schema, *schema.get("anyOf", ()))]
    return next((definitions[name] for name in references if name.startswith("options of ")), {})


def rows(schema: Mapping[str, Any], definitions: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, ...]]:
    """Iterate over name, type, default and meaning of settings; nested options follow their parent."""
    for name, setting in schema.get("properties", {}).items():
        default = "required" if name in schema.get("required", ()) else ""
        if "default" in setting:
            default = f"`{json.dumps(setting['default'])}`"
        yield f"`{prefix}{name}`", describe_type(setting, definitions), default, setting.get("description", "")
        yield from rows(referred(setting, definitions), definitions, f"{prefix}{name}.")


def table(found: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table of settings, or an empty text without rows."""
    lines = ["| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in found]
    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *lines]) if lines else ""


class Page(HTMLParser):
    """The anchors and the links of an HTML page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors = {""}
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchor and the link of an element."""
        values = dict(attrs)
        self.anchors.add(values.get("id") or "")
        self.links.append(values.get("href") or values.get("src") or "")


def broken_links(html: Path) -> Iterator[str]:
    """Iterate over links within the site to files or anchors that do not exist."""
    pages = {path: Page(path) for path in html.resolve().rglob("*.html") if path.name != "404.html"}
    for path, link in ((path, link) for path, page in pages.items() for link in page.links):
        parts = urlsplit(link)
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        has_anchor = target not in pages or unquote(parts.fragment) in pages[target].anchors
        if not (parts.scheme or parts.netloc) and not (target.is_file() and has_anchor):
            yield f"{path.relative_to(html.resolve())}: broken link: {link}"


def build(folder: Path) -> None:
    """Build and check the site in a folder, whose `html/` has the pages."""
    shutil.rmtree(folder, ignore_errors=True)
    stage(folder / "source")
    listed = re.findall(r'"([^"]+)\.md"', CONFIGURATION.read_text(encoding="utf-8"))
    python = "reference/python/"
    for name, text in reference_pages(page.removeprefix(python) for page in listed if page.startswith(python)):
        page = folder / "source" / "reference" / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    written = [path.relative_to(folder / "source").as_posix() for path in folder.rglob("*.md")]
    if unlisted := sorted(set(written) - {f"{page}.md" for page in listed}):
        sys.exit(f"not in `nav` of docs/site/zensical.toml: {', '.join(unlisted)}")
    shutil.copy(CONFIGURATION, folder)
    subprocess.run([sys.executable, "-m", "zensical", "build", "--strict"], cwd=folder, check=True)
    if errors := list(broken_links(folder / "html")):
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    build(ROOT / "site")
