"""The command `peekbench check`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from commands import run_command

from peekbench_testing import METHOD_CHECKS


def peek(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command that ends with a status."""
    done = run_command(*arguments)
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.mark.slow
def test_methods_are_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("PEEKBENCH_CACHE", str(cache))
    done = peek("check", "toy.short")
    assert done.stdout.splitlines() == [f"passed  {name}" for name in METHOD_CHECKS]
    assert done.stderr == ""
    assert (cache / "toy-model").exists(), "prefetch wrote it"


@pytest.mark.slow
def test_checks_that_could_only_repeat_an_error_are_not_run() -> None:
    printed = peek("check", "toy.faulty", "--options", "{error: raise}", status=3).stdout
    assert printed.count("FAILED  ") == printed.count("this method is broken (") == 3
    assert f"{len(METHOD_CHECKS) - 3} other checks not run" in printed
    assert printed.count("Traceback") == 3


@pytest.mark.slow
def test_methods_are_checked_on_tasks() -> None:
    Path("rows.csv").write_text(
        "text,label\n" + "".join(f"row {row} {row % 2},{'ab'[row % 2]}\n" for row in range(150))
    )
    done = peek("check", "toy.faulty", "--options", "{error: nan}", "--task", "files", "--task-options",
                "{path: rows.csv}", status=3)  # fmt: skip
    assert done.stdout.count("predictions contain NaN or infinity in 45 of 45 rows") == 3
    wrong = peek("check", "toy.vote", "--task", "toy.numbers", status=2)
    assert "toy.vote supports classification, but the task is regression" in wrong.stderr
