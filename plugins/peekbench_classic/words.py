"""Words: how these methods tokenize texts, tf-idf, and the error for texts without words."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.feature_extraction.text import TfidfVectorizer

from peekbench import DataError, Folders, Options
from peekbench.records import TokenCounts

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


def fit_tfidf(texts: Sequence[str]) -> TfidfVectorizer:
    """Fit tf-idf with sublinear term frequencies, 1 + log(count).

    Parameters
    ----------
    texts
        Texts to fit on.

    Returns
    -------
    TfidfVectorizer
        The fitted vectorizer.

    Raises
    ------
    DataError
        If the texts have no words.
    """
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    if not any(map(vectorizer.build_analyzer(), texts)):
        raise too_few_words_error(texts, TFIDF_WORDS)
    return vectorizer.fit(texts)


def count_words(texts: Sequence[str], *, options: Options, folders: Folders) -> TokenCounts:
    """Count the words of each text as tf-idf does; no text is truncated."""
    analyze = TfidfVectorizer().build_analyzer()
    return TokenCounts([len(analyze(text)) for text in texts])
