"""Synthetic rows, results, predictions and reports to check entries on."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from peekbench.data.labels import name_labels
from peekbench.records.data import Answers, Dataset
from peekbench.records.figures import Forest, Interval
from peekbench.records.report import Column, MethodFacts, Quantity, Report, RunContent, ScoreEstimate, Table
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench.records.verdicts import Estimate, Verdict

if TYPE_CHECKING:
    import pandas as pd

NUM_TRAIN, NUM_TEST = 50, 100
LONG_EVERY, LONG_PARTS = 10, 10  # every tenth text has about 1,000 characters, made of 10 texts
COLUMNS = ["task", "method", "num_train", "num_test", "subsample", "arm", "score"]


def sample_texts(num_rows: int = 240, *, seed: int = 0, num_classes: int = 3) -> Dataset:
    """Make synthetic texts of some classes that some of their words distinguish.

    Parameters
    ----------
    num_rows
        Number of texts.
    seed
        Seed of the words.
    num_classes
        Number of classes, at most 3.

    Returns
    -------
    Dataset
        Texts with labels from 0 on, which alternate.

    Examples
    --------
    >>> data = sample_texts(30)
    >>> data.class_names, len(data.inputs)
    (('first', 'second', 'third'), 30)
    """
    rng = random.Random(seed)  # noqa: S311 - no secret
    labels = [row % num_classes for row in range(num_rows)]
    texts = [
        " ".join(
            f"common{rng.randrange(80)}" if rng.random() < 0.6 else f"{'abc'[label]}word{rng.randrange(25)}"
            for _ in range(rng.randrange(6, 16))
        )
        + f" number{row}"
        for row, label in enumerate(labels)
    ]
    instruction = "The text is made of synthetic words. Answer with its class."
    return Dataset(texts, labels, ("first", "second", "third")[:num_classes], instruction=instruction)


def sample_numbers(num_rows: int = 240, *, seed: int = 0) -> Dataset:
    """Make a synthetic linear regression task with four features.

    Parameters
    ----------
    num_rows
        Number of rows.
    seed
        Seed of the features and of the noise.

    Returns
    -------
    Dataset
        Inputs of shape (num_rows, 4) and targets of shape (num_rows,).

    Examples
    --------
    >>> sample_numbers(30).inputs.shape
    (30, 4)
    """
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_rows, 4))
    return Dataset(features, features @ np.arange(1.0, 5.0) + rng.normal(size=num_rows), kind="regression")


def sample_features(num_rows: int = 240, *, seed: int = 0, num_classes: int = 2) -> Dataset:
    """Make a synthetic classification task with four features: the targets of `sample_numbers` are low or high.

    Parameters
    ----------
    num_rows
        Number of rows.
    seed
        Seed of the features and of the noise.
    num_classes
        Number of classes, at most 4.

    Returns
    -------
    Dataset
        Inputs of shape (num_rows, 4) and labels of shape (num_rows,), with classes of the same size.

    Examples
    --------
    >>> sample_features(30).input_kind
    'features'
    """
    numbers = sample_numbers(num_rows, seed=seed)
    labels = np.argsort(np.argsort(numbers.labels)) * num_classes // num_rows
    return Dataset(numbers.inputs, labels, ("low", "high", "higher", "highest")[:num_classes])


def sample_results(
    num_subsamples: int = 8, *, num_tasks: int = 3, arms: Sequence[str] = ("base", "extra", "test"), seed: int = 0
) -> pd.DataFrame:
    """Make a results table of two methods with random accuracies.

    Parameters
    ----------
    num_subsamples
        Number of subsamples of each task.
    num_tasks
        Number of tasks.
    arms
        Arms of each trial. The score of `base` is lower by 0.05 on average.
    seed
        Seed of the scores.

    Returns
    -------
    pandas.DataFrame
        Results table, as `peekbench.load_results` returns it.

    Examples
    --------
    >>> len(sample_results(5, num_tasks=2))
    60
    """
    import pandas as pd  # noqa: PLC0415 - a new process that only checks a method must start quickly

    from peekbench.results.tidying import tidy  # noqa: PLC0415 - it imports pandas

    rng = np.random.default_rng(seed)
    rows = []
    for task in range(num_tasks):
        for method in ("first", "second"):
            for subsample in range(num_subsamples):
                ability = 0.6 + 0.05 * task + rng.normal(0, 0.03)
                for arm in arms:
                    score = rng.binomial(NUM_TEST, ability - 0.05 * (arm == "base")) / NUM_TEST
                    rows.append((f"task {task}", method, NUM_TRAIN, NUM_TEST, subsample, arm, score))
    return tidy(pd.DataFrame(rows, columns=COLUMNS), "the sample")


@dataclass(frozen=True, slots=True)
class SamplePredictions:
    """Predictions of a made-up run: `peekbench.records.Predictions` for tables of `sample_results`.

    Examples
    --------
    >>> answers = SamplePredictions(num_subsamples=3).answers("task 0", "first", 50, 100, ["extra", "test"])
    >>> answers.scores["test"].shape
    (3, 100)
    """

    num_subsamples: int = 8
    """Number of subsamples of each task."""

    def answers(
        self, task: str, method: str, num_train: int | None, num_test: int | None, arms: Sequence[str], model: str = ""
    ) -> Answers:
        """Make random answers, the same at every call.

        Parameters
        ----------
        task, method, num_train, model
            Not used.
        num_test
            Number of test texts.
        arms
            Arms of the answers.
        """
        assert num_test is not None  # tables of `sample_results` have sizes
        rng = np.random.default_rng(0)
        rows = np.stack([rng.permutation(3 * num_test)[:num_test] for _ in range(self.num_subsamples)])
        scores = {arm: (rng.random(rows.shape) < 0.7).astype(np.float64) for arm in arms}
        return Answers(np.arange(self.num_subsamples), rows, scores)


METHOD = "größe: 50% [a/b] & <c> \\d_{0} $5"  # with characters that formats must escape
DETAILS: Mapping[str, Any] = {
    "identifier": "0123456789abcdef" * 2,
    "spec": {
        "name": "sample",
        "seed": 0,
        "tasks": [{"use": "my_plugin.news", "name": "news"}],
        "methods": [{"use": "my_plugin.lsa", "name": METHOD, "options": {"num_components": 10}}],
        "arms": ["base", "extra", "test"],
        "design": {"train": "balanced", "num_train": [50], "num_test": [200], "num_subsamples": 2, "stop": None},
        "analyses": [{"use": "my_plugin.mean", "options": {}}],
    },
    "data": {"news": {"use": "my_plugin.news", "fingerprint": "0" * 64, "rows": 1000, "details": {}}},
    "sessions": [
        {"started": "2026-01-01T00:00:00+00:00", "peekbench": "0.1.0", "python": "3.12.1", "packages": {"numpy": "2.0"}}
    ],
}


def sample_report() -> Report:
    """Make a report of a run with all parts: texts that need escapes, missing values, a figure and a failed trial.

    Returns
    -------
    Report
        The same report at every call.

    Examples
    --------
    >>> len(sample_report().tables)
    1
    """
    columns = (Column("task"), Column("bias", "difference"), Column("trials", "count"))
    return Report(
        "sample",
        "1 method on 2 tasks",
        verdicts=(Verdict(METHOD, "bias", "equivalent", Estimate(0.001, -0.002, 0.004)),),
        warnings=("2 trials are missing.",),
        figures=(Forest("Bias", ((METHOD, (Interval("news", 0.001, -0.002, 0.004),)),)),),
        tables=(Table("Bias by task", columns, (("news", 0.001, 6), (METHOD, None, 0)), note="100% & more."),),
        failures=(TrialFailure(Trial(Draw("news", 50, 200, 1), METHOD), "ValueError: no texts", "Traceback: none"),),
        provenance={"peekbench": "0.1"},
        details=DETAILS,
        methods=(MethodFacts(METHOD, "classic.lsa", "num_components 10", "LSA and a linear classifier"),),
        command="peekbench report sample",
        read_run=_read_sample_run,
    )


def _read_sample_run() -> RunContent:
    results = sample_results(2, num_tasks=1).query("method == 'first'").assign(method=METHOD, task="news")
    values: dict[Quantity, float] = {"extra": 0.7, "bias": 0.001, "boost": 0.05}
    estimates = [
        ScoreEstimate(
            method=METHOD, task=task, quantity=quantity, metric="accuracy", estimate=Estimate(value), num_trials=2
        )
        for quantity, value in values.items()
        for task in ("", "news")
    ]
    return RunContent(
        report=replace(sample_report(), read_run=None),
        results=results.reset_index(drop=True),
        estimates=tuple(estimates),
    )


def sample_rows(kinds: Collection[str]) -> Dataset:
    """Return synthetic rows of one of some kinds of tasks; every tenth text is long."""
    if "regression" in kinds and "classification" not in kinds:
        return sample_numbers()
    features, texts = sample_features(num_classes=3), _with_long_texts(sample_texts())
    samples = {
        "classification": texts,
        "tabular_classification": features,
        "text_regression": Dataset(texts.inputs, np.array(texts.labels, dtype=float), kind="regression"),
        "language_modeling": Dataset(texts.inputs, kind="language_modeling"),
        "multilabel": _with_label_sets(texts),
        "tabular_multilabel": _with_label_sets(features),
        "generation": Dataset(texts.inputs, name_labels(texts.labels, texts.class_names), kind="generation"),
    }
    return next(sample for kind, sample in samples.items() if kind in kinds)


def _with_label_sets(dataset: Dataset) -> Dataset:
    """Return rows whose class is one of their labels; another label depends on the row's number."""
    labels = np.eye(len(dataset.class_names), dtype=np.int64)[np.asarray(dataset.labels)]
    labels[::3, 0] = 1
    return replace(dataset, labels=labels, kind="multilabel")


def _with_long_texts(dataset: Dataset) -> Dataset:
    """Return rows some of whose texts are made of many texts of their class."""
    texts, num_classes = list(dataset.inputs), len(dataset.class_names)
    for row in range(0, len(texts), LONG_EVERY):
        parts = [(row + num_classes * part) % len(texts) for part in range(LONG_PARTS)]
        texts[row] = " ".join(dataset.inputs[part] for part in parts)
    return replace(dataset, inputs=texts)
