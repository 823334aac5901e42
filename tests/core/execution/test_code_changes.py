"""Runs that are resumed after the code of a method has changed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import peekbench_toy
import pytest
from commands import run_command

from peekbench.errors import StoreError
from peekbench.execution.observers import Observers
from peekbench.execution.runner import RunSummary, run
from peekbench.report import report_of_run
from peekbench.spec.experiment import ExperimentSpec, canonical

MakeSpec = Callable[..., ExperimentSpec]
OTHER = {"use": "toy.words", "options": {"seed": 2}}


@pytest.fixture
def edit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Change the code of the plugin of the tests."""
    source = Path(str(peekbench_toy.__file__)).read_text()

    def change(text: str) -> None:
        path = tmp_path / "peekbench_toy.py"
        path.write_text(source + text)
        monkeypatch.setattr(peekbench_toy.__spec__, "origin", str(path))

    return change


def design(num_subsamples: int) -> dict[str, int]:
    return {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples}


@pytest.fixture
def make(make_spec: MakeSpec) -> MakeSpec:
    def make_small(num_subsamples: int = 2, **parts: object) -> ExperimentSpec:
        return make_spec(**{"design": design(num_subsamples), "analyses": ["toy.count"], **parts})

    return make_small


def tells_of_toy(summary: RunSummary) -> bool:
    (note,) = summary.notes
    return "the code of the plugin toy differs" in note


def test_changed_code_refuses_to_resume_a_run(make: MakeSpec, edit: Callable[[str], None]) -> None:
    first = run(make())
    assert first.notes == run(make()).notes == ()
    edit("# edited")
    assert tells_of_toy(run(make())), "nothing is left to run, so nothing is refused"
    expected = r"(?s)small.sqlite: .*plugin toy, 8 trials: peekbench_toy.py changed\n.*--allow-changed-code"
    with pytest.raises(StoreError, match=expected):
        run(make(3))
    methods = ["toy.vote", "toy.constant", "controls.null"]
    assert run(make(methods=methods)).finished == 4, "no trial to run is of the changed plugin"
    resumed = run(make(3, methods=methods), allow_changed_code=True)
    assert resumed.finished == 6 and tells_of_toy(resumed)
    again = run(make(4, methods=methods))
    assert again.finished == 6 and tells_of_toy(again), "this code has made trials before"
    edit("# edited again")
    with pytest.raises(StoreError, match="toy, 16 trials"):
        run(make(5, methods=methods))


def test_code_that_made_only_failures_can_be_corrected(make: MakeSpec, edit: Callable[[str], None]) -> None:
    faulty = {"use": "toy.faulty", "options": {"marker": "marker"}}
    spec = make(1, methods=["controls.null", faulty], tasks=["toy.words"])
    assert (run(spec).failed, run(spec).failed) == (1, 0)
    Path("runs/small.sqlite").unlink()
    Path("marker").unlink()
    assert run(spec).failed == 1
    edit("# corrected")
    assert run(spec).notes == ()


@pytest.mark.slow
def test_report_warns_of_versions_of_the_code(make: MakeSpec, edit: Callable[[str], None]) -> None:
    methods = ["toy.vote", "controls.leak", "toy.constant"]
    first = run(make(methods=methods))
    report = report_of_run(first.store)
    assert not any("changed during this run" in warning for warning in report.warnings)
    edit("# edited")
    tasks = [*make().model_dump(mode="json")["tasks"], {**OTHER, "name": "c"}]
    spec = make(4, methods=methods, tasks=tasks, report={"formats": []})
    Path("small.yaml").write_text(json.dumps(canonical(spec)))  # JSON is YAML
    assert run_command("run", "small.yaml").returncode == 2
    done = run_command("run", "small.yaml", "--allow-changed-code")
    assert done.returncode == 0
    assert "the code of the plugin toy differs" in done.stderr
    report = report_of_run(first.store)
    (warning,) = (text for text in report.warnings if "changed during this run" in text)
    assert "plugin toy " in warning
    assert "2 versions of the code: 8 trials, then 16 trials (peekbench_toy.py changed)" in warning


def test_a_run_that_is_resumed_with_other_versions_says_so(make: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    observers = Observers()
    monkeypatch.setattr(observers, "warn", warnings.append)
    run(make(), observers=observers)
    monkeypatch.setattr("platform.python_version", lambda: "3.11.0")
    run(make(), observers=observers)
    assert not warnings, "nothing is left to run"
    run(make(3), observers=observers)
    (warning,) = warnings
    (in_report,) = (warning for warning in report_of_run(Path("runs/small.sqlite")).warnings if "versions" in warning)
    for text in (warning, in_report):
        assert f"Python: 3.11.0 instead of {'.'.join(map(str, sys.version_info[:3]))}" in text
