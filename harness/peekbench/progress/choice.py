"""Chooses how a run from Python shows its progress."""

from __future__ import annotations

from peekbench.progress.console import PrintableConsole
from peekbench.progress.displays import LineProgress, LiveProgress, make_progress
from peekbench.progress.notebook import NotebookProgress


def make_python_progress() -> LiveProgress | LineProgress | NotebookProgress:
    """Return a bar for the output of a notebook's cell, and otherwise a display on standard error."""
    console = PrintableConsole(stderr=True)
    return NotebookProgress() if console.is_jupyter else make_progress(console)
