"""Pairs the arms of each trial and groups trials by configuration, for analyzers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from peekbench.records.data import Predictions
from peekbench.records.report import Column
from peekbench.records.trials import Control
from peekbench.records.verdicts import Key, ScoreUnits, Unit
from peekbench.results.columns import ARMS, CONFIGURATION, SIZES, TRIAL, are_accuracies, is_arm, score_units
from peekbench.spec.arms import ALL_TEXTS

UNKNOWN_SIZE = -1
"""Replaces missing sizes, so that rows can be grouped by them."""
UNITS: dict[str, Unit] = dict.fromkeys(SIZES, "count")
LABEL_FORMATS = {"model": "{}", "num_train": "num_train={}", "num_test": "num_test={}", "task": "{}"}


def pair_arms(results: pd.DataFrame, score: str = "score") -> pd.DataFrame:
    """Put the arms of each trial side by side.

    Parameters
    ----------
    results
        The results table.
    score
        Column to pair: a score, or another measure of an arm such as 'fit_seconds'.

    Returns
    -------
    pandas.DataFrame
        One row for each trial, a column for each arm. The index has the levels method, model, num_train, num_test, task
        and subsample and is sorted; missing sizes are -1.

    Examples
    --------
    >>> from peekbench.results import tidy
    >>> results = tidy(pd.DataFrame({"task": ["news"], "extra": [0.715], "test": [0.73]}), "my scores")
    >>> pair_arms(results).reset_index(drop=True)
    arm  extra  test
    0    0.715  0.73
    """
    sized = results.assign(**{size: results[size].fillna(UNKNOWN_SIZE).astype("int64") for size in SIZES})
    return sized.pivot(index=list(TRIAL), columns="arm", values=score)


def paired_scores(results: pd.DataFrame, score: str = "score") -> pd.DataFrame:
    """Put the arms of each trial side by side and compute the effects of each trial.

    Parameters
    ----------
    results
        The results table.
    score
        Column to pair, as for `pair_arms`.

    Returns
    -------
    pandas.DataFrame
        One row for each trial with the columns method, model, num_train, num_test, task, subsample; a column for each
        arm; `boost` = extra - base if there is a base arm; `bias` = test - extra; and for each other arm its difference
        from extra, with a name such as 'mix-0.25 - extra'. Scores and effects are fractions. Methods and tasks are in
        order of first occurrence.

    Examples
    --------
    >>> from peekbench.results import tidy
    >>> results = tidy(pd.DataFrame({"task": ["news"], "extra": [0.7], "test": [0.75]}), "my scores")
    >>> round(paired_scores(results)["bias"].item(), 3)
    0.05
    """
    wide = pair_arms(results, score).reset_index().rename_axis(columns=None)
    positions = {
        column: {name: position for position, name in enumerate(results[column].unique())}
        for column in ("method", "task")
    }
    wide = wide.sort_values(
        ["method", "task"], key=lambda names: names.map(positions[str(names.name)]), kind="stable"
    ).reset_index(drop=True)
    for size in SIZES:
        wide[size] = wide[size].astype("Int64").replace(UNKNOWN_SIZE, None)
    if "base" in wide.columns:
        wide["boost"] = wide["extra"] - wide["base"]
    wide["bias"] = wide["test"] - wide["extra"]
    for arm in [name for name in map(str, wide.columns) if is_arm(name) and name not in ARMS]:
        wide[f"{arm} - extra"] = wide[arm] - wide["extra"]
    return wide


@dataclass(frozen=True, slots=True)
class Configuration:
    """One method with one model at one design point: the unit that an analysis reports on.

    Examples
    --------
    >>> from peekbench.results import configurations, tidy
    >>> results = tidy(pd.DataFrame({"task": ["news"], "extra": [0.5], "test": [0.75]}), "my scores")
    >>> configuration = configurations(results).configurations[0]
    >>> configuration.label, configuration.scores["bias"]
    ('method', {'news': [0.25]})
    """

    label: str
    """The method, with its model and sizes if these differ between configurations: 'tapt (bert, num_test=50)'."""
    cells: tuple[Key, ...]
    """Method, and model and sizes if they differ: the first cells of a table row."""
    scores: Mapping[str, Mapping[str, Sequence[float]]]
    """Values of each subsample by arm or effect, named as in `paired_scores`, and by task."""
    subsamples: Mapping[str, Sequence[int]]
    """Numbers of these subsamples by task, in the same order. Configurations are paired by them."""
    key: tuple[Key, ...]
    """Method, model, num_train and num_test; None for missing values. It identifies the configuration across tables."""
    num_test: int | None = None
    """Texts of each test set, if known."""
    control: Control = ""
    """Whether the method is a control."""
    step: float | None = None
    """Distance between neighboring scores, if known: 1 / num_scored for accuracies."""
    shares_draws: bool = False
    """Whether tasks share draws, as far as is known: they have subsamples with the same numbers in a table that does
    not state that draws of different tasks are independent."""
    num_texts: int | None = None
    """Texts that a trial scores, if known; an arm can score them several times."""
    has_folds: bool = False
    """Whether the design has folds, see `has_folds`."""
    has_fixed_texts: bool = False
    """Whether all trials of a task are known to test the same texts."""
    fixed_texts: Predictions | None = None
    """Answers to single texts, if scores are their means and all trials of a task test the same texts."""


@dataclass(frozen=True, slots=True)
class Configurations:
    """All configurations of a results table, by order of first occurrence of their methods.

    Examples
    --------
    >>> from peekbench.results import configurations, tidy
    >>> results = tidy(pd.DataFrame({"task": ["news"], "extra": [0.5], "test": [0.75]}), "my scores")
    >>> configurations(results).effects
    ('bias',)
    """

    columns: tuple[Column, ...]
    """Columns for `Configuration.cells`."""
    fixed: str
    """Sizes that all configurations share, for notes: 'num_train 50, num_test 200'."""
    arms: tuple[str, ...]
    """Arms of the results table."""
    effects: tuple[str, ...]
    """Effects that the arms allow: 'boost', 'bias', and differences of other arms from extra."""
    is_accuracy: bool
    """Whether the scores are accuracies. Otherwise they are R^2 or another score of the user."""
    units: ScoreUnits
    """Units of scores and effects."""
    configurations: tuple[Configuration, ...]
    """One record per method, model and sizes."""

    def without_controls(self) -> Configurations:
        """Return these configurations without controls."""
        methods = (configuration for configuration in self.configurations if not configuration.control)
        return replace(self, configurations=tuple(methods))

    def controls(self) -> Configurations:
        """Return the configurations that are controls."""
        controls = (configuration for configuration in self.configurations if configuration.control)
        return replace(self, configurations=tuple(controls))

    def note(self, text: str) -> str:
        """Return a note with the sizes that all configurations share."""
        if not self.fixed:
            return text
        return f"{text} Sizes: {self.fixed}."


def _list_sizes(shared: Mapping[str, Any], num_texts: Any, *, is_folded: bool) -> Iterator[str]:
    """Yield the sizes that all configurations share; with folds, a fit adapts to fewer texts than it predicts."""
    for name, size in shared.items():
        if name == "num_test" and is_folded and size is not None and size < num_texts:
            yield f"{size:,} of {num_texts:,} test rows adapted to"
        elif size is not None:
            yield f"{name} {size}"
    if is_folded and "num_test" not in shared:
        yield "num_test is the number of test rows that a fit adapts to"


def configurations(results: pd.DataFrame, score: str = "score") -> Configurations:
    """Pair the arms of each trial and group trials by configuration and task.

    Parameters
    ----------
    results
        The results table without incomplete trials.
    score
        Column to pair, as for `pair_arms`.

    Returns
    -------
    Configurations
        The configurations with their paired scores and effects.

    Examples
    --------
    >>> from peekbench.results import tidy
    >>> scores = pd.DataFrame({"task": "news", "num_train": [50, 100], "extra": [0.5, 0.6], "test": [0.5, 0.7]})
    >>> [configuration.label for configuration in configurations(tidy(scores, "my scores")).configurations]
    ['method (num_train=50)', 'method (num_train=100)']
    >>> scores = pd.DataFrame({"task": ["news", "mail"], "num_train": [50, 100], "num_test": [20, 40], "all": 0.5})
    >>> scores = scores.assign(extra=0.5, test=0.5)  # with folds, which official splits have
    >>> [configuration.label for configuration in configurations(tidy(scores, "my scores")).configurations]
    ['method (news)', 'method (mail)']
    """
    wide = paired_scores(results, score)
    arms = tuple(results["arm"].unique())
    varying = [name for name in CONFIGURATION if name == "method" or wide[name].nunique(dropna=False) > 1]
    shared = {name: plain_cell(wide[name].iloc[0]) for name in SIZES if name not in varying}
    effects = tuple(str(name) for name in wide.columns if name not in (*TRIAL, *arms))
    is_accuracy, is_count = are_accuracies(results), bool(results["num_correct"].notna().all())
    is_independent, is_folded = has_independent_tasks(results), has_folds(results)
    groups, named = list(CONFIGURATION), varying
    if is_folded and wide["task"].nunique() > 1 and {*SIZES} & {*varying}:  # each official split has its own sizes
        groups, named = [*CONFIGURATION, "task"], [*(name for name in varying if name not in SIZES), "task"]
    every = results.groupby(list(CONFIGURATION), dropna=False)
    facts = every.agg(largest=("num_scored", "max"), smallest=("num_scored", "min"), control=("control", "last"))
    known = {tuple(map(plain_cell, row[:4])): row[4:] for row in facts.reset_index().itertuples(index=False, name=None)}
    found = []
    for key, rows in wide.groupby(groups, sort=False, dropna=False):
        cells: dict[str, Any] = {name: plain_cell(value) for name, value in zip(groups, key, strict=True)}
        configuration = tuple(cells[name] for name in CONFIGURATION)
        num_scored, num_texts, control = known[configuration]
        if pd.isna(num_texts):
            num_texts = None
        step = None
        if is_count and pd.notna(num_scored):
            step = 1 / int(num_scored)
        by_task = rows.groupby("task", sort=False)
        found.append(
            Configuration(
                label_configuration({name: cells[name] for name in named}),
                tuple(cells[name] for name in varying),
                {name: {str(task): values.tolist() for task, values in by_task[name]} for name in (*arms, *effects)},
                {str(task): numbers.tolist() for task, numbers in by_task["subsample"]},
                configuration,
                cells["num_test"],
                control,
                step,
                not is_independent[cells["method"]] and bool(rows["subsample"].duplicated().any()),
                num_texts if num_texts is None else int(num_texts),
                is_folded,
            )
        )
    return Configurations(
        columns=tuple(Column(name, UNITS.get(name, "text")) for name in varying),
        fixed=", ".join(_list_sizes(shared, facts["smallest"].min(), is_folded=is_folded)),
        arms=arms,
        effects=effects,
        is_accuracy=is_accuracy,
        units=score_units(results),
        configurations=tuple(found),
    )


def has_folds(results: pd.DataFrame) -> bool:
    """Return whether the design has folds, in which each fit has the same weight in extra and test.

    Parameters
    ----------
    results
        Results table. All designs with folds have the arm `all`, and only these.

    Returns
    -------
    bool
        True if a trial adapted to all texts.

    Examples
    --------
    >>> from peekbench.results import tidy
    >>> has_folds(tidy(pd.DataFrame({"task": ["news"], "extra": [0.5], "test": [0.7], "all": [0.8]}), "my scores"))
    True
    """
    return ALL_TEXTS.name in set(results["arm"])


def has_independent_tasks(results: pd.DataFrame) -> dict[Key, bool]:
    """Return for each method whether the table states that draws of different tasks are independent.

    Parameters
    ----------
    results
        Results table.

    Returns
    -------
    dict of {str: bool}
        By name of the method.

    Examples
    --------
    >>> from peekbench.results import tidy
    >>> scores = pd.DataFrame({"task": ["a", "b"], "seed": [0, 0], "extra": [0.5, 0.6], "test": [0.5, 0.7]})
    >>> has_independent_tasks(tidy(scores, "my scores", independent_tasks=True))
    {'method': True}
    """
    of_methods = (results["independent_tasks"] == "yes").groupby(results["method"]).all()
    return {str(method): bool(is_independent) for method, is_independent in of_methods.items()}


def plain_cell(value: Any) -> Key:
    """Return a pandas number or text as a Python value.

    Parameters
    ----------
    value
        Element of a pandas object.

    Returns
    -------
    str, int or None
        None for a missing value.

    Examples
    --------
    >>> plain_cell(pd.NA) is None
    True
    """
    if pd.isna(value):
        return None
    if isinstance(value, str):
        return value
    return int(value)


def label_configuration(cells: Mapping[str, Key]) -> str:
    """Return the label of a method with its model and sizes.

    Parameters
    ----------
    cells
        Values of 'method' and, if they differ between configurations, 'model', 'num_train', 'num_test' and 'task'.
        Empty and missing values are left out.

    Returns
    -------
    str
        Such as 'tapt (bert, num_test=50)'.

    Examples
    --------
    >>> label_configuration({"method": "tapt", "model": "bert", "num_test": 50})
    'tapt (bert, num_test=50)'
    """
    if parts := label_parts(cells):
        return f"{cells['method']} ({', '.join(parts)})"
    return str(cells["method"])


def label_parts(cells: Mapping[str, Key]) -> list[str]:
    """Return model, sizes and task as short texts.

    Parameters
    ----------
    cells
        As for `label_configuration`; the method is ignored.

    Returns
    -------
    list of str
        Such as ['bert', 'num_train=100'].

    Examples
    --------
    >>> label_parts({"model": "bert", "num_train": 100, "num_test": 50})
    ['bert', 'num_train=100', 'num_test=50']
    """
    return [
        text.format(cells[name])
        for name, text in LABEL_FORMATS.items()
        if name in cells and cells[name] not in ("", None, UNKNOWN_SIZE)
    ]
