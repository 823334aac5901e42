"""Commands that installed distributions add, here folders on the path of Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commands import run_command

from peekbench.cli.app import find_commands

CODE = '''
def greet(name: str) -> None:
    """Greet somebody."""
    print(f"Hello, {name}!")
'''


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Return a function of the name and the function of a command that installs a distribution with it."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "greetings.py").write_text(CODE)
    find_commands.cache_clear()
    monkeypatch.setattr("peekbench.cli.app.find_commands", find_commands.__wrapped__)

    def add(name: str, function: str) -> None:
        folder = tmp_path / f"of_{function.replace(':', '_')}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: of_{function}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(f"[peekbench.commands]\n{name} = {function}\n")

    monkeypatch.setattr("peekbench.cli.app.find_commands", find_commands.__wrapped__)
    return add


def test_a_command_is_listed_and_runs(install: Callable[[str, str], None]) -> None:
    install("greet", "greetings:greet")
    assert "  greet  Greet somebody." in run_command("--help").stdout
    done = run_command("greet", "you")
    assert (done.returncode, done.stdout) == (0, "Hello, you!\n")
