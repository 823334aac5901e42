"""Sentences that define the words of a report on designs with folds, and its accuracy."""

from __future__ import annotations

from collections.abc import Sequence

from peekbench.records.report import Report
from peekbench.records.verdicts import Verdict

TERMS_OF_FOLDS = (
    "Fits adapt to the test set without one fold{instead}. Base: without unlabeled {rows}. "
    "Extra: on the fold that a fit did not adapt to. Test: on the others. All: after adapting to the whole test set. "
    "Bias: test - extra."
)
"""What the words in verdicts on designs with folds mean."""
BACKGROUND_OF_FOLDS = (
    "Each division of the test set takes a fit for each fold, on the same training rows; fits see {rows} without their "
    "labels. Boost is extra - base. Intervals cover the variation between divisions of this test set and seeds of the "
    "method; those of equivalent biases belong to two one-sided tests. Intervals for other {rows} also cover that "
    "these {rows} are a sample."
)
"""What intervals of designs with folds cover."""


def define_folds(report: Report) -> str:
    """Return `TERMS_OF_FOLDS` with what replaces the fold that a fit does not adapt to; a table does not tell."""
    numbers = [facts.get("extra", 0) for facts in report.details.get("data", {}).values()]
    instead = ", or with private {rows} in its place"
    if numbers and not any(numbers):
        instead = ""
    elif numbers and all(numbers):
        instead = ", with private {rows} in its place"
    return TERMS_OF_FOLDS.replace("{instead}", instead)


def define_accuracy(report: Report, verdicts: Sequence[Verdict]) -> str:
    """Define accuracy if it is that of label sets or a mean grade, after a space; empty for other scores."""
    kinds = {facts.get("kind") for facts in report.details.get("data", {}).values()}
    scores = {getattr(verdict.evidence, "score", "score") for verdict in verdicts}
    if scores != {"score"}:
        return ""
    if kinds == {"generation"}:
        return " Accuracy: mean grade of the answers."
    if kinds != {"multilabel"}:
        return ""
    return f" Accuracy: subset accuracy, the share of {verdicts[0].rows} with exactly the right labels."
