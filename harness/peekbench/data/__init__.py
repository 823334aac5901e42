"""Loads, checks, samples and describes the rows of tasks.

Data source plugins use `group_duplicates` and `hash_rows`.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
