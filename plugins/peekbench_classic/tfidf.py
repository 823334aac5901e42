"""Methods on tf-idf features: latent semantic analysis and self-training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import vstack
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from peekbench import Context, DataError, Inputs, Labeled, Predictor, Task
from peekbench.plugins.estimators import fit_classifier
from peekbench_classic import Lsa, SelfTraining

TFIDF_WORDS = "two or more letters or digits"


def too_few_words_error(texts: Sequence[str], words: str, count: str = "no word") -> DataError:
    """Return the error for texts without features, such as emoji or Chinese without spaces.

    Parameters
    ----------
    texts
        The texts.
    words
        Description of the method's words.
    count
        Number of words in the texts.

    Returns
    -------
    DataError
        The error to raise.
    """
    return DataError(
        f"the {len(texts)} texts that this method is fitted on have {count} of {words}, and the method needs words as "
        "features; draw more train texts, remove the task, or choose a method that reads characters"
    )


def fit_tfidf(texts: Sequence[str], known: Sequence[str] | None = None) -> TfidfVectorizer:
    """Fit tf-idf with sublinear term frequencies, 1 + log(count).

    Parameters
    ----------
    texts
        Texts to fit on.
    known
        Texts whose words are used; by default, `texts`.

    Returns
    -------
    TfidfVectorizer
        The fitted vectorizer.

    Raises
    ------
    DataError
        If the texts have no words.
    """
    try:
        vocabulary = None if known is None else TfidfVectorizer().fit(known).vocabulary_
        return TfidfVectorizer(sublinear_tf=True, vocabulary=vocabulary).fit(texts)
    except ValueError as error:  # no vocabulary
        raise too_few_words_error(texts if known is None else known, TFIDF_WORDS) from error


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
        Words, number of components and regularization.
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
    vectorizer = fit_tfidf(texts, texts[: len(train.inputs)] if options.vocabulary == "train" else None)
    matrix = vectorizer.transform(texts)
    if matrix.shape[1] < 2:
        raise too_few_words_error(texts, TFIDF_WORDS, "only one word")
    num_components = min(options.num_components, *matrix.shape)
    svd = TruncatedSVD(num_components, random_state=context.seed).fit(matrix)
    # Unit length, as usual after an SVD of texts: the cosine matters, not the number of known words in a text.
    embed = make_pipeline(vectorizer, svd, Normalizer(copy=False))
    classifier = LogisticRegression(C=options.regularization, max_iter=1000)
    classifier = fit_classifier(classifier, embed.transform(train.inputs), train.labels)
    return Predictor(
        lambda inputs: classifier.predict_proba(embed.transform(inputs)),
        {"explained_variance": float(svd.explained_variance_ratio_.sum())},
    )


def self_training(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: SelfTraining, context: Context
) -> Predictor:
    """Fit on train, give the unlabeled texts soft labels, and fit again on both; the vocabulary is that of all texts.

    This follows the soft labels of Pattern-Exploiting Training (Schick and Schuetze 2021,
    https://doi.org/10.18653/v1/2021.eacl-main.20), with a linear classifier instead of language models.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; None in the base arm.
    train
        Labeled texts.
    task
        The task; it gives the number of classes.
    options
        Rounds, weight, temperature and regularization.
    context
        Not used.

    Returns
    -------
    Predictor
        The classifier, with the metric `soft_label_entropy` except in the base arm.

    Raises
    ------
    DataError
        If the texts have no words.
    """
    texts = () if unlabeled is None else unlabeled
    vectorizer = fit_tfidf([*train.inputs, *texts])
    train_features = vectorizer.transform(train.inputs)
    classifier = LogisticRegression(C=options.regularization, max_iter=1000).fit(train_features, train.labels)
    if unlabeled is None:
        return Predictor(lambda inputs: classifier.predict_proba(vectorizer.transform(inputs)))

    unlabeled_features = vectorizer.transform(texts)
    # An unlabeled text with soft labels becomes one copy per class, weighted by the probability of that class.
    rows = vstack([train_features, *[unlabeled_features] * task.num_classes], format="csr")
    labels = np.concatenate([train.labels, np.repeat(np.arange(task.num_classes), len(texts))])
    for _ in range(options.rounds):
        soft = classifier.predict_proba(unlabeled_features)  # (n_unlabeled, n_classes)
        # Divide by the largest probability first, so that low temperatures do not round all powers of a row to zero.
        soft = (soft / soft.max(axis=1, keepdims=True)) ** (1 / options.temperature)
        soft /= soft.sum(axis=1, keepdims=True)
        weights = np.concatenate([np.ones(len(train.labels)), options.unlabeled_weight * soft.T.ravel()])
        classifier = LogisticRegression(C=options.regularization, max_iter=1000).fit(rows, labels, weights)
    entropy = -np.sum(soft * np.log(np.maximum(soft, 1e-12)), axis=1)
    return Predictor(
        lambda inputs: classifier.predict_proba(vectorizer.transform(inputs)),
        {"soft_label_entropy": float(entropy.mean())},
    )
