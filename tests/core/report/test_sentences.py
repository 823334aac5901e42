"""Tests of the sentences on verdicts, which all formats share."""

from __future__ import annotations

import pytest

from peekbench import Estimate, Verdict
from peekbench.records import Decision, Evidence, Family, PosteriorEvidence, TrialEvidence
from peekbench.report import state


@pytest.mark.parametrize(
    ("decision", "limits", "text"),
    [
        ("equivalent", (0.001, 0.004), "by less than 0.50 points {}, although the bias is not zero: +0.20 points (95%"),
        ("equivalent", (-0.001, 0.004), "by less than 0.50 points {}: +0.20 points (95% interval -0.10 to +0.40)"),
        ("inconclusive", (-0.01, 0.02), "a bias of +0.20 points {} (95% interval -1.00 to +2.00): too uncertain"),
        ("biased up", (0.001, 0.01), "raised accuracy by 0.20 points {} (95% interval +0.10 to +1.00)"),
        ("biased down", (-0.01, -0.001), "lowered accuracy by 0.20 points {}"),
    ],
)
@pytest.mark.parametrize(
    ("evidence", "scope"),
    [(TrialEvidence(1, 9), "on these texts"), (PosteriorEvidence(1, 9, positive=0.9), "on this task")],
)
def test_verdicts_of_all_analyses_use_the_same_words(
    decision: Decision, limits: tuple[float, float], text: str, evidence: Evidence, scope: str
) -> None:
    verdict = Verdict(
        "lsa", "bias", decision, Estimate(0.002, *limits), 0.005, evidence=evidence, family=Family(1, 0.95)
    )
    assert text.format(scope) in state(verdict)


def test_analyses_without_evidence_have_a_note_or_an_estimate() -> None:
    verdict = Verdict("lsa", "bias", "inconclusive", Estimate(0.01))
    assert state(verdict) == "bias of +1.00 points."
    assert state(Verdict("lsa", "bias", "inconclusive", Estimate(0.01), note="test wins in 3 of 5 trials.")) == (
        "test wins in 3 of 5 trials."
    )
