"""References: what is checked without an import, and the messages of failed imports."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from peekbench.errors import PluginError
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.names import Reference, resolve
from peekbench.plugins.validation import check_entry


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a package that cannot be imported, with a module and a folder without `__init__.py`."""
    folder = tmp_path / "unimportable"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('no license' + '!' * 10_000)")
    (folder / "impl.py").write_text("")
    (folder / "inner" / "deep.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder.name


def test_references_in_partial_functions_are_checked() -> None:
    wrapped = partial(partial(Reference("no_such_package.draw"), 1), 2)
    with pytest.raises(PluginError, match="render is 'no_such_package.draw', which is not of the form"):
        check_entry(RendererEntry(name="x", render=wrapped, summary=""), "hook")


def test_errors_of_a_module_are_quoted_and_bounded(package: str) -> None:
    with pytest.raises(PluginError, match=rf"'{package}.impl:f': RuntimeError: no license") as caught:
        resolve(f"{package}.impl:f")
    assert len(str(caught.value)) < 1000


def test_an_attribute_error_inside_of_a_module_is_not_a_missing_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "attributeless.py").write_text("import math\nmath.no_such_name\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match="AttributeError: .*no_such_name"):
        resolve("attributeless:f")
    with pytest.raises(PluginError, match="'math' has no 'no_such_name'"):
        resolve("math:no_such_name")


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "third_party.py").write_text("import no_such_library.part\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match="install no_such_library; .*'peekbench\\[all\\]'"):
        resolve("third_party:f")
    with pytest.raises(PluginError, match="correct the module 'no_such_package.module'"):
        resolve("no_such_package.module:f")
