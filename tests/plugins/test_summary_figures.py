from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from peekbench import Analysis
from peekbench.figures import Curves, Figure, Forest, Violins
from peekbench.results.table import tidy
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench_summary.estimates import of_these_tasks

Simulate = Callable[..., Any]


def summarize(results: pd.DataFrame, **options: Any) -> Analysis:
    spec = make_component(AnalysisSpec, "summary", options)
    return spec.entry.analyze(results, options=spec.options)


def titled(analysis: Analysis, beginning: str) -> list[Figure]:
    return [figure for figure in analysis.figures if figure.title.startswith(beginning)]


def test_violins_hold_every_difference(simulate: Simulate) -> None:
    results = simulate(0.03)
    (bias,), (boost,) = (titled(summarize(results), one) for one in ("Bias of single", "Boost of single"))
    assert isinstance(bias, Violins) and isinstance(boost, Violins)
    ((heading, samples),) = bias.columns
    assert heading == "method"
    assert [sample.label for sample in samples] == [f"task{number}" for number in range(5)]
    wide = results.pivot(index=["task", "subsample"], columns="arm", values="score")
    expected = (wide["test"] - wide["extra"]).loc["task0"]
    assert samples[0].values == pytest.approx(sorted(expected), abs=1e-5)
    assert (bias.axis.region, boost.axis.region) == (0.0, 0.0)  # which is one of averages


def test_progress_ends_with_the_estimate_of_all(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.03))
    ((progress),) = titled(analysis, "The average bias as subsamples accrue")
    assert isinstance(progress, Curves)
    ((_, (curve,)),) = progress.panels
    verdict = analysis.verdicts[0]
    assert (curve.x[0], curve.x[-1]) == (5, 40)
    assert (curve.y[-1], curve.low[-1], curve.high[-1]) == (verdict.estimate, verdict.low, verdict.high)
    assert curve.high[0] - curve.low[0] > 1.5 * (curve.high[-1] - curve.low[-1])


def test_few_subsamples_have_no_progress_and_single_ones_no_violins(simulate: Simulate) -> None:
    assert not titled(summarize(simulate(0.0, subsamples=9)), "The average bias as")
    assert not [figure for figure in summarize(simulate(0.0, subsamples=1)).figures if isinstance(figure, Violins)]


def doses() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for task in ("a", "b"):
        for _ in range(30):
            extra = rng.normal(0.6, 0.02)
            row = {"task": task, "extra": extra, "test": extra + 0.04}
            rows.append({**row, "mix-0.25": extra + 0.01, "mix-0.5": extra + rng.normal(0.02, 0.01)})
    return tidy(pd.DataFrame(rows), "doses")


def test_doses_are_drawn_from_none_to_all() -> None:
    ((figure),) = titled(summarize(doses()), "Dose and response")
    assert isinstance(figure, Curves)
    ((_, (curve,)),) = figure.panels
    assert curve.x == (0.0, 0.25, 0.5, 1.0)
    assert curve.y == pytest.approx((0.0, 0.01, 0.02, 0.04), abs=0.004)
    assert curve.low[2] < curve.y[2] < curve.high[2]


def test_without_doses_or_several_sizes_there_are_no_such_figures(simulate: Simulate) -> None:
    analysis = summarize(simulate(0.03))
    assert not titled(analysis, "Dose") and not titled(analysis, "Bias by number")


def test_sizes_are_lines_of_averages_by_model(simulate: Simulate) -> None:
    parts = [
        simulate(0.02 * number, num_test=size, seed=size).assign(model=model)
        for number, model in enumerate(("bert", "gpt2"))
        for size in (50, 200)
    ]
    ((figure),) = titled(summarize(pd.concat(parts, ignore_index=True)), "Bias by number of test texts")
    assert isinstance(figure, Curves)
    ((_, lines),) = figure.panels
    assert [line.label for line in lines] == ["bert", "gpt2"]
    assert all(line.x == (50, 200) for line in lines)
    of_one = parts[2].pivot(index=["task", "subsample"], columns="arm", values="score")
    tasks = [values.tolist() for _, values in (of_one["test"] - of_one["extra"]).groupby("task")]
    expected = of_these_tasks(tasks, 0.95)
    assert lines[1].y[0] == pytest.approx(expected.mean)
    assert lines[1].low[0] == pytest.approx(expected.low)


def test_tasks_named_by_their_size_are_lines_of_their_own(simulate: Simulate) -> None:
    parts = []
    for size in (25, 100):
        part = simulate({"task0": 0.1, "task1": 0.0}, tasks=2, num_test=size)
        parts.append(part.replace({"task": {"task0": f"rank5-n{size}", "task1": f"rank20-n{size}"}}))
    analysis = summarize(pd.concat(parts, ignore_index=True))
    ((figure),) = titled(analysis, "Bias by number of test texts")
    assert isinstance(figure, Curves)
    ((_, lines),) = figure.panels
    assert {line.label: line.x for line in lines} == {"rank5": (25, 100), "rank20": (25, 100)}
    assert min(lines[0].y) > 0.05 > max(lines[1].y)
    assert not [one for one in analysis.figures if isinstance(one, Violins)]


def test_the_region_is_shaded_where_all_configurations_have_the_same(simulate: Simulate) -> None:
    tables: list[pd.DataFrame] = [simulate(0.0), simulate(0.0, method="other").assign(score=0.9)]
    results = pd.concat(tables, ignore_index=True)
    for options, expected in (({}, {0.005}), ({"region": 0.02}, {0.02})):
        figures = titled(summarize(results, **options), "Bias by task")
        assert {figure.axis.region for figure in figures if isinstance(figure, Forest)} == expected
    ((one),) = titled(summarize(results, region_unit="log_odds"), "Bias by task")
    assert isinstance(one, Forest) and one.axis.region == 0


def test_the_published_accuracies_have_a_violin_for_each_task(published: Path) -> None:
    from peekbench import load_results

    analysis = summarize(load_results(published / "few_shot"))
    ((figure),) = titled(analysis, "Bias of single")
    assert isinstance(figure, Violins)
    assert [len(samples) for _, samples in figure.columns] == [25] * 8
