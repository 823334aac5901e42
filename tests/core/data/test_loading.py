"""Loading and checking of datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.data.loading import fingerprint, hash_rows, load_dataset, make_task, remember
from peekbench.errors import ContractError, DataError, PluginError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import DataSourceEntry
from peekbench.records.data import Dataset, SourceRef, Split

TEXTS = ["one", "two", "three", "four"]


def serve(monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any]) -> None:
    """Replace the callable of `toy.words`."""
    find = registry.find

    def find_replaced(use: str, entry_type: Any) -> Any:
        entry: Any = find(use, entry_type)
        return replace(entry, load=load) if isinstance(entry, DataSourceEntry) else entry

    monkeypatch.setattr(registry, "find", find_replaced)


def test_rows_are_loaded_once_for_the_same_options(tmp_path: Path) -> None:
    dataset = load_dataset("toy.words", {"num_rows": 40}, folder=tmp_path)
    assert load_dataset(SourceRef("toy.words", {"num_rows": 40}, tmp_path)) is dataset
    assert load_dataset("toy.words", {"num_rows": 41}, folder=tmp_path) is not dataset


def test_wrong_options_are_named_as_in_a_spec(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"toy.words is invalid:\n  options.num_row: no such option; did you mean num_rows"
    ):
        load_dataset("toy.words", {"num_row": 40}, folder=tmp_path)


def test_remembered_rows_replace_a_source(tmp_path: Path) -> None:
    dataset = Dataset(TEXTS, [0, 1, 0, 1], ("a", "b"))
    remember(SourceRef("missing.source", {}, tmp_path), dataset)
    assert load_dataset("missing.source", folder=tmp_path) is dataset


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (Dataset(TEXTS, [0, 1], ("a", "b")), "4 inputs but 2 labels"),
        (Dataset(TEXTS, [0, 1, 0, 1], ("a", "b"), groups=[1, 2]), "2 groups such as 1 for 4 rows"),
        (Dataset(TEXTS, [0, 1, 0, 1], ("a", "b"), groups=["x"] * 4), "all rows are of the group 'x'"),
        (
            Dataset(TEXTS, [0, 1, 0, 1], ("a", "b"), splits=["train", "test"] * 2, groups=["x", "x", "y", "z"]),
            "both official splits have rows of 1 group, such as 'x', .*; drop those of the train split",
        ),
        (Dataset(TEXTS, [0, 1, 2, 1], ("a", "b")), r"label 2 is outside 0\.\.1"),
        (Dataset(TEXTS, [0, 1, 0, 1], ("a", "?")), r"2 rows of the class '\?', which stands for a missing label; drop"),
        (Dataset(TEXTS, [0, 1, 0, 1], ("neg ", "Neg")), 'the labels "neg " and "Neg" differ only by case, spaces'),
        (
            Dataset(np.zeros((2, 1)), np.array([0.5, np.nan]), kind="regression"),
            "the target of row 1 is not a finite number",
        ),
        (Dataset("four", [0, 1, 0, 1], ("a", "b")), "inputs are a str; give a list of texts"),
        (Dataset([*TEXTS[:3], None], [0, 1, 0, 1], ("a", "b")), "the input of row 3 is None, not a text"),  # type: ignore[list-item]
        (Dataset(TEXTS, [0, 1, 0, 1], ("a", "a")), r"the class names \['a', 'a'\] are not distinct"),
        (Dataset(TEXTS, [0, 1, 0, 1], ("a", "b"), splits=["train"] * 4), r"splits are .*both at least once"),
        (Dataset([], [], ("a", "b")), "it has no rows"),
        (Dataset(TEXTS, [0, 0, 0, 0], ("a",)), "1 class; classification needs two or more"),
    ],
)
def test_malformed_rows_are_refused(
    dataset: Dataset, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, lambda *, options, folders: dataset)
    with pytest.raises(DataError, match=f"toy.words: {message}"):
        load_dataset("toy.words", folder=tmp_path)


def test_errors_of_a_data_source_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*, options: Any, folders: Any) -> Any:
        raise KeyError("column")

    def unreadable(*, options: Any, folders: Any) -> Any:
        raise FileNotFoundError(2, "No such file", "rows.csv")

    serve(monkeypatch, broken)
    with pytest.raises(
        PluginError, match=r"toy\.words: KeyError: 'column' \(.*test_loading\.py, line \d+, in broken\)"
    ):
        load_dataset("toy.words", folder=tmp_path)
    serve(monkeypatch, unreadable)
    with pytest.raises(DataError, match="rows.csv"):
        load_dataset("toy.words", folder=tmp_path)
    serve(monkeypatch, lambda *, options, folders: [1, 2])
    with pytest.raises(ContractError, match="toy.words returned a list; return peekbench.Dataset"):
        load_dataset("toy.words", folder=tmp_path)


def test_fingerprints_depend_on_every_part_of_the_rows() -> None:
    base = (TEXTS, [0, 1, 0, 1], ("a", "b"))
    hashes = {
        hash_rows(*base),
        hash_rows(TEXTS[::-1], [0, 1, 0, 1], ("a", "b")),
        hash_rows(TEXTS, [1, 1, 0, 1], ("a", "b")),
        hash_rows(TEXTS, [0, 1, 0, 1], ("a", "c")),
        hash_rows(["onet", "wo", "three", "four"], [0, 1, 0, 1], ("a", "b")),
        hash_rows(np.zeros((4, 2)), np.zeros(4)),
        hash_rows(np.zeros((2, 4)), np.zeros(2)),
    }
    assert len(hashes) == 7
    assert hash_rows(*base) == fingerprint(Dataset(*base))
    assert fingerprint(replace(Dataset(*base), fingerprint="own")) == "own"
    splits: list[list[Split]] = [["train", "test", "test", "test"], ["train", "train", "test", "test"]]
    assert len({fingerprint(replace(Dataset(*base), splits=places)) for places in splits} | hashes) == 9


def test_the_label_of_a_text_is_its_number_of_bytes(tmp_path: Path) -> None:
    labeled = load_dataset("toy.words", folder=tmp_path)
    dataset = load_dataset("toy.words", folder=tmp_path, kind="language_modeling")
    assert dataset.inputs == labeled.inputs
    assert dataset.labels == tuple(len(text.encode()) for text in labeled.inputs)
    assert (dataset.class_names, dataset.instruction) == ((), "")
    assert fingerprint(dataset) != fingerprint(labeled)
    with pytest.raises(DataError, match="toy.numbers: its inputs are not texts"):
        load_dataset("toy.numbers", folder=tmp_path, kind="language_modeling")


def test_the_data_of_a_task_can_be_loaded_again(make_spec: Callable[..., Any]) -> None:
    spec = make_spec()
    task = make_task(spec, spec.tasks[1])
    assert (task.name, task.num_classes) == ("b", 3)
    assert load_dataset(task.source) is load_dataset(spec.source(spec.tasks[1]))
    assert load_dataset(task.source).inputs != load_dataset(spec.source(spec.tasks[0])).inputs
