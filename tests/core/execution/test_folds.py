"""Designs with folds: each fit adapts to the official test split without one fold, and predicts all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from stored_scores import find_wrong_scores

import peekbench as pb
from peekbench.data.sampling import seed_of_fit, seed_of_subsample
from peekbench.errors import DataError, ResultsError, SpecError, StoreError
from peekbench.execution.fit_plans import Part, plan_arm
from peekbench.execution.runner import run
from peekbench.results import tidy
from peekbench.results.read import StoredPredictions
from peekbench.spec.arms import ALL_TEXTS, BASE, EXTRA, TEST
from peekbench.spec.design import OFFICIAL, Design
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store

MakeSpec = Callable[..., ExperimentSpec]
NUM_TRAIN, NUM_TEST = 40, 25
NAME = "official"
FOLDS = [(0, 3), (3, 6), (6, 10)]


def make_rows(number: int, seed: int) -> pd.DataFrame:
    """Return texts whose words tell something about their class."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(number) % 2
    words = [rng.integers(0, 30, size=8) + 8 * label for label in labels]
    return pd.DataFrame({"text": [" ".join(f"w{word}" for word in of_text) for of_text in words], "label": labels})


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Paths of two files with an official train and test split."""
    folder = tmp_path_factory.mktemp("official")
    paths = folder / "train.csv", folder / "test.csv"
    for seed, (path, number) in enumerate(zip(paths, (NUM_TRAIN, NUM_TEST), strict=True)):
        make_rows(number, seed).to_csv(path, index=False)
    return paths


@pytest.fixture(scope="module")
def task(splits: tuple[Path, Path]) -> dict[str, Any]:
    path, test_path = map(str, splits)
    return {"use": "files", "name": "words", "options": {"path": path, "test_path": test_path}}


def make_model() -> Pipeline:
    return make_pipeline(TfidfVectorizer(), TruncatedSVD(2), LogisticRegression())


def test_each_fold_is_predicted_by_the_fit_without_it_and_by_all_others() -> None:
    blocks = [Part(0, 0, 3), Part(0, 3, 6), Part(0, 6, 10)]
    (extra,), test = (plan_arm(arm, 1, 10, crossover=False, folds=FOLDS) for arm in (EXTRA, TEST))
    without = dict(extra)
    assert without == {
        blocks[0]: (Part(0, 3, 10),),
        blocks[1]: (Part(0, 0, 3), Part(0, 6, 10)),
        blocks[2]: (Part(0, 0, 6),),
    }
    assert [[block for block, _ in of_set] for of_set in test] == [blocks, blocks]
    for block in blocks:
        seen = [unlabeled for of_set in test for part, unlabeled in of_set if part == block]
        assert sorted(map(str, seen)) == sorted(str(fit) for other, fit in without.items() if other != block)
    assert plan_arm(BASE, 1, 10, crossover=False, folds=FOLDS) == [[(Part(0, 0, 10), None)]]
    assert plan_arm(ALL_TEXTS, 1, 10, crossover=False, folds=FOLDS) == [[(Part(0, 0, 10), (Part(0, 0, 10),))]]


@pytest.mark.parametrize("num_extra", [0, 11])
def test_numbers_are_those_of_a_loop_over_folds(splits: tuple[Path, Path], num_extra: int) -> None:
    train, test = map(pd.read_csv, splits)
    extra = make_rows(num_extra, seed=2)["text"].tolist()
    options: dict[str, Any] = {"extra": extra} if extra else {}
    options |= {"folds": 3, "num_subsamples": 2, "progress": False, "name": NAME}
    measured = pb.measure(make_model(), train=train, test=test, **options)
    with Store.open(measured.store) as store:
        for row in measured.arms.itertuples():
            draw = next(trial.draw for trial in store.done() if trial.draw.subsample == row.subsample)
            labels, rows = store.test_rows(draw)
            order = rows - NUM_TRAIN  # the test split comes second
            assert sorted(order) == list(range(NUM_TEST))
            assert labels.tolist() == test["label"].iloc[order].tolist()
            folds = np.array_split(order, [NUM_TEST * fold // 3 for fold in (1, 2)])
            seed = seed_of_fit(0, draw.task, draw.num_train, draw.num_test, draw.subsample)
            own, other = [], []
            shuffle = np.random.default_rng(seed_of_subsample(0, f"{draw.task} extra", draw.subsample)).permutation
            replacing = np.resize(shuffle(num_extra), NUM_TEST)
            for number, fold in enumerate(folds):
                instead = replacing[NUM_TEST * number // 3 : NUM_TEST * (number + 1) // 3]
                kept = test["text"].iloc[np.concatenate([part for part in folds if part is not fold])].tolist()
                if extra:
                    kept += [extra[position] for position in instead]
                    assert len(kept) == NUM_TEST
                    assert len(set(instead)) == len(instead)
                correct = fit_and_answer(train, test, kept, seed)
                other.append(correct[fold])
                own.append([correct[part] for part in folds if part is not fold])
            assert row.extra == pytest.approx(np.concatenate(other).mean())
            assert row.test == pytest.approx(np.concatenate([np.concatenate(parts) for parts in own]).mean())
            assert row.all == pytest.approx(fit_and_answer(train, test, test["text"].iloc[order], seed).mean())
    assert set(measured.results["num_test"]) == {NUM_TEST if extra else 17}


def test_scores_of_stored_predictions_are_those_of_whole_test_sets(splits: tuple[Path, Path]) -> None:
    (train, test), folds = splits, 3
    measured = pb.measure(make_model(), train=train, test=test, folds=folds, num_subsamples=2, progress=False)
    assert find_wrong_scores(measured.store) == []
    results = pb.load_results(measured.store)
    results["balanced"] = StoredPredictions(measured.store).scores(results, "balanced_accuracy")
    table = measured.predictions.to_pandas()
    for row in results.itertuples():
        answers = table[(table["arm"] == row.arm) & (table["subsample"] == row.subsample)]
        ways = folds - 1 if row.arm == "test" else 1
        assert len(answers) == ways * NUM_TEST
        sets = np.array_split(np.arange(len(answers)), ways)
        recalls = [answers.iloc[of_set].groupby("label")["correct"].mean().mean() for of_set in sets]
        assert row.balanced == pytest.approx(np.mean(recalls))


def fit_and_answer(train: pd.DataFrame, test: pd.DataFrame, unlabeled: Any, seed: int) -> Any:
    """Return whether a fit answers each test text correctly; its unsupervised steps see train and unlabeled texts."""
    texts = [*train["text"], *unlabeled]
    vectorizer = TfidfVectorizer().fit(texts)
    svd = TruncatedSVD(2, random_state=seed).fit(vectorizer.transform(texts))
    model = LogisticRegression(random_state=seed).fit(
        svd.transform(vectorizer.transform(train["text"])), train["label"]
    )
    return model.predict(svd.transform(vectorizer.transform(test["text"]))) == test["label"].to_numpy()


def test_a_prescribed_number_of_train_rows_is_drawn_for_each_division(splits: tuple[Path, Path]) -> None:
    train, test = splits
    run = pb.measure(make_model(), train=train, test=test, num_train=30, num_subsamples=2, progress=False)
    assert (run.spec.design.train, run.spec.design.folds, run.spec.design.num_train) == ("natural", (5,), (30,))
    assert set(run.results["num_train"]) == {30}


def test_official_is_short_for_all_rows_and_folds(make_spec: MakeSpec, task: dict[str, Any]) -> None:
    spec = make_spec(tasks=[task], design="official")
    assert spec.design == Design.model_validate(OFFICIAL)
    assert [arm.name for arm in spec.arms] == ["base", "extra", "test", "all"]
    assert spec.design.model_dump(mode="json")["num_train"] == "all"


def test_a_run_stores_the_sizes_of_the_splits_and_can_be_extended(
    make_spec: MakeSpec, task: dict[str, Any], tmp_path: Path
) -> None:
    design = {**OFFICIAL, "folds": [2, 5], "num_subsamples": 2}
    spec = make_spec(tasks=[task], design=design, methods=["classic.lsa"])
    summary = run(spec, store=tmp_path / "folds.sqlite")
    assert (summary.finished, summary.failed) == (4, 0)
    results = pb.load_results(tmp_path / "folds.sqlite")
    assert set(zip(results["num_train"], results["num_test"], strict=True)) == {(40, 13), (40, 20)}
    extended = make_spec(tasks=[task], design={**design, "num_subsamples": 3}, methods=["classic.lsa"])
    summary = run(extended, store=tmp_path / "folds.sqlite")
    assert (summary.resumed, summary.finished) == (4, 2)
    changed = make_spec(tasks=[task], design={**design, "folds": [2, 4]}, methods=["classic.lsa"])
    with pytest.raises(StoreError, match=r"design.folds: .2, 5. before, .2, 4. now"):
        run(changed, store=tmp_path / "folds.sqlite")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"folds": 21}, "21 is not a number of folds; use 2 to 20"),
        ({"num_test": 20}, "folds: divide the official test split; set num_test to all"),
        ({"folds": []}, "num_test: is all, which leaves no extra texts; add folds"),
        ({"num_unlabeled": 100}, "num_unlabeled: cannot be combined with folds"),
    ],
)
def test_designs_that_contradict_folds_are_refused(make_spec: MakeSpec, parts: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make_spec(design={**OFFICIAL, **parts})


def test_other_arms_are_refused_with_folds_and_the_arm_all_without(make_spec: MakeSpec) -> None:
    with pytest.raises(
        SpecError, match=r"cross-5 needs drawn test sets, .*; use base, extra, test, all, alone, or numbers"
    ):
        make_spec(design="official", arms=["extra", "test", {"cross": 5}])
    with pytest.raises(SpecError, match=r"with design.folds, all is the score that they correct; add it"):
        make_spec(design="official", arms=["base", "extra", "test"])
    with pytest.raises(SpecError, match=r"all needs design.folds"):
        make_spec(arms=["extra", "test", "all"])


def test_data_without_official_splits_or_with_too_few_rows_are_refused(
    make_spec: MakeSpec, task: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=r"it has no official train and test split"):
        run(make_spec(tasks=["docstrings.numpy"], design="official"), store=tmp_path / "none.sqlite")
    with pytest.raises(DataError, match=r"25 rows in its test split, too few for 20 folds; use at most 12"):
        run(make_spec(tasks=[task], design={**OFFICIAL, "folds": 20}), store=tmp_path / "few.sqlite")
    with pytest.raises(DataError, match=r"some of \[10, 12\] folds of 25 test rows have the same size"):
        run(make_spec(tasks=[task], design={**OFFICIAL, "folds": [10, 12]}), store=tmp_path / "same.sqlite")
    with pytest.raises(SpecError, match="give `train` and `test`, or only `data`"):
        pb.measure("classic.lsa", "docstrings.numpy", train="train.csv")


def test_extra_texts_come_from_a_file_or_from_memory(splits: tuple[Path, Path], tmp_path: Path) -> None:
    train, test = splits
    rows = make_rows(30, seed=2)
    rows.drop(columns="label").to_csv(tmp_path / "extra.csv", index=False)
    frames = [pd.read_csv(path) for path in splits]
    bias = [
        pb.measure(make_model(), train=part, test=other, extra=extra, num_subsamples=2, progress=False).arms["bias"]
        for part, other, extra in ((train, test, tmp_path / "extra.csv"), (*frames, rows), (*frames, rows["text"]))
    ]
    assert bias[0].tolist() == bias[1].tolist() == bias[2].tolist()


def test_extra_rows_of_a_data_frame_have_the_columns_of_train() -> None:
    rng = np.random.default_rng(0)
    train, test = (
        (pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")), rng.integers(0, 2, n)) for n in (40, 20)
    )
    extra = pd.DataFrame(rng.normal(size=(15, 3)), columns=list("abc")) * [1, 10, 100]
    model = make_pipeline(StandardScaler(), PCA(1), LogisticRegression())
    seen: list[list[float]] = []

    def fit(unlabeled: Any, train: Any) -> Any:
        if unlabeled is not None:
            seen.append(np.abs(unlabeled[-8:]).mean(axis=0).round().tolist())
        return lambda rows: np.full((len(rows), 2), 0.5)

    options: dict[str, Any] = {"train": train, "test": test, "folds": 2, "num_subsamples": 1, "progress": False}
    assert pb.measure(model, **options, extra=extra).failed == 0
    pb.measure(fit, **options, extra=extra)
    assert all(sizes == sorted(sizes) for sizes in seen[:2])


def test_extra_texts_of_groups_in_the_splits_are_refused(splits: tuple[Path, Path]) -> None:
    train, test = (pd.read_csv(path).assign(author=lambda rows: rows.index // 2) for path in splits)
    test["author"] += 100
    extra = make_rows(30, seed=2).assign(author=200)
    options: dict[str, Any] = {"train": train, "test": test, "group": "author", "num_subsamples": 1, "progress": False}
    texts = [*extra["text"], None]
    runs = [pb.measure(make_model(), **options, extra=given, drop_missing=True) for given in (extra, texts)]
    assert runs[0].arms["bias"].tolist() == runs[1].arms["bias"].tolist()
    with pytest.raises(DataError, match="extra: it has rows of the group '101', which is in train or test"):
        pb.measure(make_model(), **options, extra=(extra["text"], extra["label"], [101] * 30))
    with pytest.raises(SpecError, match=r"train.csv' is a file, but others of train, test and extra are not"):
        pb.measure(make_model(), train=splits[0], test=splits[1], extra=extra)


def test_extra_texts_without_folds_or_too_few_are_refused(splits: tuple[Path, Path]) -> None:
    texts = make_rows(4, seed=2)["text"].tolist()
    frames: dict[str, Any] = dict(zip(("train", "test"), map(pd.read_csv, splits), strict=True))
    with pytest.raises(DataError, match="4 extra texts, too few to take the place of a fold of 5"):
        pb.measure(make_model(), **frames, extra=texts, progress=False)
    with pytest.raises(DataError, match="private extra texts need folds"):
        pb.measure(make_model(), **frames, extra=texts, num_test=5, num_train=10, progress=False)
    with pytest.raises(DataError, match="whatever the number of folds; use one of"):
        pb.measure(make_model(), **frames, extra=texts * 9, folds=[2, 5], progress=False)
    with pytest.raises(SpecError, match="give `train` and `test`"):
        pb.measure(make_model(), frames["train"], extra=texts)


def test_rows_of_several_fits_are_averaged_or_refused() -> None:
    rows = [
        {"task": "news", "subsample": draw, "arm": arm, "fit": fit, "text": text, "correct": (text + fit + draw) % 2}
        for draw in range(3)
        for text in range(4)
        for arm, fits in (("extra", [0]), ("test", [1, 2]))
        for fit in fits
    ]
    table = pd.DataFrame(rows)
    results = tidy(table, "fits")
    assert set(results["num_test"]) == {4}
    assert results.groupby("arm")["num_scored"].unique().map(list).to_dict() == {"extra": [4], "test": [8]}
    assert results.loc[results["arm"] == "test", "score"].tolist() == [0.5, 0.5, 0.5]
    with pytest.raises(ResultsError, match="2 fits of a single division, .* at least five divisions"):
        tidy(table[table["subsample"] == 0].drop(columns="subsample"), "fits")
    with pytest.raises(ResultsError, match="number the subsamples, or name the fits in a column 'fit'"):
        tidy(table.drop(columns="fit"), "fits")
    with pytest.raises(ResultsError, match="0 occurs twice in the same arm of a subsample"):
        tidy(table.assign(fit=0), "fits")
