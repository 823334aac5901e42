"""Formats for other tools: the numbers are those of the report, and the official validators accept the files."""

from __future__ import annotations

import csv
import json
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pandas as pd
import pytest
from commands import run_command

import peekbench as pb
from peekbench.errors import PeekbenchError
from peekbench.execution.runner import run
from peekbench.records import Report
from peekbench.report import report_of_run, write_report
from peekbench.report.render.json_report import render_json
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.spec.experiment import make_spec
from peekbench_exports.latex import escape
from peekbench_exports.paper_text import describe_run
from peekbench_exports.ro_crate import METADATA
from peekbench_exports.tables import read_run
from peekbench_testing import check_entry

FIXTURES = Path(__file__).parents[1] / "fixtures"
FORMATS = ("csv", "latex", "text", "every-eval-ever", "ro-crate", "croissant")
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
    return replace(report_of_run(store), author="Ada Lovelace", license="CC-BY-4.0")


@pytest.fixture(scope="module")
def exported(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a folder for each format."""
    folder = tmp_path_factory.mktemp("exported")
    for name in FORMATS:
        written = write_report(report, folder, [f"exports.{name}"])
        assert sorted(path for path in (folder / f"exports.{name}").rglob("*") if path.is_file()) == written
        (folder / f"exports.{name}").rename(folder / name)
    return folder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise OSError("tests have no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    yield


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


def test_latex_shows_rounded_numbers_and_cites_references(exported: Path, report: Report) -> None:
    rows = [row for row in read_rows(exported / "csv/estimates.csv") if row["quantity"] == "extra"]
    average, by_task, methods = (
        (exported / "latex" / f"{name}.tex").read_text() for name in ("average", "by_task", "methods")
    )
    for row in rows:
        low, high = (f"{100 * float(row[name]):.1f}" for name in ("low", "high"))
        label = f"{row['method']} ({row['model']})" if row["model"] else row["method"]
        cells = rf"{label} & ${100 * float(row['estimate']):.1f}$ {{\footnotesize$[{low}, {high}]$}}"
        of_task = by_task.partition(rf"\textit{{{escape(row['task'])}}}")[2].partition(r"\textit")[0]
        assert cells in (of_task if row["task"] else average)
    assert r"a\_1" in by_task
    for text in (average, by_task, methods):
        assert text.count("{") == text.count("}")
    keys = set(re.findall(r"@\w+\{(\w+),", (exported / "latex/references.bib").read_text()))
    assert set(re.findall(r"\\citep\{(\w+)\}", methods)) == keys
    plain = (exported / "text/methods.txt").read_text()
    assert "30 test rows, 40 unlabeled rows" in report.headline
    assert set(re.findall(r"\[@(\w+)\]", plain)) == keys
    assert "torch" not in plain, "it can be installed, but no method requires it"
    for fact in ("4 subsamples of 12 labeled train texts", "(seed 7)", "test and mix 0.25", "further texts, 40 in all",
                 "90% interval",
                 "All 16 planned trials", "lies within 0.5 points of 0"):  # fmt: skip
        assert fact in plain


def test_the_paragraph_says_that_groups_are_kept_together(report: Report) -> None:
    run = read_run(report)
    tasks = {name: {**facts, "groups": 9} for name, facts in run.tasks.items()}
    for grouped, of in ((tasks, ""), ({**tasks, "b": run.tasks["b"]}, " of a_1")):
        text, _ = describe_run(replace(run, tasks=grouped))
        assert f"without overlap, and texts of the same group{of} were never in two sets (seed 7)" in text


def test_records_follow_the_schema_of_every_eval_ever(exported: Path, report: Report) -> None:
    schema = json.loads((FIXTURES / "every_eval_ever/eval.schema.json").read_text())
    files = sorted((exported / "every-eval-ever").rglob("*.json"))
    assert len(files) == 2
    for file in files:
        record = json.loads(file.read_text())
        jsonschema.validate(record, schema)
        assert record["source_metadata"]["source_organization_name"] == "Ada Lovelace"
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


def test_official_validator_accepts_the_records(exported: Path, tmp_path: Path) -> None:
    validate = pytest.importorskip("every_eval_ever.validator.validate")
    root = exported / "every-eval-ever"
    for file in root.rglob("*.json"):
        place = file.relative_to(root).as_posix()
        report = validate.validate_file(file, repo_path=place, run_semantic_checks=True)
        assert report.valid, report.errors
        assert not report.warnings
        record = json.loads(file.read_text())
        record["evaluation_results"][0]["metric_config"]["score_type"] = "unbounded"
        broken = tmp_path / file.name
        broken.write_text(json.dumps(record))
        assert not validate.validate_file(broken, repo_path=place, run_semantic_checks=True).valid


def test_crate_in_another_folder_rebuilds_each_number(exported: Path, store: Path, tmp_path: Path) -> None:
    crate = shutil.copytree(exported / "ro-crate", tmp_path / "elsewhere" / "crate")
    before = {path.name: path.read_bytes() for path in crate.iterdir()}
    done = run_command("analyze", str(crate), "--reports", str(tmp_path / "reports"))
    assert done.returncode == 0, done.stderr
    rebuilt = (tmp_path / "reports/small_run/report.json").read_text()
    assert rebuilt == before["report.json"].decode() == render_json(report_of_run(store))
    assert {path.name: path.read_bytes() for path in crate.iterdir() if path.suffix != ".lock"} == before


def test_crate_describes_all_its_files(exported: Path) -> None:
    crate = exported / "ro-crate"
    content = json.loads((crate / "ro-crate-metadata.json").read_text())
    entities = {entity["@id"]: entity for entity in content["@graph"]}
    files = {path.name for path in crate.iterdir()} - {"ro-crate-metadata.json"}
    assert {part["@id"] for part in entities["./"]["hasPart"]} == files
    assert {name for name in entities if entities[name]["@type"] == "File"} == files
    references = re.findall(r'\{"@id": "([^"]+)"\}', json.dumps(content))
    assert set(references) <= {*entities, "https://w3id.org/ro/crate/1.1"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validator's libraries
def test_official_validator_accepts_the_crate(exported: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    services = pytest.importorskip("rocrate_validator.services")
    models = pytest.importorskip("rocrate_validator.models")
    http = pytest.importorskip("rocrate_validator.utils.http")
    requests = pytest.importorskip("requests")
    # The validator downloads the context that the crate names; the library rocrate has a copy.
    context = requests.Response()
    context.status_code, context.headers["Content-Type"] = 200, "application/ld+json"
    context._content = (files("rocrate") / "data/ro-crate.jsonld").read_bytes()
    known = {"https://w3id.org/ro/crate/1.1/context": context}
    monkeypatch.setattr(http.HttpRequester, "get", lambda _, url, **__: known[url], raising=False)

    def find_issues(crate: Path) -> set[tuple[str, str]]:
        settings = services.ValidationSettings(
            rocrate_uri=str(crate),
            profile_identifier="process-run-crate",
            requirement_severity=models.Severity.RECOMMENDED,
        )
        return {(issue.severity.name, issue.message) for issue in services.validate(settings).get_issues()}

    issues = find_issues(exported / "ro-crate")
    assert {message for severity, message in issues if severity == "REQUIRED"} == set()
    # No store knows when a run ended, which organization publishes it, or more than the name of the author.
    assert {message.partition(" SHOULD")[0] for _, message in issues} <= {
        "The Action", "The author", "The `publisher` property of a `Root Data Entity`",
    }  # fmt: skip
    broken = tmp_path / "broken"
    broken.mkdir()
    content = json.loads((exported / "ro-crate" / METADATA).read_text())
    (action,) = (entity for entity in content["@graph"] if entity["@type"] == "CreateAction")
    del action["instrument"]
    (broken / METADATA).write_text(json.dumps(content))
    assert any("instrument" in message for severity, message in find_issues(broken) if severity == "REQUIRED")


def test_croissant_describes_all_columns(exported: Path) -> None:
    folder = exported / "croissant"
    content = json.loads((folder / "croissant.json").read_text())
    for record_set in content["recordSet"]:
        header = (folder / f"{record_set['name']}.csv").read_text().partition("\n")[0]
        assert [field["name"] for field in record_set["field"]] == header.split(",")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of its libraries
def test_official_library_loads_the_croissant_data_set(exported: Path, no_network: None, tmp_path: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    dataset = mlcroissant.Dataset(str(exported / "croissant/croissant.json"))
    assert not dataset.metadata.issues.errors
    expected = [float(row["estimate"]) for row in read_rows(exported / "croissant/estimates.csv")]
    assert [record["estimates/estimate"] for record in dataset.records("estimates")] == expected
    broken = shutil.copytree(exported / "croissant", tmp_path / "broken")
    content = json.loads((broken / "croissant.json").read_text())
    content["recordSet"][0]["field"][0]["source"]["fileObject"]["@id"] = "score.csv"
    (broken / "croissant.json").write_text(json.dumps(content))
    with pytest.raises(mlcroissant.ValidationError, match="score.csv"):
        mlcroissant.Dataset(str(broken / "croissant.json"))


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
    assert r"toy.vote (none) & $" in table
    assert r"\input{methods}" not in (folder / "exports.latex/main.tex").read_text()
    refused = run_command("analyze", "scores.csv", "--format", "exports.ro-crate")
    assert "use exports.csv or exports.latex for a table of scores" in refused.stderr
    assert "did you mean exports.latex" in run_command("analyze", "scores.csv", "--format", "exports.latx").stderr
    written = pb.analyze("scores.csv").save(tmp_path, ["exports.latex"])
    assert (tmp_path / "exports.latex/average.tex") in written


def test_a_report_of_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PeekbenchError, match="scores is a report of no run"):
        write_report(Report("scores", "from scores.csv"), tmp_path, ["exports.latex"])
    assert not list(tmp_path.iterdir())


def test_command_exports_a_run_with_its_lock_file(make_raw: Callable[..., Any], tmp_path: Path) -> None:
    spec = make_spec(make_raw(design={"num_train": 12, "num_test": 30, "num_subsamples": 2}), folder=tmp_path)
    run(spec)
    Path("small.lock").write_text("pinned")
    done = run_command("report", "small", "--format", "exports.ro-crate", "--license", "CC0-1.0")
    assert done.returncode == 0, done.stderr
    assert f"Report: {Path('reports/small/exports.ro-crate')}" in done.stdout
    assert Path("reports/small/exports.ro-crate/spec.lock").read_text() == "pinned"
    assert "CC0-1.0" in Path("reports/small/exports.ro-crate", METADATA).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_contract(name: str) -> None:
    assert [outcome.message for outcome in check_entry(f"exports.{name}") if not outcome.passed] == []
