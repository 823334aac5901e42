"""The value of a function, or its exception, kept for several checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Attempt:
    """The value that a function returned, or the exception that it raised.

    Parameters
    ----------
    compute
        Function to call.
    """

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.error: Exception | None = None
        """What the function raised, if it did."""
        try:
            self._value = compute()
        except Exception as error:
            self.error, self._place = error, error.__traceback__

    def result(self) -> Any:
        """Return the value, or raise the exception."""
        if self.error is not None:
            raise self.error.with_traceback(self._place)
        return self._value
