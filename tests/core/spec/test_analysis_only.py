"""Specs that only analyze existing scores, and the command that uses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from peekbench.cli.app import app
from peekbench.errors import ResultsError, SpecError
from peekbench.records.trials import Draw, Trial
from peekbench.spec.analysis_only import Selection, is_analysis_only, load_analysis_only

SPEC = """
name: again
only: {num_test: 200, method: seen}
analyses: [summary, {use: permutation, options: {level: 0.9}}]
report: {formats: [json]}
"""


@pytest.fixture
def table(simulate: Callable[..., Any]) -> pd.DataFrame:
    tables: list[pd.DataFrame] = [simulate(0.03, method="seen"), simulate(0.0, method="unwanted")]
    return pd.concat(tables, ignore_index=True)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "again.yaml"
    path.write_text(SPEC)
    return path


def test_analysis_only_specs_are_recognized(spec: Path, tmp_path: Path) -> None:
    assert is_analysis_only(spec)
    (tmp_path / "experiment.yaml").write_text(SPEC + "tasks: []\n")
    assert not is_analysis_only(tmp_path / "experiment.yaml")
    (tmp_path / "broken.yaml").write_text("analyses: [")
    assert not is_analysis_only(tmp_path / "broken.yaml")
    assert not is_analysis_only(tmp_path / "missing.yaml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SPEC.replace("summary", "summray"), r"analyses\[0\].*summray"),
        (SPEC.replace("name: again", ""), "name: is missing"),
        (SPEC + "seed: 3\n", "seed: no such option"),
        (SPEC.replace("num_test: 200", "num_tests: 200"), "only.num_tests: no such option; did you mean num_test"),
        ("[]", "is invalid"),
    ],
)
def test_errors_name_the_place(text: str, message: str, spec: Path) -> None:
    spec.write_text(text)
    with pytest.raises(SpecError, match=message):
        load_analysis_only(spec)


def test_error_names_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"cannot read the spec .*nowhere\.yaml"):
        load_analysis_only(tmp_path / "nowhere.yaml")


def test_rows_with_any_of_the_values_are_selected(table: pd.DataFrame) -> None:
    chosen = Selection(task=("task1", "task3"), method="seen").select_rows(table)
    assert set(chosen["task"]) == {"task1", "task3"}
    assert set(chosen["method"]) == {"seen"}
    assert list(chosen.index) == list(range(len(chosen)))
    assert len(Selection().select_rows(table)) == len(table)


def test_error_names_an_unknown_value_and_the_known_ones(table: pd.DataFrame) -> None:
    with pytest.raises(ResultsError, match=r"only.num_test: no score has 50; the scores have 200"):
        Selection(num_test=(50,)).select_rows(table)


def test_planned_trials_are_selected_like_rows() -> None:
    trials = [Trial(Draw(task, 10, size, 0), "m") for task in ("a", "b") for size in (50, 100)]
    assert Selection(num_test=(50,)).select_trials(trials) == [trials[0], trials[2]]
    assert Selection(task=("b",)).select_trials(trials) == trials[2:]
    assert Selection().select_trials(trials) == trials


def test_command_uses_analyses_selection_and_formats_of_the_spec(
    table: pd.DataFrame, spec: Path, tmp_path: Path
) -> None:
    table.to_csv(tmp_path / "scores.csv", index=False)
    arguments = ["analyze", str(tmp_path / "scores.csv"), "--spec", str(spec), "--reports", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    assert "again" in ran.output and "seen" in ran.output and "unwanted" not in ran.output
    assert [path.name for path in (tmp_path / "out").rglob("*.*")] == ["report.json"]


def test_command_refuses_spec_and_analysis_together(table: pd.DataFrame, spec: Path, tmp_path: Path) -> None:
    table.to_csv(tmp_path / "scores.csv", index=False)
    arguments = ["analyze", str(tmp_path / "scores.csv"), "--spec", str(spec), "--analysis", "summary"]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 2
    assert "--spec and --analysis" in ran.output


def test_validate_accepts_analysis_only_specs(spec: Path) -> None:
    ran = CliRunner().invoke(app, ["validate", str(spec)])
    assert ran.exit_code == 0, ran.output
    assert "2 analyses" in ran.output and "permutation" in ran.output
