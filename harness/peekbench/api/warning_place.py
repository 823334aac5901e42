"""Finds the line of the user that a warning should name."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType

CORE = f"{Path(__file__).parents[1]}{os.sep}"


def outer_level() -> int:
    """Return the `stacklevel` with which the caller of this function warns about the first line outside of peekbench.

    The same function warns for `peekbench.run`, and for `peekbench.measure`, which calls it.
    """
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(CORE):
        frame, level = frame.f_back, level + 1
    return level
