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
