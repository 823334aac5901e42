"""References: what is checked without an import, and the messages of failed imports."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from peekbench.errors import PluginError
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.references import Reference, find_extra, find_reference_error, resolve
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


def test_a_check_imports_no_module(package: str) -> None:
    for module in ("impl", "inner.deep"):
        assert find_reference_error(Reference(f"{package}.{module}:f")) == ""
    for module in ("other", "impl.deep", "inner.other"):
        assert "does not exist" in find_reference_error(Reference(f"{package}.{module}:f"))
    assert package not in sys.modules
    assert find_reference_error(Reference("os.path:join")) == ""


@pytest.mark.parametrize("target", ["__main__:f", "no_such_package.module:f", "specless.module:f"])
def test_a_check_never_raises(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "specless", ModuleType("specless"))  # for which `find_spec` raises ValueError
    error = find_reference_error(Reference(target))
    assert f"names the module '{target.partition(':')[0]}" in error


def test_references_in_partial_functions_are_checked() -> None:
    wrapped = partial(partial(Reference("no_such_package:draw"), 1), 2)
    with pytest.raises(PluginError, match="render names the module 'no_such_package'"):
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


def test_a_missing_library_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "third_party-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\nProvides-Extra: big\nProvides-Extra: small\n"
        "Requires-Dist: numpy\nRequires-Dist: other; extra == 'big'\n"
        "Requires-Dist: No.Such-library>=1; extra == 'big'\n"
        "Requires-Dist: no-such-library >= 1 ; python_version >= '3' and extra == \"small\"\n"
    )
    (info / "entry_points.txt").write_text("[peekbench]\nthird = third_party.plugin\n")
    (tmp_path / "third_party").mkdir()
    (tmp_path / "third_party" / "impl.py").write_text("import no_such_library.part\n")
    (tmp_path / "third_party" / "wrong.py").write_text("import third_party.absent\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(PluginError, match=r"pip install 'third-party\[small\]'"):
        resolve("third_party.impl:f")
    with pytest.raises(PluginError, match=r"correct the module 'third_party.wrong'"):
        resolve("third_party.wrong:f")


@pytest.mark.parametrize(
    ("library", "module", "extra"),
    [
        ("peft", "peekbench_lm.provision", "peekbench[lm]"),
        ("transformers", "peekbench_finetune.fit", "peekbench[lm]"),
        ("bitsandbytes", "peekbench_lm.loading", "peekbench[qlora]"),
        ("matplotlib", "peekbench_figures.draw", "peekbench[figures]"),
        ("arviz_stats", "peekbench_bayes.hierarchical", "peekbench[bayes]"),
        ("bambi", "peekbench_bayes.hierarchical", "peekbench[bambi]"),
        ("pyarrow", "peekbench_hf.source", "peekbench[hf]"),
        ("pyarrow", "pyarrow.parquet", "peekbench[parquet]"),
        ("no_such_library", "peekbench_bayes.hierarchical", ""),
    ],
)
def test_extras_of_peekbench(library: str, module: str, extra: str) -> None:
    assert find_extra(library, module) == extra
