"""Warnings about data that make the results of a design doubtful."""

from __future__ import annotations

import re
from typing import Any

import pytest

from peekbench.data.preflight import warn_of_design
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
            "each row is tested about 83 times in news.*drawn from the official test split of news, so",
        ),
        (facts(500, 500), {"num_subsamples": 1}, "A single subsample .*increase num_subsamples"),
    ],
)
def test_each_warning_names_the_task_the_number_and_the_remedy(
    task: dict[str, Any], parts: dict[str, Any], message: str
) -> None:
    warning = " ".join(warnings(task, **parts))
    assert re.search(message, warning), warning
