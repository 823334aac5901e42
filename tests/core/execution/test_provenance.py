"""Provenance: versions, commits, machine, and hashes of code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import peekbench_toy
import pytest

from peekbench.execution.provenance import code_hashes, describe_machine, describe_session, package_versions


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
