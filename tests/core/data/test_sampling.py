"""Drawing of train, extra and test rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from peekbench.data.dataset_checks import check_sizes
from peekbench.data.sampling import Sampler, check_groups, derive_seed
from peekbench.errors import DataError
from peekbench.records.data import Dataset, Split
from peekbench.records.trials import Draw
from peekbench.spec.design import OFFICIAL, Design

SHARES = (0.55, 0.3, 0.1, 0.05)


def make_dataset(num_rows: int = 1000) -> Dataset:
    labels = np.random.default_rng(0).choice(len(SHARES), num_rows, p=SHARES)
    return Dataset([f"text {row}" for row in range(num_rows)], labels, tuple("abcd"))


def design(**parts: Any) -> Design:
    return Design.model_validate({"num_train": [20, 40], "num_test": [50, 200], "num_subsamples": 3, **parts})


def with_splits(num_train: int = 300, num_rows: int = 1000) -> Dataset:
    """The same rows; the first ones are the train split."""
    splits: list[Split] = ["train" if row < num_train else "test" for row in range(num_rows)]
    return replace(make_dataset(num_rows), splits=splits)


def with_groups(dataset: Dataset | None = None, seed: int = 0) -> Dataset:
    """The same rows in 240 groups of unequal sizes; no group is in both official splits."""
    dataset = dataset or make_dataset()
    shares = np.random.default_rng(seed).dirichlet(np.full(240, 0.7))
    groups = np.random.default_rng(seed + 1).choice(240, len(dataset.labels), p=shares)
    return replace(
        dataset, groups=[f"{split} {group}" for split, group in zip(splits_of(dataset), groups, strict=True)]
    )


def splits_of(dataset: Dataset) -> list[str]:
    return list(dataset.splits) or [""] * len(dataset.labels)


def make_sampler(seed: int = 1, task: str = "task", **parts: Any) -> Sampler:
    return Sampler(make_dataset(), design(**parts), seed, task)


def test_sets_are_disjoint_and_of_the_right_size() -> None:
    for num_train in (20, 40):
        for num_test in (50, 200):
            for subsample in range(10):
                drawn = make_sampler().draw(Draw("task", num_train, num_test, subsample))
                rows = np.concatenate([drawn.train, drawn.extra, drawn.test])
                assert len(set(rows.tolist())) == len(rows) == num_train + 2 * num_test
                assert (rows >= 0).all()
                assert (rows < 1000).all()


def test_train_rows_are_stratified_and_test_rows_are_not() -> None:
    sampler = make_sampler()
    labels = sampler.labels
    drawn = sampler.draw(Draw("task", 40, 200, 0))
    assert Counter(labels[drawn.train].tolist()) == dict.fromkeys(range(4), 10)
    assert Counter(labels[drawn.test].tolist())[0] > 80


def test_balanced_draws_are_those_of_earlier_versions() -> None:
    drawn = make_sampler().draw(Draw("task", 20, 50, 1))
    assert drawn.train[:8].tolist() == [458, 347, 877, 790, 757, 963, 763, 910]
    assert drawn.extra[:4].tolist() == [712, 979, 983, 48]
    assert drawn.test[:4].tolist() == [223, 918, 329, 391]


def test_natural_train_sets_are_the_first_rows_unless_a_class_is_absent() -> None:
    dataset = Dataset([str(row) for row in range(105)], [0] * 100 + [1] * 5, ("common", "rare"))
    sampler = Sampler(dataset, design(num_train=[10, 20], num_test=20, train="natural"), 0, "rare")
    num_without_rare = 0
    for subsample in range(40):
        small, large = (sampler.draw(Draw("rare", size, 20, subsample)) for size in (10, 20))
        assert large.train[:10].tolist() == small.train.tolist()
        assert len({*large.train.tolist(), *large.extra.tolist(), *large.test.tolist()}) == 60
        order = np.random.default_rng(derive_seed(0, "rare", subsample, bits=128)).permutation(105)
        expected = set(order[:10].tolist())
        if max(expected) < 100:
            num_without_rare += 1
            (rare,) = set(small.train.tolist()) - expected
            assert rare == next(row for row in order.tolist() if row >= 100)
        else:
            assert set(small.train.tolist()) == expected
    assert 10 < num_without_rare < 38, "both cases occur"


def test_official_splits_are_kept_apart() -> None:
    for train in ("balanced", "natural"):
        sampler = Sampler(with_splits(), design(train=train), 1, "task")
        for subsample in range(10):
            drawn = sampler.draw(Draw("task", 40, 200, subsample))
            assert drawn.train.max() < 300 <= min(drawn.extra.min(), drawn.test.min())
            assert len({*drawn.train.tolist(), *drawn.extra.tolist(), *drawn.test.tolist()}) == 440
            small = sampler.draw(Draw("task", 20, 50, subsample))
            assert small.train.tolist() == drawn.train[:20].tolist()
            assert small.test.tolist() == drawn.test[:50].tolist()


def test_larger_sets_extend_smaller_ones() -> None:
    sampler = make_sampler()
    for subsample in range(5):
        small, wide, large = (
            sampler.draw(Draw("task", num_train, num_test, subsample))
            for num_train, num_test in ((20, 50), (20, 200), (40, 200))
        )
        assert large.train[:20].tolist() == small.train.tolist()
        assert wide.test[:50].tolist() == small.test.tolist()
        assert wide.extra[:50].tolist() == small.extra.tolist()
        assert large.test.tolist() == wide.test.tolist()
        assert large.extra.tolist() == wide.extra.tolist()


def test_draws_do_not_change_if_test_sizes_or_subsamples_are_added() -> None:
    draw = Draw("task", 20, 50, 2)
    before = make_sampler(num_test=[50], num_subsamples=3).draw(draw)
    after = make_sampler(num_test=[50, 300], num_subsamples=9).draw(draw)
    assert all(np.array_equal(getattr(before, name), getattr(after, name)) for name in ("train", "extra", "test"))


@pytest.mark.parametrize("crossover", [False, 3])
def test_shared_unlabeled_rows_are_nested_and_change_no_set(crossover: Any) -> None:
    for dataset, first in ((make_dataset(), 0), (with_splits(), 300)):
        none, few, many = (
            Sampler(dataset, design(num_test=[50, 100], crossover=crossover, num_unlabeled=number), 1, "task")
            for number in (None, 200, 300)
        )
        for num_test in (50, 100):
            draw = Draw("task", 20, num_test, 1)
            alone, drawn = none.draw(draw), many.draw(draw)
            assert len(alone.shared) == 0
            assert np.array_equal(alone.train, drawn.train)
            assert np.array_equal(alone.sets, drawn.sets)
            assert few.draw(draw).shared.tolist() == drawn.shared[: 200 - num_test].tolist()
            rows = np.concatenate([drawn.train, *drawn.sets, drawn.shared])
            assert len(set(rows.tolist())) == len(rows) == 20 + (crossover or 2) * num_test + 300 - num_test
            assert drawn.shared.min() >= first


@pytest.mark.parametrize("kind", ["classes", "splits", "numbers"])
@pytest.mark.parametrize("train", ["balanced", "natural"])
@pytest.mark.parametrize(("crossover", "num_unlabeled"), [(False, None), (2, 150), (3, None), (5, 60)])
def test_no_group_is_in_two_sets(kind: str, train: str, crossover: Any, num_unlabeled: int | None) -> None:
    plain = {
        "classes": make_dataset(),
        "splits": with_splits(),
        "numbers": Dataset(np.arange(1000.0)[:, None], np.arange(1000.0), kind="regression"),
    }[kind]
    for seed in range(3):
        dataset = with_groups(plain, seed)
        sizes = design(num_test=[20, 40], train=train, crossover=crossover, num_unlabeled=num_unlabeled)
        check_groups(dataset, sizes, seed, "task")
        sampler = Sampler(dataset, sizes, seed, "task")
        for subsample in range(3):
            small, large = (sampler.draw(Draw("task", 40, num_test, subsample)) for num_test in (20, 40))
            assert [rows[:20].tolist() for rows in large.sets] == [rows.tolist() for rows in small.sets]
            assert sampler.draw(Draw("task", 20, 40, subsample)).train.tolist() == large.train[:20].tolist()
            for drawn, num_test in ((small, 20), (large, 40)):
                assert [len(rows) for rows in drawn.sets] == [num_test] * (crossover or 2)
                assert len(drawn.shared) == (num_unlabeled or num_test) - num_test
                sets = [{dataset.groups[row] for row in rows} for rows in (drawn.train, *drawn.sets, drawn.shared)]
                assert len(set.union(*sets)) == sum(map(len, sets))
                rows = np.concatenate([drawn.train, *drawn.sets, drawn.shared])
                assert len(set(rows.tolist())) == len(rows)


def test_sets_of_groups_are_exchangeable() -> None:
    """Over 600 draws, the mean size of the groups of both sets is the same, and each group is tested as often."""
    dataset = with_groups()
    sizes = Counter(dataset.groups)
    sampler = Sampler(dataset, design(num_train=[20], num_test=[100], train="natural"), 0, "task")
    differences, uses = [], Counter[Any]()
    for subsample in range(600):
        drawn = sampler.draw(Draw("task", 20, 100, subsample))
        of_sets = [{dataset.groups[row] for row in rows} for rows in drawn.sets]
        first, second = (np.mean([sizes[group] for group in groups]) for groups in of_sets)
        differences.append(first - second)
        uses.update(of_sets[0] | of_sets[1])
    assert abs(np.mean(differences)) < 3 * np.std(differences) / np.sqrt(600)
    small = [uses[group] for group, size in sizes.items() if size <= 2]
    large = [uses[group] for group, size in sizes.items() if size >= 8]
    assert np.mean(small) == pytest.approx(np.mean(large), rel=0.05)


@pytest.mark.parametrize("number", [2, 5])
def test_folds_consist_of_whole_groups(number: int) -> None:
    dataset = with_groups(with_splits())
    of_folds = Design.model_validate({**OFFICIAL, "folds": number})
    of_folds = of_folds.for_task([300], of_folds.sizes_of_folds(700), None)
    divisions = []
    for subsample in range(3):
        drawn = Sampler(dataset, of_folds, 0, "task").draw(Draw("task", 300, of_folds.num_test[0], subsample))
        folds = [drawn.test[start:stop] for start, stop in drawn.folds]
        assert sorted(np.concatenate(folds).tolist()) == list(range(300, 1000))
        groups = [{dataset.groups[row] for row in rows} for rows in folds]
        assert len(set.union(*groups)) == sum(map(len, groups))
        assert max(map(len, folds)) - min(map(len, folds)) <= max(Counter(dataset.groups).values())
        divisions.append(groups)
    assert divisions[0] != divisions[1]
    check_groups(replace(dataset, extra=["private"] * 700), of_folds, 0, "task")
    too_few = replace(dataset, extra=["private"] * (700 // number + 1))
    with pytest.raises(DataError, match="extra texts, but folds of whole groups have up to"):
        check_groups(too_few, of_folds, 0, "task")
    of_train = replace(dataset, groups=("one",) * 300 + tuple(dataset.groups[300:]), extra=["private"] * 600)
    check_groups(of_train, of_folds, 0, "task")  # groups of train rows have no part in folds


def test_too_few_groups_are_refused_with_the_largest_sets_that_fit() -> None:
    dataset = with_groups()
    with pytest.raises(DataError, match="task news: 186 groups of 1,000 rows; .* use num_test of at most") as info:
        check_groups(dataset, design(num_test=[50, 475]), 1, "news")
    largest = int(str(info.value).partition("at most ")[2].partition(",")[0])
    check_groups(dataset, design(num_test=[50, largest]), 1, "news")
    with pytest.raises(DataError, match=f"at most {largest}, lower"):
        check_groups(dataset, design(num_test=[50, largest + 1]), 1, "news")
    one_group = replace(dataset, groups=["a" if label else f"b{row}" for row, label in enumerate(dataset.labels)])
    with pytest.raises(DataError, match="all rows of the class 'b' are of one group"):
        check_groups(one_group, design(), 1, "news")
    two = replace(dataset, groups=[f"{row % 2}" for row in range(1000)])
    with pytest.raises(DataError, match="2 groups of 1,000 rows; .* suffice for 2 sets of 0"):
        check_groups(two, design(), 1, "news")


def test_draws_depend_on_seed_task_and_subsample() -> None:
    draws = [
        make_sampler(seed, task).draw(Draw(task, 20, 50, subsample)).test.tolist()
        for seed, task, subsample in ((1, "task", 0), (2, "task", 0), (1, "other", 0), (1, "task", 1), (1, "task", 0))
    ]
    assert draws[0] == draws[4]
    assert len({tuple(draw) for draw in draws}) == 4


def test_extra_and_test_rows_are_exchangeable() -> None:
    """Over 400 draws, the classes of both sets have their shares in the whole dataset."""
    sampler = make_sampler(num_train=[20], num_test=[100])
    counts = np.zeros((2, 4))
    for subsample in range(400):
        drawn = sampler.draw(Draw("task", 20, 100, subsample))
        for side, rows in enumerate((drawn.extra, drawn.test)):
            counts[side] += np.bincount(sampler.labels[rows], minlength=4)
    expected = 400 * 100 * np.bincount(sampler.labels, minlength=4) / 1000
    error = np.sqrt(expected)
    assert (np.abs(counts - expected) < 4 * error).all()
    assert (np.abs(counts[0] - counts[1]) < 4 * np.sqrt(2) * error).all()
    assert not np.array_equal(counts[0], counts[1])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"num_train": 44}, "task tiny, class 'rare': 5 rows for train sets, but num_train 44 needs 22"),
        (
            {"num_train": 10, "num_test": 48},
            r"task tiny: 105 rows, but num_train 10 \+ 2 x num_test 48 = 106 are needed",
        ),
        (
            {"num_train": 10, "num_unlabeled": 86},
            r"105 rows, but num_train 10 \+ 2 x num_test 10 \+ 76 shared unlabeled texts = 106 are needed; lower "
            "num_unlabeled or num_test or num_train",
        ),
        ({"num_train": 1}, "task tiny: num_train 1 is below the number of classes, 2"),
    ],
)
def test_errors_about_too_few_rows_name_task_class_and_count(parts: dict[str, Any], message: str) -> None:
    dataset = Dataset([str(row) for row in range(105)], [0] * 100 + [1] * 5, ("common", "rare"))
    with pytest.raises(DataError, match=message):
        check_sizes(dataset, design(**{"num_test": 10, **parts}), "tiny")


def test_labels_that_are_numbers_of_a_scale_are_refused_with_another_remedy_than_more_texts() -> None:
    dataset = Dataset([str(row) for row in range(300)], list(range(300)), tuple(f"{row / 300}" for row in range(300)))
    with pytest.raises(DataError, match="task tiny: 300 classes in 300 rows; these labels are numbers of a scale"):
        check_sizes(dataset, design(num_train=10, num_test=10), "tiny")


@pytest.mark.parametrize(
    ("num_train_rows", "parts", "message"),
    [
        (30, {"num_train": 40, "train": "natural"}, "30 rows in its train split, but num_train is 40; lower"),
        (
            2,
            {"num_train": 20, "train": "natural"},
            "train sets need a row of each class, but none has 'c'; drop its 104 test rows, or add train rows",
        ),
        (700, {"num_test": 151}, "300 rows in its test split, but 2 x num_test 151 = 302 are needed"),
    ],
)
def test_errors_about_too_few_rows_name_the_split(num_train_rows: int, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=f"task news.* {message}"):
        check_sizes(with_splits(num_train_rows), design(**{"num_train": [20], "num_test": 10, **parts}), "news")


def test_seeds_of_different_parts_differ() -> None:
    assert derive_seed("ab", "c") != derive_seed("a", "bc")
    assert derive_seed(1, "x") == derive_seed(1, "x") < 2**32
    assert len({derive_seed(0, number) for number in range(2000)}) == 2000
