"""Callables that the entries register, whose options may have an encoder: pin, prefetch, count tokens or words.

Their parameters are those of `Pin`, `Prefetch`, `ResourcesOf` and `CountTokens` in `peekbench.plugins.protocols`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.feature_extraction.text import CountVectorizer

from peekbench import Folders, Options
from peekbench.records import Resources, TokenCounts
from peekbench_encoders import provision
from peekbench_lm import provision as model_provision
from peekbench_transductive import OnFeatures


def pin(*, options: OnFeatures, folders: Folders) -> Mapping[str, Any]:
    """Return the option that fixes an encoder on the Hub to its current commit.

    The errors are those of `peekbench_lm.provision.pin`.
    """
    if options.encoder is None:
        return {}
    pinned = model_provision.pin(options=options.encoder, folders=folders)
    # A pinned value replaces all of the option.
    return {"encoder": {**options.encoder.model_dump(mode="json", exclude_unset=True), **pinned}} if pinned else {}


def prefetch(*, options: OnFeatures, folders: Folders) -> Mapping[str, Any]:
    """Download or unpack the encoder, if there is one, and describe it.

    The errors are those of `peekbench_encoders.provision.prefetch`.
    """
    return {} if options.encoder is None else provision.prefetch(options=options.encoder, folders=folders)


def resources(*, options: OnFeatures) -> Resources:
    """Return what a fit needs: one CPU, or what the encoder needs."""
    return Resources() if options.encoder is None else model_provision.resources(options=options.encoder)


def count_tokens(texts: Sequence[str], *, options: OnFeatures, folders: Folders) -> TokenCounts:
    """Return the number of tokens that the encoder has for each text, or the number of words without an encoder.

    The errors are those of `peekbench_encoders.provision.count_tokens`.
    """
    if options.encoder is None:
        return count_words(texts, options=options, folders=folders)
    return provision.count_tokens(texts, options=options.encoder, folders=folders)


def count_words(texts: Sequence[str], *, options: Options, folders: Folders) -> TokenCounts:
    """Count the words of each text as tf-idf and BM25 do; no text is truncated."""
    analyze = CountVectorizer().build_analyzer()
    return TokenCounts([len(analyze(text)) for text in texts])
