"""Describes what results depend on besides spec and data: versions, commit, machine."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import distributions, version
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

import psutil

from peekbench.execution.git_state import git_state
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.references import find_reference, iterate_callables


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

    The files are those of the packages that contain the plugin's module and the callables of its methods.

    Parameters
    ----------
    uses
        Names such as 'plugin.thing'.
    """
    names = dict.fromkeys(registry.split_name(use)[0] for use in uses)
    return {name: _hash_code(registry.load(name)) for name in names}


def _hash_code(plugin: registry.Plugin) -> str:
    """Hash the files of a plugin; empty if it has none."""
    modules = {plugin.module.partition(":")[0]}
    for entry in plugin.entries(MethodEntry).values():
        references = [find_reference(function) for _, function in iterate_callables(entry)]
        modules |= {reference.target.partition(":")[0] for reference in references if reference}
    roots = {root for module in modules if (root := _find_root(module))}
    digest = hashlib.sha256()
    for root in sorted(roots):
        for path in sorted(root.parent.rglob("*.py")) if root.name == "__init__.py" else [root]:
            digest.update(f"{path.relative_to(root.parent).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest() if roots else ""


def _find_root(module: str) -> Path | None:
    """Return the file of the outermost package of a module that has one; None for modules without a Python file.

    Namespace packages have no file. Several distributions can share them.
    """
    for name in accumulate(module.split("."), "{}.{}".format):
        loaded = sys.modules.get(name)
        spec = None if loaded else find_spec(name)
        file = getattr(loaded, "__file__", None) or (spec and spec.has_location and spec.origin)
        if file:
            return Path(file) if Path(file).suffix == ".py" else None
    return None


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
