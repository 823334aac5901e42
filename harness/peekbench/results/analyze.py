"""Results table to analyses: refuses a design with holes, then asks the analyzers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.errors import ContractError, ResultsError
from peekbench.execution.planning import list_trials
from peekbench.formatting import pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry, AnalyzerRole
from peekbench.records.analysis import Analysis
from peekbench.records.trials import PlannedDesign, Trial
from peekbench.results.table import COLUMNS, TRIAL, load_results
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.spec.design import Design
from peekbench.spec.experiment import DEFAULT_ANALYSES
from peekbench.store.schema import is_store
from peekbench.store.writer import Store

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 5  # holes listed in a message


def analyze(
    source: pd.DataFrame | str | Path,
    analyses: Sequence[AnalysisSpec | str] | None = None,
    *,
    allow_incomplete: bool = False,
    planned: Sequence[Trial] = (),
) -> tuple[Analysis, ...]:
    """Judge scores.

    Parameters
    ----------
    source
        A results table, or what `load_results` reads: a run's store, a CSV or Parquet file, a folder.
    analyses
        What to ask; by default `summary` and `permutation`.
    allow_incomplete
        Analyze the complete trials of a design with holes; each analysis then carries a warning.
    planned
        Trials that there should be, where they are known; of a store they are.

    Raises
    ------
    ResultsError
        Where the design has holes, or a table lacks columns.
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        results = source
    else:
        results = load_results(source)
        planned = planned or planned_trials(source)
    if missing := [column for column in COLUMNS if column not in results.columns]:
        raise ResultsError(
            f"the results table lacks the columns {', '.join(missing)}; write yours to a file and read it with "
            "peekbench.load_results, which fills in what follows from the rest"
        )
    results, warnings = only_complete(results, planned, allow_incomplete=allow_incomplete)
    chosen = [
        make_component(AnalysisSpec, use) if isinstance(use, str) else use for use in analyses or DEFAULT_ANALYSES
    ]
    return tuple(_ask(analysis, results, warnings) for analysis in chosen)


def only_complete(
    results: pd.DataFrame, planned: Sequence[Trial] = (), *, allow_incomplete: bool = False
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The trials that have every arm, and a warning where these are not all that there should be.

    Raises
    ------
    ResultsError
        Where the design has holes and `allow_incomplete` is not set, or nothing is complete.
    """
    holes = find_holes(results, planned)
    if not holes:
        return results, ()
    listed = "\n  ".join([*holes[:SHOWN], *([f"... and {len(holes) - SHOWN} more"] if len(holes) > SHOWN else [])])
    if not allow_incomplete:
        raise ResultsError(
            f"the design has holes:\n  {listed}\nFinish the run, or add the missing rows; --allow-incomplete "
            "analyses what there is and says so in the report"
        )
    complete = drop_incomplete(results)
    if complete.empty:
        raise ResultsError(f"no trial is complete, so there is nothing to analyze:\n  {listed}")
    return complete, (f"The design has holes, and only complete trials were analyzed:\n  {listed}",)


def find_analysis(role: AnalyzerRole) -> str:
    """Return the name of the only installed analysis with a role.

    Raises
    ------
    PluginError
        If no installed plugin or several have one.
    """
    description = f"analysis for a {role}"
    return registry.find_only(
        AnalyzerEntry, description, "choose one with --analysis", lambda entry: entry.role == role
    )


def ask(use: str, results: pd.DataFrame) -> Analysis:
    """One analysis with its default options, of whatever table it is made for."""
    return _ask(make_component(AnalysisSpec, use), results, ())


def forecast(design: PlannedDesign, analyses: Sequence[AnalysisSpec]) -> tuple[Analysis, ...]:
    """Ask the analyses of a spec that can forecast; if none can, the only installed one that can.

    Raises
    ------
    PluginError
        If none can, and no installed plugin or several have an analysis that can.
    """
    chosen = [analysis for analysis in analyses if analysis.entry.forecast is not None]
    if not chosen:
        remedy = "name one under `analyses` in the spec"
        use = registry.find_only(AnalyzerEntry, "forecast", remedy, lambda entry: entry.forecast is not None)
        chosen = [make_component(AnalysisSpec, use)]
    return tuple(
        analysis.entry.forecast(design, options=analysis.options)
        for analysis in chosen
        if analysis.entry.forecast is not None
    )


def planned_trials(path: str | Path) -> list[Trial]:
    """The trials that a store's spec asks for; none where the path is no store's."""
    if not is_store(Path(path)):
        return []
    with Store.open(path) as store:
        spec = store.spec()
    design = Design.model_validate(spec["design"])
    designs = {task["name"]: design.only(task.get("num_test", ())) for task in spec["tasks"]}
    return list(list_trials(designs, [method["name"] for method in spec["methods"]]))


def _ask(analysis: AnalysisSpec, results: pd.DataFrame, warnings: tuple[str, ...]) -> Analysis:
    judged = results if analysis.entry.sees_controls else without_controls(results)
    if judged.empty:
        return Analysis(analysis.use, warnings=(*warnings, f"{analysis.use} was not asked: there are controls alone"))
    try:
        found = analysis.entry.analyze(judged, options=analysis.options)
    except Exception as error:
        error.add_note(f"raised by the analysis {analysis.use} with options {analysis.raw_options()}")
        raise
    if not isinstance(found, Analysis):
        raise ContractError(f"the analysis {analysis.use} returned a {type(found).__name__}; return peekbench.Analysis")
    return replace(found, warnings=(*warnings, *found.warnings))


def without_controls(results: pd.DataFrame) -> pd.DataFrame:
    """Rows of methods of whose bias nothing is known beforehand."""
    return results[results["control"] == ""].reset_index(drop=True)


def find_holes(results: pd.DataFrame, planned: Sequence[Trial] = ()) -> list[str]:
    """What is missing from a balanced design, one line for each task and configuration concerned.

    Every trial should have the same arms. Whatever is planned should be there; where that is not known, every
    configuration (method, model, num_train, num_test) should have every task of the table with the same subsamples.
    """
    arms = list(results["arm"].unique())
    counts = results.groupby(list(TRIAL), dropna=False, sort=False)["arm"].nunique().reset_index(name="count")
    holes = [
        f"{_place(*row[:5])}, subsample {row[5]}: {row[6]} of the {len(arms)} arms {', '.join(arms)}"
        for row in counts[counts["count"] < len(arms)].itertuples(index=False)
    ]
    trials = counts[list(TRIAL)]
    return holes + (_unfinished(trials, planned) if planned else _unbalanced(trials))


def _unbalanced(trials: pd.DataFrame) -> list[str]:
    there: dict[tuple[str, str, Any, Any], dict[str, set[int]]] = {}
    for method, model, num_train, num_test, task, subsample in trials.itertuples(index=False):
        there.setdefault((method, model, num_train, num_test), {}).setdefault(task, set()).add(subsample)
    tasks = list(trials["task"].unique())
    return [
        f"{_place(*key, task)}: {_count(missing, wanted)}"
        for key, by_task in there.items()
        for wanted in [set[int]().union(*by_task.values())]
        for task in tasks
        if (missing := wanted - by_task.get(task, set()))
    ]


def _unfinished(trials: pd.DataFrame, planned: Sequence[Trial]) -> list[str]:
    names = ("method", "num_train", "num_test", "task", "subsample")
    there = set(zip(*(trials[name] for name in names), strict=True))
    wanted: dict[tuple[str, int, int, str], set[int]] = {}
    missing: dict[tuple[str, int, int, str], set[int]] = {}
    for trial in planned:
        draw = trial.draw
        key = (trial.method, draw.num_train, draw.num_test, draw.task)
        wanted.setdefault(key, set()).add(draw.subsample)
        if (*key, draw.subsample) not in there:
            missing.setdefault(key, set()).add(draw.subsample)
    return [f"{_place(key[0], '', *key[1:])}: {_count(numbers, wanted[key])}" for key, numbers in missing.items()]


def drop_incomplete(results: pd.DataFrame) -> pd.DataFrame:
    """Only trials that have every arm of the table."""
    arms = results["arm"].nunique()
    complete = results.groupby(list(TRIAL), dropna=False, sort=False)["arm"].transform("nunique") == arms
    return results[complete].reset_index(drop=True)


def _place(method: str, model: str, num_train: Any, num_test: Any, task: str) -> str:
    import pandas as pd

    sizes = {"num_train": num_train, "num_test": num_test}
    parts = [f"task {task}", f"method {method}", *([f"model {model}"] if model else [])]
    return ", ".join(parts + [f"{name} {size}" for name, size in sizes.items() if not pd.isna(size)])


def _count(missing: set[int], wanted: set[int]) -> str:
    first = ", ".join(map(str, sorted(missing)[:SHOWN])) + (", ..." if len(missing) > SHOWN else "")
    return f"{len(missing)} of {pluralize(len(wanted), 'subsample')} missing ({first})"
