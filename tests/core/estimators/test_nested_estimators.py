"""Nested estimators: each leaf is fitted on the rows that it may see, as in loops of plain scikit-learn."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import hstack
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import Pipeline, make_pipeline, make_union  # noqa: F401 - a message names Pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.semi_supervised import SelfTrainingClassifier

import peekbench as pb
from peekbench.data.sampling import Sampler
from peekbench.errors import PluginError
from peekbench.plugins.estimators import make_estimator_entry, unlabeled_steps
from peekbench.records import Split
from peekbench_testing import sample_texts

DESIGN = {"num_train": 40, "num_test": 30, "num_subsamples": 1, "crossover": False}
RANDOM = np.random.default_rng(0)
NUM, NUM_TRAIN = 200, 120
HIGH = RANDOM.integers(0, 2, NUM)
CLASSES = np.array(["no", "yes"])[HIGH]
X = RANDOM.normal(size=(NUM, 4)) * [1, 2, 3, 4] + 0.8 * HIGH[:, None]
Y = X.sum(axis=1) ** 2 + 1
TABLE = pd.DataFrame(X, columns=["age", "income", "height", "weight"]).assign(
    city=np.array(["Oslo", "Rome", "Bonn"])[(HIGH + RANDOM.integers(0, 2, NUM)) % 3],
    zip=np.array(list("abcdefgh"))[HIGH + 2 * RANDOM.integers(0, 4, NUM)],
)
TABLE.loc[::7, "age"] = np.nan
SAMPLE = sample_texts(NUM)
TEXTS, TOPICS = list(SAMPLE.inputs), np.asarray(SAMPLE.labels)
TWO = ["income", "height"]

Predict = Callable[[Any, Any, Any, Any], Any]
"""Fits train rows with labels and unlabeled rows, and predicts test rows."""


def code_city(train: Any, both: Any, test: Any) -> list[Any]:
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(both[["city"]])
    return [encoder.transform(rows[["city"]]) for rows in (train, test)]


def code_zip(train: Any, labels: Any, test: Any) -> list[Any]:
    encoder = TargetEncoder(cv=StratifiedKFold(3))
    return [encoder.fit_transform(train[["zip"]], labels), encoder.transform(test[["zip"]])]


def scale(train: Any, both: Any, test: Any) -> list[Any]:
    scaler = StandardScaler().fit(both)
    return [scaler.transform(train), scaler.transform(test)]


def classify(parts: list[Any], labels: Any, model: Any = None) -> Any:
    join: Any = hstack if any(hasattr(part, "toarray") for pair in parts for part in pair) else np.hstack
    rows, test = (join([pair[side] for pair in parts]) for side in (0, 1))
    return (model or LogisticRegression()).fit(rows, labels).predict_proba(test)


def mixed(train: Any, labels: Any, unlabeled: Any, test: Any) -> Any:
    both = pd.concat([train, unlabeled])
    imputer = SimpleImputer().fit(both[["age", "income"]])
    scaled = scale(*(imputer.transform(rows[["age", "income"]]) for rows in (train, both, test)))
    return classify([scaled, code_city(train, both, test), code_zip(train, labels, test)], labels)


def union(train: Any, labels: Any, unlabeled: Any, test: Any) -> Any:
    pca, best = PCA(1).fit(np.vstack([train, unlabeled])), SelectKBest(k=1).fit(train, labels)
    return classify(
        [[pca.transform(train), pca.transform(test)], [best.transform(train), best.transform(test)]], labels
    )


def selectors(train: Any, labels: Any, unlabeled: Any, test: Any) -> Any:
    both = pd.concat([train, unlabeled])
    rest = scale(*(rows[TWO] for rows in (train, both, test)))
    return classify([rest, code_city(train, both, test)], labels)


def sparse(train: Any, labels: Any, unlabeled: Any, test: Any) -> Any:
    tfidf, counts = TfidfVectorizer().fit(train + unlabeled), CountVectorizer(analyzer="char").fit(train + unlabeled)
    best = SelectKBest(chi2, k=5).fit(counts.transform(train), labels)
    chosen = [best.transform(counts.transform(texts)) for texts in (train, test)]
    return classify([[tfidf.transform(train), tfidf.transform(test)], chosen], labels, MultinomialNB())


def target(train: Any, labels: Any, unlabeled: Any, test: Any) -> Any:
    rows, others = scale(train, np.vstack([train, unlabeled]), test)
    return np.exp(Ridge().fit(rows, np.log(labels)).predict(others))


def search(train: Any, labels: Any, unlabeled: Any, test: Any) -> Any:
    def fit(rows: Any, known: Any, others: Any, strength: float) -> Any:
        scaled = scale(rows, np.vstack([rows, unlabeled]), others)
        return classify([scaled], known, LogisticRegression(C=strength))

    def mean_accuracy(strength: float) -> float:
        folds = StratifiedKFold(3).split(train, labels)
        return float(
            np.mean([(fit(train[a], labels[a], train[b], strength).argmax(1) == labels[b]).mean() for a, b in folds])
        )

    return fit(train, labels, test, max([0.001, 1.0, 100.0], key=mean_accuracy))


class Scaled(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier of rows that are scaled by train and unlabeled rows."""

    unlabeled: Any = None

    def __init__(self, strength: float = 1.0) -> None:
        self.strength = strength

    def fit(self, rows: Any, labels: Any) -> Scaled:
        self.scaler_ = StandardScaler().fit(np.vstack([rows, Scaled.unlabeled]))
        self.model_ = LogisticRegression(C=self.strength).fit(self.scaler_.transform(rows), labels)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, rows: Any) -> Any:
        return self.model_.predict_proba(self.scaler_.transform(rows))

    def decision_function(self, rows: Any) -> Any:
        return self.model_.decision_function(self.scaler_.transform(rows))

    def predict(self, rows: Any) -> Any:
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


def around(model: Any) -> Predict:
    def predict(train: Any, labels: Any, unlabeled: Any, test: Any) -> Any:
        Scaled.unlabeled = unlabeled
        return model.fit(train, labels).predict_proba(test)

    return predict


def linear(strength: float = 1.0) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(C=strength))


NUMBERS = make_pipeline(SimpleImputer(), StandardScaler())
ENCODE, RATES = OneHotEncoder(handle_unknown="ignore"), TargetEncoder(cv=StratifiedKFold(3))
MIXED = make_column_transformer((NUMBERS, ["age", "income"]), (ENCODE, ["city"]), (RATES, ["zip"]))
SELECTED = make_column_transformer(
    (StandardScaler(), make_column_selector(dtype_include="number")), (ENCODE, make_column_selector(pattern="city"))
)
COUNTS = make_pipeline(CountVectorizer(analyzer="char"), SelectKBest(chi2, k=5))
NESTED: dict[str, tuple[Any, Predict, Any]] = {
    "mixed columns": (make_pipeline(MIXED, LogisticRegression()), mixed, (TABLE, CLASSES)),
    "union": (make_pipeline(make_union(PCA(1), SelectKBest(k=1)), LogisticRegression()), union, (X, CLASSES)),
    "selectors": (make_pipeline(SELECTED, LogisticRegression()), selectors, (TABLE[["city", *TWO]], CLASSES)),
    "sparse": (make_pipeline(make_union(TfidfVectorizer(), COUNTS), MultinomialNB()), sparse, (TEXTS, TOPICS)),
    "target": (
        TransformedTargetRegressor(make_pipeline(StandardScaler(), Ridge()), func=np.log, inverse_func=np.exp),
        target,
        (X, Y),
    ),
    "search": (
        GridSearchCV(linear(), {"logisticregression__C": [0.001, 1.0, 100.0]}, cv=StratifiedKFold(3)),
        search,
        (X, CLASSES),
    ),
    "calibrated": (
        CalibratedClassifierCV(linear(), cv=3), around(CalibratedClassifierCV(Scaled(), cv=3)), (X, CLASSES),
    ),
    "vote": (
        VotingClassifier([("a", linear()), ("b", linear(0.01))], voting="soft"),
        around(VotingClassifier([("a", Scaled()), ("b", Scaled(0.01))], voting="soft")),
        (X, CLASSES),
    ),
    "stack": (
        StackingClassifier([("a", linear()), ("b", GaussianNB())], cv=3),
        around(StackingClassifier([("a", Scaled()), ("b", GaussianNB())], cv=3)),
        (X, CLASSES),
    ),
}  # fmt: skip


def measure(method: Any, data: Any, **options: Any) -> pb.Run:
    return pb.measure(method, data, **{"design": DESIGN, "progress": False, **options})


@pytest.mark.slow
@pytest.mark.parametrize("name", NESTED)
def test_predictions_and_scores_are_those_of_a_loop_of_plain_scikit_learn(name: str) -> None:
    estimator, predict, (inputs, labels) = NESTED[name]
    run = measure(estimator, (inputs, labels))
    dataset, known = hold(inputs, labels)
    score = r2_score if labels is Y else accuracy_score
    (trial,) = run.predictions
    draw = Sampler(dataset, run.spec.design, run.spec.seed, "data").draw(trial.draw)
    for arm, unlabeled in (("base", draw.train[:0]), ("extra", draw.extra), ("test", draw.test)):
        train, others, test = (take(inputs, numbers) for numbers in (draw.train, unlabeled, draw.test))
        expected = predict(train, known[draw.train], others, test)
        np.testing.assert_allclose(run.predictions[trial][arm].numbers, expected, rtol=1e-4, atol=1e-6)
        answers = expected if labels is Y else expected.argmax(axis=1)
        assert run.arms[arm].item() == pytest.approx(score(known[draw.test], answers))
    assert not np.array_equal(run.predictions[trial]["extra"].numbers, run.predictions[trial]["test"].numbers)


@pytest.mark.parametrize("name", ["mixed columns", "search", "target"])
def test_each_fold_is_predicted_as_by_a_fit_to_the_others_of_plain_scikit_learn(name: str) -> None:
    estimator, predict, (inputs, labels) = NESTED[name]
    train, test = ((inputs[part], labels[part]) for part in (slice(NUM_TRAIN), slice(NUM_TRAIN, None)))
    run = pb.measure(estimator, train=train, test=test, folds=2, num_subsamples=1, progress=False)
    splits: list[Split] = ["train"] * NUM_TRAIN
    splits += ["test"] * (NUM - NUM_TRAIN)
    dataset, known = hold(inputs, labels, splits)
    (trial,) = run.predictions
    design = run.spec.design.for_task([NUM_TRAIN], [trial.draw.num_test], None)
    draw = Sampler(dataset, design, run.spec.seed, "data").draw(trial.draw)
    rows = take(inputs, draw.train)
    expected = [
        predict(rows, known[draw.train], take(inputs, np.delete(draw.test, fold)), take(inputs, draw.test[fold]))
        for fold in (slice(*ends) for ends in draw.folds)
    ]
    np.testing.assert_allclose(run.predictions[trial]["extra"].numbers, np.concatenate(expected), rtol=1e-4, atol=1e-6)


def hold(inputs: Any, labels: Any, splits: Sequence[Split] = ()) -> tuple[pb.Dataset, Any]:
    """Return rows as a data set, and their labels as numbers."""
    if labels is Y:
        return pb.Dataset(inputs, labels, kind="regression", splits=splits), labels
    classes, numbers = np.unique(labels, return_inverse=True)
    return pb.Dataset(inputs, numbers, tuple(map(str, classes)), splits=splits), numbers


def take(inputs: Any, rows: Any) -> Any:
    return [inputs[row] for row in rows] if isinstance(inputs, list) else np.take(inputs, rows, axis=0)


class Halving(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Needs labels, which only its signature tells."""

    def fit(self, inputs: Any, labels: Any) -> Halving:
        assert len(inputs) == len(labels)
        self.fitted_ = True
        return self

    def transform(self, inputs: Any) -> Any:
        return inputs / 2


class Centering(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Can be fitted with labels, and without them."""

    def fit(self, inputs: Any, labels: Any = None) -> Centering:
        rows = inputs if labels is None else inputs[labels == 0]
        self.mean_ = rows.mean(axis=0)
        return self

    def transform(self, inputs: Any) -> Any:
        return inputs - self.mean_


def test_the_report_names_the_leaves_that_are_fitted_on_unlabeled_rows() -> None:
    pipeline = make_pipeline(StandardScaler(), make_union(Halving(), PCA(1), SelectKBest(k=1)), LogisticRegression())
    entry = make_estimator_entry(pipeline, "mine")
    assert entry.summary.endswith("fitted on train and unlabeled rows by default: standardscaler, featureunion__pca")
    assert measure(pipeline, (X, CLASSES)).failed == 0


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, {"featureunion__pca", "standardscaler"}),
        ("featureunion__pca", {"featureunion__pca"}),
        (("standardscaler",), {"standardscaler"}),
    ],
)
def test_steps_within_steps_can_be_chosen(chosen: Any, expected: set[str]) -> None:
    pipeline = make_pipeline(StandardScaler(), make_union(PCA(1), SelectKBest(k=1)), LogisticRegression())
    assert unlabeled_steps(pipeline, chosen, "mine") == expected


def test_semi_supervised_estimators_in_a_search_receive_unlabeled_rows() -> None:
    search = GridSearchCV(SelfTrainingClassifier(LogisticRegression()), {"threshold": [0.6, 0.9]}, cv=2)
    run = measure(make_pipeline(Halving(), search), (X, CLASSES))
    (trial,) = run.predictions
    of_arms = {arm: found.numbers for arm, found in run.predictions[trial].items()}
    assert not np.array_equal(of_arms["base"], of_arms["test"])


def test_missing_values_are_for_the_columns_that_impute_them() -> None:
    columns = make_column_transformer((make_pipeline(SimpleImputer(), StandardScaler()), ["age"]), (PCA(1), TWO))
    assert measure(make_pipeline(columns, LogisticRegression()), (TABLE, CLASSES)).failed == 0


def test_labels_in_another_order_than_the_rows_are_refused() -> None:
    rows, labels = TABLE[TWO].sample(frac=1, random_state=0), pd.Series(CLASSES)
    with pytest.raises(pb.DataError, match=r"y has the index of X in another order.* give y.loc\[X.index\]"):
        measure(linear(), (rows, labels))
    assert measure(linear(), (rows, labels.loc[rows.index])).failed == 0


OPAQUE = {
    "pipeline": (
        BaggingClassifier(linear(), n_estimators=3),
        "BaggingClassifier fits its Pipeline without unlabeled rows; put what adapts before it in a pipeline$",
    ),
    "nothing learns": (
        LogisticRegression(C=2.0),
        r", or (make_pipeline\(StandardScaler\(\), LogisticRegression\(C=2.0\)\)) for features$",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPAQUE)
def test_what_cannot_be_split_is_refused(name: str) -> None:
    estimator, message = OPAQUE[name]
    with pytest.raises(PluginError, match=message) as caught:
        measure(estimator, (X, CLASSES))
    if rewrite := re.search(r", or (make_pipeline\(StandardScaler.*) for", str(caught.value)):
        assert measure(eval(rewrite[1]), (X, CLASSES)).finished == 1


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            make_pipeline(StandardScaler(), Centering(), LogisticRegression()),
            "the step centering can be fitted with lab",
        ),
        (make_pipeline(PCA(2), BaggingClassifier(linear())), "fits its Pipeline without unlabeled rows"),
    ],
)
def test_an_unclear_choice_is_left_to_the_user(estimator: Any, message: str) -> None:
    with pytest.raises(PluginError, match=message) as caught:
        measure(estimator, (X, CLASSES))
    (steps,) = re.findall(r"unlabeled_step=(\(.*\))$", str(caught.value))
    assert measure(estimator, (X, CLASSES), unlabeled_step=eval(steps)).finished == 1


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("pca", "no step 'pca' in the Pipeline; its steps are standardscaler, selectkbest, logisticregression"),
        ("selectkbest", "the step selectkbest needs labels or learns nothing; choose from standardscaler$"),
        (
            "logisticregression",
            "the step logisticregression needs labels or learns nothing; choose from standardscaler$",
        ),
    ],
)
def test_steps_that_cannot_be_chosen_are_refused(step: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        measure(
            make_pipeline(StandardScaler(), SelectKBest(k=2), LogisticRegression()), (X, CLASSES), unlabeled_step=step
        )
