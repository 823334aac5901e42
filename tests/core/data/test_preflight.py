"""Warnings about data that make the results of a design doubtful."""

from __future__ import annotations

import re
from collections import UserList
from typing import Any

import pytest

from peekbench.data.loading import remember
from peekbench.data.preflight import (
    warn_of_classes,
    warn_of_design,
    warn_of_texts,
)
from peekbench.records.data import Dataset
from peekbench.spec.design import Design


def design(**parts: Any) -> Design:
    return Design.model_validate({"num_train": 20, "num_test": 50, "num_subsamples": 10, **parts})


def facts(*counts: int, **parts: Any) -> dict[str, Any]:
    return {
        "kind": "classification",
        "rows": sum(counts),
        "class_names": list("abcdefgh")[: len(counts)],
        "class_counts": list(counts),
        "splits": {},
        **parts,
    }


def warnings(task: dict[str, Any], **parts: Any) -> list[str]:
    return list(warn_of_design({"news": design(**parts)}, {"news": task}))


def test_a_design_that_fits_its_data_has_no_warning() -> None:
    assert warnings(facts(500, 500)) == []
    assert warnings(facts(900, 100), train="natural") == []
    assert warnings({**facts(), "rows": 1000}) == [], "a regression task"


@pytest.mark.parametrize(
    ("task", "parts", "message"),
    [
        (facts(70, 70), {"num_subsamples": 100}, "each row is tested about 71 times in news.*summary.texts"),
        (
            facts(500, 500, splits={"test": {"rows": 120, "class_counts": [60, 60]}}),
            {"num_subsamples": 100},
            "each row is tested about 83 times in news",
        ),
        (facts(500, 500), {"num_subsamples": 1}, "A single subsample .*increase num_subsamples"),
    ],
)
def test_each_warning_names_the_task_the_number_and_the_remedy(
    task: dict[str, Any], parts: dict[str, Any], message: str
) -> None:
    (warning,) = warnings(task, **parts)
    assert re.search(message, warning), warning


def test_frequent_classes_are_doubtful_for_balanced_train_sets() -> None:
    tasks = {"spam": facts(940, 60), "split": facts(500, 500, splits={"test": {"rows": 9, "class_counts": [8, 1]}})}
    (warning,) = warn_of_classes({name: design() for name in tasks}, tasks)
    assert "94% in spam, 89% in split. Train sets are balanced" in warning
    assert list(warn_of_classes({name: design(train="natural") for name in tasks}, tasks)) == []


def test_empty_texts_are_found_in_sequences_of_any_type(make_spec: Any) -> None:
    spec = make_spec()
    texts = [f"text {row % 20}" for row in range(30)] + [" "]
    for task in spec.tasks:
        remember(spec.source(task), Dataset(UserList(texts), [row % 2 for row in range(31)], ("a", "b")))
    (warning,) = warn_of_texts(spec)
    assert f"Texts are empty: 1 in {spec.tasks[0].name}" in warning
    assert "row 30" in warning
