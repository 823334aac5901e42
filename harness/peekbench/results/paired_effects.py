"""Results table to paired effects, configuration by configuration: what analyzers work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peekbench.records.analysis import Cell, Column
from peekbench.records.trials import Control
from peekbench.results.table import CONFIGURATION, DOSE, SIZES, TRIAL

if TYPE_CHECKING:
    import pandas as pd


def paired_scores(results: pd.DataFrame) -> pd.DataFrame:
    """One row a trial: the score of each arm, and what they differ by.

    Returns
    -------
    pandas.DataFrame
        The columns of `TRIAL`; a column of scores for each arm; `boost` = extra - base where there is a base arm;
        `bias` = test - extra; for each dose its difference from extra, named 'mix-0.25 - extra'. Fractions. Methods and
        tasks keep the order in which they first occur.
    """
    wide = (
        results.assign(num_train=results["num_train"].fillna(-1), num_test=results["num_test"].fillna(-1))
        .pivot(index=list(TRIAL), columns="arm", values="score")
        .reset_index()
        .rename_axis(columns=None)
    )
    order = {name: position for position, name in enumerate(results["method"].unique())}
    tasks = {name: position for position, name in enumerate(results["task"].unique())}
    wide = wide.sort_values(
        ["method", "task"], key=lambda names: names.map(order if names.name == "method" else tasks), kind="stable"
    ).reset_index(drop=True)
    for size in SIZES:
        wide[size] = wide[size].astype("Int64").replace(-1, None)
    if "base" in wide.columns:
        wide["boost"] = wide["extra"] - wide["base"]
    wide["bias"] = wide["test"] - wide["extra"]
    for arm in [name for name in map(str, wide.columns) if DOSE.fullmatch(name)]:
        wide[f"{arm} - extra"] = wide[arm] - wide["extra"]
    return wide


@dataclass(frozen=True, slots=True)
class Configuration:
    """One method at one design point: what an analysis keeps apart."""

    label: str
    """The method, with its model and sizes where these differ between configurations: 'tapt (bert, n=50)'."""
    cells: tuple[Cell, ...]
    """Method, and model and sizes where they differ: the first cells of a table's row."""
    scores: Mapping[str, Mapping[str, Sequence[float]]]
    """Arm or effect, as `paired_scores` names them, to task to the value of each subsample."""
    subsamples: Mapping[str, Sequence[int]]
    """Task to the numbers of these subsamples, in the same order: configurations are paired by them."""
    key: tuple[Cell, ...]
    """Method, model, num_train and num_test, None where missing: what is the same configuration in another table."""
    num_test: int | None = None
    """Test texts of each subsample, where it is known."""
    control: Control = ""
    """What is known of the method beforehand."""


@dataclass(frozen=True, slots=True)
class Configurations:
    """All configurations of a results table, in the order in which their methods first occur."""

    columns: tuple[Column, ...]
    """Columns for `Configuration.cells`."""
    fixed: str
    """What is the same for all, for a title: 'num_train 50, num_test 200'."""
    arms: tuple[str, ...]
    effects: tuple[str, ...]
    is_accuracy: bool
    """Whether scores are accuracies; else R^2, or another score of the user's."""
    configurations: tuple[Configuration, ...]

    def without_controls(self) -> Configurations:
        """Those of which nothing is known beforehand."""
        return replace(self, configurations=tuple(one for one in self.configurations if not one.control))

    def controls(self) -> Configurations:
        """Those whose bias is known beforehand."""
        return replace(self, configurations=tuple(one for one in self.configurations if one.control))

    def title(self, text: str) -> str:
        return f"{text} ({self.fixed})" if self.fixed else text


def configurations(results: pd.DataFrame) -> Configurations:
    """Pair the arms of each trial and gather trials by configuration and task."""
    wide = paired_scores(results)
    arms = tuple(results["arm"].unique())
    varying = [name for name in CONFIGURATION if name == "method" or wide[name].nunique(dropna=False) > 1]
    same = {name: plain_cell(wide[name].iloc[0]) for name in SIZES if name not in varying}
    effects = tuple(str(name) for name in wide.columns if name not in (*TRIAL, *arms))
    controls = dict(zip(results["method"], results["control"], strict=True))
    found = []
    for key, rows in wide.groupby(list(CONFIGURATION), sort=False, dropna=False):
        cells = {name: plain_cell(value) for name, value in zip(CONFIGURATION, key, strict=True)}
        scores = {
            name: {str(task): values.tolist() for task, values in rows.groupby("task", sort=False)[name]}
            for name in (*arms, *effects)
        }
        num_test = cells["num_test"]
        found.append(
            Configuration(
                _label(cells, varying),
                tuple(cells[name] for name in varying),
                scores,
                {str(task): numbers.tolist() for task, numbers in rows.groupby("task", sort=False)["subsample"]},
                tuple(cells.values()),
                num_test if isinstance(num_test, int) else None,
                controls[cells["method"]],
            )
        )
    return Configurations(
        columns=tuple(Column(name, "count" if name in SIZES else "text") for name in varying),
        fixed=", ".join(f"{name} {size}" for name, size in same.items() if size is not None),
        arms=arms,
        effects=effects,
        is_accuracy=bool(results["num_correct"].notna().all()),
        configurations=tuple(found),
    )


def plain_cell(value: Any) -> Cell:
    """A number or text of pandas' as one of Python's; None where it is missing."""
    import pandas as pd

    if pd.isna(value):
        return None
    return value if isinstance(value, str) else int(value)


def _label(cells: Mapping[str, Cell], varying: Sequence[str]) -> str:
    forms = {"model": "{}", "num_train": "m={}", "num_test": "n={}"}
    parts = [
        form.format(cells[name]) for name, form in forms.items() if name in varying and cells[name] not in ("", None)
    ]
    return str(cells["method"]) + (f" ({', '.join(parts)})" if parts else "")
