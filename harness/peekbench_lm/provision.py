"""What every method that works with a language model registers besides itself: how to pin it, get it, and count tokens.

torch and transformers take seconds to import, and are so when one of these is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from peekbench import Folders
from peekbench.records import TokenCounts
from peekbench_lm.installed import check_installed


class NamesModel(Protocol):
    """Options that say which model, and how much of a text it reads."""

    @property
    def model(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def context_length(self) -> int: ...


def pin(*, options: NamesModel, folders: Folders) -> Mapping[str, Any]:
    """The commit of a model on the Hub."""
    from peekbench_lm.folder import pin_model

    return pin_model(options.model, options.revision, folders)


def prefetch(*, options: NamesModel, folders: Folders) -> Mapping[str, Any]:
    """Download the model, or make it, where it is not here yet."""
    check_installed()
    from peekbench_lm.folder import describe_model

    return describe_model(options.model, options.revision, folders)


def count_tokens(texts: Sequence[str], *, options: NamesModel, folders: Folders) -> TokenCounts:
    """Tokens of each text, special ones included."""
    check_installed()
    from peekbench_lm.folder import find_model
    from peekbench_lm.tokens import context_limit, count, load_tokenizer

    folder = find_model(options.model, options.revision, folders).path
    tokenizer = load_tokenizer(folder)
    return TokenCounts(count(tokenizer, texts), context_limit(tokenizer, folder, options.context_length))
