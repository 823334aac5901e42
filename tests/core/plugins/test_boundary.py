"""Code of plugins that fails, ends the process, returns something else, or has its parameters in another order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import run_command

import peekbench as pb
from peekbench.errors import ContractError, PluginError
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.graders import find_grader

CODE = """
import os, sys
from peekbench import Analysis, Dataset, MethodEntry, hookimpl
from peekbench.plugins import ExecutorEntry, ObserverEntry, ReportFormatEntry

PROMPTS = [f"{row} and 1" for row in range(60)]

def fail(kind):
    if os.environ.get("KIND") == kind:
        if os.environ["ERROR"] == "object":
            return object()
        exec(os.environ["ERROR"])

def load(folders):
    return fail("data source") or Dataset(PROMPTS, [str(row % 7) for row in range(60)], kind="generation", grader=grade)

def fit(seed, train, unlabeled):
    return fail("method") or (lambda prompts: [str(len(prompt) % 7) for prompt in prompts])

def grade(reference, answer):
    return fail("grader") or float(answer in "0123456" and int(reference) < 7) * int(answer) / 6

def analyze(results):
    return fail("analysis") or Analysis("mine")

def execute(items, work, *, options):
    fail("executor")
    for item in items:
        yield list(work(item))

def observe(folders, *, options):
    return fail("observer") or Diary()

class Diary:
    def run_started(self, event):
        pass

def write(path, report):
    path.write_text(report.name)
    fail("report format")

@hookimpl
def peekbench_executors():
    return [ExecutorEntry(name="execute", execute=execute, summary="one item after the other")]

@hookimpl
def peekbench_observers():
    return [ObserverEntry(name="observe", observe=observe, summary="a diary")]

@hookimpl
def peekbench_report_formats():
    return [ReportFormatEntry(name="write", write=write, suffix=".txt", summary="the name of the run")]
"""
SPEC = {
    "name": "own",
    "tasks": [{"name": "sums", "use": "own.py:load", "grader": "own.py:grade"}],
    "methods": ["own.py:fit"],
    "design": {"num_train": 5, "num_test": 20, "num_subsamples": 2},
    "analyses": ["own.py:analyze"],
    "observers": ["own.py:observe"],
    "executor": "own.py:execute",
    "report": {"formats": ["own.py:write"]},
}
KINDS = {
    "data source": "load",
    "method": "fit",
    "grader": "grade",
    "analysis": "analyze",
    "executor": "execute",
    "observer": "observe",
    "report format": "write",
}
EXITS = ("sys.exit(0)", "raise ValueError('text')")


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(CODE, encoding="utf-8")
    Path("own.yaml").write_text(json.dumps(SPEC), encoding="utf-8")


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("error", [*EXITS, "object"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_error_of_a_plugin_ends_a_run_as_if_it_had_succeeded(
    kind: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIND", kind)
    monkeypatch.setenv("ERROR", error)
    done = run_command("run", "own.yaml")
    if error == "object" and kind in ("executor", "observer", "report format"):  # whose results are not checked
        assert done.returncode == 0
        return
    assert (done.returncode == 0) == (kind == "observer"), "observers cannot change the result of a run"
    name = f"own.py:{KINDS[kind]}"
    if kind == "method":
        name = "method fit"
    assert name in done.stderr
    assert "Traceback" not in done.stderr
    if error != "object":
        assert "own.py, line " in done.stderr


@pytest.mark.usefixtures("_files")
def test_arguments_are_bound_by_name() -> None:
    done = run_command("run", "own.yaml")
    assert done.returncode == 0, done.stderr
    scores = pb.load_results("runs/own.sqlite")["score"]
    lengths = [len(f"{row} and 1") % 7 / 6 for row in range(60)]
    assert scores.between(min(lengths), max(lengths)).all()


@pytest.mark.usefixtures("_files")
def test_an_interrupt_in_a_plugin_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ERROR", "raise KeyboardInterrupt")
    for kind in ("data source", "method", "analysis", "grader"):
        monkeypatch.setenv("KIND", kind)
        assert run_command("run", "own.yaml", "--fresh").returncode == 130


@pytest.mark.parametrize(
    "grader", [lambda a, b: 0.0, lambda target, answer: 0.0, lambda answer, reference, task: 0.0, max]
)
def test_a_grader_whose_parameters_are_not_known_by_name_is_refused(grader: Any) -> None:
    with pytest.raises(PluginError, match=r"name its parameters `answer` and `reference`"):
        find_grader(grader, Path())


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda second, first: (first, second), (1, 2)),
        (lambda one, two: (one, two), (1, 2)),
        (lambda **given: (given["first"], given["second"]), (1, 2)),
        (lambda *given: given, (1, 2)),
        (lambda first, two: (first, two), (1, 2)),
    ],
)
def test_arguments_are_passed_by_name_or_in_the_order_of_the_protocol(function: Any, expected: tuple[int, int]) -> None:
    assert Foreign("mine").call(function, {"first": 1, "second": 2}) == expected


def test_an_order_that_contradicts_the_protocol_is_refused() -> None:
    with pytest.raises(ContractError, match=r"mine has the parameters other, first; name them `first`, `second`"):
        Foreign("mine").call(lambda other, first: None, {"first": 1, "second": 2})
