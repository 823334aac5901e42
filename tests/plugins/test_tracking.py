"""Trackers, with their real libraries and without a network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from peekbench import Analysis, Column, Estimate, Folders, Table, Verdict
from peekbench.records import ArmScores, Draw, RunStarted, Trial, TrialFinished
from peekbench.spec.components import ObserverSpec, make_component
from peekbench_testing import sample_events
from peekbench_tracking.content import TrialNumbers, describe_decisions, describe_verdicts, result_tables

STORE_ID = "0123456789abcdef0123456789abcdef"
BIAS = "summary/Mean bias"
SECOND = "größe_ 50_ _a_b_-54239729"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("DO_NOT_TRACK", "MLFLOW_DISABLE_TELEMETRY", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "true")
    yield


def track(use: str, options: dict[str, Any] | None = None) -> None:
    """Let a tracker follow a run that is interrupted after half of its trials, resumed, and analyzed again."""
    spec = make_component(ObserverSpec, use, options)
    here = Path.cwd()
    for events in (
        sample_events(here, status="interrupted"),
        sample_events(here, stored=3),
        sample_events(here, stored=6),
    ):
        observer: Any = spec.entry.observe(options=spec.options, folders=Folders(spec=here, cache=here))
        for event, argument in events:
            getattr(observer, event)(argument)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_mlflow_has_one_run_with_metrics_tables_and_report() -> None:
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    track("tracking.mlflow", {"uri": "sqlite:///tracked.db"})
    client = mlflow.MlflowClient(f"sqlite:///{Path('tracked.db').absolute()}")
    experiment = client.get_experiment_by_name("peekbench")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.tags["peekbench.store"] == STORE_ID
    assert run.data.tags["summary/bias/lsa/decision"] == "inconclusive"
    assert run.data.params["design.num_train"] == "[50]"
    assert run.data.params["lsa.num_components"] == "10"
    steps = [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, "trials/failed")]
    assert steps == [(1, 0), (2, 1), (3, 1), (4, 0), (5, 0), (6, 0)]
    assert run.data.metrics["lsa/some words/extra"] == pytest.approx(0.56)
    assert run.data.metrics["summary/bias/lsa/low"] == -0.002
    files = {file.path for file in client.list_artifacts(run.info.run_id, "report")}
    assert files == {"report/report.html", "report/report.json"}
    folder = Path(client.download_artifacts(run.info.run_id, f"tables/{BIAS}.json"))
    table = json.loads(folder.read_text())
    assert table["columns"][:3] == ["method", "num_train", "bias"]
    assert len(table["data"]) == 2, "the table of the last session replaces the others"
    assert Path("mlartifacts").is_dir()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_wandb_writes_each_session_of_a_run_offline(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    track("tracking.wandb")
    folders = sorted(Path("wandb").glob(f"offline-run-*-{STORE_ID}*"))  # "-1" ends the second one of a second
    assert folders
    logs = [next(folder.glob("run-*.wandb")).read_bytes() for folder in folders]
    content = b"".join(logs)
    for words in ("trials/failed", "summary/bias/lsa/low", BIAS, "lsa.num_components", "report.html"):
        assert words.encode() in content
    assert not capfd.readouterr().out


def make_trial(num_train: int = 50) -> TrialFinished:
    trial = Trial(Draw("news", num_train, 200, 0), "bert base")
    arms = {name: ArmScores({"score": 0.5 + number / 8}, {}, 1.0, 0.5) for number, name in enumerate(("extra", "test"))}
    return TrialFinished(trial, 1, 4, arms)


def test_numbers_of_trials_are_told_apart_by_design_point() -> None:
    start = RunStarted(STORE_ID, "small", {"design": {"num_train": [50], "num_test": [200]}}, Path("s"), 4, 0)
    numbers = TrialNumbers(start).describe(make_trial())
    assert numbers["bert base/news/bias"] == 0.125
    assert numbers["bert base/news/seconds/test"] == 1.5
    assert "bert base/news/boost" not in numbers, "another method's trial has the base arm"
    several = replace(start, spec={"design": {"num_train": [50, 100], "num_test": [200]}})
    assert TrialNumbers(several).describe(make_trial(100))["bert base/news/100-200/bias"] == 0.125


def test_analyses_are_described_without_numbers_that_are_missing() -> None:
    column = Column("bias", "difference")
    table = Table("Bias: by task", (Column("task"), column, column), (("news", 0.01, None),))
    other = Table("Rows", (), (), topic="data")
    verdict = Verdict("lsa", "bias", "equivalent", Estimate(0.01))
    analysis = Analysis("summary", (table, other), verdicts=(verdict,))
    assert describe_verdicts(analysis) == {"summary/bias/lsa/estimate": 0.01}
    assert describe_decisions(analysis) == {"summary/bias/lsa/decision": "equivalent"}
    ((name, columns, rows),) = result_tables(analysis)
    assert (name, columns, rows) == ("summary/Bias_ by task", ["task", "bias", "bias (2)"], table.rows)
