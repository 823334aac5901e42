"""Checks before a run. This module imports neither torch nor transformers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peekbench import Folders
from peekbench.errors import SpecError
from peekbench_finetune.options import PatternExploiting, Tapt
from peekbench_lm.checks import check_language_model, check_text_model, known_kind
from peekbench_lm.models.config import model_kind
from peekbench_lm.provision import prefetch, prefetch_text_model
from peekbench_lm.sources.model_files import find_model
from peekbench_lm.types import Kind


def check_tapt(*, options: Tapt, folders: Folders) -> None:
    """Check, without a download, that the model exists, and gives probabilities of texts if they are scored.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the model does not exist, is not a language model, or cannot score texts.
    """
    (check_text_model if options.score_texts else check_language_model)(options=options, folders=folders)


def check_pattern_exploiting(*, options: PatternExploiting, folders: Folders) -> None:
    """Check, without a download, that the model exists and is masked.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the model does not exist or is not a language model.
    SpecError
        If the model is not a masked language model.
    """
    check_masked(options.model, known_kind(options.model, folders) or "masked")


def prefetch_tapt(*, options: Tapt, folders: Folders) -> Mapping[str, Any]:
    """Download or train the model, check that it gives probabilities of texts if they are scored, and describe it.

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
        If the model does not exist or is unavailable, or cannot score texts.
    """
    return (prefetch_text_model if options.score_texts else prefetch)(options=options, folders=folders)


def prefetch_masked(*, options: PatternExploiting, folders: Folders) -> Mapping[str, Any]:
    """Download or train the model if it is not on this machine yet, check that it is masked, and describe it.

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
        If the model does not exist or is unavailable.
    SpecError
        If the model is not a masked language model.
    """
    description = prefetch(options=options, folders=folders)
    check_masked(options.model, model_kind(find_model(options.model, options.revision, folders).path))
    return description


def check_masked(model: str, kind: Kind) -> None:
    """Check that a model fills in masked tokens.

    Parameters
    ----------
    model
        Name of the model, for the error.
    kind
        Its training objective.

    Raises
    ------
    SpecError
        If it is not a masked language model.
    """
    if kind != "masked":
        raise SpecError(
            f"model {model}: it continues texts, but patterns need a model that fills in masked tokens; choose a "
            "masked language model such as builtin:bert-nano"
        )
