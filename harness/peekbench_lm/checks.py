"""Checks that a model exists and is what a method requires, without a download and of the loaded model.

Entries refer to `check` by name for `peekbench validate`, as ``check="peekbench_lm.checks:check"``. It does not check a
model on the Hub, and does not build a built-in model. Preparing and loading a model check the same, and more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peekbench import Folders
from peekbench.errors import SpecError
from peekbench_lm.models.config import model_kind
from peekbench_lm.models.tokens import check_causal, check_text_model
from peekbench_lm.options import LanguageModelOptions
from peekbench_lm.sources.builtin import BUILTIN_PREFIX, builtin_kind
from peekbench_lm.sources.model_files import find_model, is_path
from peekbench_lm.types import Kind, Requirement


def check(*, options: LanguageModelOptions, folders: Folders) -> None:
    """Check, without a download, that a model exists, is a language model, and has the required training objective.

    Parameters
    ----------
    options
        Options of the method, which tell what it requires of the model.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the model does not exist, is not a language model, or gives no probabilities of texts that are required.
    SpecError
        If the model has another training objective than the required one.
    """
    kind = known_kind(options.model, folders)
    if kind is not None:
        check_kind(options.model, kind, options.requirement)


def known_kind(model: str, folders: Folders) -> Kind | None:
    """Return the training objective of a model if it is built in or in a folder; None if it is on the Hub.

    Parameters
    ----------
    model
        Name of the model, as for `find_model`.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the model does not exist, or is not a language model.
    """
    if model.startswith(BUILTIN_PREFIX):
        return builtin_kind(model.removeprefix(BUILTIN_PREFIX))
    return model_kind(find_model(model, "", folders).path) if is_path(model) else None


def check_model(options: LanguageModelOptions, kind: Kind, tokenizer: Callable[[], Any]) -> None:
    """Check that a method can use a model whose files are on this machine.

    Parameters
    ----------
    options
        Options of the method, which tell what it requires of the model.
    kind
        Training objective of the model.
    tokenizer
        Function that returns the tokenizer of the model. It is called if probabilities of texts are required.

    Raises
    ------
    DataError
        If the model gives no probabilities of texts that are required.
    SpecError
        If the model has another training objective than the required one.
    """
    if options.requirement == "text probabilities":
        check_text_model(options.model, kind, tokenizer())
    else:
        check_kind(options.model, kind, options.requirement)


def check_kind(model: str, kind: Kind, requirement: Requirement) -> None:
    """Check the training objective of a model.

    Parameters
    ----------
    model
        Name of the model, for the error.
    kind
        Its training objective.
    requirement
        What is required of the model.

    Raises
    ------
    DataError
        If probabilities of texts are required, and the model is not causal.
    SpecError
        If a training objective is required, and the model has another one.
    """
    if requirement == "text probabilities":
        check_causal(model, kind)
    elif requirement == "masked" and kind != "masked":
        raise SpecError(
            f"model {model}: it continues texts, but a model that fills in masked tokens is required; choose a masked "
            "language model such as builtin:bert-nano"
        )
    elif requirement == "causal" and kind != "causal":
        raise SpecError(
            f"model {model}: it fills in masked tokens, but a model that continues a text is required; choose a causal "
            "language model such as gpt2 or builtin:gpt2-nano"
        )
