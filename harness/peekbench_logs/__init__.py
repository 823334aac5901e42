"""Reads the scores of single texts from the logs of other tools, and makes a table of scores from them.

`tables` checks the logs and makes the table; a module each reads the logs of one tool.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
