"""Asks `bayes.hierarchical`, and simulates what its binomial models are about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from peekbench.records import Analysis, Table
from peekbench.results import tidy
from peekbench.uses import AnalysisSpec, make_use
from peekbench_bayes.arrays import Arms, split


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
