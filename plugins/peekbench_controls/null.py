"""The negative control: a simple model of train; the unlabeled inputs have no effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from peekbench import Context, DataError, Inputs, Labeled, Options, Predictor, Task
from peekbench.plugins.estimators import fit_classifier
from peekbench.records import FloatArray, IntArray

NUM_SYMBOLS = 257  # bytes, and the end of a text


def null(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Options, context: Context) -> Predictor:
    """Fit a classifier, a regression, byte frequencies or the most frequent reference on train; ignore other inputs.

    Parameters
    ----------
    unlabeled
        Not used.
    train
        Labeled texts or features; in language modeling, texts.
    task
        Its kind determines the model.
    options, context
        Not used.

    Returns
    -------
    Predictor
        The classifier, regression or language model; in generation, the model that always gives the same answer.

    Raises
    ------
    DataError
        If the train texts have no words to classify by.
    """
    if task.kind == "regression":
        model = make_pipeline(*_steps_for_features(), Ridge()).fit(train.inputs, train.labels)
        return Predictor(model.predict)
    if task.kind == "language_modeling":
        return model_bytes(train)
    return fit_plain(train, task)


def fit_plain(train: Labeled, task: Task) -> Predictor:
    """Return the classifier of train, or in generation a model whose answer is the most frequent reference of train.

    Parameters
    ----------
    train
        Labeled texts or features.
    task
        Its kind determines the model.
    """
    if task.kind != "generation":
        return classify(train)
    ((answer, _),) = Counter(map(first_text, train.labels)).most_common(1)
    return Predictor(lambda prompts: [answer] * len(prompts))


def first_text(reference: Any) -> str:
    """Return a reference, or the first one of several."""
    return reference if isinstance(reference, str) else str(reference[0])


def classify(train: Labeled) -> Predictor:
    """Fit tf-idf or, for features, imputation and standardization, and logistic regression on train.

    Parameters
    ----------
    train
        Labeled texts or features.

    Returns
    -------
    Predictor
        The classifier.

    Raises
    ------
    DataError
        If the train texts have no words.
    """
    if not isinstance(train.inputs, Sequence):
        steps = make_pipeline(*_steps_for_features())
        model = fit_classifier(LogisticRegression(max_iter=1000), steps.fit_transform(train.inputs), train.labels)
        return Predictor(lambda inputs: model.predict_proba(steps.transform(inputs)))
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    if not any(map(vectorizer.build_analyzer(), train.inputs)):
        raise DataError(
            f"the {len(train.inputs)} train texts have no word of two or more letters or digits, and the controls need "
            "words as features; draw more train texts, or remove the task"
        )
    features = vectorizer.fit_transform(train.inputs)
    classifier = fit_classifier(LogisticRegression(C=10.0, max_iter=1000), features, train.labels)
    return Predictor(lambda inputs: classifier.predict_proba(vectorizer.transform(inputs)))


def _steps_for_features() -> tuple[Any, ...]:
    return FunctionTransformer(_as_numbers), SimpleImputer(keep_empty_features=True), StandardScaler()


def _as_numbers(inputs: Any) -> FloatArray:
    """Return features as an array. Of a data frame, columns of numbers, and the numbers of declared categories."""
    if not hasattr(inputs, "columns"):
        return np.asarray(inputs)
    columns = [np.zeros(len(inputs))]
    for name in inputs.columns:
        column = inputs[name]
        if hasattr(column, "cat"):
            columns.append(column.cat.codes.to_numpy(dtype=float))
        elif column.dtype.kind in "biuf":
            columns.append(column.to_numpy(dtype=float, na_value=np.nan))
    return np.column_stack(columns)


def model_bytes(train: Labeled) -> Predictor:
    """Count the bytes of train, and add one to each count.

    The bytes of a text and its end are independent, so the probabilities of all texts sum to 1.

    Parameters
    ----------
    train
        Texts.

    Returns
    -------
    Predictor
        The log-likelihoods of texts.
    """
    counts = 1 + np.sum([_count_symbols(text) for text in train.inputs], axis=0)
    log_probabilities = np.log(counts / counts.sum())

    def predict(inputs: Inputs) -> FloatArray:
        return np.array([_count_symbols(text) @ log_probabilities for text in inputs])

    return Predictor(predict)


def _count_symbols(text: str) -> IntArray:
    counts = np.bincount(np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8), minlength=NUM_SYMBOLS)
    counts[-1] = 1  # each text ends once
    return counts
