"""Loading and checking of results tables, and the pairing of arms."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import run_command

import peekbench as pb
from peekbench.errors import ResultsError
from peekbench.execution.runner import run
from peekbench.results import load_results, tidy
from peekbench.results.columns import COLUMN_NAMES
from peekbench.results.paired_effects import paired_scores
from peekbench.store.reader import Store

WIDE = "task,num_test,base,extra,test\na,100,0.29,0.57,0.58\na,100,0.5,0.5,0.6\nb,100,0.1,0.2,0.3\n"
OTHER_TASK = pd.DataFrame(
    {"task": "b", "arm": ["extra", "test"], "score": [5287 / 7600, 1 / 3], "num_test": [7600, 7500]}
)


def truncate(value: float, decimals: int) -> float:
    return float(math.floor(value * 10**decimals) / 10**decimals)


def write(folder: Path, text: str, name: str = "scores.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_files_may_have_one_row_for_each_subsample(tmp_path: Path) -> None:
    table = load_results(write(tmp_path, WIDE))
    assert list(table.columns) == list(COLUMN_NAMES)
    assert len(table) == 9
    trial = table[(table["task"] == "a") & (table["subsample"] == 1)].set_index("arm")
    assert trial["score"].to_dict() == {"base": 0.5, "extra": 0.5, "test": 0.6}
    assert set(table["method"]) == {"method"}
    assert set(table["model"]) == {""}
    assert table["num_train"].isna().all()


@pytest.mark.parametrize(("num_test", "correct"), [(872, 630), (7600, 5287), (8000, 2)])
@pytest.mark.parametrize("decimals", [2, 4, 17])
@pytest.mark.parametrize("digits", [round, truncate], ids=["rounded", "truncated"])
def test_counts_follow_from_printed_scores(
    num_test: int, correct: int, decimals: int, digits: Callable[[float, int], float]
) -> None:
    """With and without counts; the scores of another task have more decimals."""
    counts = [correct, correct + 1]
    scores = [digits(count / num_test, decimals) for count in counts]
    table = pd.DataFrame({"task": "a", "arm": ["extra", "test"], "score": scores, "num_test": num_test})
    found = tidy(pd.concat([table, OTHER_TASK]), "here").query("task == 'a'")
    assert found["score"].tolist() == scores
    error = (found["num_correct"] - counts).abs().max()
    assert error <= num_test * 0.1**decimals + 0.5
    assert error == 0 or num_test * 0.1**decimals > 0.25
    assert tidy(table.assign(num_correct=counts), "here")["num_correct"].tolist() == counts


def test_scores_in_single_precision_have_few_decimals() -> None:
    scores = np.array([0.6957, 0.6961], dtype="float32")
    table = pd.DataFrame({"task": "a", "arm": ["extra", "test"], "score": scores, "num_test": 7600})
    found = tidy(table, "here")
    assert found["num_correct"].tolist() == [5287, 5290]
    assert found["score"].tolist() == [0.6957, 0.6961]


def test_a_rounded_arm_may_stand_beside_an_exact_one() -> None:
    table = pd.DataFrame({"task": "a", "extra": [0.6957], "test": [5302 / 7600], "num_test": 7600})
    assert tidy(table, "here")["num_correct"].tolist() == [5287, 5302]
    table = pd.DataFrame(
        {"task": "a", "extra": [0.6957], "test_correct": 5303, "extra_correct": None, "num_test": 7600}
    )
    assert tidy(table, "here")["num_correct"].tolist() == [5287, 5303]


@pytest.mark.parametrize(
    ("extra", "test", "num_test"),
    [("0.7", "0.7226", 872), ("0.72264", "0.7", 872), ("72.26%", "70%", 872), ("0.723", "0.7", 10), ("1", "0.5", 7)],
)
def test_scores_that_are_no_printed_ratio_are_refused(extra: str, test: str, num_test: int, tmp_path: Path) -> None:
    other = "b,69.57%,69.61%,7600\n" if "%" in extra else "b,0.6957,0.6961,7600\n"
    text = f"task,extra,test,num_test\na,{extra},{test},{num_test}\n{other}"
    with pytest.raises(ResultsError, match=r"row 1, .* is not a whole number of correct answers out of num_test"):
        load_results(write(tmp_path, text))


@pytest.mark.parametrize(
    ("score", "correct", "num_test"),
    [("0.722", 631, 872), ("0.5", 49, 100), ("1.0", 50, 100), ("0", 49, 100), ("1", 3, 5), ("1", 9, 10)],
)
def test_counts_that_contradict_the_scores_are_refused(score: str, correct: int, num_test: int, tmp_path: Path) -> None:
    text = f"task,arm,score,num_correct,num_test\na,extra,{score},{correct},{num_test}\na,test,0,0,{num_test}\n"
    with pytest.raises(ResultsError, match="is not score x num_test; correct one of them"):
        load_results(write(tmp_path, text))


def test_files_may_have_one_row_for_each_arm_in_any_format(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {
            "task": "a", "method": "m", "model": "bert", "num_train": 50, "num_test": 200, "subsample": [3, 3, 7, 7],
            "arm": ["extra", "test"] * 2, "accuracy": [0.5, 0.515, 0.6, 0.58],
        }
    )  # fmt: skip
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "b.csv", index=False, sep=";", decimal=",")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    frame.to_json(tmp_path / "a.json", orient="records")
    frame.to_csv(tmp_path / "b.csv.gz", index=False, sep=";")
    frame.to_csv(tmp_path / "c.csv", index=False, encoding="utf-16")
    names = ("a.csv", "a.tsv", "a.parquet", "b.csv", "a.jsonl", "a.json", "b.csv.gz", "c.csv")
    tables = [load_results(tmp_path / name) for name in names]
    for table in tables:
        pd.testing.assert_frame_equal(table, tables[0])
    assert tables[0]["num_correct"].tolist() == [100, 103, 120, 116]
    assert tables[0]["subsample"].tolist() == [3, 3, 7, 7]
    assert tables[0]["num_train"].tolist() == [50] * 4


@pytest.mark.parametrize("name", ["null", "NA", "None", "007"])
def test_names_that_look_like_missing_numbers_are_texts(name: str, tmp_path: Path) -> None:
    text = f"task,method,num_train,extra,test\n{name},{name},NA,0.1,0.2\n{name},x,,0.1,0.3\n"
    table = load_results(write(tmp_path, text))
    assert set(table["method"]) == {name, "x"}
    assert set(table["task"]) == {name}
    assert table["num_train"].isna().all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no rows"),
        ("task,extra,test\na,0.1,0.2\na,0.1,inf\n", "row 2, column 'test': inf is not a number"),
        ("task,num_test,extra,test\na,10.5,0.1,0.2\n", "column 'num_test': 10.5 is not a whole number"),
        (
            "task,control,extra,test\na,,0.1,0.2\nb,negative,0.1,0.2\n",
            "row 2, column 'control': negative differs from the first row",
        ),
        ("task,num_test,extra,test\na,0,0.5,0.5\n", "column 'num_test': 0 is below the minimum of 1"),
        ("task,num_test,extra,test\na,1e19,1,1\n", "column 'num_test': 1e19 is above the maximum"),
        ("Task,TASK,extra,test\na,a,0.5,0.5\n", "the columns 'Task', 'TASK' can all mean 'task'"),
        ("task,run,seed,extra,test\na,1,7,0.5,0.5\na,2,8,0.5,0.5\n", "'run', 'seed' can all mean 'subsample'"),
        (
            "task,extra,test,extra_accuracy\na,0.5,0.5,0.4\na,0.5,0.5,0.5\n",
            "the columns 'extra', 'extra_accuracy' can all mean 'extra'",
        ),
        ("task,extra,test,bias\na,0.5,0.6,0.1\na,0.5,0.6,0.2\n", "is unknown: 'bias'"),
    ],
)
def test_errors_about_malformed_tables_name_file_row_and_column(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ResultsError) as caught:
        load_results(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    scores = {"task": ["a", "a"], "method": ["m1", "m2"], "extra": [0.5, 0.55], "test": [0.55, 0.5]}
    plain = tidy(pd.DataFrame(scores), "here")
    indexed = pd.DataFrame(scores).set_index("method")
    indexed.to_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(load_results(tmp_path / "a.parquet"), plain)


def test_unnamed_columns_are_refused_unless_they_are_ignored(tmp_path: Path) -> None:
    plain = load_results(write(tmp_path, "task,extra,test\na,0.1,0.2\na,0.1,0.3\n"))
    path = write(tmp_path, ",task,extra,test,,\n0,a,0.1,0.2,,\n1,a,0.1,0.3,,\n")
    unnamed = ["Unnamed: 0", "Unnamed: 4", "Unnamed: 5"]
    with pytest.raises(ResultsError, match=r"ignore=\['Unnamed: 0', 'Unnamed: 4', 'Unnamed: 5'\]$"):
        load_results(path)
    pd.testing.assert_frame_equal(load_results(path, ignore=unnamed), plain)


def test_pipes_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "scores.csv")
    with pytest.raises(ResultsError, match="neither a file nor a folder"):
        load_results(tmp_path / "scores.csv")
    folder = tmp_path / "tree" / "m1" / "n1" / "bert" / "news"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "accuracies.csv")
    with pytest.raises(ResultsError, match="neither a file nor a folder"):
        load_results(tmp_path / "tree")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "no such file"),
        ("a.xlsx", b"PK", "convert it"),
        ("folder/note.txt", b"", "contains no accuracies.csv"),
        ("some/where/accuracies.csv", WIDE.encode(), "not mM/nN/MODEL/TASK"),
        ("a.parquet", b"PAR1 and then nothing", "cannot be read"),
        ("a.jsonl", b'{"task": "a", "extra": 0.5, "extra": 0.6}', "line 1: .*a name is duplicated in an object"),
        ("a.json", b"[[1, 2]]", "row 1: a JSON list instead of an object"),
        ("a.csv", b"task,extra,test\n\xff,0.5,0.5\n", "is not utf-8: .*as in `iconv -f cp1252 -t utf-8"),
    ],
)
def test_other_paths_are_refused(name: str, content: bytes | None, message: str, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with pytest.raises(ResultsError, match=message):
        load_results(tmp_path / name.partition("/")[0])


def test_files_of_other_tools_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"name": {"name": "exact_match"}, "mean": 0.5}]))
    with pytest.raises(ResultsError, match="a.json is a file of HELM, .*; export a CSV file"):
        pb.analyze(tmp_path / "a.json")


def test_copies_of_all_rows_are_no_draws() -> None:
    table = pd.DataFrame({"task": "a", "extra": [0.5, 0.6, 0.55, 0.7], "test": [0.52, 0.6, 0.57, 0.7]})
    with pytest.raises(ResultsError, match="each row occurs at least 2 times, .*; delete the copies, or add"):
        tidy(pd.concat([table, table]), "copies")
    assert len(tidy(pd.concat([table, table]).assign(subsample=range(8)), "draws")) == 16


def make_tree(root: Path) -> None:
    for model, task, scores in (("bert", "x", [0.5, 0.7]), ("bert", "y", [0.4, 0.6]), ("gpt2", "x", [0.3, 0.2])):
        folder = root / "few_shot" / "m100" / "n10" / model / task
        folder.mkdir(parents=True)
        pd.DataFrame({"base": scores, "extra": scores, "test": scores, "majority": 0.5}).to_csv(
            folder / "accuracies.csv", index=False
        )


def test_the_folder_tree_of_the_study_is_read_from_any_root(tmp_path: Path) -> None:
    make_tree(tmp_path)
    whole = load_results(tmp_path)
    assert len(whole) == 18
    assert set(whole["method"]) == {"few_shot"}
    assert set(whole["model"]) == {"bert", "gpt2"}
    assert set(whole["num_train"]) == {100}
    assert set(whole["num_test"]) == {10}
    assert sorted(set(whole["subsample"])) == [0, 1]
    part = load_results(tmp_path / "few_shot" / "m100" / "n10" / "gpt2")
    pd.testing.assert_frame_equal(part, whole[whole["model"] == "gpt2"].reset_index(drop=True))


def test_published_accuracies_are_read_exactly(published: Path) -> None:
    table = load_results(published)
    assert len(table) == 3 * (25 * 2 * 270 + 25 * 20)
    exact = table["score"] * table["num_test"].astype(float)
    assert (exact - table["num_correct"].astype(float)).abs().max() < 1e-6
    truncated = np.floor(table["score"].to_numpy() * table["num_test"].to_numpy(dtype=float))
    assert (truncated != table["num_correct"].to_numpy(dtype=float)).sum() > 1000  # real data need rounding


def test_a_store_and_a_file_of_its_scores_give_the_same_table(make_spec: Callable[..., Any], tmp_path: Path) -> None:
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 3, "crossover": False}
    summary = run(make_spec(arms=["base", "extra", "test", {"mix": 0.25}], design=design))
    table = load_results(summary.store)
    assert list(table.columns) == list(COLUMN_NAMES)
    assert len(table) == 2 * 2 * 3 * 4
    with Store.open(summary.store) as store:
        assert table["num_correct"].tolist() == store.result_columns()["num_correct"]
    table.to_csv(tmp_path / "again.csv", index=False)
    again = load_results(tmp_path / "again.csv")
    table = table.sort_values(["method", "task", "subsample"], kind="stable", ignore_index=True)
    pd.testing.assert_frame_equal(again, table, rtol=1e-12)


def test_paired_scores_are_differences_within_a_trial() -> None:
    table = tidy(
        pd.DataFrame(
            {"task": ["z", "a"], "base": [0.1, 0.2], "extra": [0.3, 0.2], "test": [0.2, 0.5], "mix-0.5": [0.4, 0.4]}
        ),
        "here",
    )
    wide = paired_scores(table)
    assert wide["task"].tolist() == ["a", "z"]
    assert wide["boost"].tolist() == pytest.approx([0.0, 0.2])
    assert wide["bias"].tolist() == pytest.approx([0.3, -0.1])
    assert wide["mix-0.5 - extra"].tolist() == pytest.approx([0.2, 0.1])
    pd.testing.assert_frame_equal(tidy(wide, "here", ignore=["boost", "bias", "mix-0.5 - extra"]), table)


def test_measures_that_do_not_name_their_arm_are_refused_in_rows_with_several_arms() -> None:
    wide = pd.DataFrame(
        {"task": ["a"], "num_test": [10], "extra": [0.5], "test": [0.6], "log_loss": [1.2], "majority": [0.3]}
    )
    with pytest.raises(ResultsError, match=r"'log_loss' does not name its arm(?s:.*)--ignore log_loss$"):
        tidy(wide, "wide")
    table = tidy(wide, "wide", ignore=["log_loss"])
    assert table["log_loss"].isna().all()
    assert (table["majority"] == 0.3).all()  # a value of the draw, not of one arm


@pytest.mark.parametrize("empty", ["", "-", "NA"])
def test_empty_scores_are_missing_trials_on_request(empty: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        f"task,seed,extra,test\nnews,0,.6,.61\nnews,1,.6,{empty}\nnews,2,.61,.64\nnews,3,.6,.6\n"
    )
    with pytest.raises(
        ResultsError, match="row 2, column 'test': .* is empty; .* leave it out with allow_incomplete=True"
    ):
        pb.analyze(tmp_path / "a.csv")
    report = pb.analyze(tmp_path / "a.csv", allow_incomplete=True)
    whole = pd.DataFrame({"task": "news", "seed": [0, 2, 3], "extra": [0.6, 0.61, 0.6], "test": [0.61, 0.64, 0.6]})
    assert report.verdicts[0].estimate == pb.analyze(whole).verdicts[0].estimate
    assert any("1 empty score left out" in warning for warning in report.warnings)
    assert any("1 of 4 subsamples missing or incomplete (1)" in warning for warning in report.warnings)


def test_files_of_tasks_are_one_table(tmp_path: Path) -> None:
    frame = pd.DataFrame({"seed": range(8), "extra": 0.6, "test": np.linspace(0.6, 0.7, 8)})
    paths = [tmp_path / "ag.csv", tmp_path / "imdb.csv.gz"]
    for path in paths:
        frame.to_csv(path, index=False)
    both = pd.concat([frame.assign(task="ag"), frame.assign(task="imdb")])
    assert pb.analyze([str(path) for path in paths]).verdicts == pb.analyze(both).verdicts
    assert "1 method on 2 tasks, 16 trials" in run_command("analyze", *map(str, paths)).stdout
    assert load_results(paths[1])["task"].unique().tolist() == ["imdb"]
    assert tidy(frame, "here")["task"].unique().tolist() == ["task"]


def test_an_object_of_rows_by_their_keys_is_a_table(tmp_path: Path) -> None:
    rows = {"news": {"num_test": 100, "extra": 0.6, "test": 0.62}, "mail": {"num_test": 100, "extra": 0.7, "test": 0.7}}
    expected = tidy(pd.DataFrame([{"task": task, **row} for task, row in rows.items()]), "here")
    (tmp_path / "keyed.json").write_text(json.dumps(rows))
    pd.testing.assert_frame_equal(load_results(tmp_path / "keyed.json", columns={"key": "task"}), expected)
