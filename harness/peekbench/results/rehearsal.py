"""Makes the analyses of a spec with made-up scores, so that an option that cannot work is found before the trials."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

from peekbench.data.loading import load_dataset
from peekbench.errors import ResultsError, SpecError
from peekbench.plugins.toolkit import find_toolkit
from peekbench.records.runs import Looks
from peekbench.records.scores import SCORES
from peekbench.results.analyze import Seen, run_analysis
from peekbench.results.columns import COLUMN_NAMES, INDEPENDENT
from peekbench.results.read import TYPES
from peekbench.spec.design import list_trials
from peekbench.spec.experiment import ExperimentSpec

SUBSAMPLES = 3  # of each task and size


def check_analyses(spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse analyses that could not be made of the trials of a spec.

    Parameters
    ----------
    spec
        The spec.
    tasks
        Facts about its data by task, as `peekbench.data.preflight.describe_tasks` returns them.

    Raises
    ------
    SpecError
        If an analysis needs an arm that the spec lacks, or refuses its options for these tasks, methods and arms.
    """
    results = make_up_scores(spec, tasks)
    arms = [arm.name for arm in spec.arms]
    for position, analysis in enumerate(spec.analyses):
        if missing := [arm for arm in analysis.entry.arms if arm not in arms]:
            raise SpecError(f"analyses[{position}]: {analysis.use} needs the arm {missing[0]!r}; add it to `arms`")
        score = getattr(analysis.options, "score", "score")
        scored = results
        try:
            if score not in results:
                for task in spec.tasks:
                    find_toolkit().check_score(score, load_dataset(spec.source(task)), task.name, None)
                scored = results.assign(**{score: results["score"]})
            with suppress(ResultsError, ArithmeticError, LookupError, ValueError):  # which are about the scores
                run_analysis(analysis, scored, (), Seen(Looks(is_run=True)))
        except SpecError as error:
            raise SpecError(f"analyses[{position}]: {error}") from error


def make_up_scores(spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Return a results table of the first subsamples of a spec with random scores."""
    random = np.random.default_rng(0)
    designs = {}
    for task in spec.tasks:
        design = spec.design_of(task)
        designs[task.name] = design.model_copy(update={"num_subsamples": min(SUBSAMPLES, design.largest)})
    methods = {method.name: method for method in spec.methods}
    rows = []
    for trial in list_trials(designs, list(methods)):
        draw, method = trial.draw, methods[trial.method]
        kind = tasks[draw.task]["kind"]
        num_scored = draw.num_test * (spec.design.crossover or 1)
        for arm in spec.arms:
            row: dict[str, Any] = {score.name: random.random() for score in SCORES if kind in score.functions}
            if "num_correct" in row:
                row["num_correct"] = random.integers(num_scored + 1)
                row["score"] = row["num_correct"] / num_scored
            place = (draw.task, draw.num_train, draw.num_test, draw.subsample, arm.name)
            row |= dict(zip(("task", "num_train", "num_test", "subsample", "arm"), place, strict=True))
            row |= {"method": method.name, "model": method.model, "control": method.entry.control}
            row |= {"num_scored": num_scored, "majority": 0.5, "fit_seconds": 1.0, "predict_seconds": 1.0}
            rows.append(row | INDEPENDENT)
    return pd.DataFrame(rows).reindex(columns=list(COLUMN_NAMES)).astype(TYPES)
