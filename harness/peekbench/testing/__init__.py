"""Contract checks for methods, data sources, analyses and audits, for a plugin's own tests and `peekbench check`.

Each check raises a `ContractError` that names the problem and the remedy. `check_method` does all checks of a method
and returns which of them passed.

Examples
--------
>>> from peekbench.testing import check_method
>>> [outcome.name for outcome in check_method("controls.null") if not outcome.passed]  # doctest: +SKIP
[]
"""

from __future__ import annotations

from peekbench.testing.analyses import check_analyzer, check_audit
from peekbench.testing.case import Case, make_case, sample_numbers, sample_texts
from peekbench.testing.data_sources import check_data_source
from peekbench.testing.executors import EXECUTOR_CHECKS, check_executor
from peekbench.testing.methods import METHOD_CHECKS, CheckOutcome, check_method, check_module_light

__all__ = [
    "EXECUTOR_CHECKS",
    "METHOD_CHECKS",
    "Case",
    "CheckOutcome",
    "check_analyzer",
    "check_audit",
    "check_data_source",
    "check_executor",
    "check_method",
    "check_module_light",
    "make_case",
    "sample_numbers",
    "sample_texts",
]
