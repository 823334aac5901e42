"""Provenance: versions and machine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from peekbench.execution.provenance import (
    describe_machine,
    describe_session,
    find_commit,
    package_versions,
    relevant_versions,
)
from peekbench.plugins import registry


def test_a_session_describes_versions_and_machine(tmp_path: Path) -> None:
    session = describe_session(tmp_path)
    assert json.loads(json.dumps(session)) == session
    assert session["packages"]["numpy"].startswith("2.")
    assert session["peekbench"] == package_versions()["peekbench"]
    assert session["machine"]["cores"] >= 1
    assert session["machine"]["memory"] > 2**28
    assert describe_machine()["processor"]


def test_a_session_describes_the_commit_and_runs_nothing_that_the_repository_configures(tmp_path: Path) -> None:
    assert find_commit(tmp_path) is None
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "--message", "first"]):
        subprocess.run([*command, *arguments], cwd=tmp_path, check=True)
    with (tmp_path / ".git" / "config").open("a") as file:
        file.write(f"[core]\nfsmonitor = touch {tmp_path}/ran\npager = touch {tmp_path}/ran\n")
    commit = find_commit(tmp_path)
    assert commit is not None
    assert commit in {path.read_text().strip() for path in (tmp_path / ".git/refs/heads").iterdir()}
    assert not (tmp_path / "ran").exists()


def test_relevant_versions_of_a_distribution_with_extras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Distribution a requires b with an extra; its plugin imports e but not f, which are for extras of a."""
    metadata = {
        "a": ["b[more]", "absent", "not valid!", "e ; extra == 'x'", "f ; extra == 'x'", "a[x]; extra == 'y'"],
        "b": ["C-c >= 1; extra == 'more'", "d; python_version < '3'", "a"],
        "c_c": [],
        **{name: [] for name in "def"},
    }
    for name, requirements in metadata.items():
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", "Version: 1.0", "Provides-Extra: x", "Provides-Extra: y"]
        lines += [f"Requires-Dist: {requirement}" for requirement in requirements]
        (folder / "METADATA").write_text("\n".join(lines))
    (tmp_path / "a-1.0.dist-info" / "entry_points.txt").write_text("[peekbench]\naplug = aplug\n")
    (tmp_path / "aplug.py").write_text("def fit():\n    import a\n    from e.inner import f\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.installed.cache_clear()
    versions = relevant_versions(["aplug"])
    assert {name for name in versions if name in metadata} == {"a", "b", "c_c", "e"}
    monkeypatch.undo()
    registry.installed.cache_clear()
    registry.load_installed.cache_clear()
