"""The data source `files` on prompts with references."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import pandas as pd
import pytest

from peekbench import load_dataset
from peekbench.data.loading import fingerprint
from peekbench.errors import DataError, SpecError

COLUMNS = {"text": "question", "label": "answer", "kind": "generation"}


def write(path: Path, answers: list[Any]) -> dict[str, Any]:
    lines = [json.dumps({"question": f"prompt {row}", "answer": answer}) for row, answer in enumerate(answers)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return {"path": str(path), **COLUMNS}


def test_references_can_be_numbers_and_lists(tmp_path: Path) -> None:
    options = write(tmp_path / "rows.jsonl", [42, 0.5, ["4", None, "four", 4.25, ""], "none"])
    dataset = load_dataset("files", options)
    assert dataset.labels == ("42", "0.5", ("4", "four", "4.25"), "none")
    other = load_dataset("files", write(tmp_path / "other.jsonl", [42, 0.5, ["4", "four", 4.5], "none"]))
    assert fingerprint(dataset) != fingerprint(other)


def test_missing_and_unsuitable_references_are_refused(tmp_path: Path) -> None:
    options = write(tmp_path / "rows.jsonl", ["1", None, "3", "4"])
    with pytest.raises(DataError, match=r"line 2: no reference; .*`drop_missing`"):
        load_dataset("files", options)
    assert load_dataset("files", {**options, "drop_missing": True}).labels == ("1", "3", "4")
    with pytest.raises(DataError, match="row 1: no reference"):
        load_dataset("files", write(tmp_path / "missing.jsonl", [[None]]))
    for answer, name in (({"value": 1}, "dict"), ([["4"]], "list")):
        with pytest.raises(DataError, match=f"column 'answer', .*row 1: .* is {name}, but a reference is text or a"):
            load_dataset("files", write(tmp_path / "nested.jsonl", [answer]))
    for changed in ({"label": None}, {"class_names": ["a", "b"]}, {"label_separator": ";"}):
        with pytest.raises(SpecError, match="kind is generation"):
            load_dataset("files", {**options, **changed})


def test_prompts_of_one_template_are_no_near_duplicates(tmp_path: Path) -> None:
    lines = [(f"Tom has {row} apples and buys 8. How many has he?", row + 8) for row in range(20)]
    lines += [
        ("TOM has 3 apples and buys 8.  How many has he?", 11),
        ("Tim has 4 apples and buys 8. How many has he?", 1),
    ]
    pd.DataFrame(lines, columns=["question", "answer"]).to_csv(tmp_path / "rows.csv", index=False)
    options = {"path": str(tmp_path / "rows.csv"), "drop_duplicates": "near", **COLUMNS}
    assert load_dataset("files", options).inputs == (*(prompt for prompt, _ in lines[:20]), lines[-1][0])
