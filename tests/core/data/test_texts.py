"""Groups of exact and near duplicates, and descriptions of the texts of tasks."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peekbench.data.loading import remember, with_sizes
from peekbench.data.texts import describe_texts, group_duplicates, is_described, keep_first
from peekbench.records.data import Dataset, Split
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


def test_equal_texts_form_one_group() -> None:
    assert group_duplicates(["a", "b", "a", "A", "b", "a"], "exact").tolist() == [0, 1, 0, 3, 1, 0]


def test_near_duplicates_ignore_case_and_white_space() -> None:
    assert group_duplicates(["Good  day", "bad day", "good day\n", "", " "], "near").tolist() == [0, 1, 0, 3, 3]


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


def test_prompts_of_one_template_are_different_unless_numbers_and_references_agree(make_spec: MakeSpec) -> None:
    template = "Tom has some apples and buys more of them. How many of them are there if he has {} and buys {}?"
    prompts = [template.format(row // 20, row % 20) for row in range(400)]
    spec = make_spec(tasks=["toy.words"], design=DESIGN)
    references = [str(row // 20 + row % 20) for row in range(400)]
    remember(spec.source(spec.tasks[0]), Dataset(prompts, references, kind="generation"))
    assert not any(describe_texts(spec, spec.tasks[0])["overlap"]["near"].values())
    same = [template.format(3, 4), template.format(3, 4).upper(), template.format(3, 4).replace("Tom", "Tim")]
    assert group_duplicates([*same, template.format(4, 3)], "near", [7, 7, 7, 7]).tolist() == [0, 0, 0, 3]
    assert group_duplicates([same[0], same[2]], "near", [7, 8]).tolist() == [0, 1]


def test_near_duplicates_of_test_prompts_are_found_in_private_extra_prompts(make_spec: MakeSpec) -> None:
    """These have no references."""
    prompts = [text(row) for row in range(60)]
    splits: list[Split] = ["train"] * 40
    splits += ["test"] * 20
    spec = make_spec(tasks=["toy.words"], design="official")
    extra = [f"{prompt.upper()}!" for prompt in prompts[40:]]
    remember(
        spec.source(spec.tasks[0]), Dataset(prompts, list("ab") * 30, kind="generation", splits=splits, extra=extra)
    )
    spec = with_sizes(spec)
    assert describe_texts(spec, spec.tasks[0])["overlap"]["near"]["test-extra"] > 0.1


def test_a_fold_is_compared_with_the_texts_that_its_fit_adapts_to(make_spec: MakeSpec) -> None:
    """Each of 100 test texts has one duplicate, which is in the other 4 of 5 folds with probability 80 / 99."""
    texts = [text(row) for row in range(40)] + [text(40 + row // 2) for row in range(100)]
    spec = make_spec(tasks=["toy.words"], design="official")
    splits: list[Split] = ["train"] * 40
    splits += ["test"] * 100
    remember(spec.source(spec.tasks[0]), Dataset(texts, [row % 2 for row in range(140)], ("a", "b"), splits=splits))
    spec = with_sizes(spec)
    described = describe_texts(spec, spec.tasks[0])
    assert (described["num_extra"], described["num_test"]) == (80, 20)
    assert described["overlap"]["near"]["test-extra"] == pytest.approx(80 / 99, abs=0.1)
    assert described["overlap"]["near"]["test-train"] == 0


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
