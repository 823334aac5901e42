"""Callables that the entries register: check and prefetch the encoder, and count tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from peekbench import Folders
from peekbench.records import TokenCounts
from peekbench_encoders.folder import check_libraries, check_modules, module_limit
from peekbench_encoders.options import Encoder
from peekbench_lm import provision
from peekbench_lm.sources.builtin import BUILTIN_PREFIX, find_builtin
from peekbench_lm.sources.model_files import describe_model, find_model, is_path


def prefetch(*, options: Encoder, folders: Folders) -> Mapping[str, Any]:
    """Download or unpack the encoder if it is not on this machine yet, and describe it.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    PeekbenchError
        If a library for sentence encoders is missing.
    DataError
        If the model does not exist, is unavailable or has code of its own.
    """
    check_libraries()
    check_modules(find_model(options.model, options.revision, folders).path)
    return describe_model(options.model, options.revision, folders)


def check(*, options: Encoder, folders: Folders) -> None:
    """Check, without a download, that an encoder that is built in or in a folder exists.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the encoder does not exist or has code of its own.
    """
    if options.model.startswith(BUILTIN_PREFIX):
        find_builtin(options.model.removeprefix(BUILTIN_PREFIX))
    elif is_path(options.model):
        check_modules(find_model(options.model, "", folders).path)


def count_tokens(texts: Sequence[str], *, options: Encoder, folders: Folders) -> TokenCounts:
    """Return the number of tokens of each text without the prompt, and the number that the encoder reads.

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
        If a library for sentence encoders is missing.
    DataError
        If the model does not exist or is unavailable.
    """
    check_libraries()
    counts = provision.count_tokens(texts, options=options, folders=folders)
    limit = module_limit(find_model(options.model, options.revision, folders).path)
    return counts if limit is None or counts.limit is None else replace(counts, limit=min(limit, counts.limit))
