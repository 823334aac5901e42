"""Groups of exact and near duplicates, and descriptions of the texts of tasks."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.data.loading import remember
from peekbench.data.texts import Likeness, describe_texts, group_duplicates, is_described, keep_first
from peekbench.records.data import Dataset
from peekbench.report import text_tables
from peekbench.spec.experiment import ExperimentSpec

WORDS = [f"{a}{b}" for a in ("bor", "tel", "vin", "sa", "kup", "dre") for b in ("an", "ost", "ek", "ila", "uf")]


def sentence(rng: random.Random, length: int = 40) -> list[str]:
    return [rng.choice(WORDS) for _ in range(length)]


def similarities(texts: list[str]) -> dict[tuple[int, int], float]:
    """Return the Jaccard similarities of five-character substrings of all pairs, computed from the definition."""
    substrings = [{text[start : start + 5] for start in range(len(text) - 4)} for text in texts]
    pairs = combinations(range(len(texts)), 2)
    return {(a, b): len(substrings[a] & substrings[b]) / len(substrings[a] | substrings[b]) for a, b in pairs}


@pytest.mark.parametrize("likeness", ["exact", "near"])
def test_texts_that_are_equal_after_normalization_form_one_group(likeness: Likeness) -> None:
    texts = ["Yes", "no", "yes.", "caf\u00e9", "", "cafe\u0301", " ", "Good  day", "good day\n"]
    assert group_duplicates(texts, likeness).tolist() == [0, 1, 0, 3, 4, 3, 4, 7, 7]


@pytest.mark.parametrize("seed", range(3))
def test_near_duplicates_equal_those_of_a_search_over_all_pairs(seed: int) -> None:
    rng = random.Random(seed)
    texts = []
    for _ in range(60):
        words = sentence(rng)
        texts.append(" ".join(words))
        for _ in range(2):  # some end up above the threshold, some below
            for position in rng.sample(range(len(words)), 2):
                words[position] = rng.choice(WORDS)
            texts.append(" ".join(words))
    rng.shuffle(texts)
    expected = np.arange(len(texts))
    similar = [pair for pair, similarity in similarities(texts).items() if similarity >= 0.8]
    for later, earlier in sorted((later, earlier) for earlier, later in similar):
        merged = sorted({expected[later], expected[earlier]})
        expected[expected == merged[-1]] = merged[0]
    groups = group_duplicates(texts, "near")
    assert len(set(expected.tolist())) < len(texts) - 30, "the texts contain near duplicates"
    np.testing.assert_array_equal(groups, expected)
    np.testing.assert_array_equal(groups, group_duplicates(texts, "near"), "the search is deterministic")


def test_near_prompts_have_equal_numbers_and_references() -> None:
    prompt = "Tom has some apples and buys more of them. How many of them are there if he has 3 and buys 4?"
    same = [prompt, prompt.upper(), prompt.replace("Tom", "Tim")]
    other = prompt.replace("3 and buys 4", "4 and buys 3")
    assert group_duplicates([*same, other], "near", [7, 7, 7, 7]).tolist() == [0, 0, 0, 3]
    assert group_duplicates([same[0], same[2]], "near", [7, 8]).tolist() == [0, 1]


def test_many_copies_of_one_text_are_grouped_quickly() -> None:
    groups = group_duplicates(["The same text, again and again."] * 50_000, "near")
    assert not groups.any()


def test_the_first_row_of_a_group_is_kept_unless_its_labels_differ() -> None:
    groups = np.array([0, 1, 0, 3, 1, 0, 6])
    labels = np.array([5, 5, 5, 4, 6, 5, 4])
    assert keep_first(groups, labels).tolist() == [True, False, False, True, False, False, True]


MakeSpec = Callable[..., ExperimentSpec]
DESIGN = {"num_train": 20, "num_test": 60, "num_subsamples": 3}
NOUNS = ("harbour", "lantern", "meadow", "quarry", "thimble", "willow", "cinder", "barley", "falcon", "granite")


def text(number: int) -> str:
    """Return a text that differs from the texts of all other numbers."""
    digits = f"{number:04}"
    return " ".join(f"{NOUNS[int(digit)]}{place}" for place, digit in enumerate(digits * 3))


def describe(make_spec: MakeSpec, texts: list[str], **parts: Any) -> dict[str, Any]:
    spec = make_spec(**{"tasks": ["toy.words"], "design": DESIGN, **parts})
    labels = [row % 2 for row in range(len(texts))]
    remember(spec.source(spec.tasks[0]), Dataset(texts, labels, ("a", "b")))
    return describe_texts(spec, spec.tasks[0])


def test_texts_are_described_as_the_design_draws_them(make_spec: MakeSpec) -> None:
    described = describe(make_spec, [text(row) for row in range(400)])
    assert described["num_subsamples"] == 3
    assert described["classes"] == {"a": 200, "b": 200}
    assert 140 < described["num_texts"] <= 3 * 140


def test_tokens_are_counted_for_methods_that_support_it(make_spec: MakeSpec) -> None:
    described = describe(make_spec, [text(row) for row in range(400)], methods=["toy.vote", "toy.short"])
    counted = described["tokens"]
    assert set(counted) == {"toy.short"}
    assert counted["toy.short"]["50"] == 12
    assert counted["toy.short"]["limit"] == 10
    assert counted["toy.short"]["cut"] == 1.0
    tables = [table.title for table in text_tables({"toy.words": described})]
    assert tables == ["Classes", "Text length in characters", "Text length in tokens"]


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
