"""`peekbench.measure` on what users of scikit-learn hold: no adapter, and clear refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

import peekbench as pb
from peekbench.data.held_data import read_held
from peekbench.data.labels import name_labels
from peekbench.errors import PluginError, SpecError
from peekbench.plugins.estimators import adapts, make_estimator_entry
from peekbench.records import SourceRef
from peekbench.report import state
from peekbench.store.files import RUNS
from peekbench_testing import sample_numbers, sample_texts

DESIGN = {"num_train": 12, "num_test": 20, "num_subsamples": 2}
TEXTS = list(sample_texts(120).inputs)
NAMES = name_labels(sample_texts(120).labels, ("first", "second", "third"))
RATINGS = [1.5 * len(text) for text in TEXTS]
NUMBERS = sample_numbers(120)
X, Y = np.asarray(NUMBERS.inputs), np.asarray(NUMBERS.labels)
CLASSES = np.where(Y > 0, "high", "low")
FRAME = pd.DataFrame({"text": TEXTS, "label": NAMES})

TEXT_CLASSIFIERS = [
    make_pipeline(TfidfVectorizer(), LogisticRegression()),
    make_pipeline(make_union(TfidfVectorizer(), CountVectorizer(analyzer="char")), MultinomialNB()),
    make_pipeline(TfidfVectorizer(), TruncatedSVD(4), KNeighborsClassifier(1)),
    make_pipeline(TfidfVectorizer(max_features=8), LinearSVC()),
    make_pipeline(CountVectorizer(), SelfTrainingClassifier(LogisticRegression(), threshold=0.4)),
]
CLASSIFIERS = [
    make_pipeline(StandardScaler(), SelectKBest(k=2), LogisticRegression()),
    make_pipeline(PCA(2), RandomForestClassifier(5)),
    LabelSpreading(),
]
TABLE = pd.DataFrame(X, columns=["age", "income", "height", "weight"]).assign(city=np.array(["Oslo", "Rome"] * 60))
SCALE = (StandardScaler(), ["age", "income"])
CODE = (OneHotEncoder(handle_unknown="ignore"), ["city"])
BY_NAME = make_pipeline(make_column_transformer(SCALE, CODE), LogisticRegression())
WITH_TEXTS = make_pipeline(make_column_transformer((TfidfVectorizer(), "review"), SCALE), LogisticRegression())
TEXT_REGRESSORS = [make_pipeline(TfidfVectorizer(), Ridge())]
REGRESSORS = [
    make_pipeline(StandardScaler(), PCA(2), KNeighborsRegressor()),
    make_pipeline(StandardScaler(), TransformedTargetRegressor(Ridge())),
    make_pipeline(PCA(2), RandomForestRegressor(5)),
]
ESTIMATORS = [
    *[(estimator, FRAME) for estimator in TEXT_CLASSIFIERS],
    *[(estimator, (X, CLASSES)) for estimator in CLASSIFIERS],
    (BY_NAME, (TABLE, CLASSES)),
    (make_pipeline(SimpleImputer(), SelfTrainingClassifier(LogisticRegression())), (TABLE[["age", "income"]], CLASSES)),
    (WITH_TEXTS, (TABLE.assign(review=TEXTS), NAMES)),
    *[(estimator, (TEXTS, RATINGS)) for estimator in TEXT_REGRESSORS],
    *[(estimator, (X, Y)) for estimator in REGRESSORS],
]


def measure(method: Any, data: Any, **options: Any) -> pb.Run:
    return pb.measure(method, data, **{"design": DESIGN, "progress": False, **options})


@pytest.mark.parametrize(("estimator", "data"), ESTIMATORS)
def test_an_estimator_is_measured_without_an_adapter(estimator: Any, data: Any) -> None:
    run = measure(estimator, data)
    assert (run.finished, run.failed) == (2, 0)
    (trial, *_) = run.predictions
    of_arms = {arm: found.numbers for arm, found in run.predictions[trial].items()}
    assert not np.array_equal(of_arms["base"][:20], of_arms["extra"][:20])  # it adapts to the unlabeled rows
    assert not np.array_equal(of_arms["test"], of_arms["extra"])


class Recorder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Records the rows that it is fitted on."""

    fits: list[tuple[int, bool]] = []  # noqa: RUF012 - shared by clones

    def fit(self, inputs: Any, *labels: Any) -> Recorder:
        self.fits.append((len(inputs), not labels))
        self.fitted_ = True
        return self

    def transform(self, inputs: Any) -> Any:
        return inputs


def test_the_chosen_steps_are_fitted_on_train_and_unlabeled_rows_without_labels() -> None:
    pipeline = make_pipeline(Recorder(), StandardScaler(), LogisticRegression())
    design = {**DESIGN, "num_subsamples": 1, "crossover": False}
    for steps, expected in ((None, {(12, True), (32, True)}), ("standardscaler", {(12, False)})):
        Recorder.fits.clear()
        run = measure(pipeline, (X, CLASSES), design=design, unlabeled_step=steps)
        assert set(Recorder.fits) == expected
    assert "unlabeled rows by default: recorder, standardscaler" in str(run.report().document.methods)


class Halving(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Halves train rows only; `TargetEncoder` encodes them by other labels than other rows."""

    def fit(self, inputs: Any, labels: Any = None) -> Halving:
        self.fitted_ = True
        return self

    def fit_transform(self, inputs: Any, labels: Any = None) -> Any:
        return self.fit(inputs).transform(inputs) / 2

    def transform(self, inputs: Any) -> Any:
        return inputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def test_steps_that_do_not_adapt_are_fitted_as_in_a_pipeline() -> None:
    pipeline = make_pipeline(StandardScaler(), Halving(), LogisticRegression())
    train = pb.Labeled(X[:40], (Y[:40] > 0).astype(int))
    task = pb.Task("data", "classification", ("low", "high"), "", SourceRef("test"))
    context = pb.Context(0, 1, pb.Folders(Path(), Path()))
    entry = make_estimator_entry(pipeline, "halving")
    predictor: Any = entry.method(None, train, task, options=entry.options(), context=context)
    expected = pipeline.fit(train.inputs, train.labels).predict_proba(X[40:])
    np.testing.assert_allclose(predictor.predict(X[40:]).numbers, expected)


def test_a_pipeline_whose_last_step_is_a_pipeline_is_measured_as_the_flat_one() -> None:
    vectorizer, *others = TfidfVectorizer(), TruncatedSVD(4), KNeighborsClassifier(1)
    nested = measure(make_pipeline(vectorizer, make_pipeline(*others)), FRAME)
    pd.testing.assert_frame_equal(nested.arms, measure(make_pipeline(vectorizer, *others), FRAME).arms)
    assert "by default: tfidfvectorizer, pipeline__truncatedsvd" in nested.spec.methods[0].entry.summary


def test_names_types_and_values_of_columns_identify_a_run() -> None:
    tables = [TABLE, TABLE.rename(columns={"height": "size"}), TABLE.astype({"height": "float32"}), TABLE.assign(age=0)]
    fingerprints = [read_held((table, CLASSES), "data", [BY_NAME]).fingerprint for table in (*tables, TABLE.copy())]
    assert fingerprints[0] == fingerprints[4]
    assert len(set(fingerprints)) == 4


class RecordingSpreading(LabelSpreading):  # type: ignore[misc]
    """Records the labels that it is fitted on."""

    def fit(self, inputs: Any, labels: Any) -> RecordingSpreading:
        Recorder.fits.append((len(labels), bool((labels[12:] == -1).all())))
        return super().fit(inputs, labels)  # type: ignore[no-any-return]


def test_semi_supervised_estimators_receive_unlabeled_rows_with_the_label_minus_one() -> None:
    Recorder.fits.clear()
    measure(RecordingSpreading(), (X, CLASSES))
    assert set(Recorder.fits) == {(12, True), (32, True)}


def test_only_what_learns_without_labels_adapts() -> None:
    learn = [TfidfVectorizer(), PCA(), VarianceThreshold(), make_pipeline(Normalizer(), PCA()), Recorder()]
    learn += [make_union(PCA(), Normalizer()), ColumnTransformer([("scale", StandardScaler(), [0])]), SimpleImputer()]
    learn += [ColumnTransformer([("normalize", Normalizer(), [0])], remainder=StandardScaler())]
    others = [HashingVectorizer(), Normalizer(), FunctionTransformer(), FrozenEstimator(PCA()), SelectKBest()]
    learn += [make_union(PCA(), SelectKBest()), GridSearchCV(TFIDF, {}), VotingClassifier([("a", TFIDF)])]
    others += [TargetEncoder(), SelectFromModel(LogisticRegression()), PLSRegression(), make_union(SelectKBest())]
    others += ["passthrough", make_union("passthrough"), ColumnTransformer([("keep", "passthrough", [0])])]
    others += [ColumnTransformer([("keep", "passthrough", [0])], remainder=SelectKBest()), LogisticRegression()]
    assert [type(step).__name__ for step in learn if not adapts(step)] == []
    assert [type(step).__name__ for step in others if adapts(step)] == []


NO_PROBABILITIES = make_pipeline(StandardScaler(), LinearSVC())
TFIDF, SCALED = make_pipeline(TfidfVectorizer(), LogisticRegression()), CLASSIFIERS[0]
REFUSALS = [
    pytest.param(LogisticRegression(), (X, CLASSES), r"each step of this Logistic", id="no transformer"),
    pytest.param(
        make_pipeline(StandardScaler(), LogisticRegression(class_weight={"a": 2})),
        (X, CLASSES),
        r"logisticregression__class_weight names 'a', which is no class; classes are high, low",
        id="weights of classes",
    ),
    pytest.param(TFIDF, (NAMES, TEXTS), r"120 classes in 120 rows", id="swapped texts"),
    pytest.param(make_pipeline(HashingVectorizer(), LinearSVC()), FRAME, r"learns nothing", id="stateless"),
    pytest.param(KMeans(), (X, CLASSES), r"kmeans is a clusterer", id="clusterer"),
    pytest.param(TFIDF, (X, CLASSES), r"supports classification, but task data is tabular", id="texts wanted"),
    pytest.param(SCALED, FRAME, r"supports tabular_classification, but task data is class", id="features wanted"),
    pytest.param(
        TFIDF, FRAME.assign(id=0).rename(columns={"text": "review"}), r"columns are review, label, id$", id="3"
    ),
    pytest.param(SCALED, (X, Y), r"row 0: the label [\d.]+ is float, but a label is", id="numbers"),
    pytest.param(REGRESSORS[0], (X, CLASSES), r"row 0: the label '\w+' is not a number", id="strings"),
    pytest.param(SCALED, (csr_array(X), CLASSES), r"X is sparse.* give the texts", id="sparse"),
    pytest.param(REGRESSORS[0], (X, [np.nan, *Y[1:]]), r"row 0: no label; add it to 1 row", id="nan label"),
    pytest.param(TFIDF, (TEXTS, [np.nan, *NAMES[1:]]), r"1 of 120 rows have the label '', .*row 0", id="nan c"),
    pytest.param(SCALED, (X, CLASSES[1:]), r"120 rows, but labels of shape \(119,\)", id="lengths"),
    pytest.param(SCALED, X, r"type ndarray; data are names of tasks", id="no labels"),
]


@pytest.mark.parametrize(("method", "data", "message"), REFUSALS)
def test_what_cannot_be_measured_is_refused(method: Any, data: Any, message: str) -> None:
    with pytest.raises(pb.PeekbenchError, match=message) as caught:
        measure(method, data)
    assert caught.value._render_traceback_() == [f"{caught.type.__name__}: {caught.value}"]


def test_forms_of_the_same_rows_are_the_same_run() -> None:
    named = FRAME.rename(columns={"text": "review", "label": "topic"})
    first = measure("controls.null", FRAME, name="forms")
    for data in ((TEXTS, NAMES), (FRAME["text"], FRAME["label"]), lambda: FRAME, pb.Dataset(*read(FRAME))):
        assert measure("controls.null", data, name="forms").resumed == 2
    assert measure("controls.null", named, text="review", label="topic", name="forms").resumed == 2
    both = measure(TFIDF, {"mine": FRAME, "names": "toy.words"})
    assert ([task.name for task in both.spec.tasks], both.failed) == (["mine", "names"], 0)
    assert pb.load_run(first.name).report().verdicts[0].method == "controls.null"


def read(data: Any) -> Any:
    dataset = read_held(data, "data", [None])
    return dataset.inputs, dataset.labels, dataset.class_names


def test_labels_are_classes_or_numbers() -> None:
    assert read_held((X, np.where(Y > 0, 1, -1)), "data", [SCALED]).class_names == ("-1", "1")
    for labels, names in (([1.0, 0.0], ("0", "1")), ([True, False], ("false", "true")), ([10, 9], ("9", "10"))):
        assert read_held((TEXTS[:8], 4 * labels), "data", [LogisticRegression()]).class_names == names
    assert read_held((["a", "b"], [1, 2]), "data", [Ridge()]).kind == "regression"
    assert read_held((["a", "b"], [1.0, 2.0]), "data", [None]).kind == "regression"  # a function


def test_scores_of_scikit_learn_are_computed_from_the_stored_predictions() -> None:
    run = measure(REGRESSORS[0], (X, Y), score="neg_mean_absolute_error", region=0.1)
    table = run.report().tables["by task"].to_pandas()
    frame = run.predictions.to_pandas()
    errors = (frame["predicted_value"] - frame["target"]).abs().groupby(frame["arm"]).mean()
    assert table["test"].item() == pytest.approx(-errors["test"])
    assert table["bias"].item() == pytest.approx(errors["extra"] - errors["test"])
    with pytest.raises(pb.PeekbenchError, match="no column 'score'"):
        pb.analyze(frame)  # R^2 is no mean over texts
    verdict = run.report().verdicts[0]
    assert (verdict.region, verdict.unit) == (0.1, "change")
    assert "neg_mean_absolute_error" in "".join(run.report().tables.titles)
    evidence: Any = verdict.evidence
    words = state(replace(verdict, evidence=replace(evidence, decision="equivalent")))
    assert words.startswith("seeing the test rows changed the neg_mean_absolute_error by less than 0.1000")


@pytest.mark.parametrize(
    ("score", "column"), [("accuracy", "score"), ("f1_macro", "macro_f1"), ("roc_auc", "roc_auc"), ("f1", "f1")]
)
def test_scores_of_classifiers(score: str, column: str) -> None:
    options: Any = measure(SCALED, (X, CLASSES), score=score).spec.analyses[0].options
    assert (options.score, options.region) == (column, 0.005)


@pytest.mark.parametrize(
    ("method", "labels", "score", "message"),
    [
        (SCALED, CLASSES, "rocauc", "no score is named 'rocauc'; did you mean 'roc_auc'"),
        (
            REGRESSORS[0],
            Y,
            "accuracy",
            "'accuracy' is not defined for .* task data .*; use one of r2, neg_mean_absolute",
        ),
        (REGRESSORS[0], Y, "log_loss", "'log_loss' is not defined"),
        (SCALED, CLASSES, "r2", "'r2' is not defined .*; use one of accuracy, balanced_accuracy"),
        (SCALED, NAMES, "f1", "'f1' is not defined for .*; use one of accuracy, balanced_accuracy, f1_macro"),
        (NO_PROBABILITIES, CLASSES, "roc_auc", "'roc_auc' is not defined for .* what the method predicts"),
        (NO_PROBABILITIES, CLASSES, "brier", "'brier' is not defined"),
        (REGRESSORS[0], Y, "neg_mean_squared_error", "no default region .*region="),
    ],
)
def test_scores_are_refused_before_any_trial(method: Any, labels: Any, score: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        measure(method, (X, labels), score=score)
    assert not list(RUNS.glob("*"))


def test_several_methods_are_measured_in_one_run() -> None:
    run = measure({"words": TFIDF, "letters": TEXT_CLASSIFIERS[1]}, FRAME, score="f1_macro")
    assert [method.name for method in run.spec.methods] == ["words", "letters"]
    listed = measure([TFIDF, TEXT_CLASSIFIERS[1]], FRAME)
    assert ([method.name for method in listed.spec.methods], listed.failed) == (["pipeline-1", "pipeline-2"], 0)
    with pytest.raises(pb.DataError, match="read it differently"):
        measure([SCALED, REGRESSORS[0]], (X, [0, 1] * 60))
    with pytest.raises(PluginError, match="options and unlabeled_step are those of one method"):
        measure([TFIDF, TFIDF], FRAME, options={"a": 1})


def test_keys_of_the_design_are_arguments_and_unknown_ones_are_refused() -> None:
    assert pb.measure(TFIDF, FRAME, num_subsamples=1, num_test=20, progress=False).planned == 1
    with pytest.raises(SpecError, match="num_subsample: no key of a spec"):
        measure(TFIDF, FRAME, num_subsample=2)
    with pytest.raises(SpecError, match='label: no key .* give it as {"use": "toy.words", "options": {"label": "x"}}'):
        measure(TFIDF, "toy.words", label="x")


def test_functions_may_return_numbers_or_names_of_classes() -> None:
    for fit in (lambda train: lambda texts: ["second"] * len(texts), lambda train: lambda texts: [1] * len(texts)):
        run = measure(fit, FRAME)
        assert run.predictions.to_pandas()["prediction"].unique().tolist() == ["second"]
    with pytest.raises(pb.PeekbenchError, match="predictions are 'forth'.*classes .*'first', 'second'"):
        measure(lambda train: lambda texts: ["forth"] * len(texts), FRAME)
