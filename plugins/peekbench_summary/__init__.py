"""Means, standard errors, intervals and verdicts; a leaderboard; the winner's curse; and the comparison of two runs."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from peekbench import AnalyzerEntry, Options, hookimpl
from peekbench.plugins import ScoreOption
from peekbench.records import FamilyChoice

RegionUnit: TypeAlias = Literal["score", "log_odds"]


class Summary(Options):
    """Options of the analyses `summary`, `summary.leaderboard` and `summary.estimates`."""

    level: float = Field(default=0.95, gt=0.5, lt=1)
    """Nominal coverage of the intervals; that of an equivalent bias is 1 - 2 (1 - level), because two one-sided tests
    decide. For a family of several configurations, one minus the false discovery rate of their verdicts."""
    region: float | None = Field(default=None, ge=0)
    """Half-width of the region of practical equivalence: a bias within it is negligible. By default 0.005, half an
    accuracy point; 0.01 for the log loss; or 0.04 log-odds. Scores of scikit-learn that begin with 'neg_' need it."""
    region_unit: RegionUnit = "score"
    """Unit of `region`: 'score' (accuracy as a fraction, R^2, or the chosen score), or 'log_odds' of accuracies."""
    failure_loss: float | None = Field(default=None, ge=0)
    """Loss of a trial that fails, in the unit of the score. If none of M trials fails, up to 1 - 0.05^(1/M) of all
    trials may, and verdicts leave room for their losses. State it if fits can fail, such as 0.3 for 30 accuracy points;
    by default, only 'equivalent' leaves room, for losses of the half-width of the region."""
    score: ScoreOption = "score"
    """Score that verdicts are about: 'score' (accuracy, R^2 or, in language modeling, the log-likelihood), 'macro_f1',
    'log_loss', 'brier' or 'bits_per_byte', if all results have it; for a run also any score of scikit-learn, such as
    'roc_auc' or 'neg_mean_absolute_error'. A positive bias is always an improvement."""
    family: FamilyChoice = "all"
    """Configurations whose verdicts are adjusted together: 'all' of a report, those of the same 'method', or 'none'."""


class OtherTexts(Options):
    """Options of the analysis `summary.texts`."""

    level: float = Field(default=0.95, gt=0, lt=1)
    """Nominal coverage of the intervals."""
    region: float = Field(default=0.005, ge=0)
    """Half-width of the region of practical equivalence; 0.005 is half an accuracy point."""


class Selection(Options):
    """Options of the analysis `summary.selection`."""

    level: float = Field(default=0.95, gt=0, lt=1)
    """Nominal coverage of the intervals."""
    arm: str | None = None
    """Arm whose scores are compared; by default `extra`, whose unlabeled texts are not the test texts, otherwise
    `base`."""


@hookimpl
def peekbench_analyzers() -> list[AnalyzerEntry]:
    """Register the analyses."""
    return [
        AnalyzerEntry(
            name="summary",
            options=Summary,
            analyze="peekbench_summary.summary:summarize",
            sees_controls=True,
            sees_looks=True,
            sees_predictions=True,
            summary="means and standard errors of boost and bias, over tasks and per task, with a verdict",
        ),
        AnalyzerEntry(
            name="texts",
            options=OtherTexts,
            analyze="peekbench_summary.texts:cross",
            sees_predictions=True,
            summary="what other test texts of these tasks would show: texts crossed with subsamples",
        ),
        AnalyzerEntry(
            name="selection",
            options=Selection,
            analyze="peekbench_summary.selection:analyze_selection",
            arms=(),
            sees_predictions=True,
            summary="the winner's curse: how much the best of K scores is inflated because it was chosen by its score",
        ),
        AnalyzerEntry(
            name="leaderboard",
            options=Summary,
            analyze="peekbench_summary.leaderboard:rank",
            role="ranking",
            sees_controls=True,
            sees_looks=True,
            sees_predictions=True,
            summary="methods ranked by their uncontaminated score, with boost, bias, verdict and ties",
        ),
        AnalyzerEntry(
            name="estimates",
            options=Summary,
            analyze="peekbench_summary.summary:tabulate",
            role="estimates",
            sees_controls=True,
            sees_looks=True,
            sees_predictions=True,
            summary="uncontaminated scores, biases and boosts with intervals; used by formats of reports",
        ),
    ]
