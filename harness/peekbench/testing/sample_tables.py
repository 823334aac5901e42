"""Synthetic results to check analyses on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peekbench.records.predictions import Answers

if TYPE_CHECKING:
    import pandas as pd

NUM_TRAIN, NUM_TEST = 50, 100
COLUMNS = ["task", "method", "num_train", "num_test", "subsample", "arm", "score"]


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
