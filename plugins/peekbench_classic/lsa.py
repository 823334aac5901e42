"""Latent semantic analysis: tf-idf and truncated SVD of whatever texts there are, then logistic regression on train."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench_classic.words import TFIDF_WORDS, fit_tfidf, too_few_words

if TYPE_CHECKING:
    from peekbench_classic import Lsa


def lsa(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Lsa, context: Context) -> Predictor:
    """Fit tf-idf and SVD on the unlabeled texts with train (on train alone in the base arm), the classifier on train.

    Source: Deerwester et al. (1990), https://doi.org/10.1002/(SICI)1097-4571(199009)41:6<391::AID-ASI1>3.0.CO;2-9
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    texts = [*train.inputs, *(() if unlabeled is None else unlabeled)]
    vectorizer = fit_tfidf(texts)
    matrix = vectorizer.transform(texts)
    if matrix.shape[1] < 2:
        raise too_few_words(texts, TFIDF_WORDS, "only one word")
    num_components = min(options.num_components, *matrix.shape)
    svd = TruncatedSVD(num_components, random_state=context.seed).fit(matrix)
    # Unit length, as customary after an SVD of texts: the cosine counts, not how many known words a text has.
    embed = make_pipeline(vectorizer, svd, Normalizer(copy=False))
    classifier = LogisticRegression(C=options.regularization, max_iter=1000)
    classifier.fit(embed.transform(train.inputs), train.labels)
    return Predictor(
        lambda inputs: classifier.predict_proba(embed.transform(inputs)),
        {"explained_variance": float(svd.explained_variance_ratio_.sum())},
    )
