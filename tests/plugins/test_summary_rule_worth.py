"""Rules of adaptation in the analysis `summary`: what each is worth, and the sentences for a benchmark."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from analysis_tables import find_rows, run_analysis, table_rows

from peekbench.records import Analysis, Forest, Looks
from peekbench.records.scores import find_score
from peekbench.results import tidy
from peekbench_summary import Summary
from peekbench_summary.rule_worth import ORDER
from peekbench_summary.summary import summarize as summarize_run

summarize = partial(run_analysis, "summary")
WORTH, SENTENCES = "What each rule is worth", "Rules for a benchmark"
TRUE = {"test": 0.03, "cross-5": 0.0, "leave-one-out": 0.0, "prequential": -0.02, "prequential-5": -0.01,
        "stream-4": 0.02, "blocks-4": -0.02, "single": -0.03, "batches-2": -0.01, "alone": -0.04, "swap-in": 0.03,
        "swap-in-5": 0.03}  # fmt: skip


def simulate(true: dict[str, float], *, methods: int = 1, subsamples: int = 40, seed: int = 0) -> pd.DataFrame:
    """Draw scores of two tasks under rules that change them by known amounts."""
    rng = np.random.default_rng(seed)
    rows = []
    for method in range(methods):
        for task in ("news", "mail"):
            for subsample in range(subsamples):
                extra = rng.normal(0.7, 0.03)
                scores = {"base": extra - 0.01, "extra": extra}
                scores |= {arm: extra + worth + rng.normal(0, 0.01) for arm, worth in true.items()}
                rows.append({"task": task, "method": f"m{method}", "num_test": 200, "subsample": subsample} | scores)
    table = pd.DataFrame(rows)
    arms = ["base", "extra", *true]
    table[arms] = (table[arms] * 200).round() / 200
    return tidy(table, "rules", independent_tasks=True)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return summarize(simulate(TRUE))


def test_no_rule_is_recommended_by_scores_that_are_not_means_over_texts() -> None:
    table = simulate(TRUE)
    scores = table.assign(macro_f1=table["score"], brier=1 - table["score"])
    for score, is_mean in (("score", True), ("macro_f1", False), ("brier", True)):
        by_score = summarize(scores, score=score)
        assert any(row["rule"] == "cross-5" for row in find_rows(by_score, SENTENCES)) == is_mean
        assert any("not known to be a mean over texts" in text for text in by_score.warnings) != is_mean
    regression = summarize(table.assign(num_correct=None, num_scored=None))
    assert [row["rule"] for row in find_rows(regression, SENTENCES)] == ["batches-2", "alone"]
    bits = summarize(table.assign(num_correct=None, bits_per_byte=-table["score"]))
    assert "cross-5" in [row["rule"] for row in find_rows(bits, SENTENCES)], "a mean over bytes"
    assert find_score("neg_mean_squared_error").is_mean and not find_score("roc_auc").is_mean


def test_each_rule_is_judged_against_independent_texts(analysis: Analysis) -> None:
    rows = {row["rule"]: row for row in find_rows(analysis, WORTH)}
    assert list(rows) == [arm for kind in ORDER for arm in sorted(TRUE) if arm == kind or arm.startswith(f"{kind}-")]
    for rule, worth in TRUE.items():
        row = rows[rule]
        assert row["minus extra, low"] < worth < row["minus extra, high"]
        ways = ("biased down", "biased up") if rule.startswith(("test", "swap-in")) else ("lower", "higher")
        assert row["verdict"] == ("equivalent" if worth == 0 else ways[worth > 0]), rule
    (verdict,) = analysis.verdicts
    assert (rows["test"]["minus extra"], rows["test"]["minus extra, low"]) == (
        verdict.estimate.mean,
        verdict.estimate.low,
    )


def test_rules_of_benchmarks_are_sentences_with_numbers(analysis: Analysis) -> None:
    sentences = {row["rule"]: row["sentence"] for row in find_rows(analysis, SENTENCES)}
    assert list(sentences) == [rule for rule in TRUE if "swap" not in rule]
    assert "divided into 5 blocks" in sentences["cross-5"]
    assert "On these texts of 2 tasks (num_test 200), the mean score under this rule differs" in sentences["cross-5"]
    assert "adjusted 90% interval of 1 method: 1 equivalent)" in sentences["cross-5"]
    assert "has adapted neither to it nor to any later one. On these" in sentences["prequential"]
    assert "Each test text is predicted by itself. On these" in sentences["alone"]
    assert "differs from the mean score of texts that are predicted together by" in sentences["batches-2"]
    assert sentences["test"].startswith("Methods must not adapt"), "what it was worth is not negligible"
    several = summarize(simulate({"test": 0.03, "single": -0.03}, methods=3, subsamples=20))
    sentences = {row["rule"]: row["sentence"] for row in find_rows(several, SENTENCES)}
    assert "adjusted 95% intervals of 3 methods: 3 lower)" in sentences["single"]


def test_an_open_rule_says_what_settles_it() -> None:
    table = simulate({"test": 0.0, "cross-5": 0.004}, methods=2, subsamples=6)
    sentences = {row["rule"]: str(row["sentence"]) for row in find_rows(summarize(table), SENTENCES)}
    assert re.search(r"1 inconclusive, .*\. Not settled: \d+ more .* settle this with \d+% prob", sentences["cross-5"])
    assert sentences["test"].startswith("Methods must not adapt"), "it is not known to be negligible"


def test_adapting_to_the_test_texts_is_permitted_if_its_effect_is_negligible() -> None:
    found = summarize(simulate({"test": 0.0, "cross-5": 0.0}))
    sentences = {row["rule"]: str(row["sentence"]) for row in find_rows(found, SENTENCES)}
    assert sentences["test"].startswith("Methods may adapt to the unlabeled texts of the test set. On these texts")
    assert "(90% interval of 1 method: 1 equivalent)" in sentences["test"]
    (worth,) = (table for table in found.tables if table.title.startswith(WORTH))
    assert "adjusted" not in worth.title + worth.note
    assert "The interval of an equivalent bias has a level of 90%" in worth.note


def test_each_size_has_sentences_of_its_own() -> None:
    tables = [simulate({"test": 0.03, "single": -0.03}).assign(num_test=size) for size in (200, 400)]
    both = pd.concat(tables, ignore_index=True)
    rows = find_rows(summarize(both.assign(brier=1 - both["score"]), score="brier"), SENTENCES)
    assert [(row["rule"], "num_test 400" in str(row["sentence"])) for row in rows] == [
        ("test", False), ("test", True), ("single", False), ("single", True),
    ]  # fmt: skip
    assert all("of 1 method:" in str(row["sentence"]) for row in rows)


def test_no_rule_is_equivalent_without_evidence() -> None:
    """A run whose predictions are the same under a rule and with extra texts says nothing about the rule."""
    table = simulate({"test": 0.0, "single": 0.0})
    same = table.assign(score=table.groupby(["task", "subsample"])["score"].transform("first"), log_loss=0.5, brier=0.5)
    same["num_correct"] = (same["score"] * 200).round().astype("Int64")
    rows = find_rows(summarize_run(same, options=Summary(), looks=Looks(is_run=True)), WORTH)
    assert [row["verdict"] for row in rows] == ["inert", "inert"]


def test_the_option_family_holds_for_rules() -> None:
    table = simulate({"test": 0.0, "single": 0.0, "cross-5": 0.0}, methods=4, subsamples=10)
    widths = {}
    for family in ("all", "none"):
        rows = find_rows(summarize(table, family=family), WORTH)
        widths[family] = [row["minus extra, high"] - row["minus extra, low"] for row in rows if row["rule"] == "single"]
    assert min(widths["all"]) > 0
    assert np.mean(widths["all"]) > np.mean(widths["none"])


def test_rules_have_a_forest_plot_and_no_columns_elsewhere(analysis: Analysis) -> None:
    (forest,) = (figure for figure in analysis.figures if isinstance(figure, Forest) and "rule" in figure.title)
    assert [interval.label for _, intervals in forest.groups for interval in intervals][:2] == ["test", "cross-5"]
    leaderboard = table_rows(analysis.tables[0])[0]
    assert not {"cross-5", "single"} & leaderboard.keys()
    assert {row["effect"] for row in find_rows(analysis, "Boost and bias over these tasks")} == {"boost", "bias"}
    assert not any("rule" in table.title for table in summarize(simulate({"test": 0.03})).tables)


@pytest.mark.simulation
def test_rules_are_adjusted_as_one_family() -> None:
    """Of 24 rules without an effect, hardly any is called biased; without the adjustment, about one would be."""
    wrong = 0
    for seed in range(20):
        found = summarize(simulate({"test": 0.0, "cross-5": 0.0, "single": 0.0}, methods=12, subsamples=6, seed=seed))
        rows = [row for row in find_rows(found, WORTH) if row["rule"] != "test"]
        wrong += any(str(row["verdict"]).startswith("biased") for row in rows)
    assert wrong <= 4
