"""word2vec trained on whatever texts there are, a text being the mean of its words, then logistic regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peekbench import Context, Inputs, Labeled, Predictor, Task
from peekbench.records import FloatArray
from peekbench_classic.words import WORD2VEC_WORDS, too_few_words

if TYPE_CHECKING:
    from peekbench_classic import Word2Vec


def word2vec(unlabeled: Inputs | None, train: Labeled, task: Task, *, options: Word2Vec, context: Context) -> Predictor:
    """Train skip-gram vectors on the unlabeled texts with train (on train alone in the base arm), classify their means.

    Source: Mikolov et al. (2013), https://doi.org/10.48550/arXiv.1310.4546. A text without any known word is the zero
    vector, and gets the class shares of train or what comes close.
    """
    import numpy as np
    from gensim.models import Word2Vec as Embedding
    from gensim.utils import simple_preprocess
    from sklearn.linear_model import LogisticRegression

    texts = [*train.inputs, *(() if unlabeled is None else unlabeled)]
    sentences = [simple_preprocess(text) for text in texts]
    if not any(sentences):
        raise too_few_words(texts, WORD2VEC_WORDS)
    embedding = Embedding(
        sentences,
        vector_size=options.num_dimensions,
        window=options.window,
        epochs=options.epochs,
        min_count=1,  # texts are few: a word seen once is still a word
        sg=1,
        seed=context.seed % 2**31,
        workers=1,  # more would make the result depend on how they happen to take turns
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
    classifier.fit(embed(train.inputs), train.labels)
    return Predictor(
        lambda inputs: classifier.predict_proba(embed(inputs)), {"vocabulary": float(len(embedding.wv.key_to_index))}
    )
