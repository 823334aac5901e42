"""Reads the stores of the official specs and of sizes.yaml, for reports/published/official/official.json.

Verdicts are those of a report on one test set, adjusted for all methods of the set. The order of two methods is that
of their scores to publish; it is compared with the order of their usual scores, and with the order of their scores to
publish on texts resampled from the test set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from atlas_numbers import DIGITS, SPECS, describe_run, read_finished, state_of
from atlas_records import Cell, Effect, Official, Run, Size, TestSet

from peekbench import load_spec
from peekbench.records import Estimate, FloatArray, TrialEvidence
from peekbench.results import configurations
from peekbench.results.read import StoredPredictions
from peekbench.store.reader import Store
from peekbench_summary import Summary
from peekbench_summary.families import judge_all
from peekbench_summary.text_noise import with_fixed_texts

OFFICIAL = (
    "official", "official_hub", "official_tables", "official_trained", "official_prompts",
)  # fmt: skip
SIZES = ("sizes",)
PUBLISHED_OFFICIAL = SPECS.parents[1] / "reports" / "published" / "official" / "official.json"
NUM_DRAWS = 500
"""Resampled test sets, and resampled sets of tasks for the intervals of the regression."""


def read_official() -> Official | None:
    """Return the published numbers, if there are any."""
    if not PUBLISHED_OFFICIAL.is_file():
        return None
    return Official.model_validate_json(PUBLISHED_OFFICIAL.read_text(encoding="utf-8"))


def collect_official(folder: Path, earlier: Official | None = None) -> Official:
    """Return the numbers of all finished runs, and those of earlier ones in place of runs that the folder lacks."""
    runs: dict[str, Run] = {}
    sets: dict[str, dict[str, TestSet]] = {}
    sizes: list[Size] = []
    for name in (*OFFICIAL, *SIZES):
        results = read_finished(name, folder)
        if results is None:
            continue
        path = folder / f"{load_spec(SPECS / f'{name}.yaml').name}.sqlite"
        runs[name] = describe_run(path, results)
        if name in SIZES:
            with Store.open(path) as store:
                classes = {task: len(facts["class_names"]) for task, facts in store.tasks().items()}
            sizes = list(regress(results, classes))
        else:
            sets[name] = {str(task): collect_set(rows, path) for task, rows in results.groupby("task", observed=True)}
    if earlier is not None:
        runs, sets, sizes = earlier.runs | runs, earlier.sets | sets, sizes or earlier.sizes
    return Official(runs=runs, sets=sets, sizes=sizes)


def collect_set(results: pd.DataFrame, path: Path) -> TestSet:
    """Judge the methods on one test set, with the answers of a store, as its report does."""
    results = results.assign(model="").reset_index(drop=True)
    (task,) = results["task"].unique()
    with Store.open(path) as store:
        num_classes = len(store.tasks()[task]["class_names"])
    predictions = StoredPredictions(path)
    majorities = results.groupby("task", observed=True)["majority"].mean()
    found = with_fixed_texts(configurations(results), predictions)
    cells, controls = [], {}
    by_text: dict[str, dict[str, FloatArray]] = {}
    for configuration, verdict in zip(found.configurations, judge_all(found, Summary(), {}), strict=True):
        name = str(configuration.key[0])
        if configuration.control:
            controls[configuration.control] = _effect(verdict.estimate, verdict.decision)
            continue
        assert isinstance(verdict.evidence, TrialEvidence)
        fixed = verdict.evidence.fixed_texts
        assert fixed is not None
        rows = results[results["method"] == name]
        by_text[name], balanced = read_texts(predictions, task, name, rows)
        cells.append(
            Cell(
                method=name, task=task, state=state_of(configuration, majorities), balanced=balanced,
                base=_mean(rows, "base"), usual=_mean(rows, "all"), publish=_effect(fixed.extra),
                boost=round(_mean(rows, "extra") - _mean(rows, "base"), DIGITS),
                bias=_effect(verdict.estimate, verdict.decision),
                others=_effect(fixed.bias, fixed.decision or ""), seconds=_seconds(rows),
            )
        )  # fmt: skip
    judged = [cell.method for cell in cells if cell.state == "judged"]
    return TestSet(
        train=int(results["num_train"].iloc[0]), test=len(next(iter(by_text.values()))["extra"]),
        classes=num_classes, majority=round(float(majorities.iloc[0]), DIGITS),
        methods=cells, controls=controls, order=compare_orders({name: by_text[name] for name in judged}),
    )  # fmt: skip


def read_texts(
    predictions: StoredPredictions, task: str, method: str, rows: pd.DataFrame
) -> tuple[dict[str, FloatArray], tuple[float, float]]:
    """Return the scores of each text by arm, means over divisions of shape (n_texts,), and two balanced accuracies."""
    num_train, num_test = int(rows["num_train"].iloc[0]), int(rows["num_test"].iloc[0])
    answers = predictions.answers(task, method, num_train, num_test, ["extra", "all"])
    assert answers is not None
    assert answers.labels is not None
    order = answers.rows.argsort(axis=1)
    labels = np.take_along_axis(answers.labels, order, axis=1)[0]
    scores = {arm: np.take_along_axis(of_arm, order, axis=1).mean(axis=0) for arm, of_arm in answers.scores.items()}
    usual, publish = (
        round(float(np.mean([scores[arm][labels == label].mean() for label in np.unique(labels)])), DIGITS)
        for arm in ("all", "extra")
    )
    return scores, (usual, publish)


def compare_orders(by_text: dict[str, dict[str, FloatArray]]) -> dict[str, float]:
    """Return the share of pairs of methods in another order, by what changes it; a tie counts as half.

    Parameters
    ----------
    by_text
        Scores of each text by method and arm, of shape (n_texts,).
    """
    if len(by_text) < 2:
        return {}
    publish, usual = (np.stack([scores[arm] for scores in by_text.values()]) for arm in ("extra", "all"))
    generator = np.random.default_rng(0)
    drawn = generator.integers(publish.shape[1], size=(NUM_DRAWS, publish.shape[1]))
    of_draws = [_changed(publish.mean(axis=1), publish[:, texts].mean(axis=1)) for texts in drawn]
    return {
        "usual scores": _changed(publish.mean(axis=1), usual.mean(axis=1)),
        "other texts": round(float(np.mean(of_draws)), DIGITS),
    }


def _changed(scores: FloatArray, others: FloatArray) -> float:
    pairs = list(combinations(range(len(scores)), 2))
    changed = [
        abs(np.sign(scores[first] - scores[second]) - np.sign(others[first] - others[second])) / 2
        for first, second in pairs
    ]
    return round(float(np.mean(changed)), DIGITS)


def regress(results: pd.DataFrame, classes: Mapping[str, int]) -> Iterator[Size]:
    """Regress the squared bias of a cell on the logarithms of sizes, and yield the factor of each size.

    The square of a mean is too large by its sampling variance, which is subtracted, so that cells may be negative. The
    expected square is an exponential function of the logarithms; its estimating equation, that of a Poisson regression,
    needs only the expectation. Intervals are percentiles over draws of tasks.
    """
    results = results[results["control"] == ""].assign(model="")
    rows = []
    for configuration in configurations(results).configurations:
        key = dict(zip(("method", "model", "num_train", "num_test"), configuration.key, strict=True))
        for task, biases in configuration.scores["bias"].items():
            square = np.mean(biases) ** 2 - np.var(biases, ddof=1) / len(biases)
            components = int(str(key["method"]).rpartition("-")[2])
            rows.append((task, square, key["num_test"], key["num_train"], components, classes[task]))
    quantities = ["unlabeled texts", "train texts", "components", "classes"]
    table = pd.DataFrame(rows, columns=["task", "square", *quantities])
    by_task = [rows for _, rows in table.groupby("task")]
    generator = np.random.default_rng(0)
    draws = [
        _fit(pd.concat([by_task[number] for number in generator.integers(len(by_task), size=len(by_task))]), quantities)
        for _ in range(NUM_DRAWS)
    ]
    lows, highs = np.percentile(draws, (2.5, 97.5), axis=0)
    for quantity, factor, low, high in zip(quantities, _fit(table, quantities), lows, highs, strict=True):
        rounded = (round(float(number), 4) for number in (factor, low, high))
        yield Size(quantity=quantity, factor=Effect(**dict(zip(("mean", "low", "high"), rounded, strict=True))))


def _fit(table: pd.DataFrame, quantities: list[str]) -> FloatArray:
    """Return the factors of the size, the root of the square, per doubling, by Newton's method."""
    columns = np.log2(table[quantities].to_numpy(float))
    design = np.column_stack([np.ones(len(columns)), columns - columns.mean(axis=0)])
    squares = table["square"].to_numpy() / table["square"].mean()
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        expected = np.exp(np.clip(design @ weights, -20, 20))
        step = np.linalg.lstsq(design.T @ (design * expected[:, None]), design.T @ (squares - expected), rcond=None)[0]
        weights += step * min(1, 1 / np.abs(step).max())
    factors: FloatArray = np.exp(weights[1:] / 2)
    return factors


def _mean(rows: pd.DataFrame, arm: str) -> float:
    return round(float(rows.loc[rows["arm"] == arm, "score"].mean()), DIGITS)


def _seconds(rows: pd.DataFrame) -> float:
    of_arm = rows.loc[rows["arm"] == "all", ["fit_seconds", "predict_seconds"]].sum(axis=1)
    return round(float(of_arm.mean()), 2)


def _effect(estimate: Estimate, decision: str = "") -> Effect:
    low, high = (None if limit is None else round(limit, DIGITS) for limit in estimate.limits)
    return Effect(mean=round(estimate.mean, DIGITS), low=low, high=high, decision=decision)
