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

def load_nothing(folders):
    return Dataset([], [], ("a", "b"))

def load_absent(folders):
    return Dataset(TEXTS, [row % 2 for row in range(60)], ("a", "b", "c"))

def load_blank(folders):
    return Dataset([*TEXTS[:-1], " "], [row % 2 for row in range(60)], ("a", "b"))

def load_cwd(folder):
    return load_blank(folder)

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


def test_the_remedy_prints_the_traceback() -> None:
    done = run_command("check", "own.py:load_broken")
    assert done.returncode == 3
    assert done.stdout.count("KeyError: 'review'") == 2, "the message and the traceback"
    assert "Traceback" in done.stdout
    assert " other checks not run; correct the failed ones first" in done.stdout


def test_an_exception_while_a_method_is_prepared_is_one_line() -> None:
    printed = validate("own.py:load_blank", "own.py:downloaded", "run")
    assert "method downloaded: `prefetch`: KeyError: 'review' (own.py, line " in printed
    assert "Traceback" not in printed
    done = run_command("check", "own.py:downloaded")
    assert (done.returncode, done.stderr.count("Traceback")) == (2, 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("load_nothing", "own.py:load_nothing: it has no rows"),
        (
            "load_absent",
            "train sets need a row of each class, but none has 'c'; remove it from its class",
        ),
        (
            "load_cwd",
            "has the parameter `folder`, which peekbench cannot pass; rename it to `folders`",
        ),
    ],
)
def test_check_refuses_what_a_run_would_refuse(function: str, message: str) -> None:
    done = run_command("check", f"own.py:{function}")
    assert done.returncode in (2, 3)
    assert message in done.stdout + done.stderr
    assert message in validate(f"own.py:{function}")


@pytest.mark.slow
def test_empty_texts_are_a_warning() -> None:
    done = run_command("check", "own.py:load_blank")
    assert done.returncode == 0
    assert "passed  the rows are valid (warning: 1 empty text, the first in row 59)" in done.stdout
    assert "own.yaml: OK" in validate("own.py:load_blank")


def test_a_missing_option_plugin_is_named_with_the_function() -> None:
    assert "as in `my_file.py:load`" in validate("own.load_blank")


def test_methods_of_texts_are_refused_on_features() -> None:
    printed = validate("tabular.classification", "classic.lsa")
    assert "classic.lsa (classic.lsa) supports classification and multilabel, but task own is tabular_" in printed
    assert "own.yaml: OK" in validate("tabular.classification", "tabular.pca")
    assert "supports regression and tabular_classification, but task own is classification" in validate(
        "own.py:load_blank", "tabular.pca"
    )
