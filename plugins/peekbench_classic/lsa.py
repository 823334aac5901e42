"""Latent semantic analysis: tf-idf and truncated SVD of all texts, then logistic regression on the train texts."""

from __future__ import annotations

from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench_classic import Lsa
from peekbench_classic.words import TFIDF_WORDS, fit_tfidf, too_few_words_error


def lsa(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Lsa, context: Context) -> Predictor:
    """Fit tf-idf and SVD on the train and unlabeled texts (only train in the base arm), and the classifier on train.

    Source: Deerwester et al. (1990), https://doi.org/10.1002/(SICI)1097-4571(199009)41:6<391::AID-ASI1>3.0.CO;2-9

    Parameters
    ----------
    unlabeled
        Unlabeled texts; None in the base arm.
    train
        Labeled texts.
    task
        The task.
    options
        Number of components and regularization.
    context
        Seed of the SVD.

    Returns
    -------
    Predictor
        The classifier, with the metric `explained_variance`.

    Raises
    ------
    DataError
        If the texts have fewer than two different words.
    """
    texts = [*train.inputs, *(() if unlabeled is None else unlabeled)]
    vectorizer = fit_tfidf(texts)
    matrix = vectorizer.transform(texts)
    if matrix.shape[1] < 2:
        raise too_few_words_error(texts, TFIDF_WORDS, "only one word")
    num_components = min(options.num_components, *matrix.shape)
    svd = TruncatedSVD(num_components, random_state=context.seed).fit(matrix)
    # Unit length, as usual after an SVD of texts: the cosine matters, not the number of known words in a text.
    embed = make_pipeline(vectorizer, svd, Normalizer(copy=False))
    classifier = LogisticRegression(C=options.regularization, max_iter=1000)
    classifier.fit(embed.transform(train.inputs), train.labels)
    return Predictor(
        lambda inputs: classifier.predict_proba(embed.transform(inputs)),
        {"explained_variance": float(svd.explained_variance_ratio_.sum())},
    )
