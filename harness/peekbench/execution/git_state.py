"""Reads the commit of a folder's git repository without running anything that the repository configures.

Git runs commands that a repository's own configuration names: a file system monitor and filters even during `git
status`. A spec can be in a folder from elsewhere. The commit is therefore read from the files of the repository, and
git looks for changed files with an empty configuration.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

MAX_BYTES = 2**26  # of a file of a repository
MAX_SECONDS = 10.0
MAX_LINKS = 5  # symbolic refs in a row
HASH = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
REF = re.compile(r"refs/(?!.*\.\.)[\w./+@-]+")
CONFIG = "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = {}\n"


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return the commit of a folder's repository, and whether its files differ from the commit.

    Parameters
    ----------
    folder
        Any folder.

    Returns
    -------
    dict or None
        `commit`, None if it cannot be read, and `dirty`, None if unknown; instead None outside of a repository.
    """
    folder = folder.resolve()
    for root in (folder, *folder.parents):
        if os.path.lexists(root / ".git"):
            break
    else:
        return None
    try:
        repository = _find_repository(root)
        common = _find_common(repository)
        commit = _resolve("HEAD", repository, common)
    except (OSError, ValueError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": None if commit is None else _is_dirty(root, repository, common, commit)}


def _read(path: Path) -> str:
    if not path.is_file():  # a pipe would block
        raise FileNotFoundError(path)
    with path.open(encoding="utf-8") as file:
        return file.read(MAX_BYTES)


def _find_repository(root: Path) -> Path:
    """Return the folder with HEAD and index. `.git` of a linked worktree or a submodule is a file that names it."""
    if (root / ".git").is_dir():
        return root / ".git"
    return root / _read(root / ".git").removeprefix("gitdir:").strip()


def _find_common(repository: Path) -> Path:
    """Return the folder with refs and objects, which linked worktrees share."""
    try:
        common = repository / _read(repository / "commondir").strip()
    except FileNotFoundError:
        return repository
    if not common.is_dir():
        raise FileNotFoundError(common)
    return common


def _resolve(ref: str, repository: Path, common: Path) -> str | None:
    """Return the commit that a ref names, or None if there is none or it has an unknown form."""
    for _ in range(MAX_LINKS):
        text = _read_ref(ref, repository, common)
        if HASH.fullmatch(text):
            return text
        ref = text.removeprefix("ref:").strip()
        if not REF.fullmatch(ref):
            return None
    return None


def _read_ref(ref: str, repository: Path, common: Path) -> str:
    for folder in (repository, common):
        try:
            return _read(folder / ref).strip()
        except FileNotFoundError:
            continue
    lines = _read(common / "packed-refs").splitlines()
    return next((line.partition(" ")[0] for line in lines if line.partition(" ")[2] == ref), "")


def _is_dirty(root: Path, repository: Path, common: Path, commit: str) -> bool | None:
    """Return whether files differ from the commit, or None if unknown.

    Git gets a repository of its own, which uses only the index and the objects, so it reads no configuration, hooks
    or refs of the folder. Attributes of the folder can name filters, but no configuration defines them.
    """
    command = ["git", "status", "--porcelain", "--ignore-submodules=all"]
    try:
        with TemporaryDirectory() as temporary:
            variables = _variables(_make_repository(Path(temporary), commit), root, repository, common)
            done = subprocess.run(  # noqa: S603 - constant arguments
                command, cwd=root, env=variables, stdin=subprocess.DEVNULL, capture_output=True, check=True,
                timeout=MAX_SECONDS,
            )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return bool(done.stdout)


def _make_repository(folder: Path, commit: str) -> Path:
    for name in ("refs", "objects"):
        (folder / name).mkdir()
    (folder / "HEAD").write_text(commit + "\n", encoding="utf-8")
    (folder / "config").write_text(CONFIG.format("sha1" if len(commit) == 40 else "sha256"), encoding="utf-8")
    return folder


def _variables(own: Path, root: Path, repository: Path, common: Path) -> dict[str, str]:
    """Return the environment of git, without variables that would name another repository or commands."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_DIR": str(own),
        "GIT_WORK_TREE": str(root),
        "GIT_INDEX_FILE": str(repository / "index"),
        "GIT_OBJECT_DIRECTORY": str(common / "objects"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",  # do not write the index
    }
