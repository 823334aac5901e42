"""Self-training: a classifier labels the unlabeled texts softly and learns from its own answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench_classic.words import fit_tfidf

if TYPE_CHECKING:
    from peekbench_classic import SelfTraining


def self_training(
    unlabeled: Inputs | None, train: Labeled, task: Task, *, options: SelfTraining, context: Context
) -> Predictor:
    """Fit on train, give the unlabeled texts soft labels, fit again on both; the vocabulary is that of all texts seen.

    In the spirit of the soft labels of Pattern-Exploiting Training (Schick and Schuetze 2021,
    https://doi.org/10.18653/v1/2021.eacl-main.20), with a linear classifier in the place of language models.
    """
    import numpy as np
    from scipy.sparse import vstack
    from sklearn.linear_model import LogisticRegression

    texts = () if unlabeled is None else unlabeled
    vectorizer = fit_tfidf([*train.inputs, *texts])
    known = vectorizer.transform(train.inputs)
    classifier = LogisticRegression(C=options.regularization, max_iter=1000).fit(known, train.labels)
    if unlabeled is None:
        return Predictor(lambda inputs: classifier.predict_proba(vectorizer.transform(inputs)))

    unknown = vectorizer.transform(texts)
    # An unlabeled text with soft labels is one copy for each class, weighted by that class's share.
    rows = vstack([known, *[unknown] * task.num_classes], format="csr")
    labels = np.concatenate([train.labels, np.repeat(np.arange(task.num_classes), len(texts))])
    for _ in range(options.rounds):
        soft = classifier.predict_proba(unknown)  # (n_unlabeled, n_classes)
        # Relative to the likeliest class: however low the temperature, not all of a row's powers vanish.
        soft = (soft / soft.max(axis=1, keepdims=True)) ** (1 / options.temperature)
        soft /= soft.sum(axis=1, keepdims=True)
        weights = np.concatenate([np.ones(len(train.labels)), options.unlabeled_weight * soft.T.ravel()])
        classifier = LogisticRegression(C=options.regularization, max_iter=1000).fit(rows, labels, weights)
    entropy = -np.sum(soft * np.log(np.maximum(soft, 1e-12)), axis=1)
    return Predictor(
        lambda inputs: classifier.predict_proba(vectorizer.transform(inputs)),
        {"soft_label_entropy": float(entropy.mean())},
    )
