"""Errors of a user's own file, as commands print them."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_command

CODE = """
from peekbench import Dataset, MethodEntry, hookimpl
from peekbench.plugins import Preparation

TEXTS = [f"text {row}" for row in range(60)]

def load_broken(folders):
    return look_up({})

def look_up(columns):
    return columns["review"]

def load(folders):
    return Dataset(TEXTS, [row % 2 for row in range(60)], ("a", "b"))

@hookimpl
def peekbench_methods():
    return [MethodEntry(name="downloaded", method="json:loads", summary="", preparation=Preparation(prefetch=prefetch))]

def prefetch(*, options, folders):
    return look_up({})
"""
SPEC = """
name: own
tasks: [{name: own, use: "TASK"}]
methods: ["METHOD"]
design: {num_train: 10, num_test: 20, num_subsamples: 2}
"""


@pytest.fixture(autouse=True)
def _file() -> None:
    Path("own.py").write_text(CODE)


def validate(task: str, method: str = "controls.null", command: str = "validate") -> str:
    Path("own.yaml").write_text(SPEC.replace("TASK", task).replace("METHOD", method))
    done = run_command(command, "own.yaml")
    return done.stdout + done.stderr


@pytest.mark.parametrize("command", ["validate", "run"])
def test_an_exception_is_one_line_with_its_place_and_remedy(command: str) -> None:
    printed = validate("own.py:load_broken", command=command)
    line = CODE.splitlines().index('    return columns["review"]') + 1
    assert printed.splitlines()[-1].endswith(
        f"data source own.py:load_broken: KeyError: 'review' (own.py, line {line}, in look_up); "
        "`peekbench check own.py:load_broken` prints the traceback"
    )
    assert "Traceback" not in printed


def test_an_exception_while_a_method_is_prepared_is_one_line() -> None:
    printed = validate("own.py:load", "own.py:downloaded", "run")
    assert "method downloaded: `prefetch`: KeyError: 'review' (own.py, line " in printed
    assert "Traceback" not in printed
    done = run_command("check", "own.py:downloaded")
    assert (done.returncode, done.stderr.count("Traceback")) == (2, 1)
