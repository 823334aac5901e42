"""The data source `files` on folders that `save_to_disk` of `datasets` writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import peekbench as pb
from peekbench.data.loading import fingerprint
from peekbench.errors import DataError
from peekbench.records.data import Folders
from peekbench_files.options import FileOptions
from peekbench_files.source import load


def save_to_disk(folder: Path, columns: Mapping[str, Sequence[Any]], names: Sequence[str], num_shards: int = 2) -> None:
    """Write a data set in the layout of `datasets.Dataset.save_to_disk`."""
    folder.mkdir(parents=True)
    table = pa.table(dict(columns))
    files = [f"data-{shard:05}-of-{num_shards:05}.arrow" for shard in range(num_shards)]
    size = -(-len(table) // num_shards)
    for shard, file in enumerate(files):
        with pa.OSFile(str(folder / file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(shard * size, size))
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": file} for file in files]}))
    features = {"label": {"names": names, "_type": "ClassLabel"}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))


ROWS: dict[str, Any] = {"text": [*"abcdefgh"], "label": [0, 1, 1, 0] * 2, "id": [*range(8)]}


def test_saved_data_sets_of_hugging_face_are_read(tmp_path: Path) -> None:
    save_to_disk(tmp_path / "saved", ROWS, ["bug", "question"])
    saved = load(options=FileOptions(path=tmp_path / "saved"), folders=Folders(tmp_path, tmp_path))
    assert (saved.inputs, saved.labels, saved.class_names) == ((*"abcdefgh",), (0, 1, 1, 0) * 2, ("bug", "question"))
    for split in ("train", "test"):
        save_to_disk(tmp_path / "dict" / split, ROWS, ["bug", "question"], num_shards=1)
    (tmp_path / "dict" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    both = load(options=FileOptions(path=tmp_path / "dict"), folders=Folders(tmp_path, tmp_path))
    assert (len(both.inputs), both.splits) == (16, ("train",) * 8 + ("test",) * 8)
    save_to_disk(tmp_path / "dict" / "dev", {**ROWS, "label": [-1] * 8}, ["bug", "question"], num_shards=1)
    with pytest.raises(DataError, match="the test split are not public: all are '-1'; use .* `test_split` for"):
        load(options=FileOptions(path=tmp_path / "dict", test_split="dev"), folders=Folders(tmp_path, tmp_path))
    with pytest.raises(DataError, match="but train and train are needed; set `test_split`"):
        load(options=FileOptions(path=tmp_path / "dict", test_split="train"), folders=Folders(tmp_path, tmp_path))
    with pytest.raises(DataError, match="`test_split` is 'dev', but this is no folder of a DatasetDict"):
        load(options=FileOptions(path=tmp_path / "saved", test_split="dev"), folders=Folders(tmp_path, tmp_path))
    (tmp_path / "dict" / "train").rename(tmp_path / "dict" / "train_clean")
    with pytest.raises(DataError, match="its splits are dev, test, train_clean, but train and test are needed"):
        load(options=FileOptions(path=tmp_path / "dict"), folders=Folders(tmp_path, tmp_path))
    typed = FileOptions(path=tmp_path / "dict" / "train_clean", test_path=tmp_path / "dict" / "test")
    assert load(options=typed, folders=Folders(tmp_path, tmp_path)).splits == both.splits
    run = pb.measure(lambda train, task: lambda texts: np.full((len(texts), 2), 0.5), tmp_path / "saved",
                     design={"num_train": 2, "num_test": 1, "num_subsamples": 1}, progress=False)  # fmt: skip
    assert (run.spec.tasks[0].name, run.spec.tasks[0].use, run.failed) == ("saved", "files", 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "state.json").unlink(), "is not a folder that `save_to_disk`"),
        (lambda folder: (folder / "state.json").write_text('{"_data_files": []}'), "has no rows"),
        (lambda folder: (folder / "data-00000-of-00002.arrow").write_bytes(b"no stream"), "is not a folder that"),
        (lambda folder: (folder / "dataset_dict.json").write_text("{}"), "splits are missing, but train and test"),
    ],
)
def test_unsuitable_folders_are_refused(change: Callable[[Path], Any], message: str, tmp_path: Path) -> None:
    save_to_disk(tmp_path / "saved", ROWS, ["bug", "question"])
    change(tmp_path / "saved")
    with pytest.raises(DataError, match=message):
        load(options=FileOptions(path=tmp_path / "saved"), folders=Folders(tmp_path, tmp_path))


def test_groups_are_a_column_of_every_format(tmp_path: Path) -> None:
    columns = {"text": [*"abcd"], "label": [0, 1, 0, 1], "patient": [7, 7, 8, 9]}
    rows = pd.DataFrame(columns)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    rows.to_parquet(tmp_path / "rows.parquet")
    save_to_disk(tmp_path / "saved", columns, ["bug", "question"])
    found = set()
    for name in ("rows.csv", "rows.jsonl", "rows.parquet", "saved"):
        options = FileOptions.model_validate({"path": name, "group": "patient", "class_names": ["bug", "question"]})
        dataset = load(options=options, folders=Folders(tmp_path, tmp_path))
        assert (dataset.groups, dataset.labels) == (("7", "7", "8", "9"), (0, 1, 0, 1))
        found.add(fingerprint(dataset))
    assert len(found) == 1
    alone = FileOptions.model_validate({"path": "rows.csv", "group": "patient", "label": None})
    assert load(options=alone, folders=Folders(tmp_path, tmp_path)).groups == ("7", "7", "8", "9")
