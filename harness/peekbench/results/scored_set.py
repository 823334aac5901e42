"""The results table of one set of a run with crossover scoring, computed from its predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.execution.predictions import compute_scores
from peekbench.records.data import SourceRef, Task
from peekbench.records.scores import average_scores
from peekbench.results.columns import COLUMN_NAMES, MAJORITY
from peekbench.results.read import TYPES, read_store
from peekbench.store.writer import Store


def score_one_set(path: str | Path, number: int) -> pd.DataFrame:
    """Return the results table of a run as if only one of its sets had been scored.

    With crossover scoring of two sets, the results of set 1 and set 2 are the two halves of each trial. Those of set 1
    are the results of the same spec with `crossover: false`.

    Parameters
    ----------
    path
        Store of the run.
    number
        Number of the set, from 1.

    Returns
    -------
    pandas.DataFrame
        As `load_results` returns it; `num_scored` is `num_test`, times the fits that predict a set. Bits per byte of
        texts that a method classifies are missing, because they are not computed from predictions.

    Raises
    ------
    ResultsError
        If the run has no set of this number.
    StoreError
        If predictions are missing, or are not those that were stored.

    Examples
    --------
    >>> half = score_one_set("runs/quickstart.sqlite", 1)
    >>> half["num_scored"].unique().tolist()
    [200]
    """
    scores: dict[tuple[Any, ...], dict[str, Any]] = {}
    with Store.open(Path(path)) as store:
        table = read_store(store)
        num_sets = int(store.spec()["design"]["crossover"] or 1)
        if not 1 <= number <= num_sets:
            raise ResultsError(
                f"{path}: number of the set: {number!r}; the run scored {num_sets} set{'s' * (num_sets > 1)}, numbered "
                f"from 1 (`design.crossover`)"
            )
        tasks = {name: _make_task(name, facts) for name, facts in store.tasks().items()}
        for trial in store.done():
            draw = trial.draw
            labels, _ = store.test_rows(draw)
            of_set = labels.reshape(num_sets, -1)[number - 1]
            for arm, predictions in store.predictions(trial).items():
                fits = predictions.reshape(-1, num_sets, len(of_set), *predictions.shape[1:])[:, number - 1]
                of_fits = [compute_scores(np.array(fit), of_set, tasks[draw.task]) for fit in fits]
                scored: dict[str, float] = {"num_scored": len(fits) * len(of_set)}
                if classes := tasks[draw.task].num_classes:
                    scored[MAJORITY] = float(np.bincount(of_set, minlength=classes).max() / len(of_set))
                scores[(*draw, trial.method, arm)] = {**average_scores(of_fits, 1), **scored}
    keys = zip(*(table[name] for name in ("task", "num_train", "num_test", "subsample", "method", "arm")), strict=True)
    replaced = pd.DataFrame([scores[key] for key in keys], index=table.index)
    return table.assign(**{str(name): replaced[name] for name in replaced.columns}).astype(TYPES)[list(COLUMN_NAMES)]


def _make_task(name: str, facts: dict[str, Any]) -> Task:
    return Task(name, facts["kind"], tuple(facts["class_names"]), "", SourceRef(""))
