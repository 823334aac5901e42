"""Provenance: versions, commits, machine, and hashes of code."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import peekbench_toy
import pytest

from peekbench.execution.provenance import code_hashes, describe_machine, describe_session, git_state, package_versions


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_commit_and_uncommitted_changes_are_recorded(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-m", "first")
    clean = git_state(tmp_path)
    assert clean is not None
    assert len(clean["commit"]) == 40
    assert clean["dirty"] is False
    (tmp_path / "file").write_text("two")
    assert git_state(tmp_path) == {"commit": clean["commit"], "dirty": True}


def test_a_folder_outside_of_a_repository_has_no_commit(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None


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
