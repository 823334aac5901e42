"""Rows of Hub tasks from files of every format in a local mirror, and errors for unsuitable files and archives."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_repositories import LAYOUTS, LONG, ROWS, Layout, sentence, write_file, write_repository
from loopback_hub import LoopbackHub
from pydantic import ValidationError

import peekbench_hf
from peekbench import DataError, Dataset, Folders, load_dataset
from peekbench.data.labels import name_labels
from peekbench.plugins.entries import DataSourceEntry
from peekbench.plugins.registry import find
from peekbench.spec.experiment import make_spec
from peekbench_hf.definition import HubTask, WebFile
from peekbench_hf.options import HubDatasetOptions, HubTaskOptions
from peekbench_hf.source import load as load_task
from peekbench_hf.tasks import TASKS

Load = Callable[..., Dataset]
ROW = {"text": "A text.", "label": "a"}


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Return a function that writes records to a file of a mirror and loads them as `hf.dataset`."""

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
        validated = HubDatasetOptions.model_validate({"id": "some/body", "data_dir": tmp_path / "mirror", **options})
        return entry.load(options=validated, folders=Folders(tmp_path, tmp_path / "cache"))

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


def test_a_list_of_json_objects_is_read_and_columns_of_several_types_are_refused(load: Load) -> None:
    records = rows(["a", "b"])
    assert list(load(json.dumps(records), "train.json").inputs) == ["text 0", "text 1"]
    with pytest.raises(DataError, match="train.jsonl: column 'label' has values of several types; store one type"):
        load([*records, {"text": "x", "label": 1}], "train.jsonl")


@pytest.mark.parametrize(
    ("labels", "names", "class_names", "expected", "classes"),
    [
        ([0, 1, 0], ("neg", "pos"), None, [0, 1, 0], ("neg", "pos")),
        ([0, 1, 0], ("neg", "pos"), {"neg": "bad", "pos": "good"}, [0, 1, 0], ("bad", "good")),
        ([0, 1, 0], (), ["neg", "pos"], [0, 1, 0], ("neg", "pos")),
        ([5, 1, 3], (), None, [2, 0, 1], ("1", "3", "5")),
        ([5, 1, 3], (), {1: "low", 3: "low", 5: "high"}, [1, 0, 0], ("low", "high")),
        ([True, False, True], (), {True: "yes", False: "no"}, [0, 1, 0], ("yes", "no")),
        (["b", "a", "b"], (), ["b", "a"], [0, 1, 0], ("b", "a")),
    ],
)
def test_labels_of_every_type_become_classes(
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
        (rows(["a", "b"]), {"text": "words"}, "no column 'words'; .*'text', 'label'"),
        (rows(["a", "b"]), {"label": "y"}, "no column 'y'; .*'text', 'label'"),
        ([ROW, {"text": " \n", "label": "b"}], {}, "row 1 of the train split: no text; .* 1 row"),
        ([ROW, {"text": "x", "label": None}], {}, "column 'label': 1 of 2 rows have the label ''"),
        (rows(["a", "b"]), {"text": "label", "label": "text", "class_names": ["text 0", "x"]}, "'text 1' has no class"),
        (rows([1.5, 2.0]), {}, "row 0 of the train split: the label 1.5 is float"),
        ([{"text": 3, "label": "a"}, {"text": 4, "label": "b"}], {}, "column 'text' contains int, not text"),
        (rows(["a", "b", "c"]), {"class_names": ["a", "b"]}, "row 2 of .*'c' has no class; .*its 1 row"),
    ],
)  # fmt: skip
def test_unsuitable_rows_are_refused(
    records: list[dict[str, Any]], options: dict[str, Any], message: str, load: Load
) -> None:
    with pytest.raises(DataError) as caught:
        load(records, **options)
    assert re.search(message, str(caught.value))
    assert str(caught.value).startswith("hf.dataset: ")


def test_class_names_are_those_of_the_labels_of_a_class_label(load: Load) -> None:
    dataset = load(rows([0, 1]), names=("neg", "pos"), class_names=["pos", "neg"])
    assert name_labels(dataset.labels, dataset.class_names) == ["neg", "pos"]
    with pytest.raises(DataError, match="'neg' has no class"):
        load(rows([0, 1]), names=("neg", "pos"), class_names={"pos": "good", "mixed": "bad"})


def test_the_order_of_class_names_is_kept_by_specs_and_stores(load: Load, tmp_path: Path) -> None:
    given = {"id": "some/body", "data_dir": str(tmp_path / "mirror")}
    for class_names in (["pos", "neg"], {"1": "neg", "0": "pos"}):
        direct = load(rows([0, 1]), class_names=class_names)
        spec = make_spec(
            {"name": "a", "tasks": [{"use": "hf.dataset", "options": {**given, "class_names": class_names}}],
             "methods": ["controls.null"], "design": {"num_train": 1, "num_test": 1, "num_subsamples": 1}},
            folder=tmp_path,
        )  # fmt: skip
        for dataset in (direct, load_dataset(spec.source(spec.tasks[0]))):
            assert name_labels(dataset.labels, dataset.class_names) == ["pos", "neg"]
    with pytest.raises(DataError, match="'0' has no class"):
        load(rows([0, 1]), class_names={"neg": "bad", "pos": "good"})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.parquet", b"PAR1 but no more", "cannot be read as parquet"),
        ("train.jsonl", '{"text": "x", "label": 1}\n{"text": ', "cannot be read as jsonl"),
        ("train.json", '[{"text": "x"', "cannot be read as json"),
        ("train.csv", "text,label\n1,2,3\n", "cannot be read as csv"),
        ("train.arrow", b"not an Arrow file", "cannot be read as arrow"),
        ("train.parquet", b"", "cannot be read as parquet"),
    ],
)
def test_damaged_files_are_reported(name: str, content: str | bytes, message: str, load: Load) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load(content, name)
    assert name in str(caught.value)


def test_groups_are_a_column_that_is_cached_with_the_rows(load: Load) -> None:
    records = [{**row, "user": number // 2} for number, row in enumerate(rows(["b", "a", "b", "a"]))]
    for _ in range(2):  # the second time from the cache
        assert load(records, group="user").groups == ("0", "0", "1", "1")
    assert load(records).groups == ()


def test_groups_are_texts_and_not_in_two_splits(load: Load, tmp_path: Path) -> None:
    load("text,label,user\nx,a,01\ny,b,02\n", "test.csv", split="test")
    content = "text,label,user\ns,a,1\nt,b,01\nu,b,03\nv,a,\n"
    official = {"group": "user", "splits": "official"}
    with pytest.raises(DataError, match="row 3 of the train split: no group; .*`drop_missing`"):
        load(content, "train.csv", **official)
    assert load(content, "train.csv", **official, drop_missing=True).groups == ("1", "01", "03", "01", "02")
    dataset = load(content, "train.csv", **official, drop_missing=True, drop_shared_groups=True)
    assert (list(dataset.inputs), dataset.groups) == ([*"suxy"], ("1", "03", "01", "02"))
    assert dataset.details["dropped"]["group of the test split"] == 1
    with pytest.raises(DataError, match="no column 'users'"):
        load(content, "train.csv", group="users")
    with pytest.raises(ValidationError, match="name their column as `group`"):
        load(content, "train.csv", drop_shared_groups=True)
    with pytest.raises(ValidationError, match="but splits are pooled"):
        load(content, "train.csv", group="user", drop_shared_groups=True)


def test_dropped_rows_are_counted_by_reason(load: Load, tmp_path: Path) -> None:
    records = [{"text": "x" * size, "label": "ab"[size % 2]} for size in (1, 2, 10, 11)] + [{"text": "", "label": "a"}]
    options = HubDatasetOptions.model_validate({"id": "some/body", "data_dir": tmp_path / "mirror"})
    load(records, drop_missing=True)
    task = replace(options.task(), max_characters=10, drop_missing=True)
    dataset = load_task(options=options, folders=Folders(tmp_path, tmp_path / "cache"), task=task)
    assert [len(text) for text in dataset.inputs] == [1, 2, 10]
    assert dataset.details["dropped"] == {"missing": 1, "long": 1, "duplicate": 0}
    assert dataset.details["rows_read"] == 5


def test_rows_are_cached_and_read_from_the_file_on_access(load: Load, tmp_path: Path) -> None:
    records = rows(["a", "b"] * 50, "caf\u00e9 number {}")
    first = load(records)
    (path,) = (tmp_path / "cache" / "hf").glob("dataset-*.arrow")
    again = load(records)
    assert not isinstance(again.inputs, list | tuple), "no texts in memory"
    assert list(again.inputs) == list(first.inputs) == [record["text"] for record in records]
    assert again.inputs[-1] == "caf\u00e9 number 99"
    assert again.inputs[10:12] == ["caf\u00e9 number 10", "caf\u00e9 number 11"]
    with pytest.raises(IndexError):
        again.inputs[100]
    assert again.fingerprint == first.fingerprint
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:100])
    assert list(load(records).inputs) == [record["text"] for record in records], "a damaged file is regenerated"


def test_the_environment_may_name_a_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_repository("trec", tmp_path / "mirror")
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PEEKBENCH_HUB_MIRROR", str(tmp_path / "mirror"))
    assert len(load_dataset("hf.trec").inputs) == ROWS
    with pytest.raises(DataError) as caught:
        load_dataset("hf.limit")
    assert "mirror/datasets/IBM/limit/refs@convert@parquet/default/train/*.parquet: no such file" in str(caught.value)
    monkeypatch.setenv("PEEKBENCH_HUB_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="hf.silicone: .*mirror.*nowhere"):
        load_dataset("hf.silicone")


def test_files_on_the_web_are_downloaded(tmp_path: Path) -> None:
    web = tmp_path / "hub" / "web"
    web.mkdir(parents=True)
    (web / "train.json").write_text(json.dumps(rows(["no", "yes"] * 3)))
    folders = Folders(tmp_path, tmp_path / "cache")
    with LoopbackHub(tmp_path / "hub") as hub:

        def task(*names: str) -> HubTask:
            locations = tuple(WebFile(f"{hub.endpoint}/web/{name}") for name in names)
            return HubTask(name="web", locations=locations, text=("text",), label="label", classes=None, instruction="")

        dataset = load_task(options=HubTaskOptions(), folders=folders, task=task("gone.json", "train.json"))
        assert list(dataset.inputs) == [f"text {row}" for row in range(6)]
        with pytest.raises(DataError, match="web/gone.json: no such file"):
            load_task(options=HubTaskOptions(), folders=folders, task=task("gone.json"))
        hub.stop()
        again = load_task(options=HubTaskOptions(), folders=folders, task=task("train.json"))
        assert again.fingerprint == dataset.fingerprint


def test_task_definitions_are_complete() -> None:
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


def test_official_splits_are_read_from_the_files_of_both_splits(load: Load) -> None:
    load(rows(["b", "a", "c"], "test {}"), "test.parquet", split="test")
    train = rows(["a", "b", "a"])
    pooled, official = (load(train, splits=splits) if splits else load(train) for splits in ("", "official"))
    assert (len(pooled.inputs), pooled.splits) == (3, ())
    for _ in range(2):  # from the files, then from the cache
        assert official.splits == ("train",) * 3 + ("test",) * 3
        assert list(official.inputs)[3:] == ["test 0", "test 1", "test 2"]
        assert official.class_names == ("a", "b", "c")
        assert np.asarray(official.labels).tolist() == [0, 1, 0, 1, 0, 2]
        official = load(train, splits="official")
    assert official.details["rows_read"] == 6
    assert official.details["test split from"].startswith("data/test-*.parquet")


def test_a_task_names_the_split_that_is_scored(load: Load) -> None:
    names = ("neg", "pos")
    load(rows([1, 0], "held out {}"), "validation.parquet", names=names, split="validation")
    with pytest.raises(DataError, match="all labels are missing, '-1', .*use a split that has labels"):
        load(rows([-1, -1]), "test.parquet", names=names, split="test")
    with pytest.raises(
        DataError, match="the labels of the test split are not public: .*set `test_split` to validation"
    ):
        load(rows([0, 1]), names=names, splits="official")
    official = load(rows([0, 1]), names=names, splits="official", test_split="validation")
    assert list(official.inputs)[2:] == ["held out 0", "held out 1"]
    with pytest.raises(ValueError, match="test_split is 'validation', but splits are pooled; set splits to official"):
        load(rows([0, 1]), test_split="validation")


def test_official_splits_that_are_missing_or_do_not_match_are_errors(load: Load) -> None:
    with pytest.raises(
        DataError, match=r"hf\.dataset: no split named test: .*set `test_split` to .* validation, or `splits` to p"
    ):
        load(rows(["a", "b"]), splits="official")
    load(rows(["a", "b"]), "test.parquet", split="test")
    with pytest.raises(ValueError, match="split and test_split are both 'train'"):
        load(rows(["a", "b"]), splits="official", test_split="train")


def test_files_of_the_test_split_are_named_like_those_of_the_train_split() -> None:
    """The layouts of the fixtures, which do not depend on the definitions, name the test files of 19 tasks."""
    named = {task: [name for name in layout.stray if "test" in name] for task, layout in LAYOUTS.items()}
    found = {task.name: task.locations[0].test_split("test") for task in TASKS}
    for task, files in named.items():
        location = found[task]
        if files:
            assert location is not None and location.choose(files) == tuple(files), task  # type: ignore[union-attr]
    assert sum(map(bool, named.values())) == 19
    assert found["climate_fever"] is None and found["hyperpartisan_news_detection"] is None


@pytest.mark.parametrize("names", [(), ("neg", "pos")])
def test_rows_without_a_label_are_dropped_or_named(names: tuple[str, ...], load: Load) -> None:
    records = rows([0, 1, -1, 1])
    with pytest.raises(DataError, match="1 of 4 rows have the label '-1'"):
        load(records, names=names)
    assert len(load(records, names=names, drop_missing=True).inputs) == 3
    first, second = names or ("0", "1")
    named = load(records, names=names, class_names={first: "no", second: "yes", "-1": "no label"})
    assert name_labels(named.labels, named.class_names) == ["no", "yes", "no label", "yes"]


@pytest.mark.parametrize("name", ["train.parquet", "train.jsonl", "train.arrow"])
def test_lists_of_labels_are_read_cached_and_selected(name: str, load: Load) -> None:
    records = rows([["bug", "urgent"], ["login"], [], ["urgent"], ["urgent"]])
    dataset = load(records, name)
    assert (dataset.kind, dataset.class_names) == ("multilabel", ("bug", "login", "urgent"))
    expected = [[1, 0, 1], [0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert np.asarray(dataset.labels).tolist() == expected
    again = load(records, name)
    assert (again.fingerprint, np.asarray(again.labels).tolist()) == (dataset.fingerprint, expected)
    selected = load(records, name, class_names=["urgent", "bug"])
    assert np.asarray(selected.labels).tolist() == [[1, 1], [0, 0], [0, 0], [1, 0], [1, 0]]
    assert selected.details["labels left out"] == "login"


def test_lists_of_a_class_label_have_its_names(load: Load) -> None:
    feature = {"feature": {"names": ["calm", "joy", "fear"], "_type": "ClassLabel"}, "_type": "List"}
    table = pa.table({"text": ["a", "b", "c"], "label": [[2, 0], [1], []]})
    described = {"huggingface": json.dumps({"info": {"features": {"label": feature}}})}
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(described), file)
    dataset = load(file.getvalue())
    assert dataset.class_names == ("calm", "joy", "fear")
    assert np.asarray(dataset.labels).tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 0]]


def test_a_column_of_references_makes_a_generation_task(load: Load) -> None:
    dataset = load(rows(["#### 4", "none", "#### 4"], "{} in a template"), kind="generation", drop_duplicates="near")
    assert (dataset.kind, dataset.labels, dataset.class_names) == ("generation", ("#### 4", "none", "#### 4"), ())
    lists = load(rows([["4", "four"], ["5"]]), name="lists.jsonl", split="lists", kind="generation")
    assert lists.labels == (("4", "four"), ("5",))
    with pytest.raises(DataError, match="row 2 of the train split: no reference"):  # a hidden code of a class label
        load(rows([1, 0, -1]), names=("no", "yes"), kind="generation")
    assert load(rows([1, 0, -1]), names=("no", "yes"), kind="generation", drop_missing=True).labels == ("yes", "no")


def test_damaged_archives_of_articles_are_refused(tmp_path: Path) -> None:
    task = "hyperpartisan_news_detection"
    branch = write_repository(task, tmp_path)
    articles, labels = (branch / name for name in LAYOUTS[task].files)

    def load_error() -> str:
        with pytest.raises(DataError) as caught:
            load_dataset(f"hf.{task}", {"data_dir": str(tmp_path)})
        return str(caught.value)

    with zipfile.ZipFile(labels) as archive:
        text = archive.read("ground-truth.xml").decode()
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("ground-truth.xml", text.replace('id="0000003"', 'id="none"'))
    assert "no label for article 0000003" in load_error()
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("ground-truth.xml", text[: len(text) // 2])
    assert "cannot be read as zipped XML" in load_error()
    with zipfile.ZipFile(articles, "w") as archive:
        archive.writestr("x.xml", "<articles>" + "<article id='1' title='x'/>" * 2 + "</articles>")
    assert "the id 1 is of two articles; correct the file" in load_error()
    articles.unlink()
    assert "0 archives articles-*.zip" in load_error()
