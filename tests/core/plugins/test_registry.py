from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from peekbench.cli.catalogue import describe, list_plugins, list_things
from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry, MethodEntry, RendererEntry
from peekbench.spec.experiment import parse_spec
from peekbench.spec.json_schema import broken_plugins, make_schema

GOOD = """
from peekbench import MethodEntry, Options, Predictor, hookimpl
class None_(Options):
    pass
def nothing(unlabeled, train, task, *, options, context):
    return Predictor(lambda inputs: None)
@hookimpl
def peekbench_methods():
    return [MethodEntry(name="nothing", options=None_, method=nothing, summary="does nothing")]
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Put a plugin where installed distributions are looked for."""

    def forget() -> None:
        registry.installed.cache_clear()
        registry.load.cache_clear()

    def make(name: str, code: str, *, distribution: str = "", module: str = "") -> None:
        distribution, module = distribution or name, module or f"plugin_{name}"
        (tmp_path / f"{module}.py").write_text(code)
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[peekbench]\n{name} = {module}\n")
        forget()

    monkeypatch.syspath_prepend(str(tmp_path))
    yield make
    forget()


def fault(name: str) -> str:
    with pytest.raises(PluginError) as caught:
        registry.load(name)
    return str(caught.value)


def test_an_installed_plugin_is_found_and_indexed(install: Install) -> None:
    install("fresh", GOOD)
    assert registry.find("fresh.nothing", "method", MethodEntry).summary == "does nothing"


def test_first_party_plugins_come_through_the_same_door() -> None:
    first_party = {"classic", "controls", "docstrings", "files", "local", "permutation", "summary"}
    first_party |= {"consistency", "power"}
    assert first_party <= set(registry.installed())
    for name in first_party:
        assert registry.load(name).offers


def test_an_unknown_plugin_lists_what_there_is() -> None:
    message = fault("clasic")
    assert "no plugin 'clasic' is installed (did you mean 'classic'?)" in message
    assert "controls" in message


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("importless", "import no_such_library", "cannot be imported: ModuleNotFoundError: No module named 'no_such_l"),
        ("syntax", "def (", "cannot be imported: SyntaxError"),
        ("raises", "raise RuntimeError('at import')", "cannot be imported: RuntimeError: at import"),
        ("exits", "raise SystemExit('at import')", "cannot be imported: SystemExit: at import"),
        ("computes", GOOD.replace("    return [", "    1 / 0; return ["), "peekbench_methods raised ZeroDivisionError"),
        ("unknown", GOOD.replace("peekbench_methods", "peekbench_metods"), "does not fit"),
        ("arguments", GOOD.replace("peekbench_methods()", "peekbench_methods(spec)"), "does not fit"),
        (
            "tuple",
            GOOD.replace("return [Method", "return (Method").replace('")]', '"),)'),
            "must return a list of Method",
        ),
        ("wrong", GOOD.replace("return [", "return ['x', "), "must return a list of MethodEntry, but one is 'x'"),
        ("twice", GOOD.replace("return [", "return 2 * ["), "returns two entries named 'nothing'; rename one"),
        ("unmarked", GOOD.replace("@hookimpl", ""), "peekbench_methods is not marked; put @hookimpl above it"),
        ("empty", GOOD.replace("return [", "["), "must return a list of"),
        (
            "uncalled",
            GOOD.replace("method=nothing", "method=7"),
            "give a function",
        ),
        ("optionless", GOOD.replace("options=None_", "options=dict"), "a class derived from peekbench.Options"),
        ("kinds", GOOD.replace("method=n", "task_kinds={'ranking'}, method=n"), "task_kinds is {'ranking'}; give a fr"),
        (
            "strangers",
            GOOD.replace("method=n", "unlabeled_options=frozenset({'x'}), method=n"),
            "give a frozenset of names of its options",
        ),
        (
            "forecasting",
            "from peekbench import AnalyzerEntry, hookimpl\n"
            "@hookimpl\n"
            "def peekbench_analyzers():\n"
            "    return [AnalyzerEntry(name='x', analyze=print, forecast=7, summary='')]\n",
            "forecast is 7; give a function, or None",
        ),
        (
            "auditing",
            "from peekbench import AuditEntry, hookimpl\n"
            "@hookimpl\n"
            "def peekbench_audits():\n"
            "    return [AuditEntry(name='x', audit=7, summary='')]\n",
            "audit is 7; give a function",
        ),
        (
            "painting",
            "from peekbench import RendererEntry, hookimpl\n"
            "@hookimpl\n"
            "def peekbench_renderers():\n"
            "    return [RendererEntry(name='x', paint=7, summary='')]\n",
            "paint is 7; give a function",
        ),
        ("spaces", GOOD.replace('"nothing"', '"no thing"'), "names are made of letters"),
    ],
)
def test_a_broken_plugin_is_named_with_its_fault(name: str, code: str, message: str, install: Install) -> None:
    install(name, code)
    text = fault(name)
    assert message in text
    assert repr(name) in text


def test_a_broken_plugin_stops_nobody_who_does_not_name_it(install: Install, tmp_path: Path) -> None:
    install("broken", "import no_such_library")
    spec = """
name: fine
tasks: [toy.words]
methods: [toy.vote]
design: {num_train: 9, num_test: 20, num_subsamples: 2}
analyses: [toy.count]
"""
    assert parse_spec(spec, folder=tmp_path).name == "fine"
    assert any("broken" in line and "no_such_library" in line for line in list_plugins())
    assert any("classic.lsa" in line for line in list_things("methods"))


def test_a_broken_plugin_is_left_out_of_the_schema(install: Install) -> None:
    install("broken", "import no_such_library")
    assert "no_such_library" in broken_plugins()["broken"]
    assert "classic.lsa" in str(make_schema())


def test_two_plugins_of_one_name_are_an_error(install: Install) -> None:
    install("same", GOOD, distribution="one", module="plugin_one")
    install("same", GOOD, distribution="two", module="plugin_two")
    message = "two plugins are called 'same': plugin_.* and plugin_.*; uninstall one"
    with pytest.raises(PluginError, match=message):
        registry.load("same")
    assert any(re.search(message, line) for line in list_plugins()), "others are listed all the same"
    assert registry.load("classic").offers


def test_a_plugins_name_alone_means_its_thing_of_that_name() -> None:
    assert registry.split_use("summary") == ("summary", "summary")
    assert registry.split_use("classic.lsa") == ("classic", "lsa")


def test_a_thing_of_another_kind_is_pointed_out() -> None:
    with pytest.raises(PluginError, match="'toy.vote' is among the methods"):
        registry.find("toy.vote", "data source", DataSourceEntry)
    with pytest.raises(PluginError, match="is a group of data sources and cannot stand here"):
        registry.find("toy.all", "data source", DataSourceEntry)


def test_show_describes_options_with_type_default_and_meaning() -> None:
    text = "\n".join(describe("controls.leak"))
    assert "share: float (>= 0, <= 1), default 0.25" in text
    assert "Share of the unlabeled texts whose labels the method knows." in text
    assert "stands for: docstrings.stdlib" in "\n".join(describe("docstrings.all"))
    with pytest.raises(PluginError, match="plugin 'classic' offers no 'lda'; it offers: classic.lsa"):
        "\n".join(describe("classic.lda"))


def test_list_knows_its_headings() -> None:
    assert any(line.startswith("  toy.vote ") for line in list_things("all"))
    with pytest.raises(PluginError, match="nothing to list under 'metods'"):
        list(list_things("metods"))


def test_a_painter_is_shown_and_has_no_place_in_specs(install: Install) -> None:
    install(
        "brush",
        "from peekbench import RendererEntry, hookimpl\n"
        "def paint(figure, form):\n    return b''\n"
        "@hookimpl\n"
        "def peekbench_renderers():\n    return [RendererEntry(name='brush', paint=paint, summary='paints nothing')]\n",
    )
    assert registry.find("brush", "painter", RendererEntry).paint(None, "svg") == b""  # type: ignore[arg-type]
    assert list(describe("brush")) == ["brush: painter\npaints nothing"]
    assert "brush" not in broken_plugins()
    assert "brush" not in str(make_schema())
