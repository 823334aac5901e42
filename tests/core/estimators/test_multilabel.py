"""Tests of tasks in which a text has any number of labels, from the rows to the report."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from stored_scores import find_wrong_scores

import peekbench as pb
from peekbench.data.sampling import Sampler
from peekbench.records.trials import Draw
from peekbench.spec.design import Design
from peekbench_testing.samples import sample_texts

NAMES = ("crash", "login", "price", "speed")
DESIGN = {"num_train": 40, "num_test": 60, "num_subsamples": 2}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def features() -> pb.Dataset:
    rows, labels = make_multilabel_classification(240, 6, n_classes=4, random_state=1)
    return pb.Dataset(rows, labels, NAMES, "multilabel")


def _texts(num_rows: int = 300) -> pb.Dataset:
    """Return texts of which a label is rare, and some have no label."""
    texts = sample_texts(num_rows)
    labels = np.eye(4, dtype=int)[np.asarray(texts.labels)]
    labels[::4, 1] = 1
    labels[::5] = 0
    labels[::30, 3] = 1
    return pb.Dataset(texts.inputs, labels, NAMES, "multilabel")


@pytest.mark.parametrize(
    "classifier",
    [
        OneVsRestClassifier(LogisticRegression()),
        KNeighborsClassifier(),
        RandomForestClassifier(5),
        MLPClassifier((4,), learning_rate_init=0.03, tol=10.0, n_iter_no_change=20),  # few steps: rounding stays small
        MultiOutputClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
        GridSearchCV(OneVsRestClassifier(LogisticRegression()), {"estimator__C": [0.1, 1.0]}, cv=2),
        RidgeClassifier(),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_estimators_answer_as_their_own_predict(classifier: Any, features: pb.Dataset) -> None:
    model = make_pipeline(PCA(3, random_state=0), classifier)
    if isinstance(classifier, RandomForestClassifier | MLPClassifier):
        classifier.random_state = 0
    run = pb.measure(model, features, design={**DESIGN, "num_subsamples": 1}, seed=3, progress=False)
    subsample = Sampler(features, Design(**DESIGN), 3, "data").draw(Draw("data", 40, 60, 0))
    rows, labels = np.asarray(features.inputs), np.asarray(features.labels)
    answers = model.fit(rows[subsample.train], labels[subsample.train]).predict(rows[subsample.test])
    stored = run.predictions.to_pandas().query("arm == 'base'").set_index("text").loc[subsample.test]
    assert stored["correct"].tolist() == (answers == labels[subsample.test]).all(axis=1).tolist()
    assert stored["prediction"].tolist() == [
        tuple(np.array(NAMES)[answer == 1].tolist()) for answer in np.asarray(answers)
    ]


def test_a_classifier_of_classes_is_refused_with_the_one_that_fits_a_copy_to_each_label(features: pb.Dataset) -> None:
    advice = r"sklearn.multiclass.OneVsRestClassifier\(LogisticRegression\(...\)\) in its place"
    with pytest.raises(pb.DataError, match=advice):
        pb.measure(make_pipeline(PCA(3), LogisticRegression()), features, design=DESIGN, progress=False)


def test_labels_that_all_or_no_train_rows_have_are_certain(features: pb.Dataset) -> None:
    labels = np.asarray(features.labels)[:80].copy()
    labels[:, 0] = 1
    data = pb.Dataset(np.asarray(features.inputs)[:80], labels, NAMES, "multilabel")
    design = {"num_train": 20, "num_test": 20, "num_subsamples": 1}
    run = pb.measure(make_pipeline(PCA(3), KNeighborsClassifier()), data, design=design, progress=False)
    assert all("crash" in answer for answer in run.predictions.to_pandas()["prediction"])


def test_train_sets_have_a_row_of_each_label() -> None:
    data = _texts()
    sampler = Sampler(data, Design(num_train=(4, 40), num_test=60, num_subsamples=50), 0, "data")
    for subsample in range(50):
        for num_train in (4, 40):
            train = sampler.draw(Draw("data", num_train, 60, subsample)).train
            assert len(set(train.tolist())) == num_train
            assert np.asarray(data.labels)[train].any(axis=0).all()


def test_hidden_labels_of_a_test_split_are_refused() -> None:
    train = ["a", "b"] * 20, [["bug"], ["bug", "login"]] * 20
    test: Any = ["c", "d"] * 5, [[], []] * 5
    with pytest.raises(pb.DataError, match="labels of the test split are not public"):
        pb.measure("controls.null", train=train, test=test)


@pytest.mark.slow
def test_planted_bias_is_recovered_and_stored_scores_are_those_of_scikit_learn() -> None:
    """`controls.leak` knows the labels of a quarter of the test texts: bias = share x (1 - accuracy)."""
    data = _texts(500)
    design = {"num_train": 60, "num_test": 150, "num_subsamples": 12}
    methods = ["controls.null", "controls.leak", "classic.lsa"]
    run = pb.measure(methods, data, design=design, name="labels", score="f1_samples", progress=False)
    arms = run.arms.groupby("method").mean(numeric_only=True)
    leak = arms.loc["controls.leak"]
    assert arms.loc["controls.null", "bias"] == 0
    assert leak["bias"] == pytest.approx(0.25 * (1 - leak["extra"]), abs=0.03)
    results = run.results.query("method == 'classic.lsa' and subsample == 0 and arm == 'test'")
    table = run.predictions.to_pandas(method="classic.lsa", subsample=0).query("arm == 'test'")
    truth, answers = (_as_matrix(table[column]) for column in ("label", "prediction"))
    for average in ("micro", "macro"):
        sets = [
            f1_score(truth[rows], answers[rows], average=average, zero_division=0)
            for rows in (slice(150), slice(150, 300))  # crossover: the score is the mean of those of two sets
        ]
        assert results[f"{average}_f1"].item() == pytest.approx(np.mean(sets), abs=1e-12)
    assert find_wrong_scores(Path("runs/labels.sqlite")) == []
    assert "passed" in str(run.report())


def _as_matrix(sets: "pd.Series[Any]") -> Any:
    return np.array([[name in labels for name in NAMES] for labels in sets], dtype=int)
