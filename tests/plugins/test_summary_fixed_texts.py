"""What trials that all test the same texts state about other texts: recovery of known effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from peekbench.records import Answers, FixedTexts, FloatArray, TrialEvidence, Verdict
from peekbench.results import Configurations, configurations, tidy
from peekbench_summary import Summary
from peekbench_summary.families import judge_all
from peekbench_summary.text_noise import with_fixed_texts

DIVISIONS, TEXTS = 12, 300


@dataclass
class Given:
    """Answers to the same texts in each division."""

    scores: Mapping[str, FloatArray]
    rows: Any

    def answers(self, *_: object) -> Answers:
        return Answers(np.arange(len(self.rows)), self.rows, self.scores)


@cache
def make_configurations(*, has_folds: bool) -> Configurations:
    table = pd.DataFrame({"task": "news", "extra": [0.5] * DIVISIONS, "test": 0.5})
    if has_folds:
        table["all"] = 0.5
    return replace(configurations(tidy(table, "my scores")), arms=("extra", "test"))


def judge(bias: float, sd: float, seed: int, *, score: str = "score", shift: int = 0) -> tuple[Verdict, Any]:
    """Judge a method whose bias on a text is normal, with little noise."""
    rng = np.random.default_rng(seed)
    rows = np.arange(TEXTS) + shift * np.arange(DIVISIONS)[:, None]
    extra = np.tile(rng.random(TEXTS) < 0.7, (DIVISIONS, 1)) + 0.01 * rng.standard_normal(rows.shape)
    test = extra + rng.normal(bias, sd, TEXTS) + 0.05 * rng.standard_normal(rows.shape)
    scores = {"extra": extra, "test": test}
    means = {arm: values.mean(axis=1) for arm, values in scores.items()}
    means["bias"] = means["test"] - means["extra"]
    results = make_configurations(has_folds=not shift)
    (configuration,) = results.configurations
    by_task = {name: {"news": values.tolist()} for name, values in means.items()}
    results = replace(results, configurations=(replace(configuration, scores=by_task),))
    given: Any = Given(scores, rows)
    results = with_fixed_texts(results, given, is_mean=score == "score")
    (verdict,) = judge_all(results, Summary(score=score), {}, predictions=given)
    assert isinstance(verdict.evidence, TrialEvidence)
    return verdict, verdict.evidence.fixed_texts


def test_other_texts_have_a_wider_interval_which_covers_their_bias_and_score() -> None:
    """Without a bias on average, half of the verdicts on given texts are 'biased'; at most 5% hold for others."""
    judged = [judge(0.0, 0.1, seed) for seed in range(100)]
    here = [verdict.decision.startswith("biased") for verdict, _ in judged]
    elsewhere = [fixed.decision.startswith("biased") for _, fixed in judged]
    assert np.mean(here) > 0.3
    assert np.mean(elsewhere) <= 0.08
    for center, name in ((0.0, "bias"), (0.7, "extra")):
        estimates = [getattr(fixed, name) for _, fixed in judged]
        covered = [estimate.low <= center <= estimate.high for estimate in estimates]
        assert 0.9 <= np.mean(covered) <= 0.99, name
        error = np.std([estimate.mean for estimate in estimates])
        assert np.mean([estimate.high - estimate.low for estimate in estimates]) == pytest.approx(4 * error, rel=0.15)


def test_an_open_verdict_knows_on_how_many_texts_extra_and_test_disagree() -> None:
    """A normal difference of two answers has the mean size sd * sqrt(2 / pi)."""
    judged = [judge(0.005, 0.2, seed, shift=1)[0] for seed in range(20)]
    found = [getattr(each.evidence, "disagreement", 0) for each in judged if each.decision == "inconclusive"]
    assert found == pytest.approx([0.16] * len(found), rel=0.2) and found


@pytest.mark.parametrize(
    ("bias", "sd", "here", "elsewhere"),
    [
        (0.03, 0.02, "biased up", "biased up"),
        (-0.03, 0.4, "biased down", "inconclusive"),
        (0.0, 0.03, "equivalent", "equivalent"),
        (0.0, 0.08, "equivalent", "inconclusive"),
    ],
)
def test_a_verdict_holds_for_other_texts_only_if_their_interval_supports_it(
    bias: float, sd: float, here: str, elsewhere: str
) -> None:
    verdict, fixed = judge(bias, sd, seed=1)
    assert (verdict.decision, fixed.decision) == (here, elsewhere)


def test_nothing_is_known_of_other_texts_without_scores_of_single_texts() -> None:
    _, fixed = judge(0.03, 0.02, 0, score="macro_f1")
    assert fixed == FixedTexts()
    assert judge(0.03, 0.02, 0, shift=1)[1] is None, "the divisions test different texts"
