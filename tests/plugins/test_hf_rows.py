"""Files of every format to rows, and what is refused on the way; from a mirror folder, without any Hub."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_repositories import LAYOUTS, LONG, ROWS, Layout, sentence, write_file, write_repository
from loopback_hub import LoopbackHub

import peekbench_hf
from peekbench import DataError, Dataset, Folders, load_dataset
from peekbench.plugins.entries import DataSourceEntry
from peekbench.plugins.registry import find
from peekbench_hf.definition import HubTask, WebFile
from peekbench_hf.options import HubDatasetOptions, HubOptions
from peekbench_hf.source import load_task
from peekbench_hf.tasks import TASKS

Load = Callable[..., Dataset]
ROW = {"text": "A text.", "label": "a"}


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Writes records into a file of a mirror and loads them as `hf.dataset`."""

    def write_and_load(
        records: list[dict[str, Any]] | str | bytes,
        name: str = "train.parquet",
        names: tuple[str, ...] = (),
        **options: Any,
    ) -> Dataset:
        path = tmp_path / "mirror" / "datasets" / "some" / "body" / "main" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(records, list):
            write_file(path, records, Layout("some/body", (name,), ("text",), "label", (), names))
        else:
            path.write_bytes(records.encode() if isinstance(records, str) else records)
        entry = find("hf.dataset", DataSourceEntry)
        made = HubDatasetOptions.model_validate({"id": "some/body", "data_dir": tmp_path / "mirror", **options})
        return entry.load(options=made, folders=Folders(tmp_path, tmp_path / "cache"))

    return write_and_load


def rows(labels: list[Any], text: str = "text {}") -> list[dict[str, Any]]:
    return [{"text": text.format(row), "label": label} for row, label in enumerate(labels)]


@pytest.mark.parametrize("name", ["train.parquet", "train.jsonl", "train.json", "train.csv", "train.arrow"])
def test_every_format_gives_the_same_rows(name: str, load: Load) -> None:
    records = rows(["b", "a", "b"], 'line {}\n"quoted", caf\u00e9 \U0001f600')
    dataset = load(records, name)
    assert list(dataset.inputs) == [record["text"] for record in records]
    assert np.asarray(dataset.labels).tolist() == [1, 0, 1]
    assert dataset.class_names == ("a", "b")
    assert dataset.fingerprint == load(records, "data/train-00000-of-00001.parquet").fingerprint


def test_other_forms_of_json_and_arrow(load: Load, tmp_path: Path) -> None:
    records = rows(["a", "b"])
    assert list(load("\ufeff " + json.dumps(records), "train.json").inputs) == ["text 0", "text 1"]
    path = tmp_path / "file.arrow"
    table = pa.Table.from_pylist(records)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert list(load(path.read_bytes(), "train.arrow").inputs) == ["text 0", "text 1"]
    categories = pa.table({"text": ["x", "y"], "label": pa.array(["q", "p"]).dictionary_encode()})
    pq.write_table(categories, path)
    assert load(path.read_bytes()).class_names == ("p", "q")


@pytest.mark.parametrize("name", ["train.jsonl", "train.csv"])
def test_texts_that_look_like_dates_or_numbers_stay_texts(name: str, load: Load) -> None:
    records = [{"text": text, "label": text[-1]} for text in ("2024-01-01", "2024-01-02 10:00:00", "12", "1e3")]
    assert list(load(records, name).inputs) == ["2024-01-01", "2024-01-02 10:00:00", "12", "1e3"]


@pytest.mark.parametrize(
    ("labels", "names", "class_names", "expected", "classes"),
    [
        ([0, 1, 0], ("neg", "pos"), None, [0, 1, 0], ("neg", "pos")),
        ([0, 1, 0], ("neg", "pos"), {"neg": "bad", "pos": "good"}, [0, 1, 0], ("bad", "good")),
        ([0, 1, 0], (), ["neg", "pos"], [0, 1, 0], ("neg", "pos")),
        ([5, 1, 3], (), None, [2, 0, 1], ("1", "3", "5")),
        ([10, 9, 9], (), None, [1, 0, 0], ("9", "10")),
        ([5, 1, 3], (), {1: "low", 3: "low", 5: "high"}, [1, 0, 0], ("low", "high")),
        ([1.0, 2.0, 1.0], (), None, [0, 1, 0], ("1", "2")),
        ([True, False, True], (), None, [1, 0, 1], ("false", "true")),
        ([True, False, True], (), {True: "yes", False: "no"}, [0, 1, 0], ("yes", "no")),
        (["b", "a", "b"], (), ["b", "a"], [0, 1, 0], ("b", "a")),
    ],
)
def test_labels_of_every_kind_become_classes(
    labels: list[Any],
    names: tuple[str, ...],
    class_names: Any,
    expected: list[int],
    classes: tuple[str, ...],
    load: Load,
) -> None:
    dataset = load(rows(labels), names=names, class_names=class_names)
    assert np.asarray(dataset.labels).tolist() == expected
    assert dataset.class_names == classes


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        (rows(["a", "b"]), {"text": "words"}, "no column 'words'; there are 'text', 'label'"),
        (rows(["a", "b"]), {"label": "y"}, "no column 'y'; there are 'text', 'label'"),
        ([ROW, {"text": None, "label": "b"}], {}, "row 2: nothing in column 'text' or 'label'; so it is in 1 row. "),
        ([ROW, {"text": " \n", "label": "b"}], {}, "row 2: nothing in column 'text' or 'label'"),
        ([ROW, {"text": "x", "label": None}], {}, "row 2: nothing in column 'text' or 'label'"),
        (rows(["a", "b"]), {"text": "label", "label": "text", "class_names": ["text 0", "x"]}, "is no class in 1 row"),
        (rows([1.5, 2.0]), {}, "column 'label' holds fractions, which are no labels"),
        ([{"text": 3, "label": "a"}, {"text": 4, "label": "b"}], {}, "column 'text' holds int64, no text"),
        (rows(["a", "b"]), {"class_names": ["a", "b", "c"]}, "no row has the class 'c', one of 3"),
        (rows(["a", "b", "c"]), {"class_names": ["a", "b"]}, "column 'label' has a label that is no class in 1 row, "),
        (rows([0, 1, 2]), {"class_names": ["a", "b"]}, "in 1 row, the first '2'; the labels are '0', '1'"),
        (rows(["a", "b"]), {"max_characters": 1}, "no rows are left"),
        (rows(["a", "a"]), {}, "there is one class, 'a', in column 'label'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_rows_is_said(
    records: list[dict[str, Any]], options: dict[str, Any], message: str, load: Load
) -> None:
    with pytest.raises(DataError) as caught:
        load(records, **options)
    assert message in str(caught.value)
    assert str(caught.value).startswith("hf.dataset: ")


def test_class_names_in_the_wrong_order_or_number_are_refused(load: Load) -> None:
    for class_names in (["pos", "neg"], ["neg", "pos", "mixed"], {"pos": "good", "neg": "bad"}):
        with pytest.raises(DataError, match="is a ClassLabel of neg, pos, but the class names are for"):
            load(rows([0, 1]), names=("neg", "pos"), class_names=class_names)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.parquet", b"PAR1 but no more", "cannot be read as parquet"),
        ("train.jsonl", '{"text": "x", "label": 1}\n{"text": ', "cannot be read as jsonl"),
        ("train.json", '[{"text": "x"', "cannot be read as json"),
        ("train.jsonl", '{"text": 5, "label": 1}\n', "cannot be read as jsonl"),
        ("train.csv", "text,label\n1,2,3\n", "cannot be read as csv"),
        ("train.arrow", b"nothing of the kind", "cannot be read as arrow"),
        ("train.parquet", b"", "cannot be read as parquet"),
    ],
)
def test_damaged_files_are_named(name: str, content: str | bytes, message: str, load: Load) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load(content, name)
    assert name in str(caught.value)


def test_duplicates_are_counted_and_dropped_if_asked(load: Load) -> None:
    base = "The quick brown fox jumps over the lazy dog near the river bank at dawn"
    texts = [
        base,
        base,
        base.upper() + "!",
        "Something else entirely, which stands here once.",
        "torn",
        "torn",
        "Torn ",
    ]
    records = [{"text": text, "label": label} for text, label in zip(texts, "aaabcab", strict=True)]
    kept = load(records)
    assert (len(kept.inputs), kept.details["exact_duplicates"]) == (7, 2)
    exact = load(records, drop_duplicates="exact", class_names={"a": "x", "b": "y", "c": "y"})
    assert list(exact.inputs) == [base, base.upper() + "!", texts[3], "Torn "], "torn has two labels"
    assert exact.details["dropped"]["duplicate"] == 3
    near = load(records, drop_duplicates="near", class_names={"a": "x", "b": "y", "c": "y"})
    assert list(near.inputs) == [base, texts[3]]
    assert near.details["drop_duplicates"] == "near"
    assert len({kept.fingerprint, exact.fingerprint, near.fingerprint}) == 3


def test_what_is_kept_depends_on_the_options(load: Load, tmp_path: Path) -> None:
    load(rows(["a", "b"] * 3, "text"))
    entry = find("hf.dataset", DataSourceEntry)

    def again(**options: Any) -> int:
        made = HubDatasetOptions.model_validate({"id": "some/body", "data_dir": tmp_path / "mirror", **options})
        return len(entry.load(options=made, folders=Folders(tmp_path, tmp_path / "cache")).inputs)

    assert again() == again(max_characters=10) == 6
    with pytest.raises(DataError, match="no rows are left"):
        again(drop_duplicates="exact")
    with pytest.raises(DataError, match="no rows are left"):
        again(max_characters=2)


def test_a_filter_keeps_what_is_shorter_and_says_what_it_left_out(load: Load) -> None:
    records = [{"text": "x" * size, "label": "ab"[size % 2]} for size in (1, 2, 10, 11)] + [{"text": "", "label": "a"}]
    dataset = load(records, max_characters=10, drop_missing=True)
    assert [len(text) for text in dataset.inputs] == [1, 2, 10]
    assert dataset.details["dropped"] == {"missing": 1, "long": 1, "duplicate": 0}
    assert dataset.details["rows_read"] == 5


def test_rows_are_kept_and_later_read_where_they_lie(load: Load, tmp_path: Path) -> None:
    records = rows(["a", "b"] * 50, "caf\u00e9 number {}")
    first = load(records)
    (kept,) = (tmp_path / "cache" / "hf").glob("dataset-*.arrow")
    again = load(records)
    assert not isinstance(again.inputs, list | tuple), "no texts in memory"
    assert list(again.inputs) == list(first.inputs) == [record["text"] for record in records]
    assert again.inputs[-1] == "caf\u00e9 number 99"
    assert again.inputs[10:12] == ["caf\u00e9 number 10", "caf\u00e9 number 11"]
    with pytest.raises(IndexError):
        again.inputs[100]
    assert again.fingerprint == first.fingerprint
    content = kept.read_bytes()
    kept.unlink()
    kept.write_bytes(content[:100])
    assert list(load(records).inputs) == [record["text"] for record in records], "a damaged file is made again"


def test_where_nothing_can_be_kept_the_rows_are_the_same(load: Load, tmp_path: Path) -> None:
    records = rows(["a", "b"] * 10)
    (tmp_path / "cache").write_text("a file in the place of the folder")
    without = load(records)
    (tmp_path / "cache").unlink()
    kept = load(records)
    assert list(without.inputs) == list(kept.inputs)
    assert without.fingerprint == kept.fingerprint


def test_changed_files_are_read_again(load: Load) -> None:
    first = load(rows(["a", "b"]))
    assert load(rows(["a", "b"], "other {}")).fingerprint != first.fingerprint


def test_a_mirror_may_be_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_repository("trec", tmp_path / "mirror")
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PEEKBENCH_HUB_MIRROR", str(tmp_path / "mirror"))
    assert len(load_dataset("hf.trec").inputs) == ROWS
    with pytest.raises(DataError) as caught:
        load_dataset("hf.limit")
    assert "mirror/datasets/IBM/limit/refs@convert@parquet/default/train/*.parquet: no such file" in str(caught.value)
    monkeypatch.setenv("PEEKBENCH_HUB_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="there is no folder .*nowhere, which should be a mirror"):
        load_dataset("hf.silicone")


def test_archives_of_articles_must_be_whole(tmp_path: Path) -> None:
    task = "hyperpartisan_news_detection"
    branch = write_repository(task, tmp_path)
    articles, labels = (branch / name for name in LAYOUTS[task].files)

    def fault() -> str:
        with pytest.raises(DataError) as caught:
            load_dataset(f"hf.{task}", {"data_dir": str(tmp_path)})
        return str(caught.value)

    with zipfile.ZipFile(labels) as archive:
        text = archive.read("ground-truth.xml").decode()
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("ground-truth.xml", text.replace('id="0000003"', 'id="none"'))
    assert "no label for article 0000003" in fault()
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("ground-truth.xml", text[: len(text) // 2])
    assert "cannot be read as zipped XML" in fault()
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><articles>&b;</articles>'
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("ground-truth.xml", bomb)
    assert "cannot be read as zipped XML" in fault()
    articles.unlink()
    assert "0 archives articles-*.zip" in fault()


def test_a_file_of_the_web_serves_where_the_hub_has_none(tmp_path: Path) -> None:
    web = tmp_path / "hub" / "web"
    web.mkdir(parents=True)
    (web / "train.json").write_text(json.dumps(rows(["no", "yes"] * 3)))
    folders = Folders(tmp_path, tmp_path / "cache")
    with LoopbackHub(tmp_path / "hub") as hub:

        def task(*names: str) -> HubTask:
            places = tuple(WebFile(f"{hub.endpoint}/web/{name}") for name in names)
            return HubTask(name="made", places=places, text=("text",), label="label", classes=None, instruction="")

        dataset = load_task(options=HubOptions(), folders=folders, task=task("gone.json", "train.json"))
        assert list(dataset.inputs) == [f"text {row}" for row in range(6)]
        with pytest.raises(DataError, match="web/gone.json: no such file"):
            load_task(options=HubOptions(), folders=folders, task=task("gone.json"))
        hub.stop()
        again = load_task(options=HubOptions(), folders=folders, task=task("train.json"))
        assert again.fingerprint == dataset.fingerprint
        with pytest.raises(DataError, match="web/other.json: cannot be reached"):
            load_task(options=HubOptions(), folders=folders, task=task("other.json"))


def test_records_are_complete() -> None:
    references = Path(peekbench_hf.__file__).with_name("references.bib").read_text(encoding="utf-8")
    keys = set(re.findall(r"^@\w+{(\w+),$", references, re.MULTILINE))
    assert {task.citation for task in TASKS} - {""} == keys
    for task in TASKS:
        assert task.instruction.startswith("The text is ")
        assert ". Answer with " in task.instruction
        assert task.instruction.endswith(".")
        assert task.classes
        assert len(set(task.classes.values())) == len(task.classes)
    assert sentence("x", 1) != LONG
