"""What these methods take for a word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench import DataError, Folders, Options
from peekbench.records import TokenCounts

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfVectorizer

TFIDF_WORDS = "two or more letters or digits"
WORD2VEC_WORDS = "two to fifteen letters"


def too_few_words(texts: Sequence[str], words: str, found: str = "no word") -> DataError:
    """The error that it is to fit on texts of which no features can be made: emoji, say, or Chinese without spaces."""
    return DataError(
        f"the {len(texts)} texts that this method is fitted on hold {found} of {words}, of which it makes its "
        "features; draw more train texts, leave the task out, or choose a method that reads characters"
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
    if not any(map(vectorizer.build_analyzer(), texts)):
        raise too_few_words(texts, TFIDF_WORDS)
    return vectorizer.fit(texts)


def count_words(texts: Sequence[str], *, options: Options, folders: Folders) -> TokenCounts:
    """Words as tf-idf finds them; none is cut off."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    analyze = TfidfVectorizer().build_analyzer()
    return TokenCounts([len(analyze(text)) for text in texts])


def count_word2vec_words(texts: Sequence[str], *, options: Options, folders: Folders) -> TokenCounts:
    """Words as gensim's `simple_preprocess` finds them; none is cut off."""
    from gensim.utils import simple_preprocess

    return TokenCounts([len(simple_preprocess(text)) for text in texts])
