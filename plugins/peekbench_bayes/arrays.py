"""A results table as arrays: for each fit, the scores of two arms by model, task and subsample."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from peekbench import Column
from peekbench.errors import SpecError
from peekbench.records import Cell
from peekbench.results import plain_cell

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records import FloatArray

Effect: TypeAlias = Literal["bias", "boost"]
ARMS = {"bias": ("extra", "test"), "boost": ("base", "extra")}
"""Control and treatment of each effect."""
KEYS = ("method", "num_train", "num_test")


@dataclass(frozen=True, slots=True)
class Arms:
    """What one fit works on: all models and tasks of one method at one design point, and two arms.

    The arrays have the shape (n_models, n_tasks, n_subsamples); subsamples that a task lacks are NaN at the end.
    Position k is the same draw for all models of a task.
    """

    label: str
    cells: tuple[Cell, ...]
    """First cells of a table's row: the method, and the sizes where they differ."""
    effect: Effect
    models: tuple[str, ...]
    tasks: tuple[str, ...]
    num_test: int | None
    """Test texts of each subsample, where it is known and scores are accuracies."""
    control: FloatArray
    treatment: FloatArray

    @property
    def difference(self) -> FloatArray:
        """The paired differences of scores."""
        return self.treatment - self.control

    @property
    def cell_means(self) -> FloatArray:
        """Mean difference by model and task: (n_models, n_tasks); NaN where there is no subsample."""
        import numpy as np

        there = np.isfinite(self.difference)
        number = there.sum(axis=2)
        total = np.where(there, self.difference, 0.0).sum(axis=2)
        return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def split(results: pd.DataFrame, effects: tuple[Effect, ...]) -> tuple[tuple[Column, ...], tuple[Arms, ...]]:
    """Columns that tell the fits apart, and what each fit works on; an effect whose arms are missing is left out."""
    present = set(results["arm"].unique())
    wanted = [effect for effect in effects if present.issuperset(ARMS[effect])]
    if not wanted:
        raise SpecError(
            f"effects: {', '.join(effects)} cannot be had, because the results have the arms "
            f"{', '.join(sorted(present))} only; ask for bias"
        )
    varying = [key for key in KEYS if key == "method" or results[key].nunique(dropna=False) > 1]
    columns = tuple(Column(key, "text" if key == "method" else "count") for key in varying)
    return columns, tuple(_split(results, wanted, varying))


def _split(results: pd.DataFrame, effects: list[Effect], varying: list[str]) -> Iterator[Arms]:
    is_accuracy = bool(results["num_correct"].notna().all())
    for values, rows in results.groupby(list(KEYS), sort=False, dropna=False):
        key = dict(zip(KEYS, map(plain_cell, values), strict=True))
        num_test = key["num_test"] if is_accuracy and isinstance(key["num_test"], int) else None
        sizes = [f"{short}={key[name]}" for name, short in (("num_train", "m"), ("num_test", "n")) if name in varying]
        label = f"{key['method']} ({', '.join(sizes)})" if sizes else str(key["method"])
        models, tasks = tuple(map(str, rows["model"].unique())), tuple(map(str, rows["task"].unique()))
        arms = {arm: _lay_out(rows[rows["arm"] == arm], rows, models, tasks) for arm in rows["arm"].unique()}
        for effect in effects:
            control, treatment = (arms[arm] for arm in ARMS[effect])
            cells = tuple(key[name] for name in varying)
            yield Arms(label, cells, effect, models, tasks, num_test, control, treatment)


def _lay_out(scores: pd.DataFrame, rows: pd.DataFrame, models: tuple[str, ...], tasks: tuple[str, ...]) -> FloatArray:
    import numpy as np

    position = rows.groupby("task")["subsample"].rank("dense").astype(int) - 1  # as in every arm, for every model
    array = np.full((len(models), len(tasks), int(position.max()) + 1), np.nan)
    model, task = (
        scores[column].map({name: number for number, name in enumerate(names)}).to_numpy()
        for column, names in (("model", models), ("task", tasks))
    )
    array[model, task, position[scores.index]] = scores["score"]
    return array
