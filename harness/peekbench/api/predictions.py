"""The predictions of a run, read from its store when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from peekbench.errors import ResultsError
from peekbench.formatting import pluralize
from peekbench.records.data import FloatArray, IntArray
from peekbench.records.trials import Trial
from peekbench.store.writer import Store

KEYS = ["method", "task", "num_train", "num_test", "subsample"]
"""Columns that identify a trial of a run."""
MAX_NAME = 100  # characters of a misspelled value that are compared
MAX_LISTED = 10  # values that a message lists


class RunPredictions:
    """The predictions of a run, read from its store when they are asked for.

    Parameters
    ----------
    store
        Store of the run.

    Examples
    --------
    >>> import peekbench as pb
    >>> run = pb.load_run("quickstart")
    >>> rows = run.predictions.to_pandas(method="lsa-10", task="docstrings.numpy", subsample=0)
    >>> rows.groupby("arm")["probability"].count().to_dict()
    {'base': 400, 'extra': 400, 'test': 400}
    """

    def __init__(self, store: Path) -> None:
        self._store = store

    def __len__(self) -> int:
        """Return the number of finished trials."""
        with Store.open(self._store, verified=False) as store:
            return len(store.done())

    def __iter__(self) -> Iterator[Trial]:
        """Iterate over the finished trials in order of task, method, sizes and subsample."""
        with Store.open(self._store, verified=False) as store:
            done = store.done()
        return iter(sorted(done, key=lambda trial: (trial.draw.task, trial.method, *_numbers(trial))))

    def __getitem__(self, trial: Trial) -> dict[str, FloatArray]:
        """Return the predictions of a trial by arm: (n_test, n_classes), or (n_test,) for other kinds of tasks.

        Raises
        ------
        KeyError
            If the trial is not finished.
        StoreError
            If predictions are missing, or are not those that were stored.
        """
        with Store.open(self._store, verified=False) as store:
            found = store.predictions(trial)
        if not found:
            raise KeyError(str(trial))
        return found

    def to_pandas(self, **where: Any) -> pd.DataFrame:
        """Return predictions as a table with one row for each test text in each arm.

        Parameters
        ----------
        **where
            Trials to read: a value, or a list or an array of values, of `method`, `task`, `num_train`, `num_test` and
            `subsample`.

        Returns
        -------
        pandas.DataFrame
            The columns method, task, num_train, num_test, subsample and arm; `row`, the number of the text in the data
            of its task; `label`, its class or number; `prediction`; and for classification `probability`, that of the
            predicted class, and `correct`.

        Raises
        ------
        ResultsError
            If a name or a value is unknown.
        """
        trials = [trial for trial in self if _is_wanted(trial, where)]
        if not trials:
            self._refuse(where)
        with Store.open(self._store, verified=False) as store:
            class_names = {task: facts["class_names"] for task, facts in store.tasks().items()}
            tables = [
                _as_table(trial, arm, values, store.test_rows(trial.draw), class_names[trial.draw.task])
                for trial in trials
                for arm, values in store.predictions(trial).items()
            ]
        return pd.concat(tables, ignore_index=True)

    def _refuse(self, where: dict[str, Any]) -> None:
        keys = [key_of(trial) for trial in self]
        if not keys:
            raise ResultsError("no trial is finished, so there are no predictions; `run.failures` has errors, if any")
        for name, value in where.items():
            known = sorted({key[name] for key in keys})
            if not set(_as_list(value)) <= set(known):
                texts = [str(each) for each in known]
                near = get_close_matches(str(value)[:MAX_NAME], texts, n=1)
                remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(texts[:MAX_LISTED]) or 'none'}"
                raise ResultsError(f"no finished trial has the {name} {value!r}; {remedy}")
        raise ResultsError("no finished trial has all these values together; there are no predictions to return")

    def __repr__(self) -> str:
        """Return the number of trials."""
        return f"<predictions of {pluralize(len(self), 'trial')}; to_pandas(method=..., task=...) reads them>"


def _numbers(trial: Trial) -> tuple[int, int, int]:
    return trial.draw.num_train, trial.draw.num_test, trial.draw.subsample


def key_of(trial: Trial) -> dict[str, Any]:
    """Return the values that identify a trial, by column."""
    return dict(zip(KEYS, (trial.method, trial.draw.task, *_numbers(trial)), strict=True))


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]


def _is_wanted(trial: Trial, where: dict[str, Any]) -> bool:
    key = key_of(trial)
    if unknown := where.keys() - key.keys():
        raise ResultsError(f"predictions are not told apart by {min(unknown)!r}; use one of {', '.join(KEYS)}")
    return all(key[name] in _as_list(value) for name, value in where.items())


def _as_table(
    trial: Trial,
    arm: str,
    values: FloatArray,
    texts: tuple[IntArray | FloatArray, IntArray],
    class_names: Sequence[str],
) -> pd.DataFrame:
    labels, rows = (np.resize(each, len(values)) for each in texts)  # several fits predict the same texts
    columns: dict[str, Any] = {**key_of(trial), "arm": arm, "row": rows}
    if class_names:
        names = np.array(class_names, dtype="object")
        answers = values.argmax(axis=1)
        columns |= {
            "label": names[labels.astype(int)],
            "prediction": names[answers],
            "probability": values.max(axis=1),
            "correct": answers == labels,
        }
    else:
        columns |= {"label": labels, "prediction": values}
    return pd.DataFrame(columns)
