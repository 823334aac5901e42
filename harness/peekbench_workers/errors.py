"""Errors that another process can receive."""

from __future__ import annotations

import pickle
import traceback


def make_portable(error: BaseException) -> Exception:
    """Return the error with its traceback as a note, or a RuntimeError with its text if it cannot be pickled."""
    text = "".join(traceback.format_exception(error))
    if not isinstance(error, Exception):
        return RuntimeError(text)
    error.add_note(f"in a worker process:\n{text}")
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled in this process
    except Exception:
        return RuntimeError(text)
    return error
