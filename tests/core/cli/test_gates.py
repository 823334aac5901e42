"""`--fail-on`, and the action that uses it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from commands import run_command

from peekbench.cli.gates import Gate
from peekbench.errors import PeekbenchError
from peekbench.records.report import Extension, Report, Subject
from peekbench.records.verdicts import TrialEvidence, Verdict

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
Simulate = Callable[..., pd.DataFrame]


def analyze(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run_command("analyze", str(path), *options)


@pytest.fixture
def biased(simulate: Simulate, tmp_path: Path) -> Path:
    """Two methods, one of them with a bias of 3 points."""
    table = pd.concat([simulate(0.03, method="peeks"), simulate(0.0, noise=0.003, method="honest")])
    table.to_csv(tmp_path / "biased.csv", index=False)
    return tmp_path / "biased.csv"


@pytest.fixture
def unbiased(simulate: Simulate, tmp_path: Path) -> Path:
    simulate(0.0, noise=0.003).to_csv(tmp_path / "unbiased.csv", index=False)
    return tmp_path / "unbiased.csv"


@pytest.mark.parametrize(
    ("decisions", "status", "message"),
    [
        ("biased", 4, "--fail-on biased: peeks is biased up (2 of 2 verdicts judged)\n"),
        ("Biased-Up,inconclusive", 4, "--fail-on biased-up,inconclusive: peeks is biased up (2 of 2"),
        ("equivalent,controls-failed", 4, "honest is equivalent (2 of 2 verdicts judged)\n"),
        ("biased down,inconclusive", 0, ""),
        ("biassed", 2, "no decision is called 'biassed'; did you mean biased? Decisions are biased, biased up"),
        ("biased,", 2, "the name of a decision is missing; decisions are biased, biased up"),
        ("inert", 0, "--fail-on inert: passed (2 of 2 verdicts judged)\n"),
        ("controls failed", 2, "has no verdict on a control; leave out controls failed, or add a method such as"),
    ],
)
def test_the_status_depends_on_the_decisions(decisions: str, status: int, message: str, biased: Path) -> None:
    done = analyze(biased, "--fail-on", decisions)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert ("peeks" in done.stdout) == (status != 2 or "control" in message), "the report comes first"


def test_a_gate_that_cannot_fail_is_refused(unbiased: Path) -> None:
    done = analyze(unbiased, "--fail-on", "biased", "--analysis", "consistency")
    assert done.returncode == 2
    assert "has no verdict on the bias of a method, so it could never fail" in done.stderr


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        ("", "; without a verdict:\n  peeks (num_train=50, num_test=200): no complete trial of task0, task1"),
        ("task3", "; without a verdict:\n  peeks: no complete trial of task3; add the missing rows"),
    ],
)
def test_a_gate_does_not_pass_without_a_verdict(task: str, missing: str, biased: Path) -> None:
    table = pd.read_csv(biased)
    is_lost = (table["method"] == "peeks") & (table["arm"] == "test") & table["task"].str.contains(task)
    table[~is_lost].to_csv(biased, index=False)
    done = analyze(biased, "--allow-incomplete", "--fail-on", "biased down,controls failed")
    assert done.returncode == 2, done.stderr
    assert f"1 of 2 verdicts judged{missing}" in done.stderr
    assert "passed" not in done.stderr
    if task:
        assert "peeks is biased up (1 of 2 verdicts judged)" in analyze(biased, "--allow-incomplete", *GATE).stderr


GATE = ("--fail-on", "biased")


def test_a_table_cannot_exempt_its_methods_by_calling_them_controls(biased: Path) -> None:
    table = pd.read_csv(biased)
    for control in ("positive", "negative"):
        marked = table.assign(control=table["method"].map({"peeks": control, "honest": ""}))
        marked.to_csv(biased, index=False)
        done = analyze(biased, *GATE)
        assert done.returncode == 4
        assert "--fail-on biased: peeks is biased up (2 of 2 verdicts judged)\n" in done.stderr
    assert analyze(biased, *GATE, "--ignore", "control").returncode == 4


def test_analyses_that_leave_out_the_controls_of_a_table_leave_a_gate_open() -> None:
    verdict = Verdict("honest", "bias", "equivalent", evidence=TrialEvidence(1, 20, "equivalent"))
    subjects = (Subject((("method", "honest"),)), Subject((("method", "peeks"),), control="positive"))
    report = Report("scores", "", verdicts=(verdict,), subjects=subjects)
    judgment = Gate.parse("biased").judge(report)
    assert judgment.unjudged == (
        "peeks: no analysis reached a verdict; to judge a method that a table calls a control: --ignore control",
    )
    assert str(judgment) == "1 of 2 verdicts judged"
    of_run = Gate.parse("biased").judge(replace(report, extension=Extension(of="run")))
    assert (of_run.unjudged, str(of_run)) == ((), "1 of 1 verdict judged")


def test_a_gate_does_not_pass_with_too_few_trials_for_any_verdict(simulate: Simulate, tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    simulate(0.1, method="peeks", tasks=1, subsamples=3).to_csv(path, index=False)
    done = analyze(path, *GATE)
    assert done.returncode == 2
    assert "0 of 1 verdict judged; without a verdict:\n  peeks: no verdict is possible with so few" in done.stderr
    assert analyze(path, "--fail-on", "inconclusive").returncode == 4


def test_a_run_ends_with_the_status_after_its_report(make_raw: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    leak = {"use": "controls.leak", "name": "leak", "options": {"share": 0.5}}
    raw = make_raw(methods=["toy.constant", leak], report={"formats": ["json"]})
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(raw))
    for decisions, status in (("biased", 0), ("inert,equivalent,inconclusive", 4), ("controls-failed", 0)):
        done = run_command("run", "spec.yaml", "--fail-on", decisions)
        assert done.returncode == status, done.stderr
        assert (tmp_path / "reports" / "small" / "report.json").exists()


def test_a_run_does_not_begin_with_a_gate_that_cannot_fail(
    make_raw: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(make_raw(methods=["toy.constant"])))
    done = run_command("run", "spec.yaml", "--fail-on", "controls failed")
    assert done.returncode == 2
    assert "small has no verdict on a control" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_names_are_parsed_once() -> None:
    assert Gate.parse("biased, BIASED,no_signal") == Gate(("biased", "no signal"))
    with pytest.raises(PeekbenchError, match="the name of a decision is missing"):
        Gate.parse("")


def run_action(tmp_path: Path, **inputs: str) -> tuple[int, str, str]:
    """Run the last step of the action as a runner would, and return its status, output and summary."""
    assert inputs.keys() <= ACTION["inputs"].keys()
    values = {name: declared["default"] for name, declared in ACTION["inputs"].items()} | inputs
    step = ACTION["runs"]["steps"][-1]
    variables = {}
    for variable, expression in step["env"].items():
        name = expression.removeprefix("${{ inputs.").removesuffix(" }}")
        variables[variable] = values[name]
    assert "${{" not in step["run"], "the text of an input would be run as a command"
    files = {name: tmp_path / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "RUNNER_TEMP")}
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "peekbench").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m peekbench "$@"\n')
    (folder / "peekbench").chmod(0o755)
    files["GITHUB_STEP_SUMMARY"].write_text("")
    environment = os.environ | variables | {name: str(path) for name, path in files.items()}
    environment["PATH"] = f"{folder}{os.pathsep}{environment['PATH']}"
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr, files["GITHUB_STEP_SUMMARY"].read_text()


def test_the_action_judges_a_table(biased: Path, unbiased: Path, tmp_path: Path) -> None:
    status, output, summary = run_action(tmp_path, scores=str(biased), options="--region 0.01")
    assert (status, "peeks is biased up" in output, "peeks" in summary) == (4, True, True), output
    status, output, summary = run_action(tmp_path, scores=str(unbiased))
    assert status == 0, output
    assert "--fail-on biased,controls-failed: passed (1 of 1 verdict judged)" in output
    assert "equivalent" in summary
    assert "peeks" not in summary, "each use in a job has its own summary"
    assert re.fullmatch(r"::stop-commands::(\w{32})\n.*\n::\1::\n.*", output, re.DOTALL), "no line between is a command"
    assert (tmp_path / "GITHUB_OUTPUT").read_text().splitlines() == ["status=4", "status=0"]


def test_the_action_refuses_wrong_inputs(unbiased: Path, tmp_path: Path) -> None:
    for inputs in ({}, {"scores": str(unbiased), "spec": "a.yaml"}):
        status, output, _ = run_action(tmp_path, **inputs)
        assert status == 2
        assert "::error::give one of the inputs scores and spec" in output
    status, output, summary = run_action(tmp_path, scores="$(touch hacked)")
    assert (status, summary, (tmp_path / "hacked").exists()) == (2, "", False)
    assert "$(touch hacked)" in output


def test_the_action_installs_itself_by_default() -> None:
    _, install, _ = ACTION["runs"]["steps"]
    assert install["env"] == {"VERSION": "${{ inputs.version || github.action_path }}"}
    assert install["run"] == 'python -m pip install --quiet "$VERSION"'


def test_all_lines_of_the_options_count(biased: Path, tmp_path: Path) -> None:
    status, output, _ = run_action(tmp_path, scores=str(biased), options="--region 0.01\n--analysis consistency\n")
    assert status == 2
    assert "no verdict on the bias" in output


def test_a_spec_without_markdown_has_a_summary(make_raw: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    raw = make_raw(methods=["toy.constant"], report={"formats": ["json"]})
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(raw))
    status, output, summary = run_action(tmp_path, spec="spec.yaml")
    assert status == 0, output
    assert summary.startswith("    small  ")
