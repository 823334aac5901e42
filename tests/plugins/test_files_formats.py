"""The data source `files` on files as people have them: delimiters, quotes, compression, encodings, no header."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from peekbench import load_dataset
from peekbench.errors import DataError, ResultsError
from peekbench.records.data import Dataset
from peekbench.results import load_results

Read: TypeAlias = Callable[..., Dataset]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that writes content to a file and loads it."""

    def write_and_load(content: str | bytes, name: str = "rows.csv", **options: Any) -> Dataset:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return load_dataset("files", {"path": name, **options}, folder=tmp_path)

    return write_and_load


ROWS_OF_PEOPLE = [("Good fun; I'd go, again", "pos"), ('Dull, "and" long', "neg"), ("Großartig", "pos")]


def write_rows(delimiter: str, quote: str = '"', header: bool = True) -> str:
    """Return rows as the csv module writes them."""
    sink = io.StringIO()
    writer = csv.writer(sink, delimiter=delimiter, quotechar=quote)
    writer.writerows([*([("text", "label")] if header else []), *ROWS_OF_PEOPLE])
    return sink.getvalue()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        *[(write_rows(delimiter).encode(), name) for delimiter in ",;\t|" for name in ("rows.csv", "rows.tsv")],
        (write_rows(",", "'").replace("text,label", "'text','label'").encode(), "rows.csv"),
        (gzip.compress(write_rows(";").encode(), mtime=0), "rows.csv.gz"),
        (bz2.compress(write_rows(",").encode()), "rows.csv.bz2"),
        (lzma.compress(write_rows("\t").encode()), "rows.tsv.xz"),
        *[
            (write_rows(",").encode(encoding), "rows.csv")
            for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-32")
        ],
        (gzip.compress(write_rows(";").encode("utf-16"), mtime=0), "rows.csv.gz"),
        (json.dumps([{"text": text, "label": label} for text, label in ROWS_OF_PEOPLE]).encode(), "rows.json"),
        (json.dumps([{"text": text, "label": label} for text, label in ROWS_OF_PEOPLE], indent=2).encode(), "r.jsonl"),
    ],
)
def test_files_are_read_as_people_have_them(read: Read, content: bytes, name: str) -> None:
    dataset = read(content, name)
    found = [(text, dataset.class_names[label]) for text, label in zip(dataset.inputs, dataset.labels, strict=True)]
    assert found == ROWS_OF_PEOPLE


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (write_rows(";"), {"text": "text;label", "label": None}),
        (write_rows(",", "'"), {}),
        ('text,label\n"5 stars,a\nb,c\n', {}),
        (write_rows(",", header=False), {}),
        (write_rows(";", header=False), {}),
        ("text,label\nü,x\nb,y\n".encode("latin-1"), {}),
    ],
)
def test_the_remedy_of_a_message_reads_the_file(read: Read, content: str | bytes, options: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        read(content, **options)
    remedies = {
        name: json.loads(value) if value[0] in '["' else value
        for name, value in re.findall(r"`(\w+)` to (\[.*?\]|\".*?\"(?= |,|$)|cp1252)", str(caught.value))
    }
    assert remedies
    assert len(read(content, **remedies).inputs) > 1


@pytest.mark.slow
def test_compressed_files_have_a_limit_of_size(read: Read, tmp_path: Path) -> None:
    content = gzip.compress(b"text,label\n" + b"a,b\n" * 2_000_000)
    assert len(content) < 100_000
    with pytest.raises(DataError, match=r"rows\.csv\.gz: it unpacks to more than 50 times its size; .* unpack it"):
        read(content, "rows.csv.gz")
    path = tmp_path / "scores.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"task": "' + bytes(2**25) + b'"}\n'))
    with pytest.raises(ResultsError, match=r"line 1: more than 16,777,216 characters; .* unpack it"):
        load_results(path)
