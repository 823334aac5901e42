from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student_t

from peekbench.effects import decide
from peekbench.errors import DataError, SpecError
from peekbench.records import Analysis, Table
from peekbench.results import load_results, tidy
from peekbench.testing import check_analyzer, check_module_light
from peekbench.uses import AnalysisSpec, make_use
from peekbench_bayes import Hierarchical
from peekbench_bayes.arrays import Arms, split
from peekbench_bayes.calibrated import fit_differences
from peekbench_bayes.counts import fit_counts, lay_rows
from peekbench_bayes.diagnostics import check_chains, check_weights
from peekbench_bayes.gaussian import sample, summarise_cells
from peekbench_bayes.laplace import approximate, weights
from peekbench_bayes.model import CountPriors, DifferencePriors
from peekbench_bayes.slices import fit_count_slices, fit_difference_slices, mixture_quantile, take_slices
from peekbench_bayes.verdict import summarise

if TYPE_CHECKING:
    from peekbench import FloatArray

    Simulate = Callable[..., pd.DataFrame]

HAS_BAMBI = importlib.util.find_spec("bambi") is not None and importlib.util.find_spec("nutpie") is not None
needs_bambi = pytest.mark.skipif(not HAS_BAMBI, reason="peekbench[bayes] is not installed")


def ask(results: pd.DataFrame, **options: Any) -> Analysis:
    spec = make_use(AnalysisSpec, "bayes.hierarchical", {"save_posterior": False, **options})
    return spec.entry.analyze(results, options=spec.options)


def rows(table: Table) -> list[dict[str, Any]]:
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def bias_of(results: pd.DataFrame) -> Arms:
    return split(results, ("bias",))[1][0]


def binomial(effect: float, slope_sd: float, *, tasks: int = 20, subsamples: int = 20, seed: int = 0) -> pd.DataFrame:
    """Counts of 500 from the binomial models: a known effect on the log-odds, for two language models."""
    rng = np.random.default_rng(seed)
    level = rng.normal(0.4, 0.9, tasks)[:, None] + rng.normal(0, 0.2, (tasks, subsamples))
    found = []
    for arm in ("extra", "test"):
        of_arm = (effect if arm == "test" else 0.0) + rng.normal(0, slope_sd, tasks)
        for model, ability in (("bert", 0.2), ("gpt2", -0.2)):
            chance = 1 / (1 + np.exp(-(level + of_arm[:, None] + ability)))
            right = rng.binomial(500, chance)
            found += [
                {
                    "task": f"t{j}",
                    "model": model,
                    "arm": arm,
                    "subsample": k,
                    "num_test": 500,
                    "score": right[j, k] / 500,
                }
                for j in range(tasks)
                for k in range(subsamples)
            ]
    return tidy(pd.DataFrame(found), "simulated")


def test_intervals_of_known_differences_hold_as_often_as_they_say() -> None:
    """250 data sets at once, whose tasks and models differ in effect and in noise."""
    rng = np.random.default_rng(3)
    noise = np.array([0.09, 0.03])[:, None] * np.exp(rng.normal(0, 0.4, (2, 20)))
    truth = rng.normal(0.01, 0.01, (250, 1, 20)) + rng.normal(0, 0.005, (250, 2, 20))
    data = truth[..., None] + noise[..., None] * rng.standard_normal((250, 2, 20, 15))
    states = list(sample(summarise_cells(data), DifferencePriors(), 220, rng))[60:]
    for name, true in (
        ("alone", truth.mean(axis=(1, 2))),
        ("theta", truth),
        ("mu", np.full(250, 0.01)),
    ):
        draws = np.array([getattr(state, name) for state in states])
        if name == "alone":
            draws = draws.mean(axis=(2, 3))
        if name == "mu":
            draws = draws.mean(axis=2)
        low, high = np.quantile(draws, [0.055, 0.945], axis=0)
        assert np.mean((low < true) & (true < high)) == pytest.approx(0.89, abs=0.05), name


def test_sampler_is_right_where_the_answer_is_known() -> None:
    """With one model, next to no differences between tasks and many subsamples, the mean is the pooled one."""
    rng = np.random.default_rng(1)
    data = 0.02 + 0.05 * rng.standard_normal((1, 10, 400))
    states = list(sample(summarise_cells(np.repeat(data[None], 8, axis=0)), DifferencePriors(), 500, rng))[100:]
    average = np.array([state.alone.mean(axis=(1, 2)) for state in states])
    assert average.mean() == pytest.approx(data.mean(), abs=1e-4)
    assert average.std() == pytest.approx(0.05 / np.sqrt(4000), rel=0.06)
    assert np.mean([state.variance.mean() for state in states]) == pytest.approx(0.0025, rel=0.05)


def test_bias_is_found_and_signed(simulate: Simulate) -> None:
    for bias, decision in ((0.03, "biased up"), (-0.03, "biased down"), (0.0, "equivalent")):
        (verdict,) = ask(simulate(bias, subsamples=150), effects=["bias"]).verdicts
        assert verdict.decision == decision
        assert verdict.low is not None
        assert verdict.high is not None
        assert verdict.low - 0.002 < bias < verdict.high + 0.002
    assert ask(simulate(0.002, subsamples=10), effects=["bias"]).verdicts[0].decision == "inconclusive"


def test_verdicts_rest_on_a_level_of_their_own(simulate: Simulate) -> None:
    results = simulate(0.002, subsamples=10)
    analysis = ask(results, effects=["bias"])
    (verdict,), (average, *_) = analysis.verdicts, rows(analysis.tables[0])
    assert verdict.level == 0.95
    assert "95% interval" in verdict.sentence
    assert verdict.low is not None
    assert verdict.low < 0 < average["low"]
    assert ask(results, effects=["bias"], verdict_level=0.89).verdicts[0].decision == "biased up"


def test_tasks_are_drawn_towards_each_other(simulate: Simulate) -> None:
    results = simulate({"task0": 0.02, "task1": 0.0, "task2": 0.0, "task3": 0.0, "task4": -0.02}, subsamples=15)
    tasks = [row for row in rows(ask(results, draws=200).tables[1]) if row["effect"] == "bias"]
    assert np.std([row["shrunk"] for row in tasks]) < np.std([row["observed"] for row in tasks])
    assert tasks[0]["shrunk"] > tasks[2]["shrunk"] > tasks[4]["shrunk"]


@pytest.mark.parametrize(("preset", "slope_sd"), [("printed", 0.0), ("random_slopes", 0.1)])
def test_binomial_models_recover_what_was_simulated(preset: Any, slope_sd: float) -> None:
    results = binomial(0.15, slope_sd)
    fit = fit_counts(bias_of(results), Hierarchical(preset=preset, draws=250))
    assert fit.log_odds is not None
    effect = summarise(fit.log_odds, 0.99)
    assert effect.low < 0.15 < effect.high
    assert effect.sd == pytest.approx(np.sqrt(2 / 20) * slope_sd if slope_sd else 0.0048, rel=0.4)
    sds = {name: float(draws.mean()) for name, draws in fit.spreads.items()}
    assert sds["subsamples, log-odds"] == pytest.approx(0.2, abs=0.03)
    assert sds["tasks, log-odds"] == pytest.approx(0.9, abs=0.35)
    if slope_sd:
        assert sds["arms within a task, log-odds"] == pytest.approx(slope_sd, rel=0.4)
    assert fit.failed == ()
    wide = results.pivot(index=["model", "task", "subsample"], columns="arm", values="score")
    assert fit.average.mean() == pytest.approx((wide["test"] - wide["extra"]).mean(), abs=0.001)


def test_log_density_of_the_sds_is_that_of_direct_integration() -> None:
    """One task, one subsample, one model: four effects and a pair of counts, integrated by brute force."""
    table = tidy(pd.DataFrame({"task": ["a"], "extra": [0.4], "test": [0.6], "num_test": [200]}), "tiny")
    from peekbench_bayes.laplace import find_mode, log_joint

    rows_ = lay_rows(bias_of(table), "printed", CountPriors())
    log_sd = np.log(np.array([[0.5, 0.5], [1.0, 0.2]]))
    found = find_mode(rows_, log_sd)
    # The sum of intercept, task and subsample effect is all that the data see.
    steps = np.linspace(-4, 4, 401)
    direct = []
    for point in log_sd:
        sd = np.sqrt(1 + np.exp(2 * point).sum())
        total, effect = np.meshgrid(steps * sd, steps, indexing="ij")
        at = np.zeros((total.size, 1))
        top = np.stack([at[:, 0], effect.ravel()], axis=1)
        fit = log_joint(rows_, np.zeros((total.size, 2)), top * [0, 1], at[:, None], total.reshape(-1, 1, 1))
        fit = fit + 0.5 * total.ravel() ** 2 - 0.5 * (total.ravel() / sd) ** 2 - np.log(sd)
        direct.append(np.log(np.exp(fit - fit.max()).sum()) + fit.max() + np.log(sd))
    prior = (log_sd - 0.5 * np.exp(2 * log_sd)).sum(axis=1)
    got, expected = found.log_density - prior, np.array(direct)
    assert got[0] - got[1] == pytest.approx(expected[0] - expected[1], abs=0.02)


TABLE = {
    # Of counts truncated as the published code truncated them: mean, low and high of the log-odds.
    (50, "printed"): (-0.0039, -0.014, 0.007),
    (100, "printed"): (-0.0088, -0.016, -0.002),
    (200, "printed"): (0.0077, 0.0005, 0.015),
    (500, "printed"): (-0.0094, -0.017, -0.002),
    (50, "random_slopes"): (-0.0039, -0.015, 0.007),
    (100, "random_slopes"): (-0.0089, -0.018, 0.0005),
    (200, "random_slopes"): (0.0066, -0.005, 0.018),
    (500, "random_slopes"): (-0.0081, -0.026, 0.010),
}


@pytest.mark.parametrize(("num_test", "preset"), [(500, "printed"), (500, "random_slopes"), (200, "printed")])
def test_published_accuracies_give_the_published_effect(published: Path, num_test: int, preset: Any) -> None:
    arms = next(arms for arms in split(load_results(published / "few_shot"), ("bias",))[1] if arms.num_test == num_test)
    truncated = replace(
        arms,
        control=np.trunc(arms.control * num_test) / num_test,
        treatment=np.trunc(arms.treatment * num_test) / num_test,
    )
    fit = fit_counts(truncated, Hierarchical(preset=preset))
    assert fit.log_odds is not None
    found, (mean, low, high) = summarise(fit.log_odds, 0.89), TABLE[num_test, preset]
    assert (found.mean, found.low, found.high) == pytest.approx((mean, low, high), abs=0.0009)


def test_binomials_that_do_not_fit_give_no_verdict(simulate: Simulate) -> None:
    """Training that is not stable: the arms of a subsample differ far more than counts of 200 do."""
    results = simulate(0.0, noise=0.08)
    analysis = ask(results, preset="printed", effects=["bias"], draws=100)
    (verdict,) = analysis.verdicts
    assert verdict.decision == "inconclusive"
    assert "dispersion of differences" in verdict.sentence
    assert "use the preset calibrated" in verdict.sentence
    assert any("dispersion" in warning for warning in analysis.warnings)
    assert {row["passed"] for row in rows(analysis.tables[3])} == {True, False}
    assert ask(results, effects=["bias"]).warnings == ()


def checked(draws: FloatArray) -> dict[str, tuple[float, bool]]:
    """Value and outcome of each check of chains that are fine but for the given ones."""
    fine = np.random.default_rng(1).standard_normal((4, 5000, 2))
    return {check.name: (check.value, check.passed) for check in check_chains({"fine": fine, "x": draws})}


def test_chains_that_disagree_fail_and_good_ones_pass() -> None:
    rng = np.random.default_rng(0)
    good = rng.standard_normal((4, 1000, 3))
    found = checked(good)
    assert all(passed for _, passed in found.values())
    assert found["bulk ESS, x"][0] == pytest.approx(4000, rel=0.15)
    assert found["tail ESS, x"][0] == pytest.approx(4000, rel=0.3)
    elsewhere, wider = good.copy(), good.copy()
    elsewhere[:, :, 1] += np.arange(4)[:, None]
    wider[0, :, 2] *= 5
    assert checked(elsewhere)["R-hat, x"][0] > 1.3
    assert checked(wider)["R-hat, x"][0] > 1.05  # which only the folded draws show
    assert not checked(wider)["R-hat, x"][1]
    slow = np.zeros((4, 4000))
    for step in range(1, 4000):
        slow[:, step] = 0.9 * slow[:, step - 1] + rng.standard_normal(4)
    assert checked(slow)["bulk ESS, x"][0] == pytest.approx(16000 / 19, rel=0.3)
    assert checked(slow)["bulk ESS, x"][1]
    assert not checked(slow[:, :1000])["bulk ESS, x"][1]


@pytest.mark.parametrize("k", [0.2, 0.5, 0.9])
def test_pareto_k_is_the_shape_of_the_tail(k: float) -> None:
    rng = np.random.default_rng(1)
    weights_ = 1 + ((1 - rng.random(20_000)) ** -k - 1) / k
    check = check_weights(np.log(weights_), "another engine")
    assert check.value == pytest.approx(k, abs=0.12)
    assert check.passed == (k < 0.7)


def test_no_difference_at_all_is_exact(simulate: Simulate) -> None:
    results = simulate(0.0, subsamples=10)
    table = results.pivot(index=["task", "subsample"], columns="arm", values="score").reset_index()
    table["test"] = table["extra"]
    (verdict,) = ask(tidy(table[["task", "subsample", "extra", "test"]], "same"), draws=100).verdicts
    assert verdict.decision == "equivalent"
    assert "exactly 0 in all 50 trials" in verdict.sentence


def test_methods_and_sizes_are_fitted_each_and_models_together() -> None:
    both = binomial(0.05, 0.0, tasks=6, subsamples=8)
    other = both.assign(method="other", num_test=250, num_correct=(both["num_correct"] // 2).astype("Int64"))
    results = pd.concat([both, other.assign(score=other["num_correct"] / 250)], ignore_index=True)
    analysis = ask(results, draws=100)
    assert [verdict.method for verdict in analysis.verdicts] == ["method (n=500)", "other (n=250)"]
    assert [row["model"] for row in rows(analysis.tables[0])] == ["all", "bert", "gpt2"] * 2
    alone = ask(both, draws=100)
    assert rows(alone.tables[0])[0]["mean"] == rows(analysis.tables[0])[0]["mean"]


def test_models_are_paired_by_subsample_number() -> None:
    results = binomial(0.0, 0.0, tasks=3, subsamples=5)
    shuffled = results.sample(frac=1, random_state=1).reset_index(drop=True)
    first, again = bias_of(results), bias_of(shuffled)
    order = [[again.models.index(name) for name in first.models], [again.tasks.index(name) for name in first.tasks]]
    assert np.array_equal(first.difference, again.difference[np.ix_(*order)])


def test_holes_single_subsamples_and_scores_that_are_no_accuracies(simulate: Simulate) -> None:
    results = simulate(0.02, subsamples=12)
    shorter = results[~((results["task"] == "task1") & (results["subsample"] >= 5))]
    for preset in ("calibrated", "printed"):
        assert np.isfinite(rows(ask(shorter, draws=100, preset=preset).tables[0])[0]["mean"])
    single = results[results["subsample"] == 0]
    assert ask(single, draws=100).verdicts[0].decision == "inconclusive"
    table = pd.DataFrame({"task": ["a"] * 9 + ["b"] * 9, "extra": [0.1, -0.2, 0.3] * 6, "test": [0.3, 0.1, 0.2] * 6})
    (verdict,) = ask(tidy(table, "r2"), draws=100).verdicts
    assert "points" not in verdict.sentence
    with pytest.raises(DataError, match="preset printed models numbers of right answers"):
        ask(tidy(table, "r2"), preset="printed")


def test_options_that_contradict_each_other_are_refused(simulate: Simulate) -> None:
    with pytest.raises(SpecError, match="bambi fits the presets printed and random_slopes"):
        ask(simulate(0.0, subsamples=3), engine="bambi")
    no_base = simulate(0.0, subsamples=3)
    with pytest.raises(SpecError, match="effects: boost cannot be had"):
        ask(no_base[no_base["arm"] != "base"], effects=["boost"])
    with pytest.raises(SpecError):
        ask(no_base, difference_priors={"task_sd": 0})


def test_default_engines_need_no_bambi(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in ("arviz", "bambi", "nutpie", "pymc"):
        monkeypatch.setitem(sys.modules, name, None)
    results = simulate(0.0, subsamples=5)
    for preset in ("calibrated", "printed", "random_slopes"):
        assert ask(results, preset=preset, draws=100, effects=["bias"]).verdicts


@pytest.mark.skipif(HAS_BAMBI, reason="peekbench[bayes] is installed")
def test_missing_bambi_is_said(simulate: Simulate) -> None:
    with pytest.raises(SpecError, match=r"pip install 'peekbench\[bayes\]'"):
        ask(simulate(0.0, subsamples=3), preset="printed", engine="bambi")


@pytest.mark.parametrize(
    ("low", "high", "decision"),
    [
        (-0.004, 0.004, "equivalent"),
        (0.001, 0.004, "equivalent"),
        (0.001, 0.006, "biased up"),
        (-0.006, -0.001, "biased down"),
        (-0.006, 0.001, "inconclusive"),
    ],
)
def test_decisions(low: float, high: float, decision: str) -> None:
    assert decide(low, high, 0.005) == decision


def test_grid_covers_the_posterior_of_the_sds() -> None:
    mode, _ = approximate(lay_rows(bias_of(binomial(0.0, 0.1)), "random_slopes", CountPriors()))
    assert mode.converged
    chances = weights(mode)
    assert chances.max() < 0.5
    outermost = np.abs(mode.log_sd - np.median(mode.log_sd, axis=0)).argmax(axis=0)
    assert chances[outermost].max() < 0.02


@needs_bambi
@pytest.mark.parametrize("preset", ["printed", "random_slopes"])
def test_reference_agrees_with_the_fast_engine(preset: Any) -> None:
    from peekbench_bayes.reference import fit_with_bambi

    arms = bias_of(binomial(0.1, 0.1 if preset == "random_slopes" else 0.0, tasks=8, subsamples=8))
    options = Hierarchical(preset=preset, draws=250)
    fast, reference = (summarise(fit(arms, options).average, 0.89) for fit in (fit_counts, fit_with_bambi))
    assert (fast.mean, fast.low, fast.high) == pytest.approx(
        (reference.mean, reference.low, reference.high), abs=0.2 * fast.sd
    )


@needs_bambi
def test_posterior_is_kept_as_netcdf(simulate: Simulate, tmp_path: Path) -> None:
    import arviz

    analysis = ask(simulate(0.0, subsamples=5), draws=100, save_posterior=True, effects=["bias"])
    ((name, write),) = analysis.attachments.items()
    write(tmp_path / name)
    assert arviz.from_netcdf(tmp_path / name).posterior["average"].shape == (8, 100)


def test_checks_of_the_default_engine_pass(simulate: Simulate) -> None:
    fit = fit_differences(bias_of(simulate(0.01)), Hierarchical())
    assert fit.failed == ()
    assert {check.name.split(",")[0] for check in fit.checks} == {"R-hat", "bulk ESS", "tail ESS"} | {
        "dispersion of differences"
    }


def test_such_tasks_are_judged_as_a_paired_t_over_tasks_does() -> None:
    """Bias goes with noise here, so that a mean that weighs stable tasks more would lie elsewhere."""
    rng = np.random.default_rng(3)
    noise = np.linspace(0.005, 0.05, 30)
    difference = (noise - 0.01)[:, None] + noise[:, None] * rng.standard_normal((30, 40))
    table = pd.DataFrame({"task": np.repeat([f"t{number}" for number in range(30)], 40), "extra": 0.5})
    fit = fit_differences(bias_of(tidy(table.assign(test=0.5 + difference.ravel()), "noisy")), Hierarchical())
    assert fit.such_tasks is not None
    found, means = summarise(fit.such_tasks, 0.89), difference.mean(axis=1)
    assert found.mean == pytest.approx(means.mean(), abs=0.0005)
    half = student_t.ppf(0.945, 29) * means.std(ddof=1) / np.sqrt(30)
    assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.1)


def test_slices_keep_one_subsample_of_each_task_and_model() -> None:
    arms = bias_of(binomial(0.0, 0.0, tasks=4, subsamples=30))
    slices = list(take_slices(arms, 200, np.random.default_rng(0)))
    assert {one.control.shape for one in slices} == {(2, 4, 2)}
    assert all((np.isfinite(one.difference).sum(axis=2) == 1).all() for one in slices)
    for model, task in np.ndindex(2, 4):
        pairs = {(one.control[model, task, model], one.treatment[model, task, model]) for one in slices}
        assert pairs <= set(zip(arms.control[model, task], arms.treatment[model, task], strict=True))
        assert len(pairs) > 20
    again = list(take_slices(arms, 200, np.random.default_rng(0)))
    assert all(np.array_equal(a.control, b.control, equal_nan=True) for a, b in zip(slices, again, strict=True))


@pytest.mark.parametrize(("preset", "slope_sd"), [("printed", 0.0), ("random_slopes", 0.2)])
def test_slices_are_fitted_as_each_alone_would_be(preset: Any, slope_sd: float) -> None:
    arms = bias_of(binomial(0.1, slope_sd, subsamples=6))
    slices = list(take_slices(arms, 4, np.random.default_rng(1)))
    found = fit_count_slices(slices, preset, CountPriors(), 0.89)
    for number, one in enumerate(slices):
        draws = fit_counts(one, Hierarchical(preset=preset)).log_odds
        assert draws is not None
        alone = summarise(draws, 0.89)
        expected = pytest.approx((alone.mean, alone.low, alone.high), abs=0.12 * alone.sd)
        assert (found.mean[number], found.low[number], found.high[number]) == expected


def test_calibrated_slices_hold_the_true_effect_as_often_as_they_say() -> None:
    arms = bias_of(binomial(0.1, 0.0, subsamples=200))
    slices = list(take_slices(arms, 300, np.random.default_rng(1)))
    found = fit_difference_slices(slices, DifferencePriors(), 60, 0.89, np.random.default_rng(2))
    truth = float(np.nanmean(arms.difference))
    assert np.mean((found.low < truth) & (truth < found.high)) == pytest.approx(0.89, abs=0.06)


def test_calibrated_slices_are_fitted_as_each_alone_would_be() -> None:
    arms = bias_of(binomial(0.1, 0.2, subsamples=6))
    slices = list(take_slices(arms, 4, np.random.default_rng(1)))
    found = fit_difference_slices(slices, DifferencePriors(), 2000, 0.89, np.random.default_rng(2))
    for number, one in enumerate(slices):
        alone = summarise(fit_differences(one, Hierarchical(draws=1000)).average, 0.89)
        assert found.mean[number] == pytest.approx(np.nanmean(one.difference), abs=1e-12)
        expected = pytest.approx((alone.mean, alone.low, alone.high), abs=0.1 * alone.sd)
        assert (found.mean[number], found.low[number], found.high[number]) == expected


def test_meta_counts_what_slices_conclude() -> None:
    for effect, decision in ((0.4, "biased up"), (-0.4, "biased down")):
        overview, conclusions = ask_meta(binomial(effect, 0.0, tasks=10, subsamples=8), preset="printed", num_slices=20)
        assert rows(conclusions)[0][decision] == 1
        assert rows(overview)[0]["beyond 0.04"] == rows(overview)[0]["interval excludes 0"] == 1
    null = binomial(0.0, 0.0, tasks=10, subsamples=8)
    overview, conclusions = ask_meta(null, num_slices=40)
    assert rows(overview)[0]["interval excludes 0"] < 0.4
    assert sum(rows(conclusions)[0][name] for name in ("biased up", "biased down", "equivalent", "inconclusive")) == 1
    assert rows(ask_meta(null, num_slices=20, region=0.5)[1])[0]["equivalent"] == 1


def ask_meta(results: pd.DataFrame, **options: Any) -> tuple[Table, ...]:
    spec = make_use(AnalysisSpec, "bayes.meta", options)
    return spec.entry.analyze(results, options=spec.options).tables


def test_quantiles_of_mixtures_of_normals() -> None:
    rng = np.random.default_rng(0)
    chances, means, sds = np.array([[0.3, 0.7]]), np.array([[-1.0, 2.0]]), np.array([[0.5, 1.5]])
    part = (rng.random(400_000) < 0.7).astype(int)
    draws = means[0, part] + sds[0, part] * rng.standard_normal(len(part))
    for q in (0.055, 0.5, 0.945):
        assert mixture_quantile(chances, means, sds, q) == pytest.approx(np.quantile(draws, q), abs=0.02)


@pytest.mark.parametrize("name", ["hierarchical", "meta"])
def test_contract(simulate: Simulate, name: str) -> None:
    spec = make_use(AnalysisSpec, f"bayes.{name}", {"draws": 100})
    check_analyzer(spec.entry, spec.options, simulate(0.01, subsamples=10))
    check_module_light("peekbench_bayes")
