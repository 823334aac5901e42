"""Checks of the site: pages without a place in the navigation, broken links, and content that was lost in rendering."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from markdown_it import MarkdownIt

from website.navigation import nav_pages, read_project

SCHEMES = {"http", "https", "mailto"}
CONTENT = ("h1", "h2", "h3", "h4", "li", "table", "tr", "pre", "blockquote", "img")
LINKS = {"a": "href", "link": "href", "script": "src", "img": "src", "iframe": "src"}
ALERT = re.compile(r"^> \[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]$", re.MULTILINE)


class SiteError(Exception):
    """Errors of the site, one per line, each with its page."""


@dataclass
class Page:
    """What the checks need to know of an HTML page."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    article: Counter[str] = field(default_factory=Counter)
    """Numbers of elements in the text of the page, without navigation."""
    title: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._articles = 0
        self._in_title = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        for name in ("id", "name"):
            if values.get(name) and tag != "meta":
                self.page.anchors.add(str(values[name]))
        if tag in LINKS and values.get(LINKS[tag]) is not None:
            self.page.links.append(str(values[LINKS[tag]]))
        self._articles += tag == "article"
        self._in_title = tag == "title"
        if self._articles and tag in CONTENT:
            self.page.article[tag] += 1

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.page.title += data

    def handle_endtag(self, tag: str) -> None:
        self._articles -= tag == "article"
        self._in_title = False


def read_pages(html: Path) -> dict[str, Page]:
    """Return what the checks need to know of each page, by its path in the folder of the site.

    Parameters
    ----------
    html
        Folder of the HTML pages.
    """
    pages = {}
    for path in sorted(html.rglob("*.html")):
        reader = _Reader()
        reader.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(html).as_posix()] = reader.page
    return pages


def check_navigation(configuration: Path, source: Path) -> None:
    """Check that the navigation has exactly the pages of a folder, each once.

    Parameters
    ----------
    configuration
        File of Zensical with the key `nav`.
    source
        Folder of the staged pages.

    Raises
    ------
    SiteError
        If a page is missing in the navigation, or occurs twice, or does not exist.
    """
    listed = Counter(path for _, path in nav_pages(read_project(configuration)["nav"]))
    present = {path.relative_to(source).as_posix() for path in source.rglob("*.md")}
    errors = [f"{page}: not in `nav` of {configuration}; add it there" for page in sorted(present - set(listed))]
    errors += [f"{configuration}: `nav` has {page}, which does not exist" for page in sorted(set(listed) - present)]
    errors += [f"{configuration}: `nav` has {page} {count} times" for page, count in listed.items() if count > 1]
    _raise(errors)


def check_links(html: Path, pages: dict[str, Page]) -> None:
    """Check that each link leads to a file and an anchor of the site, or is the address of another site.

    Parameters
    ----------
    html
        Folder of the HTML pages.
    pages
        The pages, as `read_pages` returns them. Links to other sites are not followed.

    Raises
    ------
    SiteError
        If a link is broken.
    """
    _raise(
        f"{path}: {link}: {error}"
        for path, page in pages.items()
        for link in dict.fromkeys(page.links)
        if (error := _link_error(html, pages, path, link))
    )


def _link_error(html: Path, pages: dict[str, Page], path: str, link: str) -> str:
    try:
        parts = urlsplit(link)
    except ValueError as error:
        return str(error)
    if parts.scheme or parts.netloc:
        is_address = parts.scheme in SCHEMES and (parts.scheme == "mailto" or "." in parts.netloc)
        return "" if is_address and not re.search(r"\s", link) else "not an address"
    root = html.resolve()
    target = ((html / path).parent / unquote(parts.path)).resolve() if parts.path else root / path
    if path == "404.html" and parts.path.startswith("/"):  # the only page with links from the root of a server
        target = root / unquote(parts.path).lstrip("/")
    if target.is_dir():
        target = target / "index.html"
    if not target.is_relative_to(root) or not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    found = pages.get(target.relative_to(root).as_posix())
    if anchor and not anchor.startswith("__") and found is not None and anchor not in found.anchors:
        return "no such anchor"
    return ""


def check_content(text: str, page: Page, name: str) -> None:
    """Check that a page has as many headings, list items, tables and blocks of code as GitHub shows.

    The Markdown of GitHub and that of the site differ: a list directly below a paragraph, for example, is a list only
    on GitHub.

    Parameters
    ----------
    text
        Markdown of the page.
    page
        The rendered page.
    name
        Name of the page in errors.

    Raises
    ------
    SiteError
        If a number differs.
    """
    rendered = _Reader()
    rendered.feed(f"<article>{MarkdownIt('commonmark').enable('table').render(text)}</article>")
    expected = rendered.page.article
    expected["blockquote"] -= len(ALERT.findall(text))
    _raise(
        f"{name}: {expected[tag]} <{tag}> on GitHub, {page.article[tag]} on the site"
        for tag in CONTENT
        if expected[tag] != page.article[tag]
    )


def _raise(errors: Any) -> None:
    if errors := list(errors):
        raise SiteError("\n".join(errors))
