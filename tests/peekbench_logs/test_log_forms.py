"""Logs with reduced or missing scores, of other scales, and hostile ones."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import run_command
from tool_logs import CORRECT, TIME, import_table, scores_by_arm, write_inspect, write_lm_eval

import peekbench as pb
from peekbench.errors import ResultsError
from peekbench_logs import import_logs


def grades(values: Sequence[object], *, epochs: int = 1) -> list[dict[str, Any]]:
    """Samples of Inspect, of which each text has `epochs` in a row."""
    return [
        {"id": number // epochs, "epoch": number % epochs + 1, "input": f"text {number // epochs}",
         "scores": {} if value == "error" else {"match": {"value": value}}, "error": {} if value == "error" else None}
        for number, value in enumerate(values)
    ]  # fmt: skip


def write_scored(path: Path, samples: Sequence[Mapping[str, Any]], metrics: Mapping[str, float], **header: Any) -> Path:
    """A log of Inspect that states statistics; the reducer of epochs and the reduced values are in `header`."""
    score = {"name": "match", "scorer": "match", "reducer": header.pop("reducer", None)}
    scores = [{**score, "metrics": {name: {"value": value} for name, value in metrics.items()}}]
    write_inspect(path, [], results={"scores": scores}, **header)
    path.write_text(json.dumps({**json.loads(path.read_text()), "samples": samples}))
    return path


def test_scores_reduced_by_another_function_than_the_mean_are_refused(tmp_path: Path) -> None:
    logs = [(arm, write_scored(tmp_path / arm, grades("CCI", epochs=3), {"accuracy": 1}, reducer="mode"))
            for arm in ("extra", "test")]  # fmt: skip
    with pytest.raises(ResultsError, match="reduced by mode, .* --epochs-reducer mean"):
        import_logs("inspect", logs)


def test_texts_without_a_score_are_left_out_of_all_arms_and_counted(tmp_path: Path) -> None:
    """Failed samples, NaN of a scorer, and null, which older versions wrote for NaN."""
    answers: dict[str, list[object]] = {
        "extra": ["C", "I", "error", math.nan, "C", "I"],
        "test": ["C", "C", "C", "I", None, "I"],
    }
    logs = []
    for arm, values in answers.items():
        scored = [value for value in values if value in ("C", "I")]
        metrics = {"accuracy": scored.count("C") / len(scored)}
        logs.append((arm, write_scored(tmp_path / f"{arm}.json", grades(values), metrics)))
    done = run_command("import", "inspect", *(f"--arm={arm}={log}" for arm, log in logs), "-o", "scores.csv")
    assert done.returncode == 0, done.stderr
    assert "3 of 6 texts are left out in all arms" in done.stderr
    assert "(extra 2, test 1): 2, 3, 4" in done.stderr
    assert scores_by_arm(pd.read_csv("scores.csv")) == {"extra": [1, 0, 0], "test": [1, 1, 0]}
    for number, (arm, values) in enumerate(answers.items()):
        repeated = [answer for value in values for answer in ("C", value)]  # each text has at least one score
        logs[number] = arm, write_scored(tmp_path / f"{arm}.json", grades(repeated, epochs=2), {})
    table = import_table("inspect", logs)
    assert scores_by_arm(table) == {"extra": [1, 0.5, 1, 1, 1, 0.5], "test": [1, 1, 1, 0.5, 1, 0.5]}
    assert "num_correct" not in table, "texts have different numbers of answers"


def test_scores_of_a_larger_scale_need_a_region(tmp_path: Path) -> None:
    values = {"extra": [3, 8, 5, 5, "7"], "test": [3, 8, 8, 5, "no"]}
    logs = [(arm, write_inspect(tmp_path / f"{arm}.json", scores)) for arm, scores in values.items()]
    command = ["import", "inspect", *(f"--arm={arm}={log}" for arm, log in logs), "-o", "scores.csv"]
    done = run_command(*command)
    assert done.returncode == 2
    assert "--region" in done.stderr
    done = run_command(*command, "--region", "0.05")
    assert done.returncode == 0, done.stderr
    assert "-0.8" in done.stdout

    lower = [(arm, write_lm_eval(tmp_path / arm, counts)) for arm, counts in (("extra", [3, 8]), ("test", [2, 8]))]
    for _, folder in lower:
        file = folder / f"results_{TIME}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "higher_is_better": {"news": {"acc": False}}}))
    assert import_table("lm-eval", lower).groupby("arm")["loss"].agg(list).to_dict() == {
        "extra": [3, 8],
        "test": [2, 8],
    }


@pytest.mark.parametrize("tool", ["lm-eval", "inspect"])
def test_analyze_points_to_the_import_of_a_log(tool: str, tmp_path: Path) -> None:
    write_lm_eval(tmp_path / "lm-eval", CORRECT["extra"])
    write_inspect(tmp_path / "inspect" / "log.json", CORRECT["extra"])
    for given in (next((tmp_path / tool).glob("*.json")), tmp_path / tool):
        with pytest.raises(ResultsError, match=f"is a log of {tool}.*\n  peekbench import {tool} --arm extra=LOG"):
            pb.analyze(given)


INSPECT = '{"version": 2, "status": "success", "eval": {"task": "news"}, "samples": [%s]}'
RESULTS = '{"results": {"%s": {"acc,none": %s}}}'
LINE = '{"doc_id": %s, "filter": "none", "metrics": ["acc"], "acc": %s}\n'


@pytest.mark.parametrize(
    ("tool", "log", "samples", "message"),
    [
        ("lm-eval", RESULTS % ("a/b", 1), "", "no samples of task 'a/b' beside it; use --log_samples"),
        ("lm-eval", RESULTS % ("news", 1), LINE % (1, "1e400"), "is inf, not a number; add a metric"),
        ("lm-eval", RESULTS % ("news", 1), LINE % (1, "[1, 0]"), r"is \\[1, 0\\], not a number"),
        ("lm-eval", RESULTS % ("news", 1), LINE % (1, "null"), "no text has a score of acc,none in all logs"),
        ("lm-eval", RESULTS % ("news", 1), LINE.replace('["acc"]', '[]') % (1, 1), "has no scores of single texts"),
        ("lm-eval", RESULTS % ("news", 1), '{"doc_id": 1}\n', "has no scores of single texts"),
        ("lm-eval", RESULTS % ("news", 1), "\n", "line 1: .*EOF"),
        ("lm-eval", None, "", "contains 0 files results.*--output_path"),
        ("inspect", None, "", "contains 0 files .*json.*--log-format json"),
        ("inspect", INSPECT % '{"id": 1}', "", "`inspect score .*log.json --overwrite`"),
    ],
)  # fmt: skip
def test_partial_logs_are_refused_with_a_remedy(
    tool: str, log: str | None, samples: str, message: str, tmp_path: Path
) -> None:
    for arm in ("extra", "test"):
        folder = tmp_path / arm
        folder.mkdir()
        if log is not None:
            name = "results.json" if tool == "lm-eval" else "log.json"
            (folder / name).write_text(log + " " * (arm == "test"))  # the same log twice is refused
        (folder / "samples_news.jsonl").write_text(samples)
    with pytest.raises(ResultsError, match=message.replace("\\\\", "\\")):
        import_logs(tool, [(arm, tmp_path / arm) for arm in ("extra", "test")])
