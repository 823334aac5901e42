"""What these methods take for a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench import DataError, Folders, Options, TokenCounts

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

NO_WORDS = (
    "the texts hold no word of two letters or more, of which this method makes its features; leave the task out, or "
    "choose a method that reads characters"
)


def fit_tfidf(texts: Sequence[str]) -> TfidfVectorizer:
    """Fit tf-idf, with one plus the logarithm of a word's count.

    Raises
    ------
    DataError
        Where there is no word in any of the texts.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectorizer = TfidfVectorizer(sublinear_tf=True)
    try:
        return vectorizer.fit(texts)
    except ValueError as error:
        raise DataError(NO_WORDS) from error


def count_words(texts: Sequence[str], *, options: Options, folders: Folders) -> TokenCounts:
    """Words as tf-idf finds them; none is cut off."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    analyze = TfidfVectorizer().build_analyzer()
    return TokenCounts([len(analyze(text)) for text in texts])


def count_word2vec_words(texts: Sequence[str], *, options: Options, folders: Folders) -> TokenCounts:
    """Words as gensim's `simple_preprocess` finds them; none is cut off."""
    from gensim.utils import simple_preprocess

    return TokenCounts([len(simple_preprocess(text)) for text in texts])
