"""The draws of a spec as data frames, for scripts that fit and score a method without peekbench."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from peekbench.api.inputs import load
from peekbench.data.labels import name_labels
from peekbench.data.loading import load_dataset, with_sizes
from peekbench.data.preflight import check_tasks
from peekbench.data.sampling import Sampler
from peekbench.errors import SpecError, public
from peekbench.execution.fit_plans import Part, Unlabeled, plan_arm, rows_of
from peekbench.execution.prediction_checks import take_rows
from peekbench.records.data import Dataset, IntArray
from peekbench.records.trials import Draw, Subsample
from peekbench.seeds import seed_of_fit
from peekbench.spec.arms import Arm
from peekbench.spec.design import Design
from peekbench.spec.experiment import ExperimentSpec


@dataclass(frozen=True, slots=True)
class DrawnFit:
    """One fit: what it adapts to, and what it predicts.

    Examples
    --------
    >>> fit = DrawnFit(unlabeled=None, rows=pd.DataFrame({"input": ["fine"], "label": ["good"], "arm": ["base"]}))
    >>> fit.rows["arm"].unique().tolist()
    ['base']
    """

    unlabeled: pd.DataFrame | None
    """Rows without labels that the fit adapts to; None for a fit of the arm base."""
    rows: pd.DataFrame
    """Rows to predict, with the inputs, the `label`, and the columns that `peekbench.analyze` needs: task, num_train,
    num_test, subsample, arm, `fit`, the number of the fit, and `text`, the number of the row in the data. A row that
    counts for two arms occurs twice. If the task has groups, `group` is that of the row."""


@dataclass(frozen=True, slots=True)
class DrawnSubsample:
    """The rows of one draw, as `peekbench.run` samples them.

    Examples
    --------
    >>> import peekbench as pb
    >>> design = {"num_train": 30, "num_test": 40, "num_subsamples": 1}
    >>> spec = {"name": "mine", "tasks": ["docstrings.numpy"], "methods": ["controls.null"], "design": design}
    >>> drawn = next(pb.draw(spec))
    >>> len(drawn.fits)  # base, and one to each of two sets
    3
    """

    draw: Draw
    """Task, sizes and number of the subsample."""
    seed: int
    """Seed for all fits, below 2**32."""
    train: pd.DataFrame
    """Labeled rows: `text`, the number of the row, the inputs, and `label`."""
    fits: Sequence[DrawnFit]
    """Fits of all arms, each to other unlabeled rows."""


@public
def draw(spec: ExperimentSpec | Mapping[str, Any] | str | Path) -> Iterator[DrawnSubsample]:
    """Draw the rows of each subsample of a spec, for a script that fits a method itself.

    Its methods are not fitted. Inputs are in the column `input` if they are texts, and otherwise in the columns of the
    features. `datasets.Dataset.from_pandas` turns a data frame into a data set of Hugging Face.

    Parameters
    ----------
    spec
        As for `peekbench.run`.

    Returns
    -------
    Iterator[DrawnSubsample]
        Train rows and fits, subsample by subsample.

    Raises
    ------
    DataError
        If data are unavailable or have too few rows.
    SpecError
        If the spec is invalid.

    Examples
    --------
    >>> import pandas as pd
    >>> import peekbench as pb
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> spec = {"name": "mine", "tasks": ["docstrings.numpy"], "methods": ["controls.null"]}
    >>> tables = []
    >>> for drawn in pb.draw({**spec, "design": {"num_train": 30, "num_test": 40, "num_subsamples": 3}}):
    ...     for fit in drawn.fits:
    ...         unlabeled = [] if fit.unlabeled is None else fit.unlabeled["input"].tolist()
    ...         texts = [*drawn.train["input"], *unlabeled]
    ...         vectorizer = TfidfVectorizer().fit(texts)
    ...         model = KNeighborsClassifier().fit(vectorizer.transform(drawn.train["input"]), drawn.train["label"])
    ...         answer = model.predict(vectorizer.transform(fit.rows["input"]))
    ...         tables.append(fit.rows.assign(answer=answer))
    >>> table = pd.concat(tables)
    >>> table.groupby("arm")["fit"].nunique().to_dict()
    {'base': 1, 'extra': 2, 'test': 2}
    """
    experiment = with_sizes(load(spec))
    for arm in experiment.arms:
        if arm.kind == "batches":
            raise SpecError(
                f"{arm.name} changes only which rows are predicted together; leave it out of `arms`, predict the rows "
                f"of the arm extra in batches, and add them to the table with the arm {arm.name}"
            )
    check_tasks(experiment)
    samplers: dict[str, tuple[Dataset, Design, Sampler]] = {}
    for task in experiment.tasks:
        dataset, design = load_dataset(experiment.source(task)), experiment.design_of(task)
        samplers[task.name] = dataset, design, Sampler(dataset, design, experiment.seed, task.name)
    return _frame_draws(experiment, samplers)


def _frame_draws(
    spec: ExperimentSpec, samplers: Mapping[str, tuple[Dataset, Design, Sampler]]
) -> Iterator[DrawnSubsample]:
    for drawn, _ in groupby(spec.trials(), key=attrgetter("draw")):
        dataset, design, sampler = samplers[drawn.task]
        yield _frame_draw(spec, dataset, design, drawn, sampler.draw(drawn))


def _frame_draw(
    spec: ExperimentSpec, dataset: Dataset, design: Design, drawn: Draw, subsample: Subsample
) -> DrawnSubsample:
    labels = np.asarray(dataset.labels)
    predicted: dict[Unlabeled, list[tuple[Arm, Part]]] = {}
    for arm in spec.arms:
        planned = plan_arm(
            arm, len(subsample.sets), len(subsample.test), crossover=bool(design.crossover),
            folds=subsample.folds,
        )  # fmt: skip
        for part, unlabeled in (pair for of_set in planned for pair in of_set):
            predicted.setdefault(unlabeled, []).append((arm, part))
    keys: dict[str, Any] = dict(zip(("task", "num_train", "num_test", "subsample"), drawn, strict=True))
    fits = []
    for number, (unlabeled, pairs) in enumerate(predicted.items()):
        frames = []
        for arm, part in pairs:
            frame = _frame_rows(dataset, rows_of(part, subsample.sets), labels)
            frames.append(frame.assign(**keys, arm=arm.name, fit=number))
        own = None
        if unlabeled is not None:
            own = np.concatenate([*(rows_of(part, subsample.sets) for part in unlabeled), subsample.shared])
        fits.append(DrawnFit(own if own is None else _frame_rows(dataset, own), pd.concat(frames, ignore_index=True)))
    seed = seed_of_fit(spec.seed, *drawn)
    return DrawnSubsample(drawn, seed, _frame_rows(dataset, subsample.train, labels), tuple(fits))


def _frame_rows(dataset: Dataset, rows: IntArray, labels: Any = None) -> pd.DataFrame:
    """Return rows of a dataset, with the names of their classes or their numbers if labels are given."""
    inputs = take_rows(dataset, rows)
    if isinstance(inputs, tuple):
        frame = pd.DataFrame({"input": inputs})
    else:
        frame = pd.DataFrame(inputs).reset_index(drop=True)
    frame.insert(0, "text", rows)
    if dataset.groups:
        groups = [*dataset.groups, ""]  # private extra texts have none
        frame.insert(1, "group", [groups[row] for row in np.minimum(rows, len(dataset.groups)).tolist()])
    if labels is None:
        return frame
    if not dataset.class_names:
        return frame.assign(label=labels[rows])
    return frame.assign(label=name_labels(labels[rows], dataset.class_names))
