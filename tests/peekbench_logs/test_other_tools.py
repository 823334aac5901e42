"""Results of HELM, MTEB, Every Eval Ever and lighteval: single scores are read, averages are refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run_command
from tool_logs import import_table

import peekbench as pb
from peekbench.errors import ResultsError

RIGHT = {arm: np.random.default_rng(seed).random((2, 30)) < 0.6 for seed, arm in enumerate(("extra", "test"))}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def write_helm(folder: Path, right: Any) -> Path:
    """Write a run of HELM with two draws of train examples."""
    name = {"name": "exact_match", "split": "test"}
    stats = [
        {"instance_id": f"id{text}", "train_trial_index": trial, "stats": [{"name": name, "mean": float(value)}]}
        for trial, of_trial in enumerate(right) for text, value in enumerate(of_trial)
    ]  # fmt: skip
    perturbed = {**stats[0], "perturbation": {"name": "typos"}}
    write(folder / "run_spec.json", {"scenario_spec": {"class_name": "helm.boolq.BoolQ", "args": {"part": "a"}}})
    return write(folder / "per_instance_stats.json", [*stats, perturbed]).parent


def write_mteb(path: Path, scores: Any, **stated: float) -> Path:
    """Write a result of MTEB with a score of each experiment."""
    experiments = [{"accuracy": score, "f1": score / 2} for score in scores]
    mean = {"accuracy": float(np.mean(scores)), **stated}
    subset = {"hf_subset": "default", "main_score": mean["accuracy"], **mean, "scores_per_experiment": experiments}
    return write(path, {"dataset_revision": "abc", "task_name": "Banking77", "scores": {"test": [subset]}})


def test_texts_and_draws_of_helm_are_read(tmp_path: Path) -> None:
    logs = [(arm, write_helm(tmp_path / arm, right)) for arm, right in RIGHT.items()]
    table = import_table("helm", logs)
    assert set(table["task"]) == {"BoolQ, a"}
    for (arm, trial), rows in table.groupby(["arm", "subsample"]):
        found = rows.set_index("text")["score"]
        assert found.to_dict() == {f"id{text}": value for text, value in enumerate(RIGHT[str(arm)][int(str(trial))])}
    assert pb.analyze(table).verdicts[0].estimate.mean == pytest.approx(RIGHT["test"].mean() - RIGHT["extra"].mean())


def test_experiments_of_mteb_are_subsamples(tmp_path: Path) -> None:
    scores = {arm: np.random.default_rng(seed).uniform(0.6, 0.8, 10).round(4) for seed, arm in enumerate(RIGHT)}
    for arm, of_arm in scores.items():
        write_mteb(tmp_path / arm / "Banking77.json", of_arm)
        write(tmp_path / arm / "model_meta.json", {"name": "model"})
    command = ["import", "mteb", *(f"--arm={arm}={tmp_path / arm}" for arm in scores), "-o", str(tmp_path / "a.csv")]
    done = run_command(*command, "--metric", "accuracy")
    assert done.returncode == 0, done.stderr
    (verdict,) = pb.analyze(tmp_path / "a.csv").verdicts
    assert verdict.estimate.mean == pytest.approx((scores["test"] - scores["extra"]).mean())
    assert "1 method on 1 task, 10 trials" in done.stdout
    write_mteb(tmp_path / "test" / "Banking77.json", scores["test"], accuracy=0.99)
    logs = [(arm, tmp_path / arm) for arm in scores]
    with pytest.raises(ResultsError, match="Banking77: the mean of accuracy is .*, and the result states 0.99"):
        import_table("mteb", logs)
    write(tmp_path / "test" / "Banking77.json", {"task_name": "STS", "scores": {"test": [{"main_score": 0.5}]}})
    with pytest.raises(ResultsError, match="without scores of single experiments.* repeat the evaluation"):
        import_table("mteb", logs)


def test_samples_of_every_eval_ever_are_read(tmp_path: Path) -> None:
    logs = []
    for arm, right in RIGHT.items():
        lines = [
            {"schema_version": "0.2.2", "evaluation_id": arm, "evaluation_name": "news", "sample_id": f"q{text}",
             "sample_hash": f"hash {text}", "evaluation": {"score": float(value), "is_correct": bool(value)}}
            for text, value in enumerate(right[0])
        ]  # fmt: skip
        path = tmp_path / f"{arm}_samples.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        logs.append((arm, path))
    table = import_table("every-eval-ever", logs)
    assert table.groupby("arm")["score"].mean().to_dict() == {arm: right[0].mean() for arm, right in RIGHT.items()}
    with pytest.raises(ResultsError, match=r"is a log of every-eval-ever, not a table.*\n.*import every-eval-ever"):
        pb.analyze(logs[0][1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"config_general": {"lighteval_sha": "?"}, "results": {}},
            "averages of lighteval; evaluate with --save-details",
        ),
        ({"schema_version": "0.3.0", "evaluation_id": "a/b", "model_info": {}}, "Every Eval Ever; .*_samples.jsonl"),
        ([{"name": {"name": "exact_match"}, "mean": 0.5}], "averages of HELM; .*per_instance_stats.json"),
    ],
)
def test_averages_of_other_tools_are_refused_with_what_has_single_scores(
    content: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ResultsError, match=message):
        pb.analyze(write(tmp_path / "a.json", content))
