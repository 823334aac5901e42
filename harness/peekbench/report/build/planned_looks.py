"""Tells readers at which planned look a run stopped, and what that saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peekbench.execution.planning import make_trials, measure
from peekbench.formatting import pluralize
from peekbench.records.analysis import Column, Table
from peekbench.records.looks import PlannedLook

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.spec.experiment import ExperimentSpec

SIZE = ["method", "num_train", "num_test"]


def describe_stop(spec: ExperimentSpec, results: pd.DataFrame, number: int, num_bases: int) -> str:
    """Return a sentence on the planned look at which a run stopped.

    Parameters
    ----------
    spec
        Spec of the run.
    results
        Its results; the saved time is predicted from their times.
    number
        Number of the look, from 1.
    num_bases
        Number of different base arms on one draw.
    """
    stage = spec.at_look(number)
    anything = {task.name: 1 for task in spec.tasks}  # sizes of predictions, which do not matter here
    all_work, done = measure(spec, anything, num_bases), measure(stage, anything, num_bases)
    saved = set(make_trials(spec)).difference(make_trials(stage))
    by_trial = (results["fit_seconds"] + results["predict_seconds"]).groupby([results[name] for name in SIZE]).mean()
    num_arms = results["arm"].nunique()
    seconds = sum(
        num_arms * float(by_trial.get((trial.method, trial.draw.num_train, trial.draw.num_test), 0.0))
        for trial in saved
    )
    return (
        f"Stopped at look {number} of {spec.design.num_looks}, at {stage.design.largest:,} of at most "
        f"{pluralize(spec.design.largest, 'subsample')}, because all verdicts were settled; this saved "
        f"{pluralize(all_work.trials - done.trials, 'trial')}, {pluralize(all_work.fits - done.fits, 'fit')} and about "
        f"{_about(seconds)} of computing"
    )


def _about(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"


def look_tables(looks: Sequence[PlannedLook], fractions: Sequence[float]) -> list[Table]:
    """Return a table of the planned looks with their verdicts; no table if there were none.

    Parameters
    ----------
    looks
        Planned looks.
    fractions
        Shares of the maximum at all looks so far, ascending. They number the looks as the verdicts do.
    """
    if not looks:
        return []
    methods = list(dict.fromkeys(method for look in looks for method in look.decisions))
    rows = tuple(
        (
            1 + sum(fraction < look.fraction - 1e-9 for fraction in fractions),
            look.subsamples,
            look.fraction,
            *(look.decisions.get(method) for method in methods),
            "stopped" if look.stops else "continued",
        )
        for look in looks
    )
    columns = (
        Column("look", "count"),
        Column("subsamples", "count"),
        Column("share of maximum", "fraction"),
        *(Column(method) for method in methods),
        Column("run"),
    )
    first = " The share refers to the maximum at the first look." if any(look.fraction > 1 for look in looks) else ""
    note = (
        "Verdicts at each planned look before all subsamples are done. The run stops when all verdicts are settled. "
        f"After all subsamples, the report itself is the last look.{first}"
    )
    return [Table("Planned looks", columns, rows, note, topic="data")]
