"""What peekbench can do with objects of scikit-learn and data in memory, which a library beside the core provides.

The core imports no such library. The distribution of peekbench names one that implements `Toolkit`, as an entry point
of the group `peekbench.toolkit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import distribution
from typing import Annotated, Any, Protocol, TypeAlias, cast

from pydantic import AfterValidator

from peekbench.errors import PluginError
from peekbench.plugins.entries import MethodEntry
from peekbench.records.data import Dataset, FloatArray, TaskKind
from peekbench.records.scores import SCORE_NAMES, ScoreName

GROUP = "peekbench.toolkit"


class Toolkit(Protocol):
    """Makes entries of estimators, tasks of data in memory, and scores of stored predictions."""

    def make_estimator_entry(self, estimator: Any, name: str) -> MethodEntry:
        """Return the method of a classifier or regressor."""
        ...

    def unlabeled_steps(self, estimator: Any, chosen: str | Sequence[str] | None, name: str) -> Any:
        """Return the steps that are fitted on train and unlabeled rows, or refuse those that are chosen."""
        ...

    def read_held(self, data: Any, name: str, methods: Sequence[Any], **options: Any) -> Dataset:
        """Return the task of data frames, arrays, lists or data sets of other libraries."""
        ...

    def check_scorer(self, name: str) -> None:
        """Refuse the name of a score that the library does not have, with a ValueError that names the nearest one."""
        ...

    def check_score(self, name: str, dataset: Dataset, task: str, method: Any) -> TaskKind:
        """Return the kind of a task that has a score, or refuse the score with a SpecError."""
        ...

    def load_scorer(self, name: str) -> Callable[[FloatArray, Any], float]:
        """Return a function of predictions and labels that computes a score."""
        ...


@cache
def find_toolkit() -> Toolkit:
    """Import the toolkit.

    Raises
    ------
    PluginError
        If the metadata of the installed peekbench name none.
    """
    for point in distribution("peekbench").entry_points.select(group=GROUP):
        return cast(Toolkit, point.load())
    raise PluginError(f"peekbench has no entry point of the group {GROUP!r}; install peekbench again")


def _check_name(name: str) -> str:
    if name not in SCORE_NAMES:
        find_toolkit().check_scorer(name)
    return name


ScoreOption: TypeAlias = Annotated[ScoreName | str, AfterValidator(_check_name)]
"""Score in the options of an analysis: a `peekbench.records.ScoreName`, or the name of a score of scikit-learn, which
is computed from the predictions of a run.

Examples
--------
>>> from pydantic import TypeAdapter
>>> TypeAdapter(ScoreOption).validate_python("roc_auc")
'roc_auc'
"""
