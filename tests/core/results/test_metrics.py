"""Scores of different metrics are never averaged, at any door."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import run_command

import peekbench as pb
from peekbench.execution.runner import run
from peekbench.results import tidy
from peekbench.results.analyze import AnalysisOptions, analyze

MIXED = pd.DataFrame(
    [
        {"task": task, "metric": metric, "fold": fold, "arm": arm, "result": sign * (0.8 + gain + fold / 100)}
        for task, metric, sign in (("a", "auc", 1), ("b", "auc", 1), ("car", "neg_logloss", -0.2))
        for fold in range(5)
        for arm, gain in (("extra", 0.0), ("test", 0.02))
    ]
)  # fmt: skip
"""Two tasks of AUC and one of negative log loss, as automlbenchmark writes them."""


def test_tasks_of_different_metrics_are_refused_with_a_command_that_works() -> None:
    MIXED.to_csv("mixed.csv", index=False)
    for door in ("analyze", "compare"):
        done = run_command(door, "mixed.csv", "--map", "result=score")
        assert "auc of 'a', 'b'; neg_logloss of 'car'" in done.stderr
        again = run_command(*shlex.split(done.stderr.splitlines()[-1])[1:])
        assert (again.returncode, "1 method on 2 tasks" in again.stdout) == (0, True), again.stderr
    with pytest.raises(pb.PeekbenchError, match=r"columns=\{'result': 'score'\}, tasks=\['a', 'b'\]$"):
        pb.analyze(MIXED, columns={"result": "score"})
    with pytest.raises(pb.PeekbenchError, match=r"tasks=\['a', 'b'\]$"):
        pb.load_results("mixed.csv", columns={"result": "score"})
    options: dict[str, Any] = {"columns": {"result": "score"}, "region": 0.005}
    means = [pb.analyze(MIXED, tasks=tasks, **options).verdicts[0].estimate.mean for tasks in (["a", "b"], ["car"])]
    assert means == pytest.approx([0.02, -0.004])
    with pytest.raises(
        pb.PeekbenchError, match=r"tasks=\['Car'\]: the data frame has no such task; did you mean 'car'"
    ):
        pb.analyze(MIXED, tasks=["Car"], **options)


def test_tasks_of_different_kinds_are_refused_before_a_run(make_spec: Callable[..., Any]) -> None:
    tasks = ["tabular.classification", "tabular.regression"]
    design = {"num_train": 20, "num_test": 20, "num_subsamples": 2}
    spec = make_spec(tasks=tasks, methods=["controls.null"], design=design)
    with pytest.raises(pb.PeekbenchError, match="regression is regression; put them into different specs"):
        run(spec)
    stores = [
        run(make_spec(tasks=[task], name=task[8:], methods=["tabular.pca"], design=design)).store for task in tasks
    ]
    both = pd.concat([pb.load_results(store).assign(looks="") for store in stores], ignore_index=True)
    with pytest.raises(pb.PeekbenchError, match=r"accuracy of 'tabular.classification'; an unknown metric of"):
        analyze(both, AnalysisOptions(["summary"]))
    assert Path(stores[0]).is_file()


def test_a_stated_metric_decides_what_scores_are() -> None:
    one = MIXED[MIXED["task"] == "a"].assign(num_test=100)
    options: dict[str, Any] = {"columns": {"result": "score"}}
    assert tidy(one, "here", **options)["num_correct"].isna().all(), "an AUC is no count"
    for accuracy in ("Accuracy", "exact_match,strict-match"):
        assert tidy(one.assign(metric=accuracy), "here", **options)["num_correct"].notna().all()
    with pytest.raises(
        pb.PeekbenchError, match=r"lower is better for the metric 'rmse'.*\{'result': 'loss'\} in place of"
    ):
        pb.analyze(one.assign(metric="rmse"), **options)
    (verdict,) = pb.analyze(
        one.assign(metric="rmse").drop(columns="num_test"), ["summary"], columns={"result": "loss"}, region=0.001
    ).verdicts
    assert verdict.estimate.mean == pytest.approx(-0.02)
    with pytest.raises(pb.PeekbenchError, match=r"the unit of the scores is unknown \(mean 0.16"):
        pb.analyze(MIXED[MIXED["task"] == "car"], **options)
    assert "metric" in str(pb.analyze(one, **options).document.provenance["columns"])
