"""Tests of the documentation site; `tox run -e docs` builds and checks the whole site."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

import peekbench
import peekbench.records
from peekbench.cli.app import GROUPS
from peekbench.plugins.entries import KINDS

ROOT = Path(__file__).parents[2]
HTML = "<html><title>{title}</title><article><h1 id='top'>A</h1><p>{text}</p></article></html>"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the site."""
    monkeypatch.syspath_prepend(str(ROOT))
    names = ("staging", "checks", "crossrefs", "reference", "llms")
    modules = {name: importlib.import_module(f"website.{name}") for name in names}
    return SimpleNamespace(**modules, records=importlib.import_module("website.reference.records"))


def test_page_without_a_place_in_the_navigation_is_found(site: SimpleNamespace, tmp_path: Path) -> None:
    configuration = tmp_path / "zensical.toml"
    configuration.write_text('[project]\nnav = [{ "Home" = "index.md" }, { "How-to" = [{ "A" = "guides/a.md" }] }]\n')
    source = tmp_path / "source"
    (source / "guides").mkdir(parents=True)
    (source / "index.md").touch()
    with pytest.raises(site.checks.SiteError, match=r"`nav` has guides/a\.md, which does not exist"):
        site.checks.check_navigation(configuration, source)
    (source / "guides" / "a.md").touch()
    site.checks.check_navigation(configuration, source)
    (source / "guides" / "b.md").touch()
    with pytest.raises(site.checks.SiteError, match=r"guides/b\.md: not in `nav`"):
        site.checks.check_navigation(configuration, source)


@pytest.mark.slow
def test_reference_has_every_command_option_hook_and_name(site: SimpleNamespace, tmp_path: Path) -> None:
    site.reference.write_reference(tmp_path)
    pages = {path.name: path.read_text() for path in tmp_path.rglob("*.md")}
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) > 15
    for name in names:
        assert f"## peekbench {name}\n" in pages["commands.md"]
    for kind in KINDS:
        assert f"::: peekbench.plugins.entries.{kind.hook}\n" in pages["hooks.md"]
        assert f"@hookimpl\ndef {kind.hook}()" in pages["hooks.md"]
    assert "| `num_components` | whole number (>= 1) | `10` | Dimensions of" in pages["methods.md"]
    assert "| `pretraining.learning_rate` |" in pages["methods.md"]
    assert "::: peekbench.measure\n" in pages["peekbench.md"]
    assert "[`Dataset`](peekbench.md#peekbench.Dataset)" in pages["peekbench.records.md"]
    assert "[MethodSpec](#methodspec)" in pages["spec.md"]
    assert "| `error` | `str` | required | Type and message of the error. |" in pages["records.md"]


def test_every_public_record_is_listed_with_all_its_fields(site: SimpleNamespace) -> None:
    (page,) = site.records.write_records().values()
    sections = {title: text for title, _, text in (part.partition("\n") for part in page.split("\n## ")[1:])}
    assert {"TrialFailure", "Verdict", "Column", "Forest", "Trial", "Report"} <= sections.keys()
    for module in (peekbench, peekbench.records):
        for name in module.__all__:
            value = getattr(module, name)
            if hasattr(value, "__match_args__") and isinstance(value, type) and not name.endswith("Entry"):
                for field in getattr(value, "__match_args__"):  # noqa: B009 - which dataclasses and named tuples have
                    assert f"| `{field}` |" in sections[name], f"{name}.{field}"


def test_a_field_without_a_description_is_an_error(site: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.records, "field_docs", lambda record: {})
    with pytest.raises(site.records.UndocumentedError, match="has no docstring"):
        site.records.write_records()


def test_links_of_pages_are_rewritten(site: SimpleNamespace) -> None:
    text = "[a](../README.md#install) [b](../specs) `[c](../x)` [d](data.md)\n\n```text\n[e](../x)\n```\n"
    assert site.staging.rewrite_links(text, "docs/report.md", "https://example.org/r") == (
        "[a](index.md#install) [b](https://example.org/r/tree/main/specs) `[c](../x)` [d](data.md)\n\n"
        "```text\n[e](../x)\n```\n"
    )
    with pytest.raises(site.staging.StagingError, match=r"docs/report\.md: the link to \.\./x leads to x"):
        site.staging.rewrite_links("[c](../x)", "docs/report.md", "https://example.org/r")


@pytest.mark.parametrize(
    ("link", "error"),
    [
        ("b.html#top", None),
        ("https://example.org/a?b=c", None),
        ("b.html#bottom", "no such anchor"),
        ("c.html", "no such file"),
        ("../a.html", "no such file"),
        ("https://example", "not an address"),
        ("htp://example.org", "not an address"),
    ],
)
def test_broken_links_are_found(site: SimpleNamespace, tmp_path: Path, link: str, error: str | None) -> None:
    (tmp_path / "a.html").write_text(HTML.format(title="A", text=f"<a href='{link}'>x</a>"))
    (tmp_path / "b.html").write_text(HTML.format(title="B", text=""))
    pages = site.checks.read_pages(tmp_path)
    if error is None:
        site.checks.check_links(tmp_path, pages)
    else:
        with pytest.raises(site.checks.SiteError, match=f"a.html: .*: {error}"):
            site.checks.check_links(tmp_path, pages)


def test_lost_list_is_found(site: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(HTML.format(title="A", text="text - one - two"))
    page = site.checks.read_pages(tmp_path)["a.html"]
    with pytest.raises(site.checks.SiteError, match=r"a\.md: 2 <li> on GitHub, 0 on the site"):
        site.checks.check_content("# A\n\ntext\n- one\n- two\n", page, "a.md")


def test_names_in_code_are_linked_once_in_a_section(site: SimpleNamespace) -> None:
    targets = site.crossrefs.find_targets()
    assert targets["peekbench plan"] == "reference/commands.html#peekbench-plan"
    assert targets["classic.lsa"] == "reference/methods.html#classic.lsa"
    assert targets["pb.measure"] == "reference/python/peekbench.html#peekbench.measure"
    assert targets["MethodEntry"] == "reference/hooks.html#peekbench.plugins.MethodEntry"
    page = "<article><h2><code>classic.lsa</code></h2><code>classic.lsa</code> <code>classic.lsa</code></article>"
    linked = site.crossrefs.link_names(page, "guides/a.html", targets)
    assert linked.count("<a ") == 1
    assert '</h2><a href="../reference/methods.html#classic.lsa"><code>classic.lsa</code></a> <code>' in linked


def test_texts_for_language_models(site: SimpleNamespace, tmp_path: Path) -> None:
    configuration = tmp_path / "zensical.toml"
    configuration.write_text(
        '[project]\nsite_name = "peekbench"\nsite_description = "Measure"\n'
        'nav = [{ "Home" = "index.md" }, { "Reference" = [{ "Python" = [{ "pb" = "api.md" }] }] }]\n'
    )
    source, html = tmp_path / "source", tmp_path / "html"
    source.mkdir()
    html.mkdir()
    (source / "index.md").write_text("# Home\n\n![p](p.svg)\n\nIt [measures](a.md) bias. And more.\n")
    (source / "api.md").write_text("# pb\n\n::: peekbench.run\n")
    (html / "api.html").write_text("<article><h1>pb<a>&para;</a></h1>\n\n<p>Run a &lt;spec&gt;.</p></article>")
    site.llms.write_llms(configuration, source, html)
    assert (html / "llms.txt").read_text() == (
        "# peekbench\n\n> Measure.\n\n## Home\n\n- [Home](index.md): It measures bias.\n\n"
        "## Reference\n\n- [pb](api.md): Run a <spec>.\n"
    )
    assert (html / "api.md").read_text() == "pb\n\nRun a <spec>.\n"
    assert "It [measures](a.md) bias" in (html / "llms-full.txt").read_text()
