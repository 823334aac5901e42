"""Standard streams that never stop a command.

If the standard output cannot be written, for example because its reader closed the pipe, the work still goes on and all
files are written.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from peekbench.formatting import visible_lines


class ProtectedStream(io.TextIOWrapper):
    """A standard stream that discards all further output after it could not be written."""

    problem: OSError | None = None
    """The first error."""
    is_plain = False
    """Whether to escape control characters here, because no command prints styles to this stream."""

    def write(self, text: str, /) -> int:
        """Write text; characters that the encoding lacks become question marks or escapes."""
        length = len(text)
        if self.is_plain:
            text = visible_lines(text)
        try:
            super().write(text)
        except OSError as error:
            self._discard(error)
        return length

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            super().flush()
        except OSError as error:
            self._discard(error)

    def _discard(self, error: OSError) -> None:
        self.problem = self.problem or error
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)


def protect_streams() -> None:
    """Replace the standard streams by streams that never raise errors, and open those that are closed.

    If a standard stream was closed, the next file to be opened would take its number, and text meant for the terminal
    would go into that file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is `descriptor`
    sys.stdout = _protect(sys.stdout, 1, "replace")
    sys.stderr = _protect(sys.stderr, 2, "backslashreplace")
    sys.stderr.is_plain = True


def _protect(stream: Any, descriptor: int, errors: str) -> ProtectedStream:
    buffer = os.fdopen(descriptor, "wb", closefd=False)
    if stream is None:  # it was closed when Python started
        return ProtectedStream(buffer, encoding="utf-8", errors=errors)
    return ProtectedStream(buffer, encoding=stream.encoding, errors=errors, line_buffering=stream.line_buffering)
