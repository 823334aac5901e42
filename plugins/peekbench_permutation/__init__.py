"""Paired permutation tests of the bias, task by task, with a paired t over tasks beside them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench_permutation.permutation import test_tasks


class Permutation(Options):
    num_resamples: int = Field(default=9999, ge=99)
    """Random sign flips, where scores are no numbers of test texts, such as R^2; tests of accuracies are exact."""
    seed: int = Field(default=0, ge=0)
    """Of the random sign flips."""
    measure: Literal["score", "log_loss"] = "score"
    """What is tested: accuracy or R^2, or minus the log loss, which is finer, of runs and tables that have it."""
    level: float = Field(default=0.05, gt=0, lt=1)
    """False discovery rate at which a task's bias counts as different from zero."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    return [
        AnalyzerEntry(
            name="permutation",
            options=Permutation,
            analyze=test_tasks,
            summary="paired permutation tests of the bias by task, Benjamini-Hochberg over tasks; paired t over tasks",
        )
    ]
