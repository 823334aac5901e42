"""Choices that options of several analyses have; options are read by every command, so this module imports nothing."""

from __future__ import annotations

from typing import Literal, TypeAlias

ScoreName: TypeAlias = Literal["score", "log_loss", "brier", "macro_f1", "bits_per_byte"]
"""Scores that analyses can be about: names of `peekbench.results.SCORES` except the number of correct answers.

Examples
--------
>>> from typing import get_args
>>> from peekbench.results import SCORES
>>> set(get_args(ScoreName)) <= {score.name for score in SCORES}
True
"""

FamilyChoice: TypeAlias = Literal["all", "method", "none"]
"""Configurations that are adjusted together: all of a report, those of one method, or each one alone.

Examples
--------
>>> from typing import get_args
>>> get_args(FamilyChoice)
('all', 'method', 'none')
"""
