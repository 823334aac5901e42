"""Tests of tasks in which a text has any number of labels, from the rows to the report."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import peekbench as pb
from peekbench.data.sampling import Sampler
from peekbench.records.trials import Draw
from peekbench.spec.design import Design

NAMES = ("crash", "login", "price", "speed")
DESIGN = {"num_train": 40, "num_test": 60, "num_subsamples": 2}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def features() -> pb.Dataset:
    rows, labels = make_multilabel_classification(240, 6, n_classes=4, random_state=1)
    return pb.Dataset(rows, labels, NAMES, "multilabel")


@pytest.mark.parametrize(
    "classifier",
    [
        OneVsRestClassifier(LogisticRegression()),
        KNeighborsClassifier(),
        RandomForestClassifier(5),
        MultiOutputClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
        RidgeClassifier(),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_estimators_answer_as_their_own_predict(classifier: Any, features: pb.Dataset) -> None:
    model = make_pipeline(PCA(3, random_state=0), classifier)
    if isinstance(classifier, RandomForestClassifier):
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
