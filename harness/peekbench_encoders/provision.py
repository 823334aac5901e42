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
from peekbench_lm.builtin_models import BUILTIN_PREFIX, find_builtin
from peekbench_lm.model_files import describe_model, find_model, is_path


def prefetch(*, options: Encoder, folders: Folders) -> Mapping[str, Any]:
    """Download or unpack the encoder if it is not on this machine yet, and describe it.

    The parameters and errors are those of `peekbench_lm.provision.prefetch`. Also a `DataError` is raised if the model
    has code of its own.
    """
    check_libraries()
    check_modules(find_model(options.model, options.revision, folders).path)
    return describe_model(options.model, options.revision, folders)


def check(*, options: Encoder, folders: Folders) -> None:
    """Check, without a download, that an encoder that is built in or in a folder exists and has no code of its own.

    The parameters are those of `peekbench_lm.provision.check`. A `DataError` is raised otherwise.
    """
    if options.model.startswith(BUILTIN_PREFIX):
        find_builtin(options.model.removeprefix(BUILTIN_PREFIX))
    elif is_path(options.model):
        check_modules(find_model(options.model, "", folders).path)


def count_tokens(texts: Sequence[str], *, options: Encoder, folders: Folders) -> TokenCounts:
    """Return the number of tokens of each text without the prompt, and the number that the encoder reads.

    The parameters and errors are those of `peekbench_lm.provision.count_tokens`.
    """
    check_libraries()
    counts = provision.count_tokens(texts, options=options, folders=folders)
    limit = module_limit(find_model(options.model, options.revision, folders).path)
    return counts if limit is None or counts.limit is None else replace(counts, limit=min(limit, counts.limit))
