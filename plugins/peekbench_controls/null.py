"""The negative control: tf-idf and logistic regression on train, whatever the unlabeled texts."""

from __future__ import annotations

from peekbench import Context, DataError, Inputs, Labeled, Options, Predictor, Task


def null(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Options, context: Context) -> Predictor:
    """Ignore the unlabeled texts."""
    return classify(train)


def classify(train: Labeled) -> Predictor:
    """tf-idf and logistic regression on train alone.

    Raises
    ------
    DataError
        Where no train text holds a word.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    vectorizer = TfidfVectorizer(sublinear_tf=True)
    if not any(map(vectorizer.build_analyzer(), train.inputs)):
        raise DataError(
            f"the {len(train.inputs)} train texts hold no word of two or more letters or digits, of which the controls "
            "make their features; draw more train texts, or leave the task out"
        )
    model = make_pipeline(vectorizer, LogisticRegression(C=10.0, max_iter=1000))
    model.fit(train.inputs, train.labels)
    return Predictor(model.predict_proba)
