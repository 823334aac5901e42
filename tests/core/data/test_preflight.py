"""Warnings about data that make the results of a design doubtful."""

from __future__ import annotations

import random
import re
from collections import UserList
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from peekbench.data.loading import remember
from peekbench.data.preflight import (
    expected_overlap,
    warn_of_classes,
    warn_of_design,
    warn_of_texts,
)
from peekbench.data.sampling import Sampler
from peekbench.records.data import Dataset
from peekbench.records.trials import Draw
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


def warnings(task: dict[str, Any], overlap: float = 0.0, **parts: Any) -> list[str]:
    return list(warn_of_design({"news": design(**parts)}, {"news": task}, {"news": overlap}))


def test_a_design_that_fits_its_data_has_no_warning() -> None:
    assert warnings(facts(500, 500), overlap=0.04) == []
    assert warnings(facts(900, 100), train="natural") == []
    assert warnings({**facts(), "rows": 1000}) == [], "a regression task"


@pytest.mark.parametrize(
    ("task", "overlap", "parts", "message"),
    [
        (facts(500, 500), 0.27, {}, "Test texts are also extra texts: 27% in news. .*`drop_duplicates` to near"),
        (facts(70, 70), 0.0, {"num_subsamples": 100}, "each row is tested about 71 times in news.*summary.texts"),
        (
            facts(500, 500, splits={"test": {"rows": 120, "class_counts": [60, 60]}}),
            0.0,
            {"num_subsamples": 100},
            "each row is tested about 83 times in news",
        ),
        (facts(500, 500), 0.0, {"num_subsamples": 1}, "A single subsample .*increase num_subsamples"),
    ],
)
def test_each_warning_names_the_task_the_number_and_the_remedy(
    task: dict[str, Any], overlap: float, parts: dict[str, Any], message: str
) -> None:
    (warning,) = warnings(task, overlap, **parts)
    assert re.search(message, warning), warning


def test_one_warning_lists_the_worst_tasks_and_counts_the_others() -> None:
    names = ["a", "b", "c", "d", "e"]
    overlaps = dict(zip(names, (0.06, 0.3, 0.1, 0.2, 0.01), strict=True))
    (warning,) = warn_of_design(dict.fromkeys(names, design()), dict.fromkeys(names, facts(500, 500)), overlaps)
    assert "30% in b, 20% in d, 10% in c and 1 more task." in warning


def test_frequent_classes_are_doubtful_for_balanced_train_sets() -> None:
    tasks = {"spam": facts(940, 60), "split": facts(500, 500, splits={"test": {"rows": 9, "class_counts": [8, 1]}})}
    (warning,) = warn_of_classes({name: design() for name in tasks}, tasks)
    assert "94% in spam, 89% in split. Train sets are balanced" in warning
    assert list(warn_of_classes({name: design(train="natural") for name in tasks}, tasks)) == []


def test_the_expected_overlap_is_that_of_draws() -> None:
    rng = random.Random(0)
    texts = [f"text {rng.randrange(150)}" for _ in range(300)]
    dataset = Dataset(texts, [row % 2 for row in range(300)], ("a", "b"))
    sampler = Sampler(dataset, design(num_train=2, num_test=80), 0, "task")
    shares = []
    for subsample in range(200):
        drawn = sampler.draw(Draw("task", 2, 80, subsample))
        extra = {texts[row] for row in drawn.extra.tolist()}
        shares.append(np.mean([texts[row] in extra for row in drawn.test.tolist()]))
    assert expected_overlap(dataset, 80) == pytest.approx(np.mean(shares), abs=0.01)
    first = {text: row for row, text in reversed([*enumerate(dataset.inputs)])}
    together = replace(dataset, groups=[first[text] for text in dataset.inputs])
    assert expected_overlap(together, 80) == 0.0, "copies are of the same group"
    assert expected_overlap(Dataset(np.zeros((4, 1)), np.zeros(4), kind="regression"), 1) == 0.0


def test_empty_texts_are_found_in_sequences_of_any_type(make_spec: Any) -> None:
    spec = make_spec()
    texts = [f"text {row % 20}" for row in range(30)] + [" "]
    for task in spec.tasks:
        remember(spec.source(task), Dataset(UserList(texts), [row % 2 for row in range(31)], ("a", "b")))
    (warning,) = warn_of_texts(spec)
    assert f"Texts are empty: 1 in {spec.tasks[0].name}" in warning
    assert "row 30" in warning
