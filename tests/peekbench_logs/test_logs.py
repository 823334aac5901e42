"""Tables of scores from the logs of lm-evaluation-harness and Inspect."""

from __future__ import annotations

import json
import math
import shutil
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from analysis_tables import table_rows
from commands import run_command
from pandas.testing import assert_frame_equal
from tool_logs import CORRECT, TIME, import_table, scores_by_arm, write_inspect, write_lm_eval

from peekbench.errors import ResultsError
from peekbench.records.data import TableOptions
from peekbench.report.render.content import basis_of
from peekbench.results import load_results, tidy
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.results.tidying import tidy_table

LOGS = Path(__file__).parents[1] / "fixtures/logs"
GENERATED = [(arm, LOGS / "lm_eval_generation" / arm) for arm in ("extra", "test")]


def test_arms_of_lm_eval_are_paired_text_by_text(tmp_path: Path) -> None:
    arguments = [f"--arm={arm}={write_lm_eval(tmp_path / arm / 'model', scores)}" for arm, scores in CORRECT.items()]
    done = run_command("import", "lm-eval", *arguments, "-o", "scores.csv", "--method", "lsa")
    assert done.returncode == 0, done.stderr
    assert "written: scores.csv (1 task, 6 texts, arms base, extra, test)" in done.stderr
    table = pd.read_csv("scores.csv")
    assert scores_by_arm(table) == CORRECT
    (summary,) = analyze("scores.csv", AnalysisOptions(["summary"])).analyses
    (verdict,) = summary.verdicts
    assert verdict.method == "lsa"
    assert verdict.estimate.mean == pytest.approx(1 / 6)
    assert verdict.estimate.low < 0, "one text of six decides nothing"


def test_grades_of_inspect_are_scores(tmp_path: Path) -> None:
    logs = [
        ("extra", write_inspect(tmp_path / "extra.json", ["C", "I", "N", 1, False])),
        ("test", write_inspect(tmp_path / "test.json", ["C", "C", "P", 0.25, True])),
    ]
    table = import_table("inspect", logs)
    assert scores_by_arm(table) == {"extra": [1, 0, 0, 1, 0], "test": [1, 1, 0.5, 0.25, 1]}
    assert set(table["task"]) == {"news"}
    assert "num_correct" not in table, "half a correct answer is not a count"


def test_logs_of_inspect_itself_are_read() -> None:
    """Logs that Inspect wrote, without messages and events: two epochs, two scorers, one with two values."""
    logs = [(arm, LOGS / f"inspect/{arm}.json") for arm in ("extra", "test")]
    table = import_table("inspect", logs, metrics=["choice"])
    assert scores_by_arm(table) == {"extra": [0, 0.5, 1, 0.5], "test": [1, 0.5, 1, 1]}
    assert set(table["task"]) == {"modules"}
    letters = import_table("inspect", logs, metrics=["parts,letter"])
    assert_frame_equal(table.drop(columns="metric"), letters.drop(columns="metric"))
    with pytest.raises(ResultsError, match="several metrics(?s:.*): choice, parts,letter, parts,length"):
        import_table("inspect", logs)
    lengths = import_table("inspect", logs, metrics=["parts,length"])
    assert lengths["score"].max() > 1, "the scale is that of the scorer"


def test_logs_of_lm_eval_itself_are_read() -> None:
    """Logs that lm-evaluation-harness wrote: a group of two tasks, one with two metrics and one with two filters."""
    logs = [(arm, LOGS / "lm_eval" / arm) for arm in ("base", "extra", "test")]
    table = import_table("lm-eval", logs, metrics=["acc", "exact_match,letter"])
    for arm, path in logs:
        stated = json.loads(next(path.glob("results_*.json")).read_text())["results"]
        means = table[table["arm"] == arm].groupby("task")["score"].mean().to_dict()
        expected = {"docs_module": stated["docs_module"]["acc,none"]}
        assert means == expected | {"docs_name": stated["docs_name"]["exact_match,letter"]}
    assert table.groupby(["task", "arm"]).size().tolist() == [8] * 6
    (one,) = import_table("lm-eval", logs, metrics=["acc"], tasks=["docs_module"])["task"].unique()
    assert one == "docs_module"
    for metrics, tasks, message in (
        (["acc"], [], r"samples_docs_name_.* has no metric acc; .*: exact_match,first, exact_match,letter"),
        (["acc", "f1"], ["docs_module"], "--metric f1 is a metric of no task; the metrics are acc,none"),
        ([], ["docs_modul"], "--task docs_modul: no log has this task; did you mean docs_module"),
        ([], ["docs_module"], "several metrics(?s:.*) --metric: acc,none, acc_norm,none"),
    ):
        with pytest.raises(ResultsError, match=message):
            import_table("lm-eval", logs, metrics=metrics, tasks=tasks)


@pytest.mark.parametrize("samples", ["samples_{}_2026-01-01T00-00-00.jsonl", "pretrained__org__gpt_{}.jsonl"])
def test_lines_without_filters_and_metrics_are_those_of_the_averages(samples: str, tmp_path: Path) -> None:
    metrics = ["acc", "exact_match,letter"]
    for arm in ("extra", "test"):
        folder = tmp_path / arm
        folder.mkdir()
        (results,) = (LOGS / "lm_eval" / arm).glob("results_*.json")
        content = {**json.loads(results.read_text()), "config": {"model_args": "pretrained=org/gpt"}}
        (folder / "results.json").write_text(json.dumps(content))
        for task in ("docs_module", "docs_name"):
            (file,) = results.parent.glob(f"samples_{task}_*")
            lines = sorted(map(json.loads, file.read_text().splitlines()), key=lambda line: str(line["filter"]))
            old = [{key: line[key] for key in line if key not in ("filter", "metrics")} for line in lines]
            (folder / samples.format(task)).write_text("".join(f"{json.dumps(line)}\n" for line in old))
    logs, newer = ([(arm, path / arm) for arm in ("extra", "test")] for path in (tmp_path, LOGS / "lm_eval"))
    found, expected = (import_table("lm-eval", paths, metrics=metrics) for paths in (logs, newer))
    assert_frame_equal(found, expected)


@pytest.mark.parametrize(
    ("task", "metric"),
    [
        *(("next_word", f"{metric},{name}") for metric in ("exact_match", "starts") for name in ("whole", "word")),
        *(("votes", f"{metric},all") for metric in ("share", "any")),
    ],
)
def test_scores_of_generated_answers_are_those_that_lm_eval_states(task: str, metric: str) -> None:
    """Logs that lm-evaluation-harness wrote: greedy answers with two filters, and five samples for each prompt."""
    table = import_table("lm-eval", GENERATED, tasks=[task], metrics=[metric])
    name, _, chosen = metric.partition(",")
    for arm, path in GENERATED:
        stated = json.loads(next(path.glob("results_*.json")).read_text())["results"][task][metric]
        lines = map(json.loads, next(path.glob(f"samples_{task}_*.jsonl")).read_text().splitlines())
        scores = table[table["arm"] == arm].set_index("text")["score"]
        assert scores.to_dict() == {str(line["doc_id"]): line[name] for line in lines if line["filter"] == chosen}
        assert scores.mean() == pytest.approx(stated, abs=1e-12)


def test_ambiguous_scores_of_generated_answers_are_refused(tmp_path: Path) -> None:
    for metrics, message in (
        (["exact_match"], "several metrics.* with --metric: exact_match,whole, exact_match,word$"),
        (["bleu,word"], r"is \['Lily', 'Lily'\], not a number; choose another metric with --metric: exact_match,whole"),
    ):
        with pytest.raises(ResultsError, match=message):
            import_table("lm-eval", GENERATED, tasks=["next_word"], metrics=metrics)
    for arm, path in GENERATED:
        shutil.copytree(path, tmp_path / arm)
    results = next((tmp_path / "test").glob("results_*.json"))
    results.write_text(results.read_text().replace('"temperature": 0.7', '"temperature": 1.0'))
    with pytest.raises(ResultsError, match="task votes: generation_kwargs is .*0.7.* and .*1.0.* same settings"):
        import_table("lm-eval", [(arm, tmp_path / arm) for arm in ("extra", "test")], tasks=["votes"], metrics=["any"])


def test_losses_are_read_with_their_direction(tmp_path: Path) -> None:
    """Logs that lm-evaluation-harness wrote, of a model whose answers the test texts improve, and those of Inspect."""
    logs = [(arm, LOGS / "lm_eval_losses" / arm) for arm in ("extra", "test")]
    stated = [json.loads(next(path.glob("results_*.json")).read_text())["results"] for _, path in logs]
    for task, metric, unit in (
        ("docs_last", "perplexity", math.log),
        ("docs_text", "word_perplexity", math.log),
        ("docs_text", "byte_perplexity", math.log),
        ("docs_text", "bits_per_byte", float),
    ):
        table = import_table("lm-eval", logs, metrics=[metric], tasks=[task])
        extra, test = (unit(scores[task][f"{metric},none"]) for scores in stated)
        assert table.groupby("arm")["loss"].mean().to_dict() == pytest.approx({"extra": extra, "test": test})
        (verdict,) = analyze(table, AnalysisOptions(["summary"], TableOptions(region=0.01))).analyses[0].verdicts
        assert verdict.estimate.mean == pytest.approx(extra - test), "a lower loss is a better score"
    assert set(import_table("lm-eval", logs, metrics=["acc"], tasks=["docs_last"])["score"]) == {0, 1}
    with pytest.raises(ResultsError, match="import docs_text alone"):
        import_table("lm-eval", logs, metrics=["acc", "bits_per_byte"])

    losses = {"extra": [0.5, 0.25], "test": [0.25, 0.125]}  # could be accuracies
    arms = []
    for arm, values in losses.items():
        metrics = {"perplexity_per_seq": {"value": math.exp(sum(values) / 2)}, "perplexity_per_token": {"value": 1.4}}
        results = {"scores": [{"name": "match", "scorer": "match", "metrics": metrics}]}
        arms.append((arm, write_inspect(tmp_path / f"{arm}.json", values, results=results)))
    assert import_table("inspect", arms).groupby("arm")["loss"].agg(list).to_dict() == losses
    command = ["import", "inspect", *(f"--arm={arm}={log}" for arm, log in arms), "-o", "scores.csv"]
    done = run_command(*command)
    assert done.returncode == 2, "losses need a region"
    assert "--region" in done.stderr
    done = run_command(*command, "--region", "0.01")
    assert done.returncode == 0, done.stderr
    assert "Lower is better for loss" in done.stdout


def test_every_task_has_samples_and_every_name_of_results_is_read(tmp_path: Path) -> None:
    """`--output_path out.json` writes results of another name; a task without samples is not taken for a group."""
    for arm in ("extra", "test"):
        shutil.copytree(LOGS / "lm_eval" / arm, tmp_path / arm)
    (results,) = (tmp_path / "test").glob("results_*.json")
    renamed = results.rename(results.with_name(results.name.replace("results", "out")))
    logs = [("extra", tmp_path / "extra"), ("test", renamed)]
    assert len(import_table("lm-eval", logs, metrics=["acc", "exact_match,first"])) == 32
    next((tmp_path / "test").glob("samples_docs_name*")).unlink()
    with pytest.raises(ResultsError, match="there are no samples of task 'docs_name'"):
        import_table("lm-eval", logs, tasks=["docs_module"], metrics=["acc"])


def test_several_logs_of_an_arm_are_subsamples_that_share_texts(tmp_path: Path) -> None:
    """A log can have one task only, as those of Inspect; the logs of a task are numbered in their order."""
    runs = {"extra": ([1, 0, 0], [1, 1, 0]), "test": ([1, 1, 0], [1, 1, 1])}
    logs = [
        (arm, write_lm_eval(tmp_path / f"{arm}-{task}-{n}", values, task))
        for arm, two in runs.items() for task in ("mail", "news") for n, values in enumerate(two)
    ]  # fmt: skip
    table = import_table("lm-eval", logs)
    assert list(table.columns) == ["task", "method", "subsample", "arm", "text", "score", "num_correct", "metric"]
    for (task, number), rows in table.groupby(["task", "subsample"]):
        for arm, expected in runs.items():
            scores = rows[rows["arm"] == arm].set_index("text")["score"]
            assert (scores.tolist(), scores.index.nunique()) == (expected[int(str(number))], 3), task
    summary, _, texts = analyze(table).analyses
    assert basis_of(summary.verdicts[0]) == "2 tasks, 4 trials"
    assert table_rows(texts.tables[0])[0]["texts"] == 6
    with pytest.raises(ResultsError, match=r"task news: the arms have different numbers of logs \(extra 2, test 1\)"):
        import_table("lm-eval", logs[:-1])
    other = write_lm_eval(tmp_path / "other", [1, 1], "news")
    arms = [("extra", logs[2][1]), ("extra", other), *logs[-2:]]
    with pytest.raises(ResultsError, match="task news: .* have different texts"):
        import_table("lm-eval", arms)
    done = run_command("import", "lm-eval", *(f"--arm={arm}={log}" for arm, log in logs), "-o", "scores.csv")
    assert "(2 tasks, 6 texts, arms extra, test)" in done.stderr
    assert "2 logs; they are paired in the order" in done.stderr
    assert_frame_equal(load_results("scores.csv"), tidy(table, "table"))


def test_logs_that_cannot_be_paired_are_refused(tmp_path: Path) -> None:
    extra = write_lm_eval(tmp_path / "extra", CORRECT["extra"])
    fewer = write_lm_eval(tmp_path / "fewer", CORRECT["test"][:-1])
    other = write_lm_eval(tmp_path / "other", CORRECT["test"], doc_hash="other")
    cut = write_lm_eval(tmp_path / "cut", CORRECT["test"])
    samples = cut / f"samples_news_{TIME}.jsonl"
    samples.write_text("".join(samples.read_text().splitlines(keepends=True)[:-1]))
    failed = write_inspect(tmp_path / "failed.json", ["C"], status="error")
    for logs, message in (
        ([("extra", extra), ("test", fewer)], "task news: .* have different texts, such as 5; evaluate"),
        ([("extra", extra), ("test", other)], "have different texts, such as 0"),
        ([("extra", extra), ("test", cut)], r"the mean of acc,none is 0\.8, and the results state 0\.66666"),
        ([("extra", extra)], "no log of the arm test"),
        ([("extra", extra), ("tset", extra)], "'tset' is not an arm"),
        ([("extra", tmp_path), ("test", extra)], "contains 4 files results"),
    ):
        with pytest.raises(ResultsError, match=message):
            import_table("lm-eval", logs)
    invalid = write_inspect(tmp_path / "invalid.json", ["C"], invalidated=True)
    scores = [{"name": "match", "scorer": "match", "metrics": {"accuracy": {"value": 0.5}}}]
    wrong = write_inspect(tmp_path / "wrong.json", ["C"], results={"scores": scores})
    right = write_inspect(tmp_path / "right.json", ["I"])
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", "{}")
    for log, message in (
        (tmp_path / "log.eval", "inspect log convert"),
        (failed, "its status is 'error'"),
        (invalid, "was invalidated"),
        (wrong, "the mean of match is 1, and the results state 0.5"),
        (tmp_path, "contains 8 files"),
    ):
        with pytest.raises(ResultsError, match=message):
            import_table("inspect", [("extra", log), ("test", right)])


def test_a_log_is_not_compared_with_itself_or_with_other_settings(tmp_path: Path) -> None:
    extra, test = (write_lm_eval(tmp_path / arm, CORRECT[arm]) for arm in ("extra", "test"))
    with pytest.raises(ResultsError, match="extra is given for two logs"):
        import_table("lm-eval", [("extra", extra), ("test", extra)])
    for folder, shots in ((extra, 0), (test, 5)):
        file = folder / f"results_{TIME}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "n-shot": {"news": shots}}))
    with pytest.raises(ResultsError, match="task news: n-shot is 0 in .* and 5 in "):
        import_table("lm-eval", [("extra", extra), ("test", test)])
    one, other = (write_inspect(tmp_path / f"{n}.json", ["C"], eval={"task": "news", "task_args": n}) for n in (1, 2))
    with pytest.raises(ResultsError, match="task news: task_args is 1 in .* and 2 in "):
        import_table("inspect", [("extra", one), ("test", other)])


def test_metrics_of_which_lower_is_better_are_inverted(tmp_path: Path) -> None:
    logs = [(arm, write_lm_eval(tmp_path / arm, CORRECT[arm])) for arm in ("extra", "test")]
    for _, folder in logs:
        file = folder / f"results_{TIME}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "higher_is_better": {"news": {"acc": False}}}))
    expected = {arm: [1 - score for score in CORRECT[arm]] for arm in ("extra", "test")}
    table = import_table("lm-eval", logs)
    assert scores_by_arm(table) == expected
    assert set(table["metric"]) == {"1 - acc,none"}
    assert "metric" in tidy_table(table, "logs", TableOptions()).columns.used


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "copy the log again"),
        (b"[" * 10_000, "recursion limit"),
        (b'{"results": {"news": {"acc,none": "high"}}}', "the results state 'high'"),
        (b'{"results": {"news": {"acc,none": null}}}', ""),
        (b'{"results": {"news": []}}', "results.news"),
    ],
)
def test_malformed_results_are_refused_with_their_place(content: bytes, message: str, tmp_path: Path) -> None:
    extra, test = (write_lm_eval(tmp_path / arm, CORRECT[arm]) for arm in ("extra", "test"))
    (extra / f"results_{TIME}.json").write_bytes(content)
    if not message:
        assert len(import_table("lm-eval", [("extra", extra), ("test", test)])) == 12
        return
    with pytest.raises(ResultsError, match=message):
        import_table("lm-eval", [("extra", extra), ("test", test)])
