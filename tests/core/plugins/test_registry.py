"""Finding, importing and checking plugins, and what is said about broken ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from installed_plugins import Install, load_error

from peekbench.cli.show import describe, list_lines
from peekbench.errors import PluginError
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry, DataSourceEntry, MethodEntry, RendererEntry
from peekbench.plugins.registry import find_default
from peekbench.spec.experiment import parse_spec

WORKING = """
from peekbench import MethodEntry, Options, Predictor, hookimpl
class None_(Options):
    pass
def nothing(unlabeled, train, task, *, options, context):
    return Predictor(lambda inputs: None)
@hookimpl
def peekbench_methods():
    return [MethodEntry(name="nothing", options=None_, method=nothing, summary="does nothing")]
"""
RENDERER = """
from peekbench import hookimpl
from peekbench.plugins import RendererEntry
def render(figure, form):
    return b""
@hookimpl
def peekbench_renderers():
    return [RendererEntry(name="brush", render=render, summary="draws nothing")]
"""


def test_first_party_plugins_are_entry_points_too() -> None:
    first_party = {"classic", "controls", "docstrings", "files", "local", "permutation", "summary"}
    first_party |= {"consistency", "power"}
    assert first_party <= set(registry.installed())
    for name in first_party:
        assert registry.load(name).offers


def test_unknown_plugin_error_suggests_names() -> None:
    assert "no plugin 'clasic' is installed; plugins with entries: " in load_error("clasic")
    with pytest.raises(PluginError, match="no plugin 'clasic' is installed; did you mean classic.lsa"):
        registry.find("clasic.lsa", MethodEntry)


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("importless", "import no_such_library", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("exits", "raise SystemExit('at import')", "cannot be imported: SystemExit: at import"),
        ("computes", WORKING.replace("    return [", "    1 / 0; return ["), "peekbench_methods raised ZeroDivision"),
        ("unknown", WORKING.replace("peekbench_methods", "peekbench_metods"), "peekbench_metods"),
        ("wrong", WORKING.replace("return [", "return ['x', "), "list of MethodEntry, but one item is 'x'"),
        ("twice", WORKING.replace("return [", "return 2 * ["), "two entries named 'nothing'"),
        ("unmarked", WORKING.replace("@hookimpl", ""), "put @hookimpl above it"),
        ("uncalled", WORKING.replace("method=nothing", "method=7"), "method is 7; give a function"),
        ("optionless", WORKING.replace("options=None_", "options=dict"), "a class derived from peekbench.Options"),
        ("kinds", WORKING.replace("method=n", "task_kinds={'ranking'}, method=n"), "task_kinds is {'ranking'}"),
        (
            "strangers",
            WORKING.replace("method=n", "unlabeled_options=frozenset({'x'}), method=n"),
            "unlabeled_options is frozenset({'x'})",
        ),
    ],
)
def test_error_names_a_broken_plugin_and_the_problem(name: str, code: str, message: str, install: Install) -> None:
    install(name, code)
    error = load_error(name)
    assert message in error
    assert repr(name) in error


def test_broken_plugin_does_not_affect_specs_of_others(install: Install, tmp_path: Path) -> None:
    install("broken", "import no_such_library")
    spec = """
name: fine
tasks: [toy.words]
methods: [toy.vote]
design: {num_train: 9, num_test: 20, num_subsamples: 2}
analyses: [toy.count]
"""
    assert parse_spec(spec, folder=tmp_path).name == "fine"
    assert any("broken" in line and "no_such_library" in line for line in list_lines("plugins"))
    assert any("classic.lsa" in line for line in list_lines("methods"))


def test_two_plugins_with_one_name_are_an_error(install: Install) -> None:
    install("same", WORKING, distribution="one", module="plugin_one")
    install("same", WORKING, distribution="two", module="plugin_two")
    message = "two plugins are named 'same': plugin_.* and plugin_.*; uninstall one"
    with pytest.raises(PluginError, match=message):
        registry.load("same")
    assert any(re.search(message, line) for line in list_lines("plugins")), "other plugins are still listed"
    assert registry.load("classic").offers


def test_error_says_that_a_thing_is_of_another_kind() -> None:
    with pytest.raises(PluginError, match=r"it is one of the methods, which belong under methods"):
        registry.find("toy.vote", DataSourceEntry)
    with pytest.raises(PluginError, match="is a group of data sources"):
        registry.find("toy.all", DataSourceEntry)


def test_default_entry_with_a_role_comes_with_the_core(install: Install) -> None:
    install("brush", RENDERER)
    install("broken", "import no_such_library")
    assert find_default(RendererEntry, "renderer", lambda _: True) == "figures"
    with pytest.raises(PluginError, match="no plugin of peekbench has a ranking of dogs"):
        find_default(AnalyzerEntry, "ranking of dogs", lambda entry: entry.name == "dogs")


def test_show_describes_options_with_type_default_and_meaning() -> None:
    text = "\n".join(describe("controls.leak"))
    assert "share: number (>= 0, <= 1), default 0.25" in text
    assert "hare of" in text, "the docstring of the option"
    assert 'shrinkage: number (>= 0, <= 1) or ledoit_wolf, default "ledoit_wolf"' in next(
        describe("embedding.whitening")
    )
    assert "members: docstrings.stdlib" in "\n".join(describe("docstrings.all"))
    with pytest.raises(PluginError, match=r"no entry 'classic.lda'; did you mean classic\.lsa"):
        "\n".join(describe("classic.lda"))
