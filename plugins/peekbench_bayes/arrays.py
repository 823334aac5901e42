"""Results table to arrays: for each fit, the scores of two arms by model, task and subsample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd

from peekbench import Column
from peekbench.errors import SpecError
from peekbench.formatting import SHARED_DRAWS
from peekbench.records import FloatArray, Key, ScoreUnits
from peekbench.results import (
    are_accuracies,
    configurations,
    default_region,
    label_configuration,
    plain_cell,
    score_units,
)
from peekbench_bayes.options import Effect, Meta, OfScore
from peekbench_stats import check_region, resolve_score

ARMS = {"bias": ("extra", "test"), "boost": ("base", "extra")}
"""Control and treatment arm of each effect."""
KEYS = ("method", "num_train", "num_test")


@dataclass(frozen=True, slots=True)
class PairedArms:
    """Scores of two arms for one fit: all models and tasks of one method at one design point.

    The arrays have the shape (n_models, n_tasks, n_subsamples). Tasks with fewer subsamples end in NaN. Position k is
    the same draw for all models of a task.
    """

    label: str
    """The method, and its sizes if they vary: 'tapt (num_test=50)'."""
    parts: tuple[tuple[str, Key], ...]
    """Column and value of the method, and of the sizes if they vary."""
    effect: Effect
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    num_scored: int | None
    """Scored answers per subsample and arm; None if unknown or different, or if scores are not accuracies."""
    control: FloatArray
    """Scores of the control arm."""
    treatment: FloatArray
    """Scores of the treatment arm."""
    is_accuracy: bool
    """Whether the scores are accuracies."""
    units: ScoreUnits
    """Units of scores and effects."""

    @property
    def cells(self) -> tuple[Key, ...]:
        """First cells of a table row: the method, and the sizes if they vary."""
        return tuple(cell for _, cell in self.parts)

    @property
    def difference(self) -> FloatArray:
        """Paired differences of scores: (n_models, n_tasks, n_subsamples)."""
        return self.treatment - self.control

    @property
    def cell_means(self) -> FloatArray:
        """Mean difference by model and task: (n_models, n_tasks); NaN for cells without subsamples."""
        is_present = np.isfinite(self.difference)
        count = is_present.sum(axis=2)
        total = np.where(is_present, self.difference, 0.0).sum(axis=2)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def split_results(
    results: pd.DataFrame, effects: tuple[Effect, ...]
) -> tuple[tuple[Column, ...], tuple[PairedArms, ...]]:
    """Split a results table into the data of each fit.

    Parameters
    ----------
    results
        The results table.
    effects
        Requested effects; an effect is skipped if the results lack one of its arms.

    Returns
    -------
    columns
        Columns that identify a fit, for `PairedArms.cells`.
    fits
        Data of each fit: one for each method, design point and effect.

    Raises
    ------
    SpecError
        If the results have the arms of none of the effects.
    """
    present = set(results["arm"].unique())
    available = [effect for effect in effects if present.issuperset(ARMS[effect])]
    if not available:
        raise SpecError(
            f"effects: {', '.join(effects)} is unavailable, because the results have only the arms "
            f"{', '.join(sorted(present))}; request bias"
        )
    varying = [key for key in KEYS if key == "method" or results[key].nunique(dropna=False) > 1]
    columns = tuple(Column(key, "text" if key == "method" else "count") for key in varying)
    return columns, tuple(_split(results, available, varying))


def _split(results: pd.DataFrame, effects: list[Effect], varying: list[str]) -> Iterator[PairedArms]:
    is_accuracy, is_count = are_accuracies(results), results["num_correct"].notna().all()
    units = score_units(results)
    for values, rows in results.groupby(list(KEYS), sort=False, dropna=False):
        key = dict(zip(KEYS, map(plain_cell, values), strict=True))
        answers = rows["num_scored"].unique()
        num_scored = int(answers[0]) if is_count and len(answers) == 1 else None
        label = label_configuration({name: key[name] for name in varying})
        models, tasks = tuple(map(str, rows["model"].unique())), tuple(map(str, rows["task"].unique()))
        scores = {arm: _to_array(rows[rows["arm"] == arm], rows, models, tasks) for arm in rows["arm"].unique()}
        for effect in effects:
            control, treatment = (scores[arm] for arm in ARMS[effect])
            parts = tuple((name, key[name]) for name in varying)
            yield PairedArms(label, parts, effect, models, tasks, num_scored, control, treatment, is_accuracy, units)


def _to_array(
    arm_rows: pd.DataFrame, rows: pd.DataFrame, models: tuple[str, ...], tasks: tuple[str, ...]
) -> FloatArray:
    # The position comes from the rows of all arms and models, so that it is the same draw in each of them.
    position = rows.groupby("task")["subsample"].rank("dense").astype(int) - 1
    array = np.full((len(models), len(tasks), int(position.max()) + 1), np.nan)
    model, task = (
        arm_rows[column].map({name: number for number, name in enumerate(names)}).to_numpy()
        for column, names in (("model", models), ("task", tasks))
    )
    array[model, task, position[arm_rows.index]] = arm_rows["score"]
    return array


def warn_of_shared_draws(results: pd.DataFrame) -> tuple[str, ...]:
    """Return a warning if tasks share draws, for which no model accounts."""
    if not any(configuration.shares_draws for configuration in configurations(results).configurations):
        return ()
    return (
        "Tasks share draws, but the model assumes independent draws, so intervals of averages over tasks can be too "
        f"short. Prefer `summary`, which accounts for this. {SHARED_DRAWS}",
    )


OptionsOfScore = TypeVar("OptionsOfScore", bound=OfScore)

LOG_ODDS_REGION = 0.04  # the study's


def resolve_options(results: pd.DataFrame, options: OptionsOfScore) -> OptionsOfScore:
    """Return the options with the name of the score that `score: score` stands for in these results."""
    return options.model_copy(update={"score": resolve_score(results, options.score)})


def region_of(options: OfScore, analysis: str, splits: Sequence[PairedArms]) -> float:
    """Return the half-width of the region of practical equivalence: the option, or its default.

    Parameters
    ----------
    options
        Options with the name of the score.
    analysis
        Name of the analysis, for errors.
    splits
        Paired arms, with the units of the scores.

    Raises
    ------
    SpecError
        If the region of fractions exceeds 20 points.
    """
    is_log_odds = isinstance(options, Meta) and options.preset != "calibrated"
    if not is_log_odds:
        check_region(options.region, analysis, units=splits[0].units)
    if options.region is not None:
        return options.region
    if is_log_odds:
        return LOG_ODDS_REGION
    return default_region(options.score)
