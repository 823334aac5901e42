"""The clock of contract checks, for methods in files."""

from __future__ import annotations

import sys

from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.functions import make_entry
from peekbench_testing.fresh_process import find_own_modules


def fit(unlabeled: object) -> None:
    """Do nothing."""


def test_names_for_datetime_change_in_the_file_of_a_function_and_not_in_the_core() -> None:
    entry = make_entry(fit, "fit")
    assert isinstance(entry, MethodEntry)
    found = find_own_modules("my_file.py:fit", entry.method)
    assert sys.modules[__name__] in found
    assert not [module.__name__ for module in found if module.__name__.partition(".")[0] == "peekbench"]
