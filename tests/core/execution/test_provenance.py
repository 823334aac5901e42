"""Provenance: versions, commits, machine, and hashes of code."""

from __future__ import annotations

import json
import shutil
import sys
from importlib import import_module
from pathlib import Path

import peekbench_toy
import pytest

from peekbench.execution.provenance import code_hashes, describe_machine, describe_session, package_versions
from peekbench.plugins import registry


def test_a_session_describes_versions_and_machine(tmp_path: Path) -> None:
    session = describe_session(tmp_path)
    assert json.loads(json.dumps(session)) == session
    assert session["packages"]["numpy"].startswith("2.")
    assert session["peekbench"] == package_versions()["peekbench"]
    assert session["machine"]["cores"] >= 1
    assert session["machine"]["memory"] > 2**28
    assert describe_machine()["processor"]


def test_code_hashes_cover_all_files_of_a_package_or_the_file_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = tmp_path / "peekbench_toy.py"
    shutil.copy(str(peekbench_toy.__file__), copied)
    (tmp_path / "other.py").write_text("")
    monkeypatch.setattr(peekbench_toy, "__file__", str(copied))
    first = code_hashes(["toy.vote", "toy.constant"])
    assert list(first) == ["toy"]
    (tmp_path / "other.py").write_text("changed = True")
    assert code_hashes(["toy.vote"]) == first, "a module outside of a package has one file"
    copied.write_text(copied.read_text() + "# changed")
    assert code_hashes(["toy.vote"]) != first
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(peekbench_toy, "__file__", str(package / "__init__.py"))
    first = code_hashes(["toy.vote"])
    (package / "inner" / "more.py").write_text("")
    assert code_hashes(["toy.vote"]) != first


def test_code_hashes_cover_the_packages_of_referenced_methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = (
        "from functools import partial\nfrom peekbench import MethodEntry, Options, hookimpl\n"
        "from peekbench.plugins import Reference\n"
        "@hookimpl\ndef peekbench_methods():\n    return [MethodEntry(name='m', options=Options, summary='', "
        "method='referring.impl:fit', pin=partial(Reference('space.shared.pin:pin'), 1))]\n"
    )
    files = {
        "referring/__init__.py": "",
        "referring/plug.py": entry,
        "referring/impl.py": "",
        "referring/inner/deep.py": "",
        "space/shared/__init__.py": "",
        "space/shared/pin.py": "",
        "space/other/unrelated.py": "",
        "referring-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: referring\nVersion: 1.0\n",
        "referring-1.0.dist-info/entry_points.txt": "[peekbench]\nreferring = referring.plug\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.installed.cache_clear()
    before = code_hashes(["referring.m"])
    for name in files:
        if name.endswith(".py"):
            (tmp_path / name).write_text(files[name] + "# changed")
            after = code_hashes(["referring.m"])
            assert (after == before) == (name == "space/other/unrelated.py"), name
            before = after
    assert "referring.impl" not in sys.modules, "nothing is imported"
    monkeypatch.undo()
    registry.installed.cache_clear()
    registry.load.cache_clear()


def test_code_hashes_cover_shared_libraries_of_methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = import_module("peekbench_lm")
    copied = shutil.copytree(Path(str(package.__file__)).parent, tmp_path / "peekbench_lm")
    monkeypatch.setattr(package, "__file__", str(copied / "__init__.py"))
    before = code_hashes(["finetune.tapt"])
    (copied / "installed.py").write_text("")
    assert code_hashes(["finetune.tapt"]) != before
