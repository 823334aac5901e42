"""The negative control: tf-idf and logistic regression on train, whatever the unlabeled texts."""

from __future__ import annotations

from peekbench import Context, Inputs, Labeled, Options, Predictor, Task


def null(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Options, context: Context) -> Predictor:
    """Ignore the unlabeled texts."""
    return classify(train)


def classify(train: Labeled) -> Predictor:
    """tf-idf and logistic regression on train alone."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10.0, max_iter=1000))
    model.fit(train.inputs, train.labels)
    return Predictor(model.predict_proba)
