"""The documentation site, which `tox run -e docs` builds as a whole."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """The script that builds the site."""
    spec = spec_from_file_location("build_site", ROOT / "docs" / "site" / "build.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_broken_links_are_found(site: ModuleType, tmp_path: Path) -> None:
    links = ["b.html#top", "https://example.org/a#b", "#here", "b.html#bottom", "c.html", "../a.html", "no.png"]
    anchors = "".join(f"<a href='{link}'>x</a>" for link in links)
    (tmp_path / "a.html").write_text(f"<p id='here'>{anchors}</p>")
    (tmp_path / "b.html").write_text("<h1 id='top'>B</h1>")
    broken = [error.rpartition(" ")[2] for error in site.broken_links(tmp_path)]
    assert broken == ["b.html#bottom", "c.html", "../a.html", "no.png"]


def test_links_to_files_outside_the_site_lead_to_the_repository(site: ModuleType) -> None:
    assert site.rewrite("../README.md", "docs/report.md", "report.md") == "index.md"
    assert site.rewrite("docs/data.md", "README.md", "index.md") == "data.md"
    assert site.rewrite("../specs", "docs/report.md", "report.md") == f"{site.REPOSITORY}/specs"


@pytest.mark.slow
def test_reference_has_every_command_option_setting_and_name(site: ModuleType) -> None:
    pages = dict(site.reference_pages(["peekbench", "peekbench.records"]))
    assert "## peekbench run\n\n```text\nUsage: peekbench run" in pages["commands"]
    assert "::: peekbench.plugins.entries.peekbench_methods\n" in pages["hooks"]
    assert "| `num_components` | whole number (>= 1) | `10` | Dimensions of" in pages["methods"]
    assert "| `pretraining.learning_rate` |" in pages["methods"]
    assert "| `methods` | list: [methods](methods.md) | required |" in pages["spec"]
    assert "::: peekbench.measure\n" in pages["python/peekbench"]
    assert "::: peekbench.records.Trial\n" in pages["python/peekbench.records"]
