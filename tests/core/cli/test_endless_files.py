"""Devices, pipes and folders in place of the small files that are read whole."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest
from commands import run_command

MEMORY = 4 * 2**30  # bytes of address space; libraries and threads need more than one GB


@pytest.fixture(autouse=True)
def limit_memory() -> Any:
    """Let a file that is read whole fail the test instead of filling the memory."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.parametrize("command", ["run", "validate", "plan"])
def test_a_device_is_not_read_whole_as_a_spec(command: str) -> None:
    done = run_command(command, "/dev/zero")
    assert done.returncode == 2
    assert "/dev/zero: more than 10,000,000 bytes; give the path of a YAML file" in done.stderr


def test_a_link_to_a_device_is_not_read_whole_beside_other_files() -> None:
    Path("quickstart.yaml").symlink_to("/dev/zero")
    done = run_command("quickstart")
    assert done.returncode == 2
    assert "quickstart.yaml exists, edited or from another command" in done.stderr
