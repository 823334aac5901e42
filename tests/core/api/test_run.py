"""`peekbench.run` and `load_run`: results, predictions, failures and reports of a run from Python."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

import peekbench as pb
from peekbench.errors import PluginError, RunWarning


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> pb.Run:
    """A small run, whose store is in the folder `runs` of a folder of its own."""
    folder, before = tmp_path_factory.mktemp("run"), Path.cwd()
    spec = {
        "name": "small",
        "seed": 7,
        "tasks": ["toy.words"],
        "methods": ["toy.vote", "toy.constant"],
        "design": {"num_train": 12, "num_test": 30, "num_subsamples": 3},
        "executor": {"use": "local", "options": {"in_process": True}},
    }
    os.chdir(folder)
    try:
        return pb.run(spec, progress=False)
    finally:
        os.chdir(before)


def test_a_dictionary_runs(run: pb.Run) -> None:
    assert (run.planned, run.resumed, run.finished, run.failed) == (6, 0, 6, 0)
    assert run.spec.name == run.name == "small"
    assert repr(run) == "<run small: 6 of 6 trials done, in runs/small.sqlite>"
    assert "Does a method score higher" in run._repr_html_(), "a cell of a notebook shows the report"


def test_results_and_arms_are_frames(run: pb.Run) -> None:
    pd.testing.assert_frame_equal(run.results, pb.load_results(run.store))
    assert len(run.arms) == 6
    assert {"method", "task", "subsample", "base", "extra", "test", "boost", "bias"} <= set(run.arms)
    assert (run.arms["bias"] == run.arms["test"] - run.arms["extra"]).all()
    assert run.failures.empty


def test_predictions_are_read_on_demand(run: pb.Run) -> None:
    table = run.predictions.to_pandas(method="toy.vote", subsample=np.array([0, 2]))
    assert len(run.predictions) == 6
    assert len(table) == 2 * 3 * 60
    scores = run.results.query("method == 'toy.vote' and subsample in (0, 2)").set_index(["subsample", "arm"])["score"]
    found = table.groupby(["subsample", "arm"])["correct"].mean()
    pd.testing.assert_series_equal(found.sort_index(), scores.sort_index(), check_names=False, check_index_type=False)
    trial = next(iter(run.predictions))
    assert run.predictions[trial]["extra"].numbers.shape == (60, 3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["groups", "folds", "tasks"])
def test_the_table_of_predictions_gives_the_report_of_the_run(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, size=240)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 30, size=8) + 6 * label) for label in labels]
    rows = pd.DataFrame({"text": texts, "label": np.where(labels, "yes", "no"), "author": rng.integers(0, 50, 240)})
    data: dict[str, Any] = {"data": rows[["text", "label"]], "num_train": 40, "num_test": 40}
    if kind == "groups":
        data |= {"data": rows, "group": "author"}
    elif kind == "folds":
        data = {"train": rows[["text", "label"]][:60], "test": rows[["text", "label"]][60:], "folds": 3}
    else:
        sets = [["odd"] * (row % 2) + ["yes"] * label for row, label in enumerate(labels[:200])]
        data["data"] = {"few": (texts[:150], sets[:150]), "many": (texts[:200], sets)}
    methods = ["classic.lsa", "controls.leak"]
    run = pb.measure(methods, **data, num_subsamples=4, progress=False, name=kind)
    analyses = ["summary", "summary.texts"]
    own = run.report(analyses)
    table = run.predictions.to_pandas()
    table.to_csv(tmp_path / "answers.csv", index=False)
    for source in (table, tmp_path / "answers.csv"):
        report = pb.analyze(source, analyses=analyses)
        assert [verdict.decision for verdict in report.verdicts] == [verdict.decision for verdict in own.verdicts]
        expected = {of.title: of.to_pandas() for of in own.tables}
        assert any("other texts" in of.title for of in report.tables)
        for found in report.tables:
            pd.testing.assert_frame_equal(found.to_pandas(), expected[found.title])


@pytest.mark.parametrize("by", ["name", "store", "spec"])
def test_a_run_is_loaded_without_running(run: pb.Run, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.store.parents[1])
    loaded = pb.load_run("small" if by == "name" else run.store if by == "store" else run.spec)
    assert (loaded.resumed, loaded.finished, loaded.planned) == (6, 0, 6)
    pd.testing.assert_frame_equal(loaded.results, run.results)


def test_a_path_resumes_and_failures_warn(make_raw: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    spec = make_raw(methods=["toy.vote", "toy.faulty"], design={"num_train": 12, "num_test": 30, "num_subsamples": 2})
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(spec))
    for finished in (4, 0):
        match = r"4 trials failed; the first error, of toy.faulty on a: .*run\.failures"
        with pytest.warns(RunWarning, match=match) as caught:
            run = pb.run("small.yaml", progress=False)
        assert caught[0].filename == __file__
        assert (run.finished, run.failed) == (finished, 4)
    assert set(run.failures["method"]) == {"toy.faulty"}
    assert "Traceback" in run.failures["traceback"].iloc[0]
    assert "4 trials failed" in run.report(["summary"])._repr_html_()


def test_a_run_without_a_finished_trial_is_empty(make_spec: Callable[..., Any]) -> None:
    spec = make_spec(methods=["toy.faulty"], tasks=["toy.words"])
    match = r"no trial is finished: \d trials failed; the first error, of toy.faulty on .*load_run\('runs/\w+.sqlite'\)"
    with pytest.raises(PluginError, match=match):
        pb.run(spec, progress=False)
    run = pb.load_run(spec)
    assert run.failed and run.arms.groupby("method")["bias"].mean().empty
    with pytest.raises(pb.PeekbenchError, match="no finished trial has predictions"):
        run.predictions.to_pandas()
    assert "excluded from all results" in run._repr_html_()
    run.store.unlink()
    assert run._repr_html_().startswith("<pre>&lt;run "), "why there is no report"


def test_progress_goes_to_standard_error(make_spec: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    pb.run(make_spec(name="first", methods=["toy.constant"]))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "6 of 6 trials" in shown.err
    pb.run(make_spec(name="second", methods=["toy.constant"]), progress=False)
    assert capsys.readouterr() == ("", "")
