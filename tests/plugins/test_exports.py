"""Formats for other tools: the numbers are those of the report."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest
from commands import run_command

import peekbench as pb
from peekbench.execution.runner import run
from peekbench.records import Report
from peekbench.report import report_of_run, write_report
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.spec.experiment import make_spec
from peekbench_exports.latex import escape

FIXTURES = Path(__file__).parents[1] / "fixtures"
FORMATS = ("csv", "latex", "every-eval-ever")
SPEC: dict[str, Any] = {
    "name": "small_run",
    "seed": 7,
    "tasks": [{"use": "toy.words", "name": "a_1"}, {"use": "toy.words", "name": "b", "options": {"seed": 1}}],
    "methods": ["toy.vote", "toy.constant"],
    "arms": ["base", "extra", "test", {"mix": 0.25}],
    "design": {"num_train": 12, "num_test": 30, "num_unlabeled": 40, "num_subsamples": 4, "crossover": False},
    "analyses": [{"use": "summary", "options": {"level": 0.9}}, "permutation"],
    "executor": {"use": "local", "options": {"in_process": True}},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    return run(make_spec(SPEC, folder=folder), store=folder / "small_run.sqlite").store


@pytest.fixture(scope="module")
def report(store: Path) -> Report:
    return report_of_run(store)


@pytest.fixture(scope="module")
def exported(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder for each format."""
    folder = tmp_path_factory.mktemp("exported")
    for name in FORMATS:
        written = write_report(report, folder, [f"exports.{name}"])
        assert sorted(path for path in (folder / f"exports.{name}").rglob("*") if path.is_file()) == written
        (folder / f"exports.{name}").rename(folder / name)
    return folder


def read_rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.slow
def test_csv_has_the_scores_and_their_intervals(exported: Path, report: Report) -> None:
    rows = read_rows(exported / "csv/estimates.csv")
    biases = {row["method"]: row for row in rows if row["quantity"] == "bias" and not row["task"]}
    for verdict in (verdict for verdict in report.verdicts if verdict.analysis == "summary"):
        bias = biases[verdict.method.partition(" ")[0]]  # the label also has the model
        shown = [float(bias[name]) if bias[name] else None for name in ("estimate", "low", "high", "level")]
        assert shown == [verdict.estimate.mean, *verdict.estimate.limits, 0.9]
        assert verdict.estimate.has_interval == (verdict.decision != "inert")
        assert bias["decision"] == verdict.decision
    results = pd.read_csv(exported / "csv/scores.csv")
    means = results.groupby(["method", "task", "arm"])["score"].mean().to_dict()
    for row in (row for row in rows if row["task"]):
        of_arm = {arm: means[row["method"], row["task"], arm] for arm in ("base", "extra", "test")}
        expected = {
            "extra": of_arm["extra"],
            "bias": of_arm["test"] - of_arm["extra"],
            "boost": of_arm["extra"] - of_arm["base"],
        }[row["quantity"]]
        assert float(row["estimate"]) == pytest.approx(expected, abs=1e-12)
        assert float(row["low"]) <= float(row["estimate"]) <= float(row["high"])
    effects = pd.read_csv(exported / "csv/effects.csv")
    assert (effects["test"] - effects["extra"]).tolist() == effects["bias"].tolist()
    (again,) = analyze(exported / "csv/scores.csv", AnalysisOptions(["permutation"])).analyses
    assert [v.estimate for v in again.verdicts] == [v.estimate for v in report.verdicts if v.analysis == "permutation"]


def test_latex_shows_rounded_numbers(exported: Path) -> None:
    rows = [row for row in read_rows(exported / "csv/estimates.csv") if row["quantity"] == "extra"]
    table = (exported / "latex" / "average.tex").read_text()
    for row in (row for row in rows if not row["task"]):
        low, high = (f"{100 * float(row[name]):.1f}" for name in ("low", "high"))
        label = f"{row['method']} ({row['model']})" if row["model"] else row["method"]
        cells = rf"{label} & ${100 * float(row['estimate']):.1f}$ {{\footnotesize$[{low}, {high}]$}}"
        assert cells in table
    assert table.count("{") == table.count("}")
    assert escape("50% of R&D_1") == r"50\% of R\&D\_1"


def test_records_follow_the_schema_of_every_eval_ever(exported: Path, report: Report) -> None:
    schema = json.loads((FIXTURES / "every_eval_ever/eval.schema.json").read_text())
    files = sorted((exported / "every-eval-ever").rglob("*.json"))
    assert len(files) == 2
    for file in files:
        record = json.loads(file.read_text())
        jsonschema.validate(record, schema)
        quantities = [
            result["metric_config"]["additional_details"]["quantity"] for result in record["evaluation_results"]
        ]
        assert quantities == [name for name in ("extra", "bias", "boost") for _ in range(3)]  # the average and 2 tasks
        for result in record["evaluation_results"]:
            score, interval = (result["score_details"][key] for key in ("score", "uncertainty"))
            if "confidence_interval" not in interval:
                assert score == 0, "an inert method has no interval"
                continue
            assert interval["confidence_interval"]["lower"] <= score <= interval["confidence_interval"]["upper"]
    again = write_report(report, exported / "again", ["exports.every-eval-ever"])
    assert [path.name for path in again] == [path.name for path in files], "the same run has the same identifiers"


@pytest.mark.slow
def test_tables_of_scores_have_the_formats_that_describe_no_run(report: Report, tmp_path: Path) -> None:
    assert report.read_run is not None
    report.read_run().results.to_csv("scores.csv", index=False)
    for name in ("markdown", "exports.csv", "exports.latex"):
        done = run_command("analyze", "scores.csv", "--format", name)
        assert done.returncode == 0, done.stderr
    folder = Path("reports/scores")
    assert (folder / "report.md").is_file()
    pd.testing.assert_frame_equal(pb.load_results(folder / "exports.csv/scores.csv"), pb.load_results("scores.csv"))
    table = (folder / "exports.latex/average.tex").read_text()
    assert r"toy.vote (none) & $" in table and "those of the bias are adjusted for the number of methods" in table
    refused = run_command("analyze", "scores.csv", "--format", "exports.every-eval-ever")
    assert "use exports.csv or exports.latex for a table of scores" in refused.stderr
    assert "did you mean exports.latex" in run_command("analyze", "scores.csv", "--format", "exports.latx").stderr
    written = pb.analyze("scores.csv").save(tmp_path, ["exports.latex"])
    assert (tmp_path / "exports.latex/average.tex") in written
