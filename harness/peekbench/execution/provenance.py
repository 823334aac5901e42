"""Describes what results depend on besides spec and data: versions, commit, machine."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from peekbench.execution.git_state import git_state
from peekbench.execution.versions import package_versions


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
