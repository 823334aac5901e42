"""Preparation before a run: pin, check and download models, check options against them, and count tokens.

This module imports quickly. Its functions check that the optional libraries are installed before they import them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peekbench import Folders
from peekbench.data import PromptFrame
from peekbench.errors import SpecError
from peekbench.records import TokenCounts
from peekbench_lm.checks import known_kind
from peekbench_lm.installed import check_four_bits, check_installed
from peekbench_lm.models.config import model_kind
from peekbench_lm.models.tokens import count_tokens as count_text_tokens
from peekbench_lm.models.tokens import load_tokenizer
from peekbench_lm.provision import prefetch as prefetch_model
from peekbench_lm.sources.model_files import describe_model, find_model, pin_model
from peekbench_lm.types import Kind
from peekbench_prompting.audit_options import Exchangeability
from peekbench_prompting.membership_options import Membership
from peekbench_prompting.options import Prompting
from peekbench_prompting.training_options import Packed, check_packing


def check(*, options: Prompting, folders: Folders) -> None:
    """Check, without a download, that the model exists and continues texts.

    Parameters
    ----------
    options
        The method's options.
    folders
        Folders of the spec and the cache.

    Raises
    ------
    SpecError
        If the model is not causal.
    DataError
        If the model does not exist or is not a language model.
    """
    check_causal(options.model, known_kind(options.model, folders) or "causal")


def prefetch(*, options: Prompting, folders: Folders) -> Mapping[str, Any]:
    """Download or build the model if necessary, and check that the method can use it.

    Parameters
    ----------
    options
        The method's options.
    folders
        Folders of the spec and the cache.

    Returns
    -------
    Mapping
        Description of the model, such as the checksum of its weights.

    Raises
    ------
    SpecError
        If the model is not causal, or packed texts would be part of a chat's reply.
    DataError
        If the model is unavailable.
    PeekbenchError
        If an optional library is not installed.
    """
    stages = [getattr(options, stage, None) for stage in ("pretraining", "finetuning")]
    if options.weights == "nf4" or any(stage and stage.optimizer == "adamw_8bit" for stage in stages):
        check_four_bits()
    description = prefetch_model(options=options, folders=folders)
    folder = find_model(options.model, options.revision, folders).path
    check_causal(options.model, model_kind(folder))
    if isinstance(options, Packed):
        check_packing(options.chat_template == "auto" and bool(load_tokenizer(folder).chat_template), options)
    return description


def check_causal(model: str, kind: Kind) -> None:
    """Check that a model continues texts.

    Raises
    ------
    SpecError
        If it is not a causal model.
    """
    if kind != "causal":
        raise SpecError(
            f"model {model}: it fills in masked tokens, but prompts need a model that continues a text; choose a "
            "causal language model"
        )


def count_tokens(texts: Sequence[str], *, options: Prompting, folders: Folders) -> TokenCounts:
    """Count the tokens of each text, cut as in a prompt.

    The result has no limit: how many tokens fit next to the instruction depends on the task.

    Parameters
    ----------
    texts
        Texts of a task.
    options
        The method's options.
    folders
        Folders of the spec and the cache.

    Raises
    ------
    PeekbenchError
        If an optional library is not installed.
    """
    check_installed()
    tokenizer = load_tokenizer(find_model(options.model, options.revision, folders).path)
    return TokenCounts(count_text_tokens(tokenizer, [PromptFrame.cut(text) for text in texts]))


def pin_models(*, options: Exchangeability | Membership, folders: Folders) -> Mapping[str, Any]:
    """Return the commits of the audit's models on the Hub, as options to add to the spec."""
    pinned = pin_model(options.model, options.revision, folders)
    if options.reference:
        reference = pin_model(options.reference, options.reference_revision, folders)
        pinned |= {f"reference_{name}": value for name, value in reference.items()}
    return pinned


def check_models(*, options: Exchangeability | Membership, folders: Folders) -> None:
    """Check, without a download, that the audit's models exist and continue texts.

    Raises
    ------
    SpecError
        If a model is not causal.
    DataError
        If a model does not exist or is not a language model.
    """
    for model in filter(None, (options.model, options.reference)):
        check_causal(model, known_kind(model, folders) or "causal")


def prefetch_models(*, options: Exchangeability | Membership, folders: Folders) -> Mapping[str, Any]:
    """Download or build the audit's models if necessary, and describe them.

    Raises
    ------
    PeekbenchError
        If an optional library is not installed.
    DataError
        If a model is unavailable.
    """
    check_installed()
    description = describe_model(options.model, options.revision, folders)
    if options.reference:
        reference = describe_model(options.reference, options.reference_revision, folders)
        description |= {"reference": reference}
    return description
