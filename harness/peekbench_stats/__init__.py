"""Statistics that several analysis plugins share.

A library beside the core: it registers nothing, and importing it imports numpy and scipy.
"""

from peekbench_stats.degrees_of_freedom import welch_satterthwaite
from peekbench_stats.multiple_testing import holm
from peekbench_stats.nominal_levels import NominalAlpha, fixed_design
from peekbench_stats.sign_flips import sign_flip_test, sign_flip_test_of_counts
from peekbench_stats.t_tests import t_test

__all__ = [
    "NominalAlpha",
    "fixed_design",
    "holm",
    "sign_flip_test",
    "sign_flip_test_of_counts",
    "t_test",
    "welch_satterthwaite",
]
