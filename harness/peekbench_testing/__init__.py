"""Contract checks of entries, for a plugin's own tests and `peekbench check`.

`check_entry` does all checks of an entry and returns their outcomes. A subclass of `ContractTests` makes each check a
test of pytest.

Examples
--------
>>> from peekbench_testing import METHOD_CHECKS
>>> list(METHOD_CHECKS)[:2]
['fits and predicts without unlabeled inputs', 'fits and predicts with unlabeled inputs']
"""

from peekbench.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
