"""Checks of models without a download, for `peekbench validate`: whether a model exists and can do what is needed.

Entries refer to them by name, such as ``check="peekbench_lm.checks:check_language_model"``. A model on the Hub is not
checked, and a built-in model is not built. Loading a model checks the same, and more.
"""

from __future__ import annotations

from typing import Protocol

from peekbench import Folders
from peekbench_lm.models.config import model_kind
from peekbench_lm.models.tokens import check_causal
from peekbench_lm.sources.builtin import BUILTIN_PREFIX, builtin_kind
from peekbench_lm.sources.model_files import find_model, is_path
from peekbench_lm.types import Kind


class NamesModel(Protocol):
    """Options that name a model."""

    @property
    def model(self) -> str:
        """Name of the model, as for `find_model`."""


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


def check_language_model(*, options: NamesModel, folders: Folders) -> None:
    """Check that a model exists and is a language model.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the model does not exist, or is not a language model.
    """
    known_kind(options.model, folders)


def check_text_model(*, options: NamesModel, folders: Folders) -> None:
    """Do the same as `check_language_model`, and check that the model gives the probability of a text.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the model does not exist, or is not causal.
    """
    check_causal(options.model, known_kind(options.model, folders) or "causal")
