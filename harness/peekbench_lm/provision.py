"""Callables that entries of language-model methods share: pin a model, prefetch it, and count tokens.

Entries refer to them by name, such as ``pin="peekbench_lm.provision:pin"``. This module imports neither torch nor
transformers at its top level, so pinning stays fast and `prefetch` can say which libraries are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from peekbench import Folders
from peekbench.records import Resources, TokenCounts
from peekbench_lm.checks import check, check_model
from peekbench_lm.installed import check_installed
from peekbench_lm.models.config import model_kind
from peekbench_lm.models.tokens import context_limit, load_tokenizer
from peekbench_lm.models.tokens import count_tokens as count_text_tokens
from peekbench_lm.options import LanguageModelOptions, ModelOptions
from peekbench_lm.sources.model_files import describe_model, find_model, pin_model


def pin(*, options: ModelOptions, folders: Folders) -> Mapping[str, Any]:
    """Return the options that fix a model on the Hub to its current commit.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the commit cannot be determined.
    """
    return pin_model(options.model, options.revision, folders)


def prefetch(*, options: LanguageModelOptions, folders: Folders) -> Mapping[str, Any]:
    """Download or build the language model if it is not on this machine yet, check it, and describe it.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    PeekbenchError
        If a library for language models is missing.
    DataError
        If the model does not exist or is unavailable, or has no language-model head.
    SpecError, DataError
        If the method cannot use it, as for `check_model`.
    """
    check_installed()
    check(options=options, folders=folders)
    description = describe_model(options.model, options.revision, folders)
    if options.requirement != "any":
        folder = find_model(options.model, options.revision, folders).path
        check_model(options, model_kind(folder), lambda: load_tokenizer(folder))
    return description


def resources(*, options: ModelOptions) -> Resources:
    """Return what a fit needs: its threads, and a GPU if the options name one.

    Parameters
    ----------
    options
        Options of the method. `device: auto` asks for no GPU, because the machine of the fit is not known yet.
    """
    return Resources(cpus=options.threads, gpus=float(options.device == "cuda"))


def count_tokens(texts: Sequence[str], *, options: ModelOptions, folders: Folders) -> TokenCounts:
    """Return the number of tokens of each text, including special tokens, and the context limit.

    Parameters
    ----------
    texts
        Texts to tokenize.
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    PeekbenchError
        If a library for language models is missing.
    DataError
        If the model does not exist or is unavailable.
    """
    check_installed()
    folder = find_model(options.model, options.revision, folders).path
    tokenizer = load_tokenizer(folder)
    limit = context_limit(tokenizer, folder, options.context_length)
    return TokenCounts(count_text_tokens(tokenizer, texts), limit)


def count_tokens_without_limit(texts: Sequence[str], *, options: ModelOptions, folders: Folders) -> TokenCounts:
    """Return the number of tokens of each text for a method that reads whole texts.

    The parameters and errors are those of `count_tokens`.
    """
    return replace(count_tokens(texts, options=options, folders=folders), limit=None)
