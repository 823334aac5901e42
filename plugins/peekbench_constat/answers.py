"""Scores of models on a benchmark, and their resamples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.records import FloatArray, IntArray

MIN_SAMPLES = 20  # rows of a model that stand for the texts they were drawn from


@dataclass(frozen=True, slots=True)
class Scores:
    """Accuracies of several models on one benchmark."""

    names: tuple[str, ...]
    """Labels of the models."""
    num_answers: IntArray
    """Number of answers of each model: (n_models,)."""
    observed: FloatArray
    """(n_models,)."""
    resampled: FloatArray
    """(n_resamples, n_models)."""

    def select(self, names: tuple[str, ...]) -> Scores:
        """Return the scores of some of the models, in the order given."""
        positions = [self.names.index(name) for name in names]
        return Scores(names, self.num_answers[positions], self.observed[positions], self.resampled[:, positions])


def read_scores(results: pd.DataFrame, task: str, num_resamples: int, rng: np.random.Generator) -> Scores:
    """Read the scores of all models on a task and resample them.

    A model with several rows has one for each sample, such as a text. Then all models answer the same resample of the
    samples. Otherwise a row has all answers of a model, and their resamples are binomial.

    Parameters
    ----------
    results
        Rows of the results table with a column `label`, the label of the model.
    task
        The benchmark.
    num_resamples
        Number of resamples.
    rng
        Generator of random numbers.

    Raises
    ------
    ResultsError
        If scores are not accuracies, if a model has several scores for a sample, or if models have few samples, or
        different ones.
    """
    rows = results[results["task"] == task]
    if rows["num_correct"].isna().any():
        raise ResultsError(
            f"constat: the scores of the task {task} are not accuracies out of a known number of texts; add the column "
            "'num_test'"
        )
    _check_sizes(task, rows)
    wide = rows.pivot(index="subsample", columns="label", values=["num_correct", "num_scored"])
    correct, sizes = (
        wide[column].to_numpy(dtype=np.float64, na_value=np.nan) for column in ("num_correct", "num_scored")
    )
    names = tuple(map(str, wide["num_scored"].columns))
    counts = (~np.isnan(sizes)).sum(axis=0)
    if counts.max() == 1:
        correct, sizes = np.nansum(correct, axis=0), np.nansum(sizes, axis=0)
        observed = correct / sizes
        resampled = rng.binomial(sizes.astype(np.int64), observed, (num_resamples, len(names))) / sizes
        return Scores(names, sizes.astype(np.int64), observed, resampled)
    _check_samples(task, names, counts, len(wide))
    num_samples = len(wide)
    weights = rng.multinomial(num_samples, np.full(num_samples, 1 / num_samples), num_resamples).astype(np.float64)
    totals = sizes.sum(axis=0)
    return Scores(names, totals.astype(np.int64), correct.sum(axis=0) / totals, (weights @ correct) / (weights @ sizes))


def _check_sizes(task: str, rows: pd.DataFrame) -> None:
    repeated = rows[rows.duplicated(["label", "subsample"], keep=False)]
    if not repeated.empty:
        name = str(repeated["label"].iloc[0])
        sizes = sorted(repeated.loc[repeated["label"] == name, "num_test"].astype(int).unique())
        listed = " and ".join(f"{size:,}" for size in sizes)
        raise ResultsError(
            f"constat: {name} has scores on the task {task} with num_test {listed}, "
            "but one score for each model is needed; keep one of these sizes (in a spec: num_test: "
            f"{sizes[-1]}), or give them different task names, such as {task}-n{sizes[0]}"
        )


def _check_samples(task: str, names: tuple[str, ...], counts: IntArray, num_samples: int) -> None:
    if counts.min() < num_samples:
        name = names[int(counts.argmin())]
        raise ResultsError(
            f"constat: {name} has {counts.min()} of the {num_samples} rows that models have on the task {task}; give "
            "the rows of the same samples for all models, or one row with the counts of all samples for each model"
        )
    if num_samples < MIN_SAMPLES:
        raise ResultsError(
            f"constat: models have {num_samples} rows each on the task {task}, too few to resample; give "
            f"at least {MIN_SAMPLES}, such as one for each text, or one row with the sums of num_correct and num_test"
        )
