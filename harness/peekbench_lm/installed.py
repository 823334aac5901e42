"""Checks that optional libraries are installed, without importing them."""

from __future__ import annotations

from importlib.util import find_spec

from peekbench import PeekbenchError

LIBRARIES = ("torch", "transformers", "peft")


def check_installed() -> None:
    """Check that the libraries for language models are installed.

    Raises
    ------
    PeekbenchError
        If a library is missing.
    """
    if missing := [library for library in LIBRARIES if find_spec(library) is None]:
        raise PeekbenchError(
            f"language models need {' and '.join(missing)}: `pip install 'peekbench[lm]'`, or in a clone "
            "`tox run -e run-lm -- SPEC`"
        )


def check_bitsandbytes(feature: str, alternative: str) -> None:
    """Check that bitsandbytes is installed.

    Parameters
    ----------
    feature
        Feature that needs bitsandbytes, as a plural noun.
    alternative
        Option that avoids bitsandbytes.

    Raises
    ------
    PeekbenchError
        If bitsandbytes is not installed.
    """
    if find_spec("bitsandbytes") is None:
        raise PeekbenchError(
            f"{feature} need bitsandbytes: `pip install 'peekbench[qlora]'`, or in a clone "
            f"`tox run -e run-qlora -- SPEC`; or choose {alternative}"
        )


def check_four_bits() -> None:
    """Check that weights can be quantized to four bits.

    Raises
    ------
    PeekbenchError
        If bitsandbytes is not installed.
    """
    check_bitsandbytes("four-bit weights", "`weights: fp32`")
