"""Two values are equal, alike or different in every source of labels, groups, answers and names: values x sources."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tool_logs import import_table, write_lm_eval

import peekbench as pb
from peekbench.data.dataset_checks import check_dataset
from peekbench.data.held_data import read_held
from peekbench.identity import Sameness
from peekbench.plugins.graders import exact
from peekbench.records.data import TableOptions, as_texts
from peekbench.results import tidy
from peekbench.results.read import read_file
from peekbench.results.tidying import tidy_table

NFC, NFD = "caf\u00e9", "cafe\u0301"
VALUES: list[tuple[Any, Any, Sameness]] = [
    ("pos", "pos ", "equal"),
    ("1", "1.0", "equal"),
    ("12", " 12", "equal"),
    (1, "1", "equal"),
    (2.0, 2, "equal"),
    ("pos", "Pos", "alike"),
    ("pos", "pos.", "alike"),
    ("new york", "new  york", "alike"),
    (NFC, NFD, "alike"),
    ("pos", "pos\u200b", "alike"),
    ("12", "\uff11\uff12", "alike"),
    ("Masse", "Ma\u00dfe", "different"),
    ("10\u00b2", "102", "different"),
    ("1.5", "1", "different"),
    ("01", "1", "different"),
]
Load = Callable[[list[dict[str, Any]], Path], pb.Dataset]


def from_csv(rows: list[dict[str, Any]], folder: Path) -> pb.Dataset:
    pd.DataFrame(rows).to_csv(folder / "rows.csv", index=False)
    return pb.load_dataset("files", {"path": "rows.csv", "group": "group"}, folder=folder)


def from_json_lines(rows: list[dict[str, Any]], folder: Path) -> pb.Dataset:
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return pb.load_dataset("files", {"path": "rows.jsonl", "group": "group"}, folder=folder)


def from_two_files(rows: list[dict[str, Any]], folder: Path) -> pb.Dataset:
    """Write one spelling in each official split, with groups that the train split alone has."""
    for name, kept in (("train", rows[::2]), ("test", rows[1::2])):
        of_split = [row | {"group": f"{name} {number}"} for number, row in enumerate(kept)]
        pd.DataFrame(of_split).to_csv(folder / f"{name}.csv", index=False)
    options = {"path": "train.csv", "test_path": "test.csv", "group": "group"}
    dataset = pb.load_dataset("files", options, folder=folder)
    order = np.argsort([list(dataset.inputs).index(row["text"]) for row in rows]).argsort()
    return replace(dataset, labels=np.asarray(dataset.labels)[order])


def from_table_of_features(rows: list[dict[str, Any]], folder: Path) -> pb.Dataset:
    frame = pd.DataFrame(rows).assign(text=range(len(rows)))
    frame.to_csv(folder / "rows.csv", index=False)
    return pb.load_dataset("tabular.file", {"path": "rows.csv", "label": "label", "group": "group"}, folder=folder)


def from_data_frame(rows: list[dict[str, Any]], _: Path) -> pb.Dataset:
    dataset = read_held(pd.DataFrame(rows), "rows", [None], group="group")
    check_dataset(dataset, "rows")
    return dataset


def from_hub(rows: list[dict[str, Any]], folder: Path) -> pb.Dataset:
    pytest.importorskip("huggingface_hub", reason="the extra 'hf' is not installed")
    pytest.importorskip("pyarrow", reason="the extra 'hf' is not installed")
    path = folder / "mirror" / "datasets" / "some" / "body" / "main" / "train.parquet"
    path.parent.mkdir(parents=True)
    pd.DataFrame(rows).astype(str).to_parquet(path)
    options = {"id": "some/body", "data_dir": str(folder / "mirror"), "group": "group"}
    return pb.load_dataset("hf.dataset", options, folder=folder)


LOADS = [from_csv, from_json_lines, from_table_of_features, from_data_frame, from_hub]


def rows_of(column: str, one: Any, other: Any) -> list[dict[str, Any]]:
    """Return twelve rows with a column of two spellings, of which every third row has another value."""
    values = [one, other, "elsewhere"] * 4
    rows = [{"text": f"text {row}", "label": f"class {row % 2}", "group": f"person {row}"} for row in range(12)]
    return [row | {column: value} for row, value in zip(rows, values, strict=True)]


def patterns(sameness: Sameness) -> list[int]:
    """Return numbers of the values of `rows_of` in the order of their first rows."""
    return ([0, 1, 2] if sameness == "different" else [0, 0, 1]) * 4


@pytest.mark.parametrize("load", [*LOADS, from_two_files])
@pytest.mark.parametrize(("one", "other", "sameness"), VALUES)
def test_labels(load: Load, one: Any, other: Any, sameness: Sameness, tmp_path: Path) -> None:
    rows = rows_of("label", one, other)
    if sameness == "alike":
        with pytest.raises(pb.DataError, match=r"the labels .* differ only by .*class_names` to a mapping"):
            load(rows, tmp_path)
        return
    labels = np.asarray(load(rows, tmp_path).labels)
    assert pd.factorize(labels)[0].tolist() == patterns(sameness)


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize(("one", "other", "sameness"), VALUES)
def test_groups(load: Load, one: Any, other: Any, sameness: Sameness, tmp_path: Path) -> None:
    rows = rows_of("group", one, other)
    if sameness == "alike":
        with pytest.raises(pb.DataError, match=r"the groups .* differ only by .*; write one of them in all rows"):
            load(rows, tmp_path)
        return
    groups = pd.Series(load(rows, tmp_path).groups)
    assert pd.factorize(groups)[0].tolist() == patterns(sameness)


def table_of(one: Any, other: Any) -> pd.DataFrame:
    """Return answers to ten texts in five subsamples and two arms, some of which are in another spelling."""
    rows = []
    for draw, arm, text in product(range(5), ("extra", "test"), range(10)):
        answer = one
        if (draw + text + (arm == "test")) % 3 == 0:
            answer = other
        if (draw * text) % 4 == 1:
            answer = "elsewhere"
        names = {"task": "news", "method": "lsa", "group": f"person {text}"}
        rows.append({**names, "subsample": draw, "arm": arm, "text": text, "answer": answer, "label": one})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize(("one", "other", "sameness"), VALUES)
def test_answers(is_file: bool, one: Any, other: Any, sameness: Sameness, tmp_path: Path) -> None:
    table = table_of(one, other)
    right = {str(one)} if sameness == "different" else {str(one), str(other)}
    expected = table["answer"].astype("str").isin(right).groupby(table["arm"]).mean().to_dict()
    if is_file:
        table.to_csv(tmp_path / "answers.csv", index=False)
        table = read_file(tmp_path / "answers.csv")
    tidied = tidy_table(table, "answers", TableOptions())
    assert tidied.results.groupby("arm")["score"].mean().to_dict() == pytest.approx(expected)
    warnings = [warning for warning in tidied.columns.warnings if "count as correct: " in warning]
    assert len(warnings) == (sameness == "alike")


@pytest.mark.parametrize("column", ["task", "method", "model"])
@pytest.mark.parametrize(("one", "other", "sameness"), VALUES)
def test_names(column: str, one: Any, other: Any, sameness: Sameness) -> None:
    table = pd.DataFrame({"task": "x", "method": "x", "model": "x", "subsample": np.arange(24) // 2, "score": 0.5})
    table = table.assign(arm=["extra", "test"] * 12, **{column: np.array([one, other], dtype=object).repeat(12)})
    if sameness == "alike":
        with pytest.raises(pb.PeekbenchError, match="differs from .* only by"):
            tidy(table, "scores")
        return
    assert tidy(table, "scores")[column].nunique() == 1 + (sameness == "different")


@pytest.mark.parametrize(("one", "other", "sameness"), VALUES)
def test_groups_of_answers(one: Any, other: Any, sameness: Sameness) -> None:
    table = table_of("pos", "neg")
    table["group"] = table["text"].map(lambda text: ["elsewhere", one, other][text % 3])
    if sameness == "alike":
        with pytest.raises(pb.PeekbenchError, match="differs from .* only by"):
            tidy(table, "answers")
        return
    predictions = tidy_table(table, "answers", TableOptions()).predictions
    assert predictions is not None
    answers = predictions.answers("news", "lsa", None, 10, ["extra", "test"])
    assert answers is not None
    assert answers.groups is not None
    assert len(np.unique(answers.groups)) == 2 + (sameness == "different")


@pytest.mark.parametrize("reference", ["pos", ["no", "pos"]])
@pytest.mark.parametrize(("one", "other", "sameness"), VALUES)
def test_references(reference: Any, one: Any, other: Any, sameness: Sameness, tmp_path: Path) -> None:
    lines = [{"text": f"prompt {row}", "label": one if isinstance(reference, str) else ["no", one]} for row in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    dataset = pb.load_dataset("files", {"path": "rows.jsonl", "kind": "generation"}, folder=tmp_path)
    labels: Any = dataset.labels
    references = as_texts(labels[0])
    assert any(exact(str(other), text) for text in references) == (sameness != "different")


@pytest.mark.parametrize("shift", [-1, 1])
def test_answers_that_count_classes_from_another_number_are_refused(shift: int) -> None:
    table = table_of(0, 0)
    table["label"] = table["text"] % 3
    table["answer"] = (table["label"] + (table["subsample"] == 1)) % 3
    right = (table["answer"] == table["label"]).groupby(table["arm"]).mean().to_dict()
    with pytest.raises(pb.PeekbenchError, match="is none of the labels, which are 0 to 2, but answers are"):
        tidy(table.assign(answer=table["answer"] + shift), "answers")
    assert tidy(table, "answers").groupby("arm")["score"].mean().to_dict() == pytest.approx(right)


def test_tasks_of_logs_that_are_alike_are_refused(tmp_path: Path) -> None:
    logs = []
    for arm, task in (("extra", "news"), ("test", "News")):
        logs.append((arm, write_lm_eval(tmp_path / arm, [0.0, 1.0], task)))
    with pytest.raises(pb.PeekbenchError, match="the tasks 'news' and 'News' differ only by case"):
        import_table("lm-eval", logs)
