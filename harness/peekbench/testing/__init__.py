"""Contract checks for methods, data sources, analyzers, audits; for a plugin's own tests, and behind `peekbench check`.

Each check raises `ContractError`, which says what is wrong and what to do. `check_method` runs all of a method's checks
and says which passed.
"""

from __future__ import annotations

from peekbench.testing.case import Case, make_case, sample_numbers, sample_texts
from peekbench.testing.methods import METHOD_CHECKS, CheckOutcome, check_method, check_module_light
from peekbench.testing.pure import check_analyzer, check_audit, check_data_source

__all__ = [
    "METHOD_CHECKS",
    "Case",
    "CheckOutcome",
    "check_analyzer",
    "check_audit",
    "check_data_source",
    "check_method",
    "check_module_light",
    "make_case",
    "sample_numbers",
    "sample_texts",
]
