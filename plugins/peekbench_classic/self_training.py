"""Self-training: a classifier gives the unlabeled texts soft labels, and learns from them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import vstack
from sklearn.linear_model import LogisticRegression

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench_classic import SelfTraining
from peekbench_classic.words import fit_tfidf


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
