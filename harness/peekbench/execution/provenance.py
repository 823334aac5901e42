"""What a number depends on besides spec and data: versions, commit, machine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

from peekbench.plugins import registry


def describe_session(folder: Path) -> dict[str, Any]:
    """Everything about this process and machine that could bear on a number.

    Parameters
    ----------
    folder
        The spec's folder; its git commit is recorded, where it has one.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "peekbench": version("peekbench"),
        "python": platform.python_version(),
        "packages": package_versions(),
        "git": git_state(folder),
        "machine": describe_machine(),
    }


def code_hashes(uses: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the source files of the plugins that these uses name, by plugin."""
    names = dict.fromkeys(registry.split_use(use)[0] for use in uses)
    return {name: _hash_code(import_module(registry.load(name).module.partition(":")[0])) for name in names}


def _hash_code(module: ModuleType) -> str:
    """Of its file, or of all files of the package that it is."""
    if module.__file__ is None:
        return ""
    file = Path(module.__file__)
    files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    digest = hashlib.sha256()
    for one in files:
        digest.update(f"{one.relative_to(file.parent).as_posix()}\0".encode() + one.read_bytes() + b"\0")
    return digest.hexdigest()


def package_versions() -> dict[str, str]:
    """Version of every installed distribution."""
    found = {dist.metadata["Name"]: dist.version for dist in distributions()}
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit of the repository that `folder` is in, and whether files differ from it; None outside of one."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        dirty = bool(_git(folder, "status", "--porcelain"))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": dirty}


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()  # noqa: S603


def describe_machine() -> dict[str, Any]:
    """Processor, cores, memory in bytes, operating system."""
    import psutil

    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "system": platform.platform(),
    }


def _processor() -> str:
    """The processor's name; /proc has it where `platform` knows none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
