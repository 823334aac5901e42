"""word2vec trained on all texts; a text is the mean of its word vectors, and logistic regression classifies it."""

from __future__ import annotations

import numpy as np
from gensim.models import Word2Vec as Embedding
from gensim.utils import simple_preprocess
from sklearn.linear_model import LogisticRegression

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.plugins.estimators import fit_classifier
from peekbench.records import FloatArray
from peekbench_classic import Word2Vec
from peekbench_classic.tfidf import too_few_words_error

WORDS = "two to fifteen letters"


def word2vec(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Word2Vec, context: Context) -> Predictor:
    """Train skip-gram vectors on the train and unlabeled texts (only train in the base arm), and classify their means.

    Source: Mikolov et al. (2013), https://doi.org/10.48550/arXiv.1310.4546. A text without known words is the zero
    vector; its probabilities are those of the intercept, close to the class shares of train.

    Parameters
    ----------
    unlabeled
        Unlabeled texts; None in the base arm.
    train
        Labeled texts.
    task
        The task.
    options
        Dimensions, window, epochs and regularization.
    context
        Seed of the vectors.

    Returns
    -------
    Predictor
        The classifier, with the metric `vocabulary` (number of words).

    Raises
    ------
    DataError
        If the texts have no words.
    """
    texts = [*train.inputs, *(() if unlabeled is None else unlabeled)]
    sentences = [simple_preprocess(text) for text in texts]
    if not any(sentences):
        raise too_few_words_error(texts, WORDS)
    embedding = Embedding(
        sentences,
        vector_size=options.num_dimensions,
        window=options.window,
        epochs=options.epochs,
        min_count=1,  # there are few texts, so words that occur once are kept
        sg=1,
        seed=context.seed % 2**31,
        workers=1,  # with several threads the result would depend on their scheduling
    )

    def embed(texts: Inputs) -> FloatArray:  # (n, num_dimensions)
        means = np.zeros((len(texts), options.num_dimensions))
        for row, text in enumerate(texts):
            words = [word for word in simple_preprocess(text) if word in embedding.wv]
            if words:
                mean = embedding.wv[words].mean(axis=0, dtype=np.float64)
                means[row] = mean / np.linalg.norm(mean)
        return means

    classifier = LogisticRegression(C=options.regularization, max_iter=1000)
    classifier = fit_classifier(classifier, embed(train.inputs), train.labels)
    return Predictor(
        lambda inputs: classifier.predict_proba(embed(inputs)), {"vocabulary": float(len(embedding.wv.key_to_index))}
    )
