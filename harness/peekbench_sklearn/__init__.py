"""What users of scikit-learn hold: estimators as methods, data frames and arrays as tasks, its scores for reports.

A library beside the core, which finds it as an entry point of the group `peekbench.toolkit`; its names are those of
`peekbench.plugins.functions.Toolkit`, and are imported at first use.
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
