"""Builds the site: stages the pages, writes the reference, renders and checks everything."""

from __future__ import annotations

import shutil
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from website.checks import check_content, check_links, check_navigation, read_pages
from website.crossrefs import link_site
from website.gallery import run_examples, write_gallery
from website.llms import write_llms
from website.notebooks import write_notebooks
from website.reference import write_reference
from website.render import CONFIGURATION, render
from website.staging import ROOT, stage


def repository() -> str:
    """Return the address of the repository that `pyproject.toml` states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Homepage"])


def build(folder: Path) -> Path:
    """Build the site in a folder, and return the folder of its HTML pages.

    Parameters
    ----------
    folder
        Folder of the site; what an earlier build left there is replaced.
    """
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    stage(source, repository())
    write_notebooks(source, repository())
    with ThreadPoolExecutor() as pool:
        examples = pool.submit(run_examples, folder / "gallery")
        write_reference(source)
        examples.result()
    write_gallery(source, folder / "gallery")
    check_navigation(CONFIGURATION, source)
    html = render(folder)
    link_site(html)
    write_llms(CONFIGURATION, source, html)
    pages = read_pages(html)
    check_links(html, pages)
    for path in sorted(source.rglob("*.md")):
        name = path.relative_to(source).as_posix()
        if not name.startswith("reference/"):
            check_content(path.read_text(encoding="utf-8"), pages[name.replace(".md", ".html")], name)
    return html
