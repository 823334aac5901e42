"""Describes what results depend on besides spec and data: versions, commit, machine."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil

from peekbench.execution.git_state import git_state
from peekbench.plugins import registry


def describe_session(folder: Path) -> dict[str, Any]:
    """Describe this process and machine, as far as results may depend on them.

    Parameters
    ----------
    folder
        The spec's folder. If it is in a git repository, the commit is included.

    Returns
    -------
    dict
        JSON values: start, command, versions, commit and machine.
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
    """Return the SHA-256 of the source files of plugins, by plugin.

    Parameters
    ----------
    uses
        Names such as 'plugin.thing'.
    """
    names = dict.fromkeys(registry.split_use(use)[0] for use in uses)
    return {name: _hash_code(import_module(registry.load(name).module.partition(":")[0])) for name in names}


def _hash_code(module: ModuleType) -> str:
    """Hash the file of a module, or all files of a package."""
    if module.__file__ is None:
        return ""
    file = Path(module.__file__)
    files = sorted(file.parent.rglob("*.py")) if file.name == "__init__.py" else [file]
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(file.parent).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def package_versions() -> dict[str, str]:
    """Return the version of every installed distribution."""
    versions = {dist.metadata["Name"]: dist.version for dist in distributions()}
    return dict(sorted(versions.items(), key=lambda item: item[0].lower()))


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, memory in bytes, and operating system."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory": psutil.virtual_memory().total,
        "system": platform.platform(),
    }


def _processor() -> str:
    """Return the processor's name. `platform` does not know it on every system, but /proc does on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
