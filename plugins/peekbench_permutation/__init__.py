"""Exact permutation tests of the bias, over all trials and for each task, and a paired t test over tasks."""

from __future__ import annotations

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench.plugins import ScoreOption
from peekbench.records import FamilyChoice


class Permutation(Options):
    """Options of the analysis `permutation`."""

    score: ScoreOption = "score"
    """Score to test: 'score' (accuracy, R^2 or, in language modeling, the log-likelihood), 'macro_f1', 'log_loss',
    'brier' or 'bits_per_byte', if all results have it; for a run also any score of scikit-learn, such as 'roc_auc'. A
    positive bias is always an improvement."""
    level: float = Field(default=0.05, gt=0, lt=1)
    """False discovery rate at which the bias of a task counts as different from zero."""
    family: FamilyChoice = "all"
    """Configurations whose tests are adjusted together: 'all' of a report, those of the same 'method', or 'none'."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analysis."""
    return [
        AnalyzerEntry(
            name="permutation",
            options=Permutation,
            analyze="peekbench_permutation.permutation:analyze_permutations",
            summary="sign-flip tests of the bias over these tasks and by task, adjusted; paired t test over tasks",
        )
    ]
