"""Labels that stand for a missing label, and labels that differ by case or spaces, through every source of data.

Each of them must be refused by every source, never get a class. The rows that the message's remedies give must be the
same everywhere: all other rows if they are dropped, and one more class, or one class less, if it is named.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from attack_tally import Budget, Tally

from peekbench import DataError, Dataset, load_dataset
from peekbench.data.dataset_checks import check_dataset
from peekbench.data.held_data import read_held
from peekbench.data.loading import forget

ROWS = 24
TEXTS = [f"text {row}" for row in range(ROWS)]
Load = Callable[..., Dataset]


@dataclass(frozen=True)
class Labels:
    """Labels of all rows, and what they should become."""

    values: Sequence[Any]
    num_named: int
    """Number of classes if the suggested names are used; 0 if the labels are ordinary ones."""
    num_kept: int = ROWS
    """Number of rows if rows without a label are dropped."""


def make_labels() -> dict[str, Labels]:
    """Return labels by name."""
    numbers, names = [[first, second] * (ROWS // 2) for first, second in ((0, 1), ("neg", "pos"))]
    found = {
        "ordinary numbers": Labels(numbers, 0),
        "ordinary names": Labels(names, 0),
        "-1 and 1": Labels([-1, 1] * (ROWS // 2), 0),
        "a scale": Labels([-2, -1, 0, 1, 2, 2] * (ROWS // 6), 0),
        "none as a name": Labels(["none", "favor"] * (ROWS // 2), 0),
    }
    for sign in ("-1", "", "?", "unlabeled", "Unlabeled", "NaN", "nan", "NA", "None", "null", " "):
        found[f"{sign!r} of names"] = Labels([sign, *names[1:-1], sign], 3, ROWS - 2)
    for number in (-1, -100):
        found[f"{number} of numbers"] = Labels([number, *numbers[1:]], 3, ROWS - 1)
    found["None of names"] = Labels([None, *names[1:]], 3, ROWS - 1)
    for variant in ("Neg", "NEG", "neg ", " neg"):
        found[f"{variant!r} and 'neg'"] = Labels([variant, *names[1:]], 2)
    return found


def sources(folder: Path, labels: Sequence[Any]) -> dict[str, Load]:
    """Return functions that load the rows with options, by source of data."""
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, labels, strict=True)]
    frame = pd.DataFrame({"text": TEXTS, "label": pd.Series(list(labels), dtype=object)})
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        with (folder / f"rows{suffix}").open("w", newline="") as file:
            writer = csv.DictWriter(file, ["text", "label"], delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "rows.json").write_text(json.dumps(rows))
    mirror = folder / "mirror" / "datasets" / "a" / "b" / "main"
    mirror.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    pq.write_table(pa.Table.from_pylist(rows), mirror / "train.parquet")
    found: dict[str, Load] = {
        f"files {file}": partial(_load_named, "files", {"path": f"rows{file}"}, folder)
        for file in (".csv", ".tsv", ".json", ".jsonl", ".parquet")
    }
    if {0, 1} <= set(labels) <= {0, 1, -1, -100}:
        features = {"label": {"names": ["zero", "one"], "_type": "ClassLabel"}}
        table = pa.Table.from_pylist(rows)
        described = {"huggingface": json.dumps({"info": {"features": features}})}
        pq.write_table(table.replace_schema_metadata(described), mirror / "named.parquet")
        named = {"id": "a/b", "files": "named.parquet", "data_dir": "mirror"}
        found["hf.dataset ClassLabel"] = partial(_load_named, "hf.dataset", named, folder)
        saved = folder / "saved"
        saved.mkdir()
        with pa.OSFile(str(saved / "data.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        (saved / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data.arrow"}]}))
        (saved / "dataset_info.json").write_text(json.dumps({"features": features}))
        found["files ClassLabel"] = partial(_load_named, "files", {"path": "saved"}, folder)
    hub = {"id": "a/b", "files": "train.parquet", "data_dir": "mirror"}
    found["hf.dataset"] = partial(_load_named, "hf.dataset", hub, folder)
    held = {
        "lists": (TEXTS, list(labels)),
        "array": (TEXTS, np.array(labels, dtype=object)),
        "features": (np.arange(2.0 * ROWS).reshape(ROWS, 2), list(labels)),
        "data frame": frame,
        "dictionary": {"text": TEXTS, "label": list(labels)},
        "rows": rows,
    }
    for name, data in held.items():
        found[f"measure {name}"] = partial(_load_held, data)
    return found


def _load_named(use: str, given: Mapping[str, Any], folder: Path, **options: Any) -> Dataset:
    return load_dataset(use, {**given, **options}, folder=folder)


def _load_held(data: Any, **options: Any) -> Dataset:
    dataset = read_held(data, "data", [None], **options)
    check_dataset(dataset, "data")
    return dataset


def _load_own(labels: Sequence[Any]) -> Dataset:
    """Return the rows of a data source that makes a class of each label."""
    names = sorted({str(label) for label in labels})
    dataset = Dataset(TEXTS, [names.index(str(label)) for label in labels], tuple(names))
    check_dataset(dataset, "own")
    return dataset


def examine(load: Load, labels: Labels) -> list[str]:
    """Return what is wrong with how a source treats labels and follows the remedies of its message."""
    try:
        dataset = load()
    except DataError as error:
        if not labels.num_named:
            return [f"ordinary labels are refused: {str(error)[:200]}"]
        message = str(error)
    else:
        return [] if not labels.num_named else [f"the classes {dataset.class_names}"]
    _, found, rest = message.partition("`class_names` to ")
    if not found:
        return [f"no remedy: {message[:200]}"]
    names = json.JSONDecoder().raw_decode(rest)[0]
    problems = []
    try:
        named = load(class_names=names)
        if (len(named.class_names), len(named.labels)) != (labels.num_named, ROWS):
            problems.append(f"{len(named.class_names)} classes of {len(named.labels)} rows with class_names {names}")
        if "`drop_missing`" in message and len(load(drop_missing=True).labels) != labels.num_kept:
            problems.append("other rows with drop_missing")
    except DataError as error:
        problems.append(f"a remedy that fails: {str(error)[:200]}")
    return problems


def labels(budget: Budget) -> Tally:
    """Load all labels from all sources."""
    tally = Tally("labels")
    made = make_labels()
    names = list(made)[: max(1, budget.number)]
    for position in Budget(len(names), seconds=budget.seconds):
        tried = made[names[position]]
        with tempfile.TemporaryDirectory() as name:
            forget()
            for source, load in sources(Path(name), tried.values).items():
                tally.add(f"{names[position]} from {source}", examine(load, tried), refused=bool(tried.num_named))
        try:
            own = [f"the classes {_load_own(tried.values).class_names}"] if tried.num_named else []
            tally.add(f"{names[position]} from an own source", own)
        except DataError as error:
            tally.add(f"{names[position]} from an own source", [] if tried.num_named else [str(error)], refused=True)
    forget()
    return tally
