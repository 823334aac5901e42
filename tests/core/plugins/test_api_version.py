"""Plugins state the version of the plugin API that they are made for; those for another major version are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from installed_plugins import Install, load_error

from peekbench.plugins import API_VERSION, registry, validation

METHOD = """
from peekbench import {names}
@hookimpl
def peekbench_methods():
    return [MethodEntry(name="nothing", method=print, summary="does nothing"{fields})]
"""
WORKING = METHOD.format(names="MethodEntry, hookimpl", fields="")
PLUGIN_DOCUMENT = Path(__file__).parents[3] / "docs" / "plugins" / "reference.md"


@pytest.mark.parametrize("statement", ["", 'PEEKBENCH_API = "2.0"', 'PEEKBENCH_API: str = "2.0"'])
def test_plugins_for_this_version_work(install: Install, statement: str) -> None:
    install("stated", statement + WORKING)
    assert registry.load("stated").offers["method"]


def test_plugin_for_a_later_major_version_is_refused_before_its_import(install: Install) -> None:
    install("late", 'PEEKBENCH_API = "7.2"\nraise RuntimeError("imported")')
    message = load_error("late")
    assert "plugin 'late' (plugin_late of late) is made for version 7.2 of the plugin API" in message
    assert f"this peekbench has version {API_VERSION}; upgrade peekbench" in message


def test_plugin_for_an_earlier_major_version_is_told_what_to_change(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "API_VERSION", "4.1")
    changes = {2: "rename `x`", 3: "drop `y`", 4: "return `z`"}
    monkeypatch.setattr(validation, "MAJOR_CHANGES", changes)
    install("early", 'PEEKBENCH_API = "2.3"' + WORKING)
    message = load_error("early")
    assert "drop `y`; return `z`" in message
    assert "rename `x`" not in message
    assert 'PEEKBENCH_API = "4.1"' in message
    assert registry.load("classic").offers, "plugins of peekbench are never refused"


def test_newer_minor_version_is_an_error_only_if_something_is_missing(install: Install) -> None:
    install("modest", 'PEEKBENCH_API = "2.9"' + WORKING)
    assert registry.load("modest").offers["method"]
    for name, code in {
        "name": METHOD.format(names="FutureEntry, MethodEntry, hookimpl", fields=""),
        "field": METHOD.format(names="MethodEntry, hookimpl", fields=", future=1"),
        "hook": WORKING + "\n@hookimpl\ndef peekbench_futures():\n    return []",
    }.items():
        install(name, 'PEEKBENCH_API = "2.9"' + code)
        message = load_error(name)
        assert "is made for version 2.9 of the plugin API" in message
        assert "lacks what it uses; upgrade peekbench" in message
        assert "uture" in message, "the message has the cause"
        install(f"own_{name}", code)
        assert "upgrade peekbench" not in load_error(f"own_{name}"), "an error of the plugin"


@pytest.mark.parametrize("value", ["1.0", '"1"', '"0.9"', '"one.two"', 'str(1) + ".0"', "None"])
def test_unreadable_statements_are_errors(install: Install, value: str) -> None:
    install("odd", f"\nPEEKBENCH_API = {value}{WORKING}")
    assert re.search(
        r"PEEKBENCH_API.* = .+ in line 2 of plugin_odd is not a version; write it as text", load_error("odd")
    )


def test_document_has_the_changes_of_each_major_version() -> None:
    major = int(API_VERSION.partition(".")[0])
    assert set(validation.MAJOR_CHANGES) == set(range(2, major + 1))
    text = " ".join(PLUGIN_DOCUMENT.read_text(encoding="utf-8").split())
    for number, change in validation.MAJOR_CHANGES.items():
        assert f"| {number}.0 | {change} |" in text
    assert f"The current version is {API_VERSION}" in text
