"""Descriptions of the texts of tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peekbench.data.loading import remember
from peekbench.data.text_statistics import describe_texts, is_described
from peekbench.records.data import Dataset
from peekbench.report import text_tables
from peekbench.spec.experiment import ExperimentSpec

MakeSpec = Callable[..., ExperimentSpec]
DESIGN = {"num_train": 20, "num_test": 60, "num_subsamples": 3}
WORDS = ("harbour", "lantern", "meadow", "quarry", "thimble", "willow", "cinder", "barley", "falcon", "granite")


def text(number: int) -> str:
    """Return a text that differs from the texts of all other numbers."""
    digits = f"{number:04}"
    return " ".join(f"{WORDS[int(digit)]}{place}" for place, digit in enumerate(digits * 3))


def describe(make_spec: MakeSpec, texts: list[str], **parts: Any) -> dict[str, Any]:
    spec = make_spec(**{"tasks": ["toy.words"], "design": DESIGN, **parts})
    labels = [row % 2 for row in range(len(texts))]
    remember(spec.source(spec.tasks[0]), Dataset(texts, labels, ("a", "b")))
    return describe_texts(spec, spec.tasks[0])


def test_distinct_texts_do_not_overlap(make_spec: MakeSpec) -> None:
    described = describe(make_spec, [text(row) for row in range(400)])
    assert set(described["overlap"]["near"].values()) == {0.0}
    assert described["num_subsamples"] == 3
    assert described["classes"] == {"a": 200, "b": 200}
    assert 140 < described["num_texts"] <= 3 * 140


@pytest.mark.parametrize(
    ("change", "exact", "num_extra"),
    [
        (lambda row: text(row), True, 60),
        (lambda row: text(row), True, 100),
        (lambda row: f"{text(row).upper()}!", False, 60),
    ],
)
def test_the_overlap_of_sets_equals_the_expected_share_of_duplicates(
    change: Callable[[int], str], exact: bool, num_extra: int, make_spec: MakeSpec
) -> None:
    """Each of 200 rows has one duplicate, so a test row's duplicate is in the extra set with probability 60 / 199."""
    texts = [text(row) for row in range(100)] + [change(row) for row in range(100)]
    described = describe(make_spec, texts, design={**DESIGN, "num_unlabeled": num_extra})
    near = described["overlap"]["near"]
    assert described["num_extra"] == num_extra
    assert near["test-extra"] == pytest.approx(num_extra / 199, abs=0.1)
    assert near["test-test"] == pytest.approx(59 / 199, abs=0.1)
    assert near["test-train"] == pytest.approx(20 / 199, abs=0.07)
    assert near["extra-train"] == pytest.approx(20 / 199, abs=0.07)
    assert near["train-train"] == pytest.approx(19 / 199, abs=0.1)
    assert (described["overlap"]["exact"] == near) is exact
    assert any(described["overlap"]["exact"].values()) is exact


def test_tokens_are_counted_for_methods_that_support_it(make_spec: MakeSpec) -> None:
    described = describe(make_spec, [text(row) for row in range(400)], methods=["toy.vote", "toy.short"])
    counted = described["tokens"]
    assert set(counted) == {"toy.short"}
    assert counted["toy.short"]["50"] == 12
    assert counted["toy.short"]["limit"] == 10
    assert counted["toy.short"]["cut"] == 1.0
    tables = {table.title: table for table in text_tables({"toy.words": described})}
    assert list(tables) == ["Classes", "Text length in characters", "Text length in tokens"]
    assert "These texts have no duplicates." in tables["Text length in characters"].note


def test_a_description_is_complete_if_it_contains_every_method_that_counts_tokens(make_spec: MakeSpec) -> None:
    described = describe(make_spec, [text(row) for row in range(400)])
    assert not is_described(make_spec(), None)
    assert is_described(make_spec(), described)
    assert not is_described(make_spec(methods=["toy.short"]), described)
    assert is_described(make_spec(methods=["toy.short"]), {}), "a task without texts has an empty description"


def test_tasks_without_texts_are_not_described(make_spec: MakeSpec) -> None:
    spec = make_spec(tasks=["toy.numbers"], methods=["toy.mean"], design=DESIGN)
    assert describe_texts(spec, spec.tasks[0]) == {}
    assert text_tables({"toy.numbers": {}}) == []


def test_a_run_stores_and_reports_the_descriptions(make_spec: MakeSpec) -> None:
    from peekbench.execution.runner import run
    from peekbench.report import report_of_run
    from peekbench.store.reader import Store

    spec = make_spec()
    summary = run(spec)
    with Store.open(summary.store) as store:
        stored = store.texts()
    assert stored == {task.name: describe_texts(spec, task) for task in spec.tasks}
    report = report_of_run(summary.store)
    assert "Text length in characters" in [table.title for table in report.tables]
    assert report.details["texts"] == stored
    run(make_spec(methods=[*(method.use for method in spec.methods), "toy.short"]))
    with Store.open(summary.store) as store:
        assert all("toy.short" in texts["tokens"] for texts in store.texts().values())
    assert Path("runs").is_dir()


def test_texts_that_occur_in_several_rows_are_named_with_their_rows(make_spec: MakeSpec) -> None:
    texts = [text(row) for row in range(400)]
    texts[7], texts[9] = texts[3], texts[4]  # rows 3 and 7 have equal labels, as have 4 and 9
    texts[10] = texts[3]
    described = describe(make_spec, texts)
    assert described["repeated"] == {"texts": 2, "rows": 5, "conflicting": 2, "examples": [[3, 7], [4, 9]]}
    table = text_tables({"toy.words": described})[-1]
    assert table.title == "Equal texts in the whole data"
    assert table.rows == (("toy.words", 2, 5, 2, "3 and 7; 4 and 9"),)
    without = [
        table.title for table in text_tables({"toy.words": describe(make_spec, [text(row) for row in range(400)])})
    ]
    assert "Equal texts in the whole data" not in without
