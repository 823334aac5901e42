"""`--fail-on`, and the action that uses it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from commands import run_command

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
        ("biased", 4, "--fail-on: peeks is biased up\n"),
        ("equivalent,controls-failed", 4, "honest is equivalent\n"),
        ("biased down,Inconclusive", 0, "--fail-on: passed (2 verdicts)\n"),
        ("biassed", 2, "no decision is called 'biassed'; did you mean biased? Decisions are biased, biased up"),
    ],
)
def test_the_status_depends_on_the_decisions(decisions: str, status: int, message: str, biased: Path) -> None:
    done = analyze(biased, "--fail-on", decisions)
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert ("peeks" in done.stdout) == (status != 2), "the report comes first"


def test_a_gate_does_not_pass_without_a_verdict(unbiased: Path) -> None:
    done = analyze(unbiased, "--fail-on", "biased", "--analysis", "consistency")
    assert done.returncode == 2
    assert "has no verdict on a bias" in done.stderr


def test_a_table_cannot_exempt_its_methods_by_calling_them_controls(biased: Path) -> None:
    table = pd.read_csv(biased)
    for control in ("positive", "negative"):
        marked = table.assign(control=table["method"].map({"peeks": control, "honest": ""}))
        marked.to_csv(biased, index=False)
        done = analyze(biased, "--fail-on", "biased")
        assert done.returncode == 4
        assert "--fail-on: peeks is biased up\n" in done.stderr


@pytest.mark.slow
def test_a_run_ends_with_the_status_after_its_report(make_raw: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    leak = {"use": "controls.leak", "name": "leak", "options": {"share": 0.5}}
    raw = make_raw(methods=["toy.constant", leak], report={"formats": ["json"]})
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(raw))
    for decisions, status in (("biased", 0), ("inert,equivalent,inconclusive", 4), ("controls-failed", 0)):
        done = run_command("run", "spec.yaml", "--fail-on", decisions)
        assert done.returncode == status, done.stderr
        assert (tmp_path / "reports" / "small" / "report.json").exists()


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


@pytest.mark.slow
def test_the_action_judges_a_table(biased: Path, unbiased: Path, tmp_path: Path) -> None:
    status, output, summary = run_action(tmp_path, scores=str(biased), options="--region 0.01")
    assert (status, "peeks is biased up" in output, "peeks" in summary) == (4, True, True), output
    status, output, summary = run_action(tmp_path, scores=str(unbiased))
    assert status == 0, output
    assert "--fail-on: passed (1 verdict)" in output
    assert "equivalent" in summary
    assert "peeks" not in summary, "each use in a job has its own summary"
    assert re.fullmatch(r"::stop-commands::(\w{32})\n.*\n::\1::\n.*", output, re.DOTALL), "no line between is a command"
    assert (tmp_path / "GITHUB_OUTPUT").read_text().splitlines() == ["status=4", "status=0"]
