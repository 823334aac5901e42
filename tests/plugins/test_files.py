"""The data source `files`: rows of every format, class names, options, and errors for unsuitable files."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from peekbench import load_dataset
from peekbench.data.labels import name_labels
from peekbench.data.loading import fingerprint
from peekbench.errors import DataError
from peekbench.records.data import Dataset, Folders
from peekbench_files.options import FileOptions
from peekbench_files.source import load

CSV = 'text,label\nGood fun.,pos\n"Dull, and long.",neg\nA joy.,pos\n'


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Dataset]:
    """Return a function that writes content to a file in the spec's folder and loads it."""

    def write_and_load(content: str | bytes, name: str = "rows.csv", **options: Any) -> Dataset:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return load(
            options=FileOptions.model_validate({"path": name, **options}), folders=Folders(tmp_path, tmp_path / "cache")
        )

    return write_and_load


@pytest.fixture
def read_parquet(tmp_path: Path) -> Callable[..., Dataset]:
    """Return a function that writes columns to a Parquet file in the spec's folder and loads it."""

    def write_and_load(columns: dict[str, Any], **options: Any) -> Dataset:
        pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
        return load(
            options=FileOptions.model_validate({"path": "rows.parquet", **options}),
            folders=Folders(tmp_path, tmp_path / "cache"),
        )

    return write_and_load


def test_classes_are_derived_from_the_labels_of_a_csv_file(read: Callable[..., Dataset]) -> None:
    dataset = read(CSV, instruction="The text is a review. Answer with its sentiment.")
    assert dataset.inputs == ("Good fun.", "Dull, and long.", "A joy.")
    assert dataset.labels == (1, 0, 1)
    assert dataset.class_names == ("neg", "pos")
    assert dataset.instruction == "The text is a review. Answer with its sentiment."
    assert dataset.details == {
        "file": "rows.csv",
        "rows_read": 3,
        "dropped": {"missing": 0, "duplicate": 0},
        "drop_duplicates": "none",
    }


def test_every_format_gives_the_same_rows(read: Callable[..., Dataset], read_parquet: Callable[..., Dataset]) -> None:
    rows = [("007 is back", 1), ('He said "no"\tand left\nat once', 0), ("NA", 10), ("Überraschend, näh?", 2)]
    quoted = [(text.replace('"', '""'), label) for text, label in rows]
    names = {0: "zero", 1: "one", 2: "two", 10: "ten"}
    datasets = [
        read("text,label\n" + "".join(f'"{text}",{label}\n' for text, label in quoted), class_names=names),
        read(
            "text\tlabel\n" + "".join(f'"{text}"\t{label}\n' for text, label in quoted), "rows.tsv", class_names=names
        ),
        read(
            "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows),
            "rows.jsonl",
            class_names=names,
        ),
        read_parquet({"text": [text for text, _ in rows], "label": [label for _, label in rows]}, class_names=names),
        read_parquet(
            {"text": [text for text, _ in rows], "label": [float(label) for _, label in rows]}, class_names=names
        ),
    ]
    for dataset in datasets:
        assert dataset.inputs == tuple(text for text, _ in rows)
        assert name_labels(dataset.labels, dataset.class_names) == ["one", "zero", "ten", "two"]
    assert len({fingerprint(dataset) for dataset in datasets}) == 1


@pytest.mark.parametrize(
    ("labels", "class_names", "expected_names", "expected_labels"),
    [
        (["10", "9", "-1", "-2"], None, ("-2", "-1", "9", "10"), (3, 2, 1, 0)),
        (["b", "a", "b"], ["b", "a"], ("b", "a"), (0, 1, 0)),
        (["1", "0", "1"], ["no", "yes"], ("no", "yes"), (1, 0, 1)),
        (["1", "2", "1"], ["2", "1"], ("2", "1"), (1, 0, 1)),
        (["1", "5", "2"], {1: "bad", 2: "bad", 5: "good"}, ("bad", "good"), (0, 1, 0)),
        (["u", "v", "u"], {"v": "down", "u": "up"}, ("down", "up"), (1, 0, 1)),
    ],
)
def test_labels_are_mapped_to_class_names(
    read: Callable[..., Dataset],
    labels: list[str],
    class_names: Any,
    expected_names: tuple[str, ...],
    expected_labels: tuple[int, ...],
) -> None:
    content = "text,label\n" + "".join(f"text {n},{label}\n" for n, label in enumerate(labels))
    dataset = read(content, class_names=class_names)
    assert dataset.class_names == expected_names
    assert dataset.labels == expected_labels


ROWS = [("Good fun; I'd go, again", "pos"), ('Dull, "and" long', "neg"), ("Großartig", "pos")]
OBJECTS = [{"text": text, "label": label} for text, label in ROWS]


def write_rows(delimiter: str, quote: str = '"') -> str:
    """Return rows as the csv module writes them."""
    sink = io.StringIO()
    csv.writer(sink, delimiter=delimiter, quotechar=quote).writerows([("text", "label"), *ROWS])
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        *[(write_rows(delimiter).encode(), name) for delimiter in ",;\t|" for name in ("rows.csv", "rows.tsv")],
        (write_rows(",", "'").replace("text,label", "'text','label'").encode(), "rows.csv"),
        (gzip.compress(write_rows(";").encode("utf-16"), mtime=0), "rows.csv.gz"),
        (bz2.compress(write_rows(",").encode()), "rows.csv.bz2"),
        (lzma.compress(write_rows("\t").encode()), "rows.tsv.xz"),
        *[(write_rows(",").encode(encoding), "rows.csv") for encoding in ("utf-8-sig", "utf-16", "utf-32")],
        (json.dumps(OBJECTS).encode(), "rows.json"),
        (json.dumps(OBJECTS, indent=2).encode(), "rows.jsonl"),
    ],
)
def test_files_are_read_as_people_have_them(read: Callable[..., Dataset], content: bytes, name: str) -> None:
    dataset = read(content, name)
    assert list(zip(dataset.inputs, name_labels(dataset.labels, dataset.class_names), strict=True)) == ROWS


def test_nested_columns_are_named_with_dots(read: Callable[..., Dataset]) -> None:
    rows = [{"data": {"text": f"text {n}"}, "notes": [{"label": n % 2}]} for n in range(4)]
    data = read("".join(f"{json.dumps(row)}\n" for row in rows), "rows.jsonl", text="data.text", label="notes.0.label")
    assert data.labels == (0, 1, 0, 1)
    assert data.inputs == ("text 0", "text 1", "text 2", "text 3")
    with pytest.raises(DataError, match="no column 'data.txt'; did you mean 'data.text'"):
        read(json.dumps(rows), "rows.json", text="data.txt")


def test_a_header_named_as_one_column_is_divided(read: Callable[..., Dataset]) -> None:
    content = "text;label\ngood, really;1\nbad, really, bad;0\n"
    with pytest.raises(DataError, match="no column 'text;label'; .*available columns: 'text', 'label'"):
        read(content, "rows.csv", text="text;label", label=None)
    assert read(content, "rows.csv").inputs == ("good, really", "bad, really, bad")


def test_options_set_quote_and_encoding(read: Callable[..., Dataset]) -> None:
    assert read("text;label\nein 'ä';a\nb;c\n".encode("latin-1"), encoding="latin-1").inputs[0] == "ein 'ä'"
    for quote in ("", None):
        assert read('text\tlabel\n"5 stars\ta\nb\tc\n', "rows.tsv", quote=quote).inputs == ('"5 stars', "b")
    assert read("text,label\r\na,x\r\n\r\nb,y\r\n").inputs == ("a", "b")


def test_rows_are_dropped_only_on_request(read: Callable[..., Dataset]) -> None:
    content = "text,label\na,x\n,x\nb,y\na,x\nc,\nd,x\nd,y\n"
    assert read(content, drop_missing=True).inputs == ("a", "b", "a", "d", "d")
    dataset = read(content, drop_missing=True, drop_duplicates="exact")
    assert (dataset.inputs, dataset.labels) == (("a", "b"), (0, 1))
    assert dataset.details["rows_read"] == 7
    assert dataset.details["dropped"] == {"missing": 2, "duplicate": 3}
    similar = "text,label\na long enough text,x\nA long enough  texts,x\nanother text of that length,y\n"
    assert len(read(similar, drop_duplicates="exact").inputs) == 3
    assert read(similar, drop_duplicates="near").inputs == ("a long enough text", "another text of that length")


@pytest.mark.parametrize("sign", ["-1", "", "?", "unlabeled", "NaN", "NA"])
@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl"])
def test_signs_of_a_missing_label_are_dropped_or_named(read: Callable[..., Dataset], sign: str, name: str) -> None:
    labels = ["0", "1", "0", sign]
    content = "text,label\n" + "".join(f"text {n},{label}\n" for n, label in enumerate(labels))
    if name == "rows.jsonl":
        content = "".join(json.dumps({"text": f"text {n}", "label": label}) + "\n" for n, label in enumerate(labels))
    with pytest.raises(DataError, match="column 'label': 1 of 4 rows have the label .*line [45]"):
        read(content, name)
    dataset = read(content, name, drop_missing=True)
    assert (dataset.labels, dataset.details["dropped"]["missing"]) == ((0, 1, 0), 1)
    named = read(content, name, class_names={"0": "0", "1": "1", sign: "no label"})
    assert name_labels(named.labels, named.class_names) == ["0", "1", "0", "no label"]


def test_a_test_file_without_labels_is_not_public(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label\na,0\nb,1\n")
    options = FileOptions(path=Path("train.csv"), test_path=Path("test.csv"))
    for content in ("text,label\nc,-1\nd,-1\n", "text\nc\nd\n"):
        (tmp_path / "test.csv").write_text(content)
        with pytest.raises(
            DataError, match="labels of the test split are not public.* use the validation split, with `test_path`"
        ):
            load(options=options, folders=Folders(tmp_path, tmp_path))


@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        (CSV, "rows.csv", {"path": "other.csv"}, r"cannot read .*other\.csv: no such file; check the path"),
        ("text,a_label,my_label\na,x,y\n", "rows.csv", {}, r"did you mean 'a_label' or 'my_label'\?"),
        (CSV, "rows.csv", {"label": "stars"}, "no column 'stars'.*in a spec of language modeling, `label: null`"),
        ("text,text,label\na,b,c\n", "rows.csv", {}, "2 columns 'text'"),
        ("", "rows.csv", {}, "is an empty file; write the rows into it"),
        ("text,label\na,x\nb,\n", "rows.csv", {}, "column 'label': 1 of 2 rows .*line 3"),
        ("text,label\na,x\nb\n", "rows.csv", {}, "line 3: 1 field, but the header has 2"),
        ("text,label\na,x\nb, c,y\n", "rows.csv", {}, "line 3: 3 fields, but the header has 2"),
        ('text,label\na,x\n"b,y\n', "rows.csv", {}, "line 3: unexpected end of data"),
        (CSV.encode("utf-16"), "rows.csv", {"encoding": "utf-8"}, "is not utf-8: .*set `encoding`"),
        ("text,label\na,x\nb,x\nc,X \n", "rows.csv", {}, r'"x" and "X" differ only by case, .*\. Correct them'),
        (CSV, "rows.csv", {"class_names": ["pos", "neutral"]}, "line 3: the label 'neg' has no class; .*'neutral'"),
        ("text,label\na,1\nb,2\n", "rows.csv", {"class_names": {1: "n", 3: "y"}}, "line 3: the label '2' has no class"),
        ("text,label\n", "rows.csv", {}, "no row is left"),
        ("[" * 100_000 + "\n", "rows.jsonl", {}, "line 1: not valid JSON"),
        ('["a", 1]\n', "rows.jsonl", {}, "row 1: a JSON str instead of an object; write"),
        ('{"text": "a", "label": 1}\n', "rows.jsonl", {"text": "body"}, "no column 'body'; .*'text', 'label'"),
        ('{"text": "a", "label": 1}\n{"text": "b"}\n', "rows.jsonl", {}, "column 'label': .*line 2"),
        ('{"text": 12, "label": 1}\n', "rows.jsonl", {}, "row 1: 12 in column 'text' is int, not text"),
        ('{"text": "a", "label": 0.5}\n', "rows.jsonl", {}, "row 1: the label 0.5 is float"),
        ('{"text": "a", "text": "b"}\n', "rows.jsonl", {}, "line 1: not valid JSON .*duplicated"),
        (CSV, "rows.parquet", {}, r"rows\.parquet .*write the file again"),
    ],
)
def test_unsuitable_files_are_refused_with_place_and_remedy(
    read: Callable[..., Dataset], content: str | bytes, name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=f"(?s){message}"):
        read(content, name, **options)


@pytest.mark.parametrize("field", ["text", "label"])
def test_lone_surrogates_are_refused(read: Callable[..., Dataset], field: str) -> None:
    rows = [{"text": "a", "label": "x"}, {"text": "b", "label": "y", field: "\ud800"}]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    with pytest.raises(DataError, match="line 2: .*surrogate"):
        read(content, "rows.jsonl")
    assert read(content.replace("\\ud800", "\\ud83d\\ude00"), "rows.jsonl").labels == (0, 1)


def test_a_line_that_unpacks_to_gigabytes_is_refused_at_once(read: Callable[..., Dataset]) -> None:
    content = b'[{"text": "a", "label": 1, "other": "' + b"a" * 2**25 + b'"}, {"text": "b", "label": 0}]'
    assert read(content, "rows.json").inputs == ("a", "b")
    with pytest.raises(DataError, match="a line has more than 16,777,216 characters; unpack the file"):
        read(gzip.compress(content, 1), "rows.json.gz")


def test_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(DataError, match="is not a file"):
        load(options=FileOptions.model_validate({"path": "rows.csv"}), folders=Folders(tmp_path, tmp_path / "cache"))


def test_unsuitable_parquet_files_are_refused(read_parquet: Callable[..., Dataset]) -> None:
    with pytest.raises(DataError, match="no column 'label'; .*'text', 'class'"):
        read_parquet({"text": ["a"], "class": [1]})
    with pytest.raises(DataError, match="row 2: no text"):
        read_parquet({"text": ["a", None], "label": [1, 2]})
    with pytest.raises(DataError, match="column 'label': .*row 2"):
        read_parquet({"text": ["a", "b"], "label": [1.0, float("nan")]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "path"),
        ({"path": "a.csv", "text": []}, "text"),
        ({"path": "a.csv", "text": "x", "label": "x"}, "duplicate column"),
        ({"path": "a.csv", "class_names": ["a"]}, "fewer than two classes"),
        ({"path": "a.csv", "class_names": ["a", "b", "a"]}, "duplicate name"),
        ({"path": "a.csv", "class_names": [True, False]}, "True .*quotes"),
        ({"path": "a.csv", "class_names": {0: "a", "0": "b"}}, "are the same"),
        ({"path": "a.csv", "class_names": {0.5: "a", 1: "b"}}, "0.5 is neither text nor an integer"),
        ({"path": "a.csv", "encoding": "utf-99"}, "encoding 'utf-99'"),
        ({"path": "a.csv", "separator": ";"}, "separator"),
        ({"path": "a.txt.gz"}, "path is 'a.txt.gz'; give"),
    ],
)
def test_options_are_checked_without_opening_the_file(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        FileOptions.model_validate(options)


def test_the_fingerprint_depends_on_the_content(read: Callable[..., Dataset]) -> None:
    first = read(CSV).fingerprint
    assert read(CSV.replace("joy", "Joy")).fingerprint != first
    assert read(CSV, class_names=["pos", "neg"]).fingerprint != first
    assert read(CSV, "elsewhere.csv").fingerprint == first


def test_official_splits_come_from_two_files(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text(CSV)
    (tmp_path / "test.csv").write_text('text,label\nSo so.,mixed\nGood fun.,pos\n"  ",pos\n')
    folders = Folders(tmp_path, tmp_path / "cache")

    def load_splits(**options: Any) -> Dataset:
        return load(options=FileOptions.model_validate({"path": "train.csv", **options}), folders=folders)

    dataset = load_splits(test_path="test.csv", drop_missing=True)
    assert dataset.splits == ("train", "train", "train", "test", "test")
    assert dataset.inputs[3:] == ("So so.", "Good fun.")
    assert dataset.class_names == ("mixed", "neg", "pos")
    assert (dataset.details["file"], dataset.details["rows_read"]) == ("train.csv, test.csv", 6)
    assert dataset.details["dropped"]["missing"] == 1
    distinct = load_splits(test_path="test.csv", drop_missing=True, drop_duplicates="exact")
    assert distinct.splits == ("train", "train", "test", "test")
    assert distinct.details["test_rows_read"] == 3
    (tmp_path / "extra.csv").write_text("id,text\n1,Never seen.\n2,Good fun.\n")
    files = {"test_path": "test.csv", "extra_path": "extra.csv", "drop_missing": True}
    assert load_splits(**files).extra == ("Never seen.", "Good fun.")
    assert load_splits(**files, drop_duplicates="exact").extra == ("Never seen.",)
    assert load_splits(**files).splits == dataset.splits
    (tmp_path / "none.csv").write_text("id,text\n")
    with pytest.raises(DataError, match=r"none\.csv: no row is left for extra texts"):
        load_splits(**{**files, "extra_path": "none.csv"})
    with pytest.raises(DataError, match=r"cannot read .*other\.csv"):
        load_splits(**{**files, "extra_path": "other.csv"})
    with pytest.raises(DataError, match=r"test\.csv, line 4: no text"):
        load_splits(test_path="test.csv")
    (tmp_path / "test.csv").write_text("text,label\nGood fun.,pos\n")
    with pytest.raises(DataError, match="splits are {'test': 3} of 3 rows"):
        load_dataset(
            "files", {"path": "test.csv", "test_path": "train.csv", "drop_duplicates": "exact"}, folder=tmp_path
        )
    for test_path, message in (("test.tsv", "different suffixes"), ("train.csv", "extra_path are 'train.csv'")):
        with pytest.raises(ValidationError, match=message):
            load_splits(test_path=test_path)


def test_extra_texts_of_groups_in_the_splits_are_refused(tmp_path: Path) -> None:
    for name, rows in (("train", "a,0,ann\nb,1,bob\n"), ("test", "c,0,cy\nd,1,cy\n"), ("extra", "e,0,eve\nf,1,bob\n")):
        (tmp_path / f"{name}.csv").write_text(f"text,label,author\n{rows}")
    (tmp_path / "unknown.csv").write_text("text\ng\n")
    options = {"path": "train.csv", "test_path": "test.csv", "extra_path": "extra.csv", "group": "author"}
    with pytest.raises(DataError, match=r"extra\.csv, line 3: the group 'bob' is in an official split"):
        load_dataset("files", options, folder=tmp_path)
    assert load_dataset("files", {**options, "extra_path": "unknown.csv"}, folder=tmp_path).extra == ("g",)


def test_groups_that_are_missing_or_in_both_splits(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("text,label,patient\na,x,1\nb,y,2\nc,x,\n")
    (tmp_path / "test.csv").write_text("text,label,patient\nd,x,2\ne,y,3\n")

    def load_groups(**options: Any) -> Dataset:
        parts = {"path": "train.csv", "test_path": "test.csv", "group": "patient", **options}
        return load(options=FileOptions.model_validate(parts), folders=Folders(tmp_path, tmp_path))

    with pytest.raises(DataError, match=r"train\.csv, line 4: no group; .*`drop_missing`"):
        load_groups()
    with pytest.raises(DataError, match="no column 'patients'; did you mean 'patient'"):
        load_groups(group="patients")
    with pytest.raises(ValidationError, match="text, label and group contain a duplicate column"):
        load_groups(group="label")
    with pytest.raises(ValidationError, match="name their column as `group`"):
        load_groups(group=None, drop_shared_groups=True)
    with pytest.raises(ValidationError, match="there is no test split"):
        load_groups(test_path=None, drop_shared_groups=True)
    assert load_groups(drop_missing=True).groups == ("1", "2", "2", "3")
    dataset = load_groups(drop_missing=True, drop_shared_groups=True)
    assert (dataset.inputs, dataset.groups) == (("a", "d", "e"), ("1", "2", "3"))
    assert dataset.details["dropped"] == {"missing": 1, "duplicate": 0, "group of the test split": 1}
