"""Statistics that several analysis plugins share.

A library beside the core: it registers nothing, and importing it imports numpy and scipy.
"""

from peekbench_stats.crossed_texts import CrossedInterval, CrossedMean, cross_interval, cross_p_value, cross_texts
from peekbench_stats.looks import (
    EXTENSION_SHARE,
    NominalAlpha,
    confidence_sequence_level,
    fixed_design,
    group_sequential_levels,
    level_after,
    level_at,
    levels_at,
    obrien_fleming_spending,
    procedure_p_value,
)
from peekbench_stats.multiple_testing import hierarchical_rejections, holm, selection_level
from peekbench_stats.sign_flips import SignFlips, sign_flip_test, sign_flip_test_of_counts, stratified_sign_flip_test
from peekbench_stats.t_tests import t_test, welch_satterthwaite

__all__ = [
    "EXTENSION_SHARE",
    "CrossedInterval",
    "CrossedMean",
    "NominalAlpha",
    "SignFlips",
    "confidence_sequence_level",
    "cross_interval",
    "cross_p_value",
    "cross_texts",
    "fixed_design",
    "group_sequential_levels",
    "hierarchical_rejections",
    "holm",
    "level_after",
    "level_at",
    "levels_at",
    "obrien_fleming_spending",
    "procedure_p_value",
    "selection_level",
    "sign_flip_test",
    "sign_flip_test_of_counts",
    "stratified_sign_flip_test",
    "t_test",
    "welch_satterthwaite",
]
