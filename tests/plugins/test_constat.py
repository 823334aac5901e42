"""ConStat: recovery of planted contamination, calibration, tables of real life, and messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from analysis_tables import table_rows
from typer.testing import CliRunner

from peekbench import Analysis, PeekbenchError
from peekbench.cli.app import app
from peekbench.records import Forest
from peekbench.records.data import TableOptions
from peekbench.report import state
from peekbench.report.render.content import basis_of
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.results.tidying import tidy_table
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench_constat.excess import fit_curve, read_scores, refit
from peekbench_constat.findings import label_models
from peekbench_testing import check_entry

PAIR = {"original": "gsm", "reference": "gsm-new"}
OPTIONS = {"comparisons": [PAIR], "num_resamples": 200}
NUM_TEST = {"gsm": 1000, "gsm-new": 800}


def simulate(
    num_models: int = 20, *, excess: float = 0.0, scatter: float = 0.0, seed: int = 0
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return expected accuracies on the original and on a harder benchmark; model 0 has an excess."""
    rng = np.random.default_rng(seed)
    ability = np.concatenate([[0.6], np.linspace(0.3, 0.9, num_models - 1)])
    original = ability + rng.normal(0, scatter, num_models)
    original[0] += excess
    return original, 0.8 * ability**1.5


def make_table(accuracies: tuple[Any, Any], seed: int = 0) -> pd.DataFrame:
    """Return a table as people have it: model, benchmark and counts."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"model-{number}", task, rng.binomial(NUM_TEST[task], share), NUM_TEST[task])
        for task, shares in zip(("gsm", "gsm-new"), accuracies, strict=True)
        for number, share in enumerate(shares)
    ]
    return pd.DataFrame(rows, columns=["model", "benchmark", "num_correct", "num_test"])


def read(table: pd.DataFrame) -> pd.DataFrame:
    """Return the results table of a user's table of base arms."""
    return tidy_table(table, "scores", TableOptions(arms=("base",))).results


def constat(table: pd.DataFrame, **options: Any) -> Analysis:
    """Run the analysis on a user's table."""
    (analysis,) = analyze(
        table, AnalysisOptions([make_component(AnalysisSpec, "constat", {**OPTIONS, **options})])
    ).analyses
    return analysis


@pytest.mark.parametrize("kind", ["syntax", "sample", "benchmark"])
def test_planted_contamination_is_found(kind: str) -> None:
    analysis = constat(make_table(simulate(excess=0.12)), comparisons=[{**PAIR, "kind": kind}])
    first, *others = analysis.verdicts
    assert (first.method, first.effect, first.decision) == ("model-0", "contamination", "biased up")
    assert f"{kind}-specific contamination" in state(first)
    assert first.estimate.low < 0.12 < first.estimate.high
    assert {verdict.decision for verdict in others} <= {"inconclusive", "equivalent"}
    (figure,) = analysis.figures
    assert isinstance(figure, Forest)
    assert figure.groups[0][1][0].label == "model-0"


def test_p_values_of_clean_models_are_uniform() -> None:
    """Sixty models that scatter around a curve, each tested against the others, in a shifted benchmark."""
    analysis = constat(make_table(simulate(60, scatter=0.03, seed=3)))
    p_values = [row["p"] for row in table_rows(analysis.tables[0]) if row["p"] is not None]
    assert len(p_values) >= 56
    assert np.mean(np.array(p_values) <= 0.05) <= 0.10
    assert 0.35 < np.mean(np.array(p_values) <= 0.5) < 0.65
    (curve,) = table_rows(analysis.tables[1])
    assert curve["scatter"] == pytest.approx(0.03, abs=0.008)


def test_reports_count_scores_without_pairs(tmp_path: Path) -> None:
    table = make_table(simulate(8)).assign(arm="base")
    pair = table.head(1)
    scores = pd.concat([table, pair.assign(arm="extra"), pair.assign(arm="test")])
    scores.to_csv(tmp_path / "scores.csv", index=False)
    (tmp_path / "spec.yaml").write_text(f"name: models\nanalyses: [{{use: constat, options: {json.dumps(OPTIONS)}}}]\n")
    command = ["analyze", str(tmp_path / "scores.csv"), "--spec", str(tmp_path / "spec.yaml")]
    shown = CliRunner().invoke(app, command, catch_exceptions=False).stdout
    assert "models  1 method on 2 tasks, 16 trials, from" in shown


def test_models_can_be_named() -> None:
    table = make_table(simulate(excess=0.12))
    analysis = constat(table, suspects=["model-0", "model-9"])
    assert [verdict.method for verdict in analysis.verdicts] == ["model-0", "model-9"]
    assert basis_of(analysis.verdicts[0]) == "18 reference models, 1,000 and 800 answers"
    same = constat(table, references=[f"model-{number}" for number in range(1, 20) if number != 9])
    assert same.verdicts == analysis.verdicts
    alone = constat(table, suspects=["model-0"], references=[f"model-{number}" for number in range(1, 20)])
    assert basis_of(alone.verdicts[0]).startswith("19 reference models")


def test_scores_that_cannot_be_predicted_are_inconclusive() -> None:
    original, reference = simulate()
    reference[0] = 0.99
    (verdict,) = constat(make_table((original, reference)), suspects=["model-0"]).verdicts
    assert (verdict.decision, verdict.estimate.is_known) == ("inconclusive", False)
    assert "is outside the range of the reference models" in state(verdict)
    (few,) = constat(make_table(simulate(8)), suspects=["model-0"]).verdicts
    assert "7 reference models, and at least 8 are needed" in state(few)
    (saturated,) = constat(make_table((original, np.ones(20))), suspects=["model-0"]).verdicts
    assert "reference models on gsm-new do not differ" in state(saturated)


def test_models_of_a_family_count_as_one() -> None:
    """A prediction uses models of other families; copies of a model add no evidence."""
    original, reference = simulate(12, excess=0.12, scatter=0.03)
    table = make_table((original, reference))
    copies = [table.assign(model=table["model"] + suffix) for suffix in ("", "-b", "-c")]
    families = {f"family-{number}": tuple(f"model-{number}{end}" for end in ("", "-b", "-c")) for number in range(12)}
    together = constat(pd.concat(copies), suspects=["model-0", "model-0-b", "model-0-c"], model_families=families)
    alone = constat(table, suspects=["model-0"])
    assert basis_of(together.verdicts[0]) == "33 reference models of 11 families, 1,000 and 800 answers"
    (expected,), (found, *_) = table_rows(alone.tables[0]), table_rows(together.tables[0])
    assert found["p"] == pytest.approx(expected["p"], rel=0.5)
    naive = constat(pd.concat(copies), suspects=["model-0", "model-0-b", "model-0-c"])
    assert table_rows(naive.tables[0])[0]["p"] < 0.9 * found["p"]
    assert (alone.warnings[0][:27], together.warnings) == ("models count as independent", ())
    few = constat(table, suspects=["model-0"], model_families={"all": [f"model-{number}" for number in range(3, 12)]})
    assert "are of 3 other families, and at least 5 are needed" in state(few.verdicts[0])


def test_models_without_a_score_are_left_out_with_a_warning() -> None:
    table = make_table(simulate())
    analysis = constat(table[(table["model"] != "model-3") | (table["benchmark"] == "gsm")])
    assert len(analysis.verdicts) == 19
    assert "model-3: left out of a comparison, because a score on gsm or gsm-new is missing" in analysis.warnings[0]


def test_several_comparisons_have_their_own_verdicts() -> None:
    table = make_table(simulate(excess=0.12))
    swapped = {"original": "gsm-new", "reference": "gsm"}
    up, down = constat(table, comparisons=[PAIR, swapped], suspects=["model-0"]).verdicts
    assert (up.method, up.decision, up.family.size) == ("model-0 (gsm, predicted by gsm-new)", "biased up", 2)
    assert (down.method, down.decision) == ("model-0 (gsm-new, predicted by gsm)", "biased down")


def test_rows_of_single_texts_are_resampled_together() -> None:
    """Texts that are hard for all models shift all scores, so the same resample for all models is more precise."""
    rng = np.random.default_rng(0)
    is_hard = rng.random(300) < 0.5
    names = np.array([f"model-{number}" for number in range(15)])
    rows = [
        (name, task, text, int(rng.random() < (0.02 if is_hard[text] else 0.98)), 1)
        for task in ("gsm", "gsm-new") for name in names for text in range(300)
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["method", "task", "subsample", "num_correct", "num_test"]).assign(arm="base")
    results = read(table)
    scores = read_scores(label_models(results), "gsm", 400, np.random.default_rng(1))
    shares = table[table["task"] == "gsm"].groupby("method", sort=False)["num_correct"].mean()
    assert scores.observed == pytest.approx(shares[list(scores.names)].to_numpy())
    spread = scores.resampled.std(axis=0).mean()
    assert spread == pytest.approx(np.sqrt(0.25 / 300), rel=0.1)
    differences = (scores.resampled[:, 0] - scores.resampled[:, 1]).std()
    assert differences < 0.5 * spread


def test_the_curve_bends_where_the_points_do() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.random(60))
    noise = rng.normal(0, 0.01, 60)
    line = fit_curve(x, 0.2 + 0.5 * x + noise, (0.0, 1.0))
    assert line(x) == pytest.approx(np.polyval(np.polyfit(x, 0.2 + 0.5 * x + noise, 1), x), abs=0.005)
    assert 1.999 < line.freedom < 4
    bent = fit_curve(x, x**3 + noise, (0.0, 1.0))
    assert bent(x) == pytest.approx(x**3, abs=0.02)
    assert bent.freedom > 4


def test_weights_of_the_curve_are_numbers_of_points() -> None:
    """The degrees of freedom and the refitted curves agree with fits of points that are moved, repeated or left out."""
    rng = np.random.default_rng(0)
    x, y = rng.random(12), rng.random(12)
    curve = fit_curve(x, y, (0.0, 1.0))
    weights = np.array([np.ones(12), np.r_[2.0, 0.0, np.ones(10)]])
    curves = refit(curve, np.tile(x, (2, 1)), np.tile(y, (2, 1)), weights)
    assert curves.coefficients[0] == pytest.approx(curve.coefficients)
    again = np.r_[x[0], x[0], x[2:]], np.r_[y[0], y[0], y[2:]]
    (repeated,) = refit(curve, again[0][None], again[1][None], np.ones((1, 12))).coefficients
    assert curves.coefficients[1] == pytest.approx(repeated)
    moved = refit(curve, np.tile(x, (12, 1)), y + np.eye(12), np.ones((12, 12)))
    assert np.trace(moved(np.tile(x, (12, 1))) - curve(x)) == pytest.approx(curve.freedom)


@pytest.mark.slow
def test_the_contract_of_analyses_is_fulfilled() -> None:
    outcomes = check_entry("constat", OPTIONS, data=read(make_table(simulate(10))))
    assert [outcome for outcome in outcomes if not outcome.passed] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"comparisons": []},
            r"comparisons: none is given; .*\{original: gsm, reference: gsm-new\}",
        ),
        ({"comparisons": [{**PAIR, "original": "gms"}]}, "comparisons: original: there is no 'gms'; did you mean gsm"),
        ({"comparisons": [{**PAIR, "reference": "gsm"}]}, "'gsm' is both original and reference"),
        ({"suspects": ["modle-3"]}, "option suspects: there is no 'modle-3'; did you mean model-3"),
        ({"model_families": {"a": ["modle-3"]}}, "option model_families: there is no 'modle-3'; did you mean model-3"),
        ({"model_families": {"a": ["model-3"], "b": ["model-3"]}}, "model_families: 'model-3' is named 2 times"),
        (
            {"references": ["x"]},
            "references: there is no 'x'; the results have model-0, .* and 12 more",
        ),
    ],
)
def test_messages_name_the_option_and_the_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PeekbenchError, match=f"(?s){message}"):
        constat(make_table(simulate()), **options)


def test_tables_that_cannot_be_resampled_are_errors() -> None:
    table = make_table(simulate(10))
    with pytest.raises(PeekbenchError, match="task gsm are not accuracies out of a known number .*'num_test'"):
        constat(table.assign(score=table["num_correct"] / table["num_test"]).drop(columns=["num_correct", "num_test"]))
    draws = pd.concat([table.assign(subsample=number) for number in range(3)])
    with pytest.raises(PeekbenchError, match="models have 3 rows each on the task gsm, too few to resample"):
        constat(draws)
    with pytest.raises(PeekbenchError, match="model-4 has 2 of the 3 rows that models have on the task gsm"):
        constat(draws[(draws["model"] != "model-4") | (draws["subsample"] > 0)])


def test_several_sizes_of_a_benchmark_are_an_error() -> None:
    table = make_table(simulate(10))
    smaller = table.assign(num_correct=table["num_correct"] // 2, num_test=table["num_test"] // 2)
    with pytest.raises(PeekbenchError, match="model-0 has scores on the task gsm with num_test 500 and 1,000, .* keep"):
        constat(pd.concat([table, smaller]))


def test_only_analyses_of_base_arms_take_tables_without_arms(tmp_path: Path) -> None:
    table = make_table(simulate())
    path = tmp_path / "scores.csv"
    table.to_csv(path, index=False)
    chosen = make_component(AnalysisSpec, "constat", OPTIONS)
    (from_file,) = analyze(path, AnalysisOptions([chosen])).analyses
    assert from_file.verdicts == constat(table).verdicts
    with_arms = pd.concat([table.assign(arm=arm, subsample=0) for arm in ("base", "extra", "test")])
    (from_run,) = analyze(with_arms.rename(columns={"model": "method"}), AnalysisOptions([chosen])).analyses
    assert from_run.verdicts == from_file.verdicts
    with pytest.raises(PeekbenchError, match="there is no column 'arm', or one for each arm"):
        analyze(path, AnalysisOptions([chosen, "summary"]))
    with pytest.raises(PeekbenchError, match="the analysis summary needs scores of the arm 'extra', .* only .* base"):
        analyze(read(table[table["benchmark"] == "gsm"]), AnalysisOptions(["summary"]))
    with pytest.raises(PeekbenchError, match="no row has the arm 'base'"):
        analyze(with_arms[with_arms["arm"] != "base"], AnalysisOptions([chosen]))
