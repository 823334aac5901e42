"""The negative control: tf-idf and logistic regression on train; the unlabeled texts have no effect."""

from __future__ import annotations

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from peekbench import Context, DataError, Inputs, Labeled, Options, Predictor, Task


def null(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Options, context: Context) -> Predictor:
    """Fit a classifier on train, and ignore the unlabeled texts.

    Parameters
    ----------
    unlabeled
        Not used.
    train
        Labeled texts.
    task, options, context
        Not used.

    Returns
    -------
    Predictor
        The classifier.

    Raises
    ------
    DataError
        If the train texts have no words.
    """
    return classify(train)


def classify(train: Labeled) -> Predictor:
    """Fit tf-idf and logistic regression on train.

    Parameters
    ----------
    train
        Labeled texts.

    Returns
    -------
    Predictor
        The classifier.

    Raises
    ------
    DataError
        If the train texts have no words.
    """
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    if not any(map(vectorizer.build_analyzer(), train.inputs)):
        raise DataError(
            f"the {len(train.inputs)} train texts have no word of two or more letters or digits, and the controls need "
            "words as features; draw more train texts, or remove the task"
        )
    model = make_pipeline(vectorizer, LogisticRegression(C=10.0, max_iter=1000))
    model.fit(train.inputs, train.labels)
    return Predictor(model.predict_proba)
