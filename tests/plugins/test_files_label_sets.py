"""The data source `files` on texts that have any number of labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import pandas as pd
import pytest

import peekbench as pb
from peekbench import load_dataset
from peekbench.data.loading import fingerprint
from peekbench.errors import DataError, PeekbenchError

SETS = [["login", "urgent"], ["login"], [], ["urgent", "price"], ["price"], ["login", "price"]]
NAMES = ("login", "price", "urgent")
INDICATORS = ((1, 0, 1), (1, 0, 0), (0, 0, 0), (0, 1, 1), (0, 1, 0), (1, 1, 0))
TEXTS = [f"text {number}" for number in range(len(SETS))]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lists = pd.DataFrame({"text": TEXTS, "label": SETS})
    lists.to_parquet("lists.parquet")
    lists.to_json("lists.jsonl", orient="records", lines=True)
    lists.assign(label=[";".join(labels) for labels in SETS]).to_csv("joined.csv", index=False, sep="|")
    pd.DataFrame({"text": TEXTS} | dict(zip(NAMES, zip(*INDICATORS, strict=True), strict=True))).to_csv("columns.csv")


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("lists.parquet", {}),
        ("lists.jsonl", {}),
        ("joined.csv", {"label_separator": ";"}),
        ("columns.csv", {"label": list(NAMES)}),
    ],
)
def test_all_forms_are_the_same_data(path: str, options: dict[str, Any]) -> None:
    dataset = load_dataset("files", {"path": path, **options})
    assert (dataset.kind, dataset.class_names, dataset.labels) == ("multilabel", NAMES, INDICATORS)
    held = pb.Dataset(tuple(TEXTS), INDICATORS, NAMES, "multilabel")
    assert fingerprint(dataset) == fingerprint(held)


def test_classes_of_class_names_are_selected_and_named() -> None:
    dataset = load_dataset("files", {"path": "lists.jsonl", "class_names": ["price", "login"]})
    assert dataset.labels == tuple((price, login) for login, price, _ in INDICATORS)
    assert dataset.details["labels left out"] == "urgent"
    names = {"login": "access", "price": "money", "urgent": "access"}
    merged = load_dataset("files", {"path": "lists.jsonl", "class_names": names})
    assert merged.class_names == ("access", "money")
    assert merged.labels[0] == (1, 0)


def test_duplicates_with_different_labels_are_dropped() -> None:
    rows = [("a", ["x"]), ("a", ["x"]), ("b", ["x"]), ("b", ["x", "y"])]
    content = "\n".join(json.dumps({"text": text, "label": labels}) for text, labels in rows)
    Path("rows.jsonl").write_text(content)
    dataset = load_dataset("files", {"path": "rows.jsonl", "drop_duplicates": "exact"})
    assert dataset.inputs == ("a",)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([["x"], "y"], {}, "line 2: the labels 'y' are str; give a list"),
        ([["x", "y"], None], {}, "line 2: no labels; store an empty list"),
        (["['x', 'y']", "['x']"], {}, "is a list written as text"),
        (["x;y", "x", "y", "y;z", "z"], {}, "'x;y' seem to be several labels; .* set `label_separator` to ';'"),
        ([["x"], []], {}, "1 label; a multi-label task needs two or more"),
        (["x,y", "x"], {"label_separator": ";"}, "no row has the `label_separator` ';'; set it to ','"),
        (["x, y", "x; z", "y; z"], {"label_separator": ";"}, "'x, y' seems to be several labels, but .* is ';'"),
        ([["x", "y"]], {"label_separator": ";", "label": ["label", "text2"]}, "name this column as `label`"),
    ],
)
def test_unsuitable_labels_are_refused(rows: list[Any], options: dict[str, Any], message: str) -> None:
    content = "".join(json.dumps({"text": f"text {row}", "label": label}) + "\n" for row, label in enumerate(rows))
    Path("rows.jsonl").write_text(content)
    with pytest.raises(PeekbenchError, match=message):
        load_dataset("files", {"path": "rows.jsonl", **options})


def test_hidden_labels_of_a_test_split_are_refused() -> None:
    Path("test.jsonl").write_text('{"text": "a", "label": []}\n')
    with pytest.raises(DataError, match="labels of the test split are not public"):
        load_dataset("files", {"path": "lists.jsonl", "test_path": "test.jsonl"})
