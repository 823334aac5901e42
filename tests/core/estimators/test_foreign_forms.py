"""Estimators, outputs and data of other libraries: each is right, or the remedy of its error is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import SpectralEmbedding
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import peekbench as pb
from peekbench.errors import PluginError
from peekbench.plugins.estimator_parts import clone_estimator, clone_with_seed

RNG = np.random.default_rng(0)
Y = np.repeat(["no", "yes"], 60)
X = RNG.normal(size=(120, 4)) + 0.8 * (Y == "yes")[:, None]
DESIGN = {"num_train": 20, "num_test": 40, "num_subsamples": 1}


def base_score(method: Any, data: Any = (X, Y), score: str = "score", **options: Any) -> Any:
    run = pb.measure(method, data, **{"design": DESIGN, "progress": False, "score": score, **options})
    return run.results.query("arm == 'base'")["score"].item()


def by_hand(estimator: Any) -> Any:
    """Return a method that fits an estimator to names of classes, and returns the names that it predicts."""

    def fit(unlabeled: Any, train: Any, task: Any, seed: int) -> Any:
        names = [task.class_names[number] for number in train.labels]
        fitted = clone_with_seed(estimator, seed).fit(train.inputs, names)
        return lambda rows: fitted.predict(rows).tolist()

    return fit


class Cautious(LogisticRegression):  # type: ignore[misc]
    """A classifier with a rule of its own."""

    def predict(self, rows: Any) -> Any:
        return self.classes_[(self.predict_proba(rows)[:, 1] > 0.8).astype(int)]


class Fitted:
    """A transformer without `fit` and `get_params`."""

    def fit_transform(self, rows: Any, labels: Any = None) -> Any:
        self.mean = np.mean(rows, axis=0)
        return self.transform(rows)

    def transform(self, rows: Any) -> Any:
        return rows - self.mean


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(StandardScaler(), SVC(probability=True)),
        make_pipeline(StandardScaler(), FixedThresholdClassifier(LogisticRegression(), threshold=0.8, pos_label="no")),
        FixedThresholdClassifier(make_pipeline(StandardScaler(), LogisticRegression()), threshold=0.8),
        make_pipeline(StandardScaler(), TunedThresholdClassifierCV(LogisticRegression(), cv=2)),
        make_pipeline(StandardScaler(), Cautious()),
        make_pipeline(StandardScaler(), LogisticRegression(class_weight={"no": 9, "yes": 1})),
        make_pipeline(Fitted(), Cautious()),
    ],
    ids=[
        "svc",
        "fixed threshold",
        "fixed around pipeline",
        "tuned threshold",
        "own predict",
        "class weights",
        "fitted step",
    ],
)
def test_the_score_of_an_estimator_is_that_of_its_own_predictions(estimator: Any) -> None:
    assert base_score(estimator) == base_score(by_hand(estimator))


def test_samplers_of_imbalanced_learn_change_only_rows_with_labels() -> None:
    pipelines = pytest.importorskip("imblearn.pipeline")
    under_sampling = pytest.importorskip("imblearn.under_sampling")
    sampler = under_sampling.RandomUnderSampler(sampling_strategy={0: 4, 1: 10}, random_state=0)
    pipeline = pipelines.make_pipeline(PCA(2), sampler, LogisticRegression())

    def fit(unlabeled: Any, train: Any, task: Any) -> Any:
        rows = train.inputs if unlabeled is None else np.concatenate([train.inputs, unlabeled])
        reduced = PCA(2, random_state=0).fit(rows)
        resampled = clone_estimator(sampler).fit_resample(reduced.transform(train.inputs), train.labels)
        model = LogisticRegression(random_state=0).fit(*resampled)
        return lambda inputs: model.predict_proba(reduced.transform(inputs))

    found, expected = (pb.measure(method, (X, Y), design=DESIGN, progress=False) for method in (pipeline, fit))
    arms = ["base", "extra", "test"]
    assert found.arms[arms].to_numpy().tolist() == expected.arms[arms].to_numpy().tolist()


@pytest.mark.parametrize(
    ("unusable", "message", "remedy"),
    [
        (
            GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}, refit=False, cv=2),
            "set refit=True",
            GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}, refit=True, cv=2),
        ),
        (
            make_pipeline(StandardScaler(), SpectralEmbedding(), LogisticRegression()),
            "the step spectralembedding cannot transform other rows .*; leave it out",
            make_pipeline(StandardScaler(), LogisticRegression()),
        ),
    ],
)
def test_estimators_that_cannot_predict_other_rows_are_refused(unusable: Any, message: str, remedy: Any) -> None:
    with pytest.raises(PluginError, match=message):
        base_score(unusable)
    base_score(remedy)


def test_outputs_of_torch_are_right() -> None:
    torch = pytest.importorskip("torch")

    def method(form: str) -> Any:
        def fit(unlabeled: Any, train: Any, task: Any) -> Any:
            model = LogisticRegression().fit(train.inputs, train.labels)

            def predict(rows: Any) -> Any:
                logits = torch.tensor(model.predict_log_proba(rows), requires_grad=True)
                return {
                    "numpy": model.predict_proba(rows),
                    "gradients": logits.softmax(-1),
                    "list of tensors": list(logits.argmax(-1)),
                    "bfloat16": logits.to(torch.bfloat16).softmax(-1),
                    "float32": logits.to(torch.bfloat16).float().softmax(-1),
                }[form]

            return predict

        return fit

    for form in ("gradients", "list of tensors", "float32"):
        assert base_score(method(form)) == base_score(method("numpy"))
    with pytest.raises(PluginError, match=r"logits.float\(\).softmax\(-1\)"):
        base_score(method("bfloat16"))
    with pytest.raises(PluginError, match=r"return scipy.special.softmax\(output.predictions, axis=-1\)"):
        base_score(lambda unlabeled, train: lambda rows: SimpleNamespace(predictions=rows, label_ids=None))


def test_streams_and_splits_of_other_names_are_read_as_the_messages_say() -> None:
    datasets = pytest.importorskip("datasets")
    texts = [f"{'good' if row % 2 else 'bad'} film {row}" for row in range(120)]
    rows = [{"text": text, "label": ("neg", "pos")[row % 2]} for row, text in enumerate(texts)]
    stream = datasets.IterableDataset.from_generator(lambda: iter(rows))
    assert stream.features is None
    labels = [row["label"] for row in rows]
    assert base_score("classic.lsa", stream) == base_score("classic.lsa", (texts, labels))
    data = datasets.Dataset.from_list(rows)
    splits = datasets.DatasetDict({"train_clean": data.select(range(60)), "test": data.select(range(60, 120))})
    with pytest.raises(pb.DataError, match="its splits are train_clean, test, .* give two of them as `train` and"):
        pb.measure("classic.lsa", splits, design="official", progress=False)
    pb.measure("classic.lsa", train=splits["train_clean"], test=splits["test"], design="official", progress=False)
