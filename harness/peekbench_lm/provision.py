"""Callables that method entries register: check, pin, prefetch, resources and count tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from peekbench import Folders
from peekbench.errors import SpecError
from peekbench.records import Resources
from peekbench_lm.builtin_models import BUILTIN_PREFIX, builtin_kind
from peekbench_lm.defects import check_gguf, check_weights
from peekbench_lm.extras import check_extra
from peekbench_lm.memory import estimate_memory
from peekbench_lm.model_files import describe_model, find_model, is_gguf, is_path, pin_model, read_pooler
from peekbench_lm.options import Kind, LanguageModelOptions, ModelOptions, Requirement
from peekbench_lm.tokenizer import encode_whole, load_tokenizer, model_kind

EXAMPLES: Mapping[Kind, str] = {"masked": "builtin:bert-nano", "causal": "builtin:gpt2-nano"}
REQUIRED_KINDS: Mapping[Requirement, Kind] = {
    "masked": "masked", "pooler": "masked", "causal": "causal", "text probabilities": "causal",
}  # fmt: skip
"""Training objective that a requirement needs."""
PROBE = "The \u201cNa\u00efve\u201d  caf\u00e9,\t\u00dcBER\r\n\n \u65e5\u672c \U0001f600\x7f e\u0301 ."
"""Text that tokenizers change if they drop case, accents or spaces, or do not know all characters."""


def check(*, options: LanguageModelOptions, folders: Folders) -> None:
    """Check, without a download, the model and the libraries.

    The model must exist, be a language model, and have the required training objective.
    """
    kind = known_kind(options.model, folders)
    if kind is not None:
        check_requirement(options.model, kind, options.requirement)
    check_extra("lm", "language models")


def known_kind(model: str, folders: Folders) -> Kind | None:
    """Return the training objective of a model if it is built in or on this machine; None if it is on the Hub."""
    if model.startswith(BUILTIN_PREFIX):
        return builtin_kind(model.removeprefix(BUILTIN_PREFIX))
    if not is_path(model):
        return None
    if is_gguf(model):
        check_gguf(model, folders.spec / Path(model).expanduser())
        check_extra("gguf", f"GGUF files such as {model}")
        return "causal"  # others are refused when the file is converted
    folder = find_model(model, "", folders).path
    check_weights(folder)
    return model_kind(folder)


def check_requirement(model: str, kind: Kind, requirement: Requirement, tokenizer: Any = None) -> None:
    """Check that a model has the training objective that a method requires, and that its tokenizer keeps texts.

    Parameters
    ----------
    model
        Name of the model in the spec.
    kind
        Training objective of the model.
    requirement
        What the method requires.
    tokenizer
        Tokenizer of the model; None if its files are not on this machine.

    Raises
    ------
    SpecError
        If the model has another training objective.
    DataError
        If the method requires probabilities of texts, and the tokenizer changes texts.
    """
    required = REQUIRED_KINDS.get(requirement, kind)
    if kind != required:
        raise SpecError(
            f"model {model}: it is a {kind} language model, and the method needs a {required} one, such as "
            f"{EXAMPLES[required]}"
        )
    if requirement == "text probabilities" and tokenizer is not None:
        encode_whole(tokenizer, [PROBE])


def pin(*, options: ModelOptions, folders: Folders) -> Mapping[str, Any]:
    """Return the options that fix a model on the Hub to its current commit."""
    return pin_model(options.model, options.revision, folders)


def prefetch(*, options: LanguageModelOptions, folders: Folders) -> Mapping[str, Any]:
    """Download or build the language model if it is not on this machine yet, check it, and describe it."""
    check_extra("lm", "language models")
    check(options=options, folders=folders)
    description = describe_model(options.model, options.revision, folders)
    folder = find_model(options.model, options.revision, folders).path
    check_weights(folder)
    kind, tokenizer = model_kind(folder), load_tokenizer(folder)
    check_requirement(options.model, kind, options.requirement, tokenizer)
    if options.requirement == "pooler":
        read_pooler(folder)
    return description | describe_precision(options, options)


def describe_precision(options: ModelOptions, training: Any) -> dict[str, str]:
    """Return the precision of training as a fact that all machines of a run share; empty if `auto` does not choose it.

    Parameters
    ----------
    options
        Device of the model.
    training
        Options that have the precision, if the model is trained.
    """
    if getattr(training, "precision", "") != "auto":
        return {}
    from peekbench_lm.devices import choose_device  # noqa: PLC0415 - torch takes seconds to import
    from peekbench_lm.precision import choose_precision  # noqa: PLC0415

    return {"precision": choose_precision("auto", choose_device(options.device))}


def resources(*, options: ModelOptions, folders: Folders) -> Resources:
    """Return the resources of a fit: threads, and a GPU with the estimated memory, optional if the device is.

    With `device: auto` and a torch that was built without CUDA, it needs no GPU.
    """
    if options.device not in ("auto", "cuda") or (options.device == "auto" and not has_cuda()):
        return Resources(cpus=options.threads)
    return Resources(
        cpus=options.threads,
        gpus=1,
        gpu_memory=estimate_memory(options, folders),
        is_estimate=True,
        is_gpu_optional=options.device == "auto",
    )


@cache
def has_cuda() -> bool:
    """Return whether the installed torch was built for CUDA, without importing it, which takes seconds."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    return re.search(r"^cuda\b.*= '", text, re.MULTILINE) is not None  # otherwise the value is None
