"""The commit of a spec's folder, read without running anything that its repository configures."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from peekbench.execution.git_state import git_state


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "protocol.file.allow=always"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--initial-branch", "main")
    (folder / "file").write_text("one")
    (folder / "inner").mkdir()
    git(folder, "add", "file")
    git(folder, "commit", "-m", "first")
    return folder


def test_commit_and_uncommitted_changes_are_recorded(repository: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    assert git_state(repository) == git_state(repository / "inner") == {"commit": commit, "dirty": False}
    (repository / "new").write_text("")
    assert git_state(repository) == {"commit": commit, "dirty": True}
    (repository / "new").unlink()
    (repository / "file").write_text("two")
    assert git_state(repository) == {"commit": commit, "dirty": True}
    git(repository, "add", "file")
    assert git_state(repository) == {"commit": commit, "dirty": True}


def test_a_folder_outside_of_a_repository_has_no_commit(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None


@pytest.mark.parametrize("form", ["packed", "detached", "worktree", "submodule", "sha256"])
def test_all_forms_of_a_repository_are_read(repository: Path, tmp_path: Path, form: str) -> None:
    folder = repository
    if form == "packed":
        git(repository, "pack-refs", "--all")
    if form == "detached":
        git(repository, "checkout", "--detach")
    if form == "worktree":
        folder = tmp_path / "other"
        git(repository, "worktree", "add", "-b", "topic/one", str(folder))
    if form == "submodule":
        folder = tmp_path / "super" / "sub"
        git(tmp_path, "init", "super")
        git(tmp_path / "super", "submodule", "add", str(repository), "sub")
    if form == "sha256":
        folder = tmp_path / "long"
        git(tmp_path, "init", "--object-format", "sha256", "long")
        (folder / "file").write_text("one")
        git(folder, "add", "file")
        git(folder, "commit", "-m", "first")
    assert git_state(folder) == {"commit": git(folder, "rev-parse", "HEAD"), "dirty": False}
    (folder / "file").write_text("changed")
    assert git_state(folder) == {"commit": git(folder, "rev-parse", "HEAD"), "dirty": True}


def test_another_repository_in_the_environment_is_ignored(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = git_state(repository)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, "/nowhere")
    assert git_state(repository) == expected


def test_nothing_that_a_repository_configures_is_run(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    command = f"touch {ran};"
    for key in (
        "core.fsmonitor", "core.sshCommand", "core.pager", "pager.status", "core.editor", "core.askPass",
        "core.gitProxy", "core.alternateRefsCommand", "credential.helper", "diff.external", "diff.evil.textconv",
        "diff.evil.command", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "merge.evil.driver",
        "gpg.program", "alias.status", "uploadpack.packObjectsHook", "remote.origin.uploadpack",
    ):  # fmt: skip
        git(repository, "config", key, ("!" if key.startswith("alias") else "") + command)
    git(repository, "config", "core.hooksPath", str(tmp_path / "hooks"))
    git(repository, "config", "remote.origin.promisor", "true")
    git(repository, "config", "remote.origin.url", f"ext::sh -c touch% {ran}")
    for hooks in (tmp_path / "hooks", repository / ".git" / "hooks"):
        hooks.mkdir(exist_ok=True)
        for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "query-watchman"):
            (hooks / name).write_text(f"#!/bin/sh\n{command}\n")
            (hooks / name).chmod(0o755)
    for attributes in (repository / ".gitattributes", repository / ".git" / "info" / "attributes"):
        attributes.write_text("* filter=evil diff=evil merge=evil\n")
    os.utime(repository / "file", (1, 1))  # git compares the content, to which the filter would apply
    state = git_state(repository)
    assert state is not None
    assert state["dirty"] is True
    assert not ran.exists()
    (repository / "file").write_text("another length")
    git_state(repository)
    assert not ran.exists()
    subprocess.run(["git", "status"], cwd=repository, capture_output=True, check=False)
    assert ran.exists(), "plain git runs them"


def test_submodules_and_bare_repositories_configure_nothing(repository: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    above = tmp_path / "super"
    git(tmp_path, "init", "super")
    git(above, "submodule", "add", str(repository), "sub")
    git(above, "commit", "-m", "first")
    git(above / "sub", "config", "core.fsmonitor", f"touch {ran};")
    (above / "sub" / "file").write_text("two")
    assert git_state(above) == {"commit": git(above, "rev-parse", "HEAD"), "dirty": False}
    bare = tmp_path / "bare"
    git(tmp_path, "clone", "--bare", str(repository), str(bare))
    git(bare, "config", "core.fsmonitor", f"touch {ran};")
    git(bare, "config", "core.bare", "false")
    git(bare, "config", "core.worktree", str(repository))
    assert git_state(bare) is None
    assert not ran.exists()


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda git: _pipe(git / "HEAD"),
        lambda git: (git / "HEAD").write_bytes(b"\xff\xfe\x00"),
        lambda git: (git / "HEAD").write_text("ref: refs/../../../secret"),
        lambda git: (git / "HEAD").write_text("ref: /etc/hostname"),
        lambda git: (git / "HEAD").write_text("ref: refs/heads/\0"),
        lambda git: (git / "refs/heads/main").write_text("ref: refs/heads/main"),
        lambda git: (git / "refs/heads/main").write_text("not a hash"),
        lambda git: (git / "refs/heads/main").unlink(),
        lambda git: (git / "commondir").write_text("\0"),
    ],
)
def test_a_commit_that_cannot_be_read_is_unknown(repository: Path, tmp_path: Path, damage: Any) -> None:
    (tmp_path / "secret").write_text("a" * 40)
    damage(repository / ".git")
    assert git_state(repository) == {"commit": None, "dirty": None}


def test_a_damaged_index_leaves_the_commit(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    index = (repository / ".git" / "index").read_bytes()
    (repository / ".git" / "index").write_bytes(b"damaged")
    assert git_state(repository) == {"commit": commit, "dirty": None}
    (repository / ".git" / "index").write_bytes(index)
    monkeypatch.setenv("PATH", "/nowhere")
    assert git_state(repository) == {"commit": commit, "dirty": None}
