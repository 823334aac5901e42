"""Statistics that several analysis plugins share.

A library beside the core: it registers nothing, and imports numpy and scipy when a function is used.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
