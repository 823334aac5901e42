"""The Python interface: runs, measures and analyzes in one call each, and shows the results in notebooks."""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
