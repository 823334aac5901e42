"""Rows that are copies of others: what is found, refused and said, and the scores without them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.pipeline import make_pipeline

import peekbench as pb
from peekbench.data.overlap import MAX_CHARACTERS, check_copies, expected_share, find_copies
from peekbench.data.preflight import share_of_copies, warn_of_copies
from peekbench.data.sampling import Sampler
from peekbench.errors import DataError
from peekbench.records.data import Dataset, Split
from peekbench.records.trials import Draw
from peekbench.records.verdicts import TrialEvidence
from peekbench.report import report_of_comparison, report_of_run
from peekbench.report.render.markdown import render_markdown
from peekbench.spec.design import OFFICIAL, Design

NOUNS = ("harbour", "lantern", "meadow", "quarry", "thimble", "willow", "cinder", "barley", "falcon", "granite")


SMALL = Design(num_train=9, num_test=5, num_subsamples=2)


def text(number: int) -> str:
    """Return a text that differs from the texts of all other numbers."""
    return " ".join(f"{NOUNS[int(digit)]}{place}" for place, digit in enumerate(f"{number:04}" * 3))


def official(train: Any, test: Any, **parts: Any) -> Dataset:
    splits: list[Split] = ["train"] * len(train)
    splits += ["test"] * len(test)
    inputs = np.concatenate([train, test]) if isinstance(train, np.ndarray) else [*train, *test]
    return Dataset(inputs, [row % 2 for row in range(len(splits))], ("a", "b"), splits=splits, **parts)


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda of_text: of_text, [3, 3]),
        (lambda of_text: f" {of_text.upper()}\n", [3, 3]),
        (lambda of_text: of_text.replace("a", "\uff41"), [3, 3]),  # a full-width letter
        (lambda of_text: f"{of_text}!", [3, 3]),
        (lambda of_text: f"{of_text} x", [0, 3]),
    ],
)
def test_test_texts_are_found_in_the_train_split(change: Callable[[str], str], number: list[int]) -> None:
    train = [text(row) for row in range(10)]
    test = [change(train[4]), text(20), change(train[5]), change(train[6]), text(21)]
    copies = find_copies(official(train, test))
    assert copies["pairs"]["test-train"] == number
    assert copies["test_rows"] == [[10, 11], [12, 14]]
    assert copies["rows"] == {"train": 10, "test": 5}
    assert (copies["conflicting"], copies["examples"]) == (2, [[4, 10], [5, 12], [6, 13]])


def test_the_cost_of_large_data_is_linear() -> None:
    filler = "x" * (MAX_CHARACTERS // 4)
    copies = find_copies(official([f"a{filler}", f"b{filler}"], [f"A{filler}", f"b{filler}y", f"c{filler}"]))
    assert (copies["likeness"], copies["pairs"]["test-train"]) == ("exact", [1, 1])


def test_rows_of_features_count_unless_they_are_equal_by_chance() -> None:
    rng = np.random.default_rng(0)
    train = rng.normal(size=(40, 3))
    train[5, 1] = np.nan
    test = np.concatenate([rng.normal(size=(10, 3)), train[:10]])
    copies = find_copies(official(train, test))
    assert (copies["pairs"], copies["test_rows"]) == ({"test-train": [10, 10]}, [[50, 60]])
    frames = [pd.DataFrame(rows, columns=list("abc")).assign(d="x") for rows in (train, test)]
    frame: Any = pd.concat(frames)
    held = official(train, test, fingerprint="of a data frame")
    assert find_copies(replace(held, inputs=frame))["test_rows"] == [[50, 60]]
    categories = official(rng.integers(0, 2, size=(60, 3)), rng.integers(0, 2, size=(20, 3)))
    check_copies(categories, "table")
    assert find_copies(categories)["test_rows"] == [], "all 8 combinations are in both splits"
    assert list(warn_of_copies({"t": SMALL}, {"t": facts(official(train, test))}))


def facts(dataset: Dataset) -> dict[str, Any]:
    return {"copies": find_copies(dataset), "splits": {*dataset.splits}, "row_name": "texts", "use": "files"}


def test_splits_without_a_new_row_are_refused() -> None:
    texts = [text(row) for row in range(20)]
    with pytest.raises(DataError, match=r"task news: all 20 test texts are also train texts.*one data set without spl"):
        check_copies(official(texts, [f"{of_text}!" for of_text in reversed(texts)]), "news")
    table = np.random.default_rng(0).integers(0, 2, size=(60, 2)).astype(float)
    with pytest.raises(DataError, match="task t: all 60 test rows are also train rows"):
        check_copies(official(table, table[::-1].copy()), "t")
    with pytest.raises(DataError, match="all 5 extra texts are also test texts, so both arms"):
        check_copies(official(texts[:10], texts[10:], extra=texts[10:15]), "news")
    some = official(texts[:10], texts[10:], extra=[*texts[10:15], text(30)])
    check_copies(some, "news")
    (warning,) = warn_of_copies({"news": SMALL}, {"news": facts(some)})
    assert warning.startswith("Private extra rows are also test rows: 5 of 6 (all exact copies) in news. Both arms")


def test_the_expected_shares_are_those_of_draws() -> None:
    num_test = 30
    rng = random.Random(0)
    texts = [text(rng.randrange(150)) for _ in range(300)]
    dataset = Dataset(texts, [row % 2 for row in range(300)], ("a", "b"))
    design = Design(num_train=40, num_test=num_test, num_subsamples=10)
    sampler = Sampler(dataset, design, 0, "task")
    shares: dict[str, list[float]] = {"extra": [], "train": []}
    for subsample in range(200):
        drawn = sampler.draw(Draw("task", 40, num_test, subsample))
        for arm, rows in (("extra", drawn.extra), ("train", drawn.train)):
            others = {texts[row] for row in rows.tolist()}
            shares[arm].append(float(np.mean([texts[row] in others for row in drawn.test.tolist()])))
    expected = share_of_copies(design, facts(dataset))
    assert expected == {arm: pytest.approx(np.mean(values), abs=0.01) for arm, values in shares.items()}
    first = {of_text: row for row, of_text in reversed([*enumerate(texts)])}
    together = Dataset(texts, dataset.labels, ("a", "b"), groups=[first[of_text] for of_text in texts])
    assert expected_share(find_copies(together), num_test) == 0.0, "copies are of the same group"


def test_folds_share_copies_within_the_test_split() -> None:
    """Each of 100 test texts has one copy, which is in the other 4 of 5 folds with probability 80 / 99."""
    dataset = official([text(row) for row in range(40)], [text(40 + row // 2) for row in range(100)])
    design = Design.model_validate({**OFFICIAL, "folds": 5})
    assert share_of_copies(design, facts(dataset)) == {"extra": pytest.approx(80 / 99)}
    (warning,) = warn_of_copies({"news": design}, {"news": facts(dataset)})
    assert "the copies are 100 of 100 (all exact copies), so of the test rows of a subsample, 81% are also" in warning


def make_rows(number: int, seed: int) -> pd.DataFrame:
    """Return texts in which 1 of 10 words tells the class, so that fits remember train texts."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, size=number)
    words = [[f"w{label}_{rng.integers(0, 20)}", *(f"c{word}" for word in rng.integers(0, 80, 9))] for label in labels]
    texts = [f"{' '.join(of_text)} u{seed}_{row}" for row, of_text in enumerate(words)]
    return pd.DataFrame({"text": texts, "label": np.array(["a", "b", "c"])[labels]})


@pytest.fixture
def leaked() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Train split, test split, and the half of the test split that is not copied from the train split."""
    train, clean = make_rows(120, 1), make_rows(60, 2)
    return train, pd.concat([clean, train.iloc[:60].assign(text=lambda rows: rows["text"].str.title())]), clean


def make_model() -> Any:
    return make_pipeline(TfidfVectorizer(), TruncatedSVD(30, algorithm="arpack"), LogisticRegression(C=100))


def test_scores_without_copied_texts_are_those_of_scikit_learn(
    leaked: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train, test, clean = leaked
    parts: dict[str, Any] = {"train": train, "test": test, "num_subsamples": 3, "progress": False}
    run = pb.measure(make_model(), **parts)
    report = run.report()
    evidence = report.verdicts[0].evidence
    assert isinstance(evidence, TrialEvidence)
    assert evidence.copied is not None
    assert (evidence.copied.num_copied, evidence.copied.num_rows) == (60, 120)
    *steps, classifier = (step for _, step in make_model().steps)
    features, of_train, of_clean = [*train["text"], *test["text"]], train["text"], clean["text"]
    for step in steps:
        features = step.fit_transform(features)
        of_train, of_clean = step.transform(of_train), step.transform(of_clean)
    expected = classifier.fit(of_train, train["label"]).score(of_clean, clean["label"])
    assert evidence.copied.scores["all"] == pytest.approx(expected)
    answers = run.predictions.to_pandas()
    answers = answers[(answers["arm"] == "extra") & (answers["text"] < 180)]  # train rows come first
    by_subsample = [accuracy_score(rows["label"], rows["prediction"]) for _, rows in answers.groupby("subsample")]
    assert evidence.copied.scores["extra"] == pytest.approx(np.mean(by_subsample))
    assert evidence.published is not None
    assert evidence.published > expected + 0.1
    screen = str(report)
    shown = " ".join(re.sub("<[^>]+>", " ", report._repr_html_()).split())
    cleaned = pb.measure(make_model(), drop_duplicates="near", **parts)
    reports = (report_of_run(run.store), *(report_of_comparison([run.store, *more]) for more in ([], [cleaned.store])))
    for content in (screen, shown, str(pb.analyze(run.store)), *map(render_markdown, reports)):
        assert "60 of 120 test texts are also train texts" in content
        assert f"Without them, it is {expected:.1%} on 60 test texts" in content
        assert "independent texts would give" not in content
    assert "Remove the copies" in screen and "but copies of test texts distort the scores" in " ".join(screen.split())
    assert not [warning for warning in cleaned.report().warnings if "copies" in warning], "the remedy works"
    assert cleaned.predictions.to_pandas(subsample=0)["text"].nunique() == 120, "the test split is complete"
    twice = {**parts, "test": pd.concat([test, test[60:70]])}
    shown = " ".join(str(pb.measure(make_model(), drop_duplicates="near", **twice).report()).split())
    assert "on 120 test texts" in shown
    assert "Not comparable with scores on all 130 test texts, of which 10 were removed." in shown


@pytest.mark.parametrize(
    ("num_repeated", "num_private", "exception", "usual"),
    [
        (0, 0, ". 95% interval", ""),
        (9, 0, ", except to copies: {}. No interval", "18 test texts have copies in the test set"),
        (0, 1, ", except to copies: {}. No interval", "1 test text has copies in the extra set"),
    ],
)
def test_scores_name_the_copies_that_fits_adapt_to_and_nothing_is_stated_about_other_texts(
    num_repeated: int, num_private: int, exception: str, usual: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    train, test, private = (make_rows(60, seed) for seed in (1, 2, 3))
    parts: dict[str, Any] = {"train": train, "test": pd.concat([test, test.iloc[:num_repeated]])}
    if num_private:
        parts["extra"] = pd.concat([private, test.iloc[:num_private]])
    screen = str(pb.measure(make_model(), **parts, progress=False, num_subsamples=6).report())
    shown = " ".join(screen.split())
    assert f"No text is predicted by a fit that adapted to it (extra){exception.format(usual)}" in shown
    assert f"{'; '.join(filter(None, ('adapts to all these test texts', usual)))}. Fits" in shown


def test_validate_shows_the_copies_of_official_splits(
    leaked: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from peekbench.cli.app import app

    monkeypatch.chdir(tmp_path)
    for name, rows in zip(("train", "test"), leaked[:2], strict=True):
        rows.to_csv(f"{name}.csv", index=False)
    task = "{use: files, name: news, options: {path: train.csv, test_path: test.csv}}"
    Path("spec.yaml").write_text(f"name: news\ntasks: [{task}]\nmethods: [classic.lsa]\ndesign: official\n")
    app(["validate", "spec.yaml"], standalone_mode=False)
    assert "Test rows are also train rows: 60 of 120 (all exact copies) in news." in capsys.readouterr().err
    app(["plan", "--no-pilot", "spec.yaml"], standalone_mode=False)
    assert "Test rows are also train rows: 60 of 120 (all exact copies) in news." in capsys.readouterr().err
    Path("spec.yaml").write_text(Path("spec.yaml").read_text().replace("test.csv}", "test.csv, drop_duplicates: near}"))
    app(["validate", "spec.yaml"], standalone_mode=False)
    assert "copies" not in capsys.readouterr().err, "the remedy works"
