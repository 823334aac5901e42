"""Logs with reduced or missing scores, of other scales, and hostile ones."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import run_command
from tool_logs import CORRECT, TIME, import_table, scores_by_arm, write_inspect, write_lm_eval

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


def test_the_reducer_of_epochs_decides_the_score_of_a_text(tmp_path: Path) -> None:
    """The most frequent grade of three, not their mean; grades of several reducers are chosen like metrics."""
    answers = {"extra": ["CCI", "IIC", "IIC"], "test": ["CCI", "CCI", "CII"]}
    logs = []
    for arm, texts in answers.items():
        modes = [max("CI", key=text.count) for text in texts]
        reduced = [{"sample_id": number, "value": mode} for number, mode in enumerate(modes)]
        path = write_scored(
            tmp_path / f"{arm}.json",
            grades("".join(texts), epochs=3),
            {"accuracy": modes.count("C") / 3},
            reducer="mode",
            reductions=[{"scorer": "match", "reducer": "mode", "samples": reduced}],
        )
        logs.append((arm, path))
    imported = import_logs("inspect", logs)
    assert scores_by_arm(imported.table) == {"extra": [1, 0, 0], "test": [1, 1, 0]}
    assert set(imported.table["metric"]) == {"match,mode"}
    assert not imported.notes, "the stated mean was compared"

    content = json.loads(logs[0][1].read_text())
    content["results"]["scores"][0]["metrics"]["accuracy"]["value"] = 4 / 9  # the mean of all answers
    logs[0][1].write_text(json.dumps(content))
    with pytest.raises(ResultsError, match=r"the mean of match,mode is 0\.333333, and the results state 0\.444"):
        import_table("inspect", logs)
    content["results"]["scores"].append({**content["results"]["scores"][0], "reducer": "mean"})
    content["reductions"].append({**content["reductions"][0], "reducer": "mean"})
    logs[0][1].write_text(json.dumps(content))
    with pytest.raises(ResultsError, match="several metrics; choose one .* match,mode, match,mean"):
        import_table("inspect", logs)
    del content["reductions"]
    logs[0][1].write_text(json.dumps(content))
    with pytest.raises(ResultsError, match="no reduced scores of match; .*`inspect score .*--action overwrite"):
        import_table("inspect", logs)


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


def test_a_statistic_that_is_not_compared_is_named(tmp_path: Path) -> None:
    logs = [(arm, write_scored(tmp_path / arm, grades(values), {"f1": 0.5})) for arm, values in
            (("extra", "CI"), ("test", "CC"))]  # fmt: skip
    (note,) = import_logs("inspect", logs).notes
    assert "states no mean of match, only f1" in note


def test_scores_of_a_larger_scale_need_a_region(tmp_path: Path) -> None:
    values = {"extra": [3, 8, 5, 5, "7"], "test": [3, 8, 8, 5, "no"]}
    logs = [(arm, write_inspect(tmp_path / f"{arm}.json", scores)) for arm, scores in values.items()]
    command = ["import", "inspect", *(f"--arm={arm}={log}" for arm, log in logs), "-o", "scores.csv"]
    done = run_command(*command)
    assert done.returncode == 2
    assert "between 0 and 8" in done.stderr
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
    with pytest.raises(ResultsError, match="scores above 1 have no common average .*; import mail alone, with --task"):
        two = [(arm, write_lm_eval(tmp_path / f"{arm}-mail", values, "mail")) for arm, values in
               (("extra", [3, 8]), ("test", [2, 8]))]  # fmt: skip
        for _, folder in two:
            write_lm_eval(folder, [0, 1])
            stated = {"mail": {"acc,none": 5 if "test" in folder.name else 5.5}, "news": {"em,none": 0.5}}
            (folder / f"results_{TIME}.json").write_text(json.dumps({"results": stated, "model": folder.name}))
            samples = folder / f"samples_news_{TIME}.jsonl"
            samples.write_text(samples.read_text().replace('"acc"', '"em"'))
        import_table("lm-eval", two)


@pytest.mark.parametrize(
    ("tool", "path"), [("lm-eval", "extra/results.json"), ("inspect", "log.json"), ("inspect", "")]
)
def test_analyze_points_to_the_import_of_a_log(tool: str, path: str, tmp_path: Path) -> None:
    """The printed command works, of whichever file or folder the scores were expected in."""
    for arm in ("extra", "test"):
        write_lm_eval(tmp_path / "lm-eval" / arm, CORRECT[arm])
        write_inspect(tmp_path / "inspect" / arm / "log.json", CORRECT[arm])
    given = tmp_path / tool / "extra" / path if path else tmp_path / tool
    if tool == "lm-eval":
        (given,) = (tmp_path / tool / "extra").glob("results_*.json")
    done = run_command("analyze", str(given))
    assert done.returncode == 2
    command = shlex.split(done.stderr.splitlines()[-1])
    assert command[:3] == ["peekbench", "import", tool]
    done = run_command(*command[1:])
    assert done.returncode == 0, done.stderr


INSPECT = '{"version": 2, "status": "success", "eval": {"task": "news"}, "samples": [%s]}'
RESULTS = '{"results": {"%s": {"acc,none": %s}}}'
LINE = '{"doc_id": %s, "filter": "none", "metrics": ["acc"], "acc": %s}\n'


@pytest.mark.parametrize(
    ("tool", "log", "samples", "message"),
    [
        ("lm-eval", RESULTS % ("a/b", 1), "", "no samples of task 'a/b' beside it; rename it without '/'"),
        ("lm-eval", RESULTS % ("news", 1), LINE % ("9" * 5000, 1), "line 1: .*number out of range"),
        ("lm-eval", RESULTS % ("news", 1), LINE % ('"' + "9" * 5000 + '"', 1), "line 1: the id of a text has more"),
        ("lm-eval", RESULTS % ("news", 1), LINE % (1, "1e400"), "is inf, not a number .*; acc,none is the only metric"),
        ("lm-eval", RESULTS % ("news", "9" * 400), LINE % (1, 1), "the mean of acc,none is 1, .* state 99"),
        ("lm-eval", RESULTS % ("news", 1), LINE % (1, "[1, 0]"), r"is \\[1, 0\\], not a number"),
        ("lm-eval", RESULTS % ("news", 1), LINE % (1, "null"), "no text has a score of acc,none in all logs"),
        ("lm-eval", RESULTS % ("news", 1), LINE.replace('["acc"]', '[]') % (1, 1), "has no scores of single texts"),
        ("lm-eval", RESULTS % ("news", 1), '{"doc_id": 1}\n', "has no scores of single texts"),
        ("lm-eval", RESULTS % ("news", 1), "{}\n", "line 1: doc_id: .*; evaluate again with a newer"),
        ("lm-eval", RESULTS % ("news", 1), "\n", "line 1: .*EOF"),
        ("lm-eval", RESULTS % ("news", 1), "[" * 10_000, "line 1: .*recursion"),
        ("lm-eval", None, "", "contains no results.*--output_path"),
        ("inspect", None, "", "contains no .*json.*--log-format json"),
        ("inspect", INSPECT % '{"id": 1}', "", "`inspect score .*log.json --overwrite`"),
        ("inspect", INSPECT % '{"id": 1, "error": {}}', "", "all samples failed with an error"),
        ("inspect", INSPECT.replace("news", "\\n::stop") % '{"id": 1, "scores": {"a": {}}}', "", "not a single line"),
        (
            "inspect",
            INSPECT % json.dumps({"id": 1, "scores": {f"s{number}": {} for number in range(50_000)}}),
            "",
            "samples.0.scores: .*at most 1000 items.*; evaluate with fewer metrics",
        ),
    ],
)  # fmt: skip
def test_hostile_and_partial_logs_are_refused_with_a_remedy(
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
