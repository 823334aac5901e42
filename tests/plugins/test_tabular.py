"""Tests of the tabular tasks and methods: agreement with scikit-learn, published biases, and theory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from process_checks import check_in_this_process
from sklearn.datasets import make_regression
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from peekbench import load_dataset, load_spec
from peekbench.data.sampling import Sampler
from peekbench.errors import DataError
from peekbench.execution.runner import run
from peekbench.execution.work import SpecWork
from peekbench.records.trials import TrialResult, WorkItem
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.spec.components import MethodSpec, make_component
from peekbench.spec.experiment import ExperimentSpec, make_spec
from peekbench_testing import check_entry, make_case

SPECS = Path(__file__).parents[2] / "specs" / "paper"
METHODS = ("tabular.impute", "tabular.pca", "tabular.screening", "tabular.standardize")

# Bias and half-width of its 95% interval for n = 25, 50, 100, 200, 500: the study's experiment, recomputed.
PUBLISHED = {
    5: ((0.083, 0.015), (0.084, 0.007), (0.027, 0.005), (0.013, 0.007), (0.007, 0.003)),
    10: ((0.136, 0.012), (0.127, 0.011), (0.070, 0.009), (0.019, 0.005), (0.006, 0.004)),
    15: ((0.266, 0.011), (0.174, 0.010), (0.112, 0.011), (0.035, 0.005), (0.027, 0.006)),
    20: ((0.321, 0.010), (0.222, 0.010), (0.139, 0.010), (0.085, 0.007), (0.047, 0.010)),
}
SIZES = (25, 50, 100, 200, 500)


def spec_of(
    method: str | dict[str, Any],
    folder: Path,
    *,
    num_test: int = 50,
    num_subsamples: int = 200,
    crossover: int = 2,
    **source: Any,
) -> ExperimentSpec:
    raw = {
        "name": "tabular",
        "tasks": [{"use": "tabular.regression", "name": "task", "options": source}],
        "methods": [method],
        "design": {"num_train": 100, "num_test": num_test, "num_subsamples": num_subsamples, "crossover": crossover},
        "analyses": ["summary"],
    }
    return make_spec(raw, folder=folder)


def biases(spec: ExperimentSpec) -> Any:
    """Return the bias of each subsample: (num_subsamples,)."""
    worker, values = SpecWork(spec), []
    for trial in spec.trials():
        (outcome,) = worker(WorkItem((trial,), has_base=False))
        assert isinstance(outcome, TrialResult), outcome
        scores = {arm.arm: arm.score for arm in outcome.arms}
        values.append(scores["test"] - scores["extra"])
    return np.array(values)


def ratio_to_error(values: Any) -> float:
    """Return the mean divided by its standard error."""
    return float(values.mean() / (values.std(ddof=1) / np.sqrt(len(values))))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regression", "classification"])
@pytest.mark.parametrize("use", METHODS)
def test_methods_pass_the_contract_checks(use: str, kind: str, tmp_path: Path) -> None:
    """All share the fit, so one method of one kind needs the checks in another process: that with the most steps."""
    dataset = load_dataset(f"tabular.{kind}", {"num_rows": 240, "effective_rank": 10})
    options = {"penalty": 2.0} if use == "tabular.standardize" else {}
    if (use, kind) == ("tabular.screening", "regression"):
        assert [outcome for outcome in check_entry(use, options, data=dataset) if not outcome.passed] == []
    else:
        spec = make_component(MethodSpec, use, options)
        check_in_this_process(make_case(use, spec.entry, spec.options, tmp_path, dataset))


@pytest.mark.slow
def test_classification_passes_the_contract_checks() -> None:
    """An example in the docstring of `check_entry` checks `tabular.regression`."""
    outcomes = check_entry("tabular.classification", {"num_rows": 60})
    assert [outcome for outcome in outcomes if not outcome.passed] == []


@pytest.mark.parametrize(
    ("use", "option", "message"),
    [
        ("tabular.pca", "num_components", r"20 features have 20 components; lower num_components"),
        ("tabular.screening", "num_features", r"num_features is 21, but the rows have 20 features; lower"),
    ],
)
def test_too_many_components_or_features_are_an_error(use: str, option: str, message: str, tmp_path: Path) -> None:
    spec = make_component(MethodSpec, use, {option: 21})
    case = make_case(use, spec.entry, spec.options, tmp_path, load_dataset("tabular.regression", {"num_rows": 240}))
    case.predict(None)
    with pytest.raises(DataError, match=message):
        case.predict(case.unlabeled)


def predict_with_scikit_learn(
    use: str, options: Mapping[str, Any], unlabeled: Any, train: Any, labels: Any, test: Any
) -> Any:
    """Predict a regression as each method does, with scikit-learn's own estimators."""
    if use == "tabular.standardize":
        scaler = StandardScaler().fit(train if unlabeled is None else unlabeled)
        model = Ridge(options["penalty"]) if options["penalty"] else LinearRegression()
        return model.fit(scaler.transform(train), labels).predict(scaler.transform(test))
    if unlabeled is None:
        return LinearRegression().fit(train, labels).predict(test)
    if use == "tabular.pca":
        pca = PCA(options["num_components"]).fit(unlabeled)
        return LinearRegression().fit(pca.transform(train), labels).predict(pca.transform(test))
    kept = np.argsort(-unlabeled.var(axis=0))[: options["num_features"]]
    return LinearRegression().fit(train[:, kept], labels).predict(test[:, kept])


@pytest.mark.parametrize("num_test", [25, 300])
@pytest.mark.parametrize(
    ("use", "options"),
    [
        ("tabular.pca", {"num_components": 9}),
        ("tabular.screening", {"num_features": 7}),
        ("tabular.standardize", {"penalty": 0.0}),
        ("tabular.standardize", {"penalty": 3.0}),
    ],
)
def test_scores_agree_with_scikit_learn(use: str, options: dict[str, Any], num_test: int, tmp_path: Path) -> None:
    source = {"num_rows": 100 + 2 * num_test, "effective_rank": 15, "seed": 123}
    method = {"use": use, "options": options}
    spec = spec_of(method, tmp_path, num_test=num_test, num_subsamples=5, crossover=False, **source)
    inputs, targets = make_regression(
        100 + 2 * num_test, 20, n_informative=10, effective_rank=15, noise=1.0, random_state=123
    )
    sampler = Sampler(load_dataset(spec.source(spec.tasks[0])), spec.design, spec.seed, "task")
    worker = SpecWork(spec)
    for trial in spec.trials():
        (outcome,) = worker(WorkItem((trial,), has_base=False))
        assert isinstance(outcome, TrialResult), outcome
        rows = sampler.draw(trial.draw)
        for arm, unlabeled in zip(outcome.arms, (None, inputs[rows.extra], inputs[rows.test]), strict=True):
            predicted = predict_with_scikit_learn(
                use, options, unlabeled, inputs[rows.train], targets[rows.train], inputs[rows.test]
            )
            assert arm.score == pytest.approx(r2_score(targets[rows.test], predicted), rel=0, abs=1e-11)


def test_probabilities_agree_with_scikit_learn(tmp_path: Path) -> None:
    dataset = load_dataset("tabular.classification", {"num_rows": 240, "effective_rank": 10})
    spec = make_component(MethodSpec, "tabular.pca", {"num_components": 4})
    case = make_case("tabular.pca", spec.entry, spec.options, tmp_path, dataset)
    plain = make_pipeline(PCA(4).fit(case.unlabeled), LogisticRegression(tol=1e-6, max_iter=1000))
    plain[1].fit(plain[0].transform(case.train.inputs), case.train.labels)
    assert case.predict(case.unlabeled) == pytest.approx(plain.predict_proba(case.test), abs=1e-4)


def test_pca_and_screening_share_their_base_arm() -> None:
    keys = {make_component(MethodSpec, use).base_key() for use in METHODS}
    assert len(keys) == len(METHODS) - 1
    assert make_component(MethodSpec, "tabular.pca", {"num_components": 9}).base_key() in keys


@pytest.mark.slow
def test_small_spec_reproduces_the_published_biases(tmp_path: Path) -> None:
    """With the same data sets and other splits, biases agree within their errors and have the right order."""
    spec = load_spec(SPECS / "pca_small.yaml").with_executor_options(workers=1)
    summary = run(spec, store=tmp_path / "small.sqlite")
    assert (summary.finished, summary.failed) == (20 * 150, 0)
    (analysis,) = analyze(tmp_path / "small.sqlite", AnalysisOptions(["summary"])).analyses
    table = next(table for table in analysis.tables if table.title.startswith("Scores, boost and bias by task"))
    names, rows = table.spread()
    by_task = {row[names.index("task")]: row for row in rows}
    assert len(by_task) == len(table.rows) == 20
    for rank, cells in PUBLISHED.items():
        for size, (bias, half_width) in zip(SIZES, cells, strict=True):
            row = by_task[f"rank{rank}-n{size}"]
            assert (row[names.index("num_test")], row[names.index("subsamples")]) == (size, 150)
            error = np.hypot(float(row[names.index("se of bias")] or 0), half_width / 1.96)
            assert float(row[names.index("bias")] or 0) == pytest.approx(bias, abs=3.3 * error), (rank, size)
    by_rank = [np.mean([float(by_task[f"rank{rank}-n{size}"][names.index("bias")] or 0) for size in SIZES])
               for rank in PUBLISHED]  # fmt: skip
    assert by_rank == sorted(by_rank)


# Predictions of theory; docs/methods/tabular.md explains them.


def test_standardization_without_a_penalty_has_exactly_no_bias(tmp_path: Path) -> None:
    values = biases(spec_of("tabular.standardize", tmp_path, num_subsamples=20, effective_rank=10))
    assert np.abs(values).max() < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("penalty", "noise", "sign"),
    [(300.0, 0.0, -1), (5.0, 2000.0, 1)],
    ids=["penalty above its optimum: down", "penalty below its optimum: up"],
)
def test_standardization_with_a_penalty_is_biased(penalty: float, noise: float, sign: int, tmp_path: Path) -> None:
    method = {"use": "tabular.standardize", "options": {"penalty": penalty}}
    values = biases(spec_of(method, tmp_path, num_test=25, num_subsamples=800, num_informative=20, noise=noise))
    assert sign * ratio_to_error(values) > 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("informative", "noise", "sign"),
    [(20, 0.0, 1), (1, 3000.0, -1)],
    ids=["coefficients above their errors: up", "coefficients below their errors: down"],
)
def test_screening_is_biased(informative: int, noise: float, sign: int, tmp_path: Path) -> None:
    method = {"use": "tabular.screening", "options": {"num_features": 10}}
    spec = spec_of(method, tmp_path, num_test=25, num_subsamples=1000, num_informative=informative, noise=noise)
    assert sign * ratio_to_error(biases(spec)) > 4


@pytest.mark.slow
def test_components_are_biased_up_in_classification(tmp_path: Path) -> None:
    raw = {
        "name": "classes",
        "tasks": [{"use": "tabular.classification", "name": "task", "options": {"effective_rank": 20}}],
        "methods": [{"use": "tabular.pca", "options": {"num_components": 12}}],
        "design": {"num_train": 100, "num_test": 25, "num_subsamples": 400},
        "arms": ["extra", "test"],
        "analyses": ["summary"],
    }
    assert ratio_to_error(biases(make_spec(raw, folder=tmp_path))) > 3
