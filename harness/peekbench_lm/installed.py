"""Whether the libraries that language models need are there; imports none of them."""

from __future__ import annotations

from importlib.util import find_spec

from peekbench import PeekbenchError

LIBRARIES = ("torch", "transformers", "peft")


def check_installed() -> None:
    """Say what to install, where something is missing.

    Raises
    ------
    PeekbenchError
        Where one of the libraries is not installed.
    """
    if missing := [library for library in LIBRARIES if find_spec(library) is None]:
        raise PeekbenchError(
            f"language models need {' and '.join(missing)}: `pip install 'peekbench[lm]'`, or in a clone "
            "`tox run -e run-lm -- SPEC`"
        )


def check_bitsandbytes(need: str, instead: str) -> None:
    """Say what to install, where bitsandbytes is missing.

    Parameters
    ----------
    need, instead
        What it is needed for, and what may be chosen that needs none.

    Raises
    ------
    PeekbenchError
        Where it is not installed.
    """
    if find_spec("bitsandbytes") is None:
        raise PeekbenchError(
            f"{need} need bitsandbytes: `pip install 'peekbench[qlora]'`, or in a clone "
            f"`tox run -e run-qlora -- SPEC`; or choose {instead}"
        )


def check_four_bits() -> None:
    """The same for weights in four bits."""
    check_bitsandbytes("four-bit weights", "`weights: fp32`")
