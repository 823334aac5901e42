"""Runs analyses on a results table, after checking that no planned trial is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench.errors import ContractError, ResultsError
from peekbench.formatting import pluralize
from peekbench.plugins.entries import AnalyzerEntry, AnalyzerRole
from peekbench.plugins.registry import find_default
from peekbench.records.data import Predictions, TableOptions
from peekbench.records.report import Analysis, Cell, Subject
from peekbench.records.runs import Looks, PlannedDesign
from peekbench.records.trials import Trial
from peekbench.results.columns import CONFIGURATION, TRIAL
from peekbench.results.looks import look_at, read_looks
from peekbench.results.paired_effects import plain_cell
from peekbench.results.read import is_results_table, load_table
from peekbench.results.roles import ALLOW_INCOMPLETE, ColumnUse, quoted
from peekbench.results.texts import StoredPredictions
from peekbench.results.tidying import TidyTable, find_metric, tidy_table
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.spec.design import designs_by_task, list_trials
from peekbench.spec.experiment import ANALYSIS_OF_TEXTS, DEFAULT_ANALYSES
from peekbench.store.files import is_store
from peekbench.store.reader import Store

MAX_LISTED = 5  # gaps listed in a message
MAX_GAPS = 10_000  # gaps that are counted; a table can have as many as methods times tasks


@dataclass(frozen=True, slots=True)
class Seen:
    """What an analysis can take besides the results table, if its entry says so."""

    looks: Looks = field(default_factory=Looks)
    predictions: Predictions | None = None
    """None if the answers to single texts are not known."""

    def keywords(self, entry: AnalyzerEntry) -> dict[str, Any]:
        """Return the keywords of the call of an analysis."""
        looks = {"looks": self.looks} if entry.sees_looks else {}
        return looks | ({"predictions": self.predictions} if entry.sees_predictions else {})


NOTHING_SEEN = Seen()
Expected = tuple[tuple[Cell, ...], str, set[int]]
"""Configuration, task, and the numbers of the subsamples that it should have."""


def analyze(
    source: pd.DataFrame | TidyTable | str | Path,
    analyses: Sequence[AnalysisSpec | str] | None = None,
    *,
    allow_incomplete: bool = False,
    planned: Sequence[Trial] = (),
    looks: Looks | None = None,
    **table: Any,
) -> tuple[Analysis, ...]:
    """Analyze scores.

    Parameters
    ----------
    source
        A table of scores, such as `load_results` returns or reads: a data frame, a run's store, a file, a folder. Or a
        table that was read before, with the answers to single texts.
    analyses
        Analyses to run, by name or from a spec; by default `summary` and `permutation`, and `summary.texts` if a table
        has rows of single texts of several runs.
    allow_incomplete
        Analyze the complete trials of a design with missing trials. Each analysis then has a warning.
    planned
        Trials that the table should contain. If `source` is a store, its spec determines them.
    looks
        Looks at the run that the table is from; by default those of its column `looks`. If `source` is a store, they
        are read from it, and this look is recorded there.
    **table
        How to read a table of another tool: `columns`, `ignore`, `pair_by_order` and `percent`, as for
        `load_results`, and `region`, the half-width of the region of practical equivalence.

    Returns
    -------
    tuple of Analysis
        One for each of `analyses`.

    Raises
    ------
    ResultsError
        If the table is malformed, or the design has missing trials.
    SpecError
        If an analysis does not exist, or cannot analyze these results.

    Examples
    --------
    >>> import pandas as pd
    >>> scores = pd.DataFrame({"task": "news", "fold": [1, 2], "extra": [0.7, 0.72], "test": [0.72, 0.75]})
    >>> (permutation,) = analyze(scores, ["permutation"])
    >>> permutation.name
    'permutation'
    """
    chosen = choose_analyses(analyses)
    options = TableOptions(**table, arms=needed_arms(chosen))
    if isinstance(source, str | Path):
        tidied = load_table(source, options)
        planned = planned or planned_trials(source)
    elif isinstance(source, TidyTable):
        tidied = source
    elif is_results_table(source) and not table:
        tidied = TidyTable(source)
    else:
        tidied = tidy_table(source, "the data frame", options)
    if not analyses and tidied.has_rows_of_texts:
        chosen = [*chosen, make_component(AnalysisSpec, ANALYSIS_OF_TEXTS)]
    chosen = [with_region(analysis, tidied.columns) for analysis in chosen]
    results = tidied.results
    warnings: tuple[str, ...] = ()
    if planned or options.needs_pairs:
        results, warnings = only_complete(
            results, planned, allow_incomplete=allow_incomplete, has_texts_as_draws=tidied.has_texts_as_draws
        )
    if looks is None:
        looks = look_at(Path(source), results) if isinstance(source, str | Path) else read_looks(results)
    seen = Seen(looks, tidied.predictions)
    return tuple(run_analysis(analysis, results, warnings, seen) for analysis in chosen)


def choose_analyses(analyses: Sequence[AnalysisSpec | str] | None) -> list[AnalysisSpec]:
    """Return analyses given by name or from a spec as components, and the default ones for none."""
    return [
        make_component(AnalysisSpec, analysis) if isinstance(analysis, str) else analysis
        for analysis in analyses or DEFAULT_ANALYSES
    ]


def with_region(analysis: AnalysisSpec, columns: ColumnUse) -> AnalysisSpec:
    """Return an analysis with the region of practical equivalence of a table, unless its options have one.

    Raises
    ------
    ResultsError
        If the analysis needs a region, and the unit of the scores is not known.
    """
    options = analysis.options
    if "region" not in type(options).model_fields or "region" in options.model_fields_set:
        return analysis
    if columns.region is not None:
        return analysis.model_copy(update={"options": options.model_copy(update={"region": columns.region})})
    if columns.not_like_accuracy:
        raise ResultsError(*columns.not_like_accuracy)
    return analysis


def needed_arms(analyses: Sequence[AnalysisSpec]) -> tuple[str, ...]:
    """Return the arms that any of the analyses needs."""
    return tuple(dict.fromkeys(arm for analysis in analyses for arm in analysis.entry.arms))


def join_sizes(results: pd.DataFrame) -> pd.DataFrame:
    """Return the results without num_test if each task has a number of test texts of its own.

    Different numbers of the same task are different configurations. Numbers that only tell tasks apart are not: a
    configuration then has all tasks, and its number of test texts is missing. Accuracies are still known as such,
    because `num_correct` is not missing.

    Parameters
    ----------
    results
        The results table of a table of scores. The tasks of a run have the sizes of its design.
    """
    sizes = results.groupby("task")["num_test"].agg(["min", "max", "count", "size"])
    is_of_task = (sizes["min"] == sizes["max"]) & (sizes["count"] == sizes["size"])
    if not is_of_task.all() or sizes["min"].nunique() < 2:
        return results
    return results.assign(num_test=pd.Series(pd.NA, index=results.index, dtype="Int64"))


def only_complete(
    results: pd.DataFrame,
    planned: Sequence[Trial] = (),
    *,
    allow_incomplete: bool = False,
    has_texts_as_draws: bool = False,
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return the trials that have every arm, and a warning if trials are missing.

    In a table of scores, `join_sizes` makes one configuration of tasks with different numbers of test texts.

    Parameters
    ----------
    results
        The results table.
    planned
        Trials that the table should contain, if known.
    allow_incomplete
        Drop incomplete trials instead of raising an error.
    has_texts_as_draws
        Whether subsamples are single texts, of which each task can have its own number.

    Raises
    ------
    ResultsError
        If trials are missing and `allow_incomplete` is not set, or no trial is complete.
    """
    if not planned:
        results = join_sizes(results)
    gaps = find_gaps(results, planned, has_texts_as_draws=has_texts_as_draws)
    if not gaps:
        return results, ()
    more = [f"... and {'at least ' * (len(gaps) == MAX_GAPS)}{len(gaps) - MAX_LISTED} more"]
    lines = "\n  ".join(gaps[:MAX_LISTED] + more * (len(gaps) > MAX_LISTED))
    complete = drop_incomplete(results)
    if complete.empty:
        remedy = "finish the run" if planned else "give the rows of a draw the same number in all arms"
        raise ResultsError(f"no subsample has all arms ({quoted(results['arm'].unique())}); {remedy}:\n  {lines}")
    if not allow_incomplete:
        raise ResultsError(
            f"the design has missing trials:\n  {lines}\n{'Finish the run' if planned else 'Add the missing rows'}; ",
            ALLOW_INCOMPLETE,
            " analyzes the complete trials and says so in the report",
        )
    lost = _name_lost(results, complete, planned)
    return complete, (f"The design has missing trials, and only complete trials were analyzed{lost}:\n  {lines}",)


def _name_lost(results: pd.DataFrame, complete: pd.DataFrame, planned: Sequence[Trial]) -> str:
    """Return the tasks and methods without a complete trial, to follow the statement that trials are missing."""
    names = {
        "task": {*results["task"], *(trial.draw.task for trial in planned)} - {*complete["task"]},
        "method": {*results["method"], *(trial.method for trial in planned)} - {*complete["method"]},
    }
    lost = [f"{pluralize(len(each), noun)} ({quoted(sorted(each))})" for noun, each in names.items() if each]
    return f", which leaves out {' and '.join(lost)}" if lost else ""


def find_analysis(role: AnalyzerRole) -> str:
    """Return the name of the default analysis with a role.

    Raises
    ------
    PluginError
        If no installed plugin has one, or if several have and none comes with peekbench.
    """
    description = f"analysis for a {role}"
    return find_default(AnalyzerEntry, description, "choose one with --analysis", lambda entry: entry.role == role)


def ask(use: str, results: pd.DataFrame, seen: Seen = NOTHING_SEEN, columns: ColumnUse | None = None) -> Analysis:
    """Run one analysis with its default options, and the region of a table, on a table of any form."""
    analysis = make_component(AnalysisSpec, use)
    return run_analysis(analysis if columns is None else with_region(analysis, columns), results, (), seen)


def forecast(design: PlannedDesign, analyses: Sequence[AnalysisSpec]) -> tuple[Analysis, ...]:
    """Ask the analyses of a spec that can forecast; if none can, the default one that can.

    Raises
    ------
    PluginError
        If none can, and there is no default.
    """
    chosen = [analysis for analysis in analyses if analysis.entry.forecast is not None]
    if not chosen:
        remedy = "name one under `analyses` in the spec"
        use = find_default(AnalyzerEntry, "forecast", remedy, lambda entry: entry.forecast is not None)
        chosen = [make_component(AnalysisSpec, use)]
    return tuple(
        analysis.entry.forecast(design, options=analysis.options)
        for analysis in chosen
        if analysis.entry.forecast is not None
    )


def planned_trials(path: str | Path) -> list[Trial]:
    """Return the trials that a store's spec plans, up to the look at which its run stopped.

    Returns
    -------
    list of Trial
        Empty if the path is not a store.
    """
    if not is_store(Path(path)):
        return []
    with Store.open(path) as store:
        spec, stopped_at = store.spec(), store.stopped_at()
    return list(list_trials(designs_by_task(spec, stopped_at), [method["name"] for method in spec["methods"]]))


def run_analysis(
    analysis: AnalysisSpec, results: pd.DataFrame, warnings: tuple[str, ...], seen: Seen = NOTHING_SEEN
) -> Analysis:
    """Run one analysis.

    Parameters
    ----------
    analysis
        The analysis, with its options.
    results
        The results table without incomplete trials.
    warnings
        Warnings to add to its own.
    seen
        What only some analyses take besides the table.

    Raises
    ------
    ResultsError
        If the results lack an arm that the analysis needs.
    ContractError
        If the analysis does not return an `Analysis`.
    """
    visible = results if analysis.entry.sees_controls else without_controls(results)
    if visible.empty:
        return Analysis(analysis.use, warnings=(*warnings, f"{analysis.use} did not run: all methods are controls"))
    present = list(visible["arm"].unique())
    if missing := [arm for arm in analysis.entry.arms if arm not in present]:
        raise ResultsError(
            f"the analysis {analysis.use} needs scores of the arm {missing[0]!r}, and there are only scores of "
            f"{', '.join(present)}; add them, or choose another analysis"
        )
    score = getattr(analysis.options, "score", "score")
    if score == "score":
        find_metric(visible)  # refuses tasks of different metrics
    if score not in visible and isinstance(seen.predictions, StoredPredictions):
        visible = visible.assign(**{score: seen.predictions.scores(visible, score)})
    try:
        outcome = analysis.entry.analyze(visible, options=analysis.options, **seen.keywords(analysis.entry))
    except Exception as error:
        error.add_note(f"raised by the analysis {analysis.use} with options {analysis.raw_options()}")
        raise
    if not isinstance(outcome, Analysis):
        raise ContractError(
            f"the analysis {analysis.use} returned a {type(outcome).__name__}; return peekbench.Analysis"
        )
    verdicts = tuple(replace(verdict, analysis=analysis.use) for verdict in outcome.verdicts)
    return replace(
        outcome, verdicts=verdicts, warnings=(*warnings, *outcome.warnings, *_warn_of_looks(analysis, outcome, seen))
    )


def _warn_of_looks(analysis: AnalysisSpec, outcome: Analysis, seen: Seen) -> Iterator[str]:
    """Yield a warning if verdicts hold for a single look only, but there were several."""
    if outcome.verdicts and seen.looks.are_repeated and not analysis.entry.sees_looks:
        yield (
            f"The verdicts of {analysis.use} do not account for the earlier looks at this run: they hold for a single "
            "look. Prefer the verdicts of an analysis that accounts for looks"
        )


def without_controls(results: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of methods that are not controls."""
    return results[results["control"] == ""].reset_index(drop=True)


def find_gaps(results: pd.DataFrame, planned: Sequence[Trial] = (), *, has_texts_as_draws: bool = False) -> list[str]:
    """Describe what is missing from a balanced design.

    Every trial should have the same arms. Every planned trial should be present. If the planned trials are unknown,
    every configuration (method, model, num_train, num_test) should have every task of the table with the same
    subsamples; if these are single texts, with the same texts of each task.

    Returns
    -------
    list of str
        One line for each affected task and configuration; at most `MAX_GAPS`.
    """
    gaps = (
        f"{_describe_place(configuration, task)}: {_count_missing(missing, numbers)}"
        for configuration, task, numbers, complete in _compare(results, planned, has_texts_as_draws=has_texts_as_draws)
        if (missing := numbers - complete)
    )
    return list(islice(gaps, MAX_GAPS))


def find_subjects(
    results: pd.DataFrame, planned: Sequence[Trial] = (), *, has_texts_as_draws: bool = False
) -> tuple[Subject, ...]:
    """Return the configurations of a design, each with the tasks in which it has no complete trial.

    Parameters
    ----------
    results
        The results table with incomplete trials.
    planned, has_texts_as_draws
        As for `only_complete`.
    """
    if not planned:
        results = join_sizes(results)
    of_methods = results.drop_duplicates("method", keep="last")
    controls = dict(zip(of_methods["method"], of_methods["control"], strict=True))
    lost: dict[tuple[Cell, ...], list[str]] = {}
    for configuration, task, numbers, complete in _compare(results, planned, has_texts_as_draws=has_texts_as_draws):
        tasks = lost.setdefault(configuration, [])
        if not numbers & complete:
            tasks.append(task)
    return tuple(
        Subject(tuple(zip(CONFIGURATION, configuration, strict=True)), controls.get(configuration[0], ""), tuple(tasks))
        for configuration, tasks in lost.items()
    )


def _compare(
    results: pd.DataFrame, planned: Sequence[Trial], *, has_texts_as_draws: bool
) -> Iterator[tuple[tuple[Cell, ...], str, set[int], set[int]]]:
    """Yield each configuration and task of a design with the subsamples that it should have, and those complete."""
    arms = results.groupby(list(TRIAL), dropna=False, sort=False)["arm"].nunique().reset_index(name="count")
    is_complete = (arms["count"] == results["arm"].nunique()).tolist()
    seen, complete = dict[Any, dict[str, set[int]]](), dict[Any, dict[str, set[int]]]()
    for (*sizes, task, subsample), is_whole in zip(arms[list(TRIAL)].itertuples(index=False), is_complete, strict=True):
        configuration = tuple(map(plain_cell, sizes))
        seen.setdefault(configuration, {}).setdefault(task, set()).add(subsample)
        if is_whole:
            complete.setdefault(configuration, {}).setdefault(task, set()).add(subsample)
    if planned:
        expected = _group_planned(planned, {configuration[0]: configuration[1] for configuration in seen})
    else:
        expected = _expect_balance(seen, has_texts_as_draws=has_texts_as_draws)
    for configuration, task, numbers in expected:
        yield configuration, task, numbers, complete.get(configuration, {}).get(task, set())


def _group_planned(planned: Sequence[Trial], models: Mapping[Cell, Cell]) -> Iterator[Expected]:
    numbers: dict[tuple[tuple[Cell, ...], str], set[int]] = {}
    for trial in planned:
        draw = trial.draw
        configuration = (trial.method, models.get(trial.method, ""), draw.num_train, draw.num_test)
        numbers.setdefault((configuration, draw.task), set()).add(draw.subsample)
    return ((configuration, task, each) for (configuration, task), each in numbers.items())


def _expect_balance(
    seen: Mapping[tuple[Cell, ...], Mapping[str, set[int]]], *, has_texts_as_draws: bool
) -> Iterator[Expected]:
    of_tasks: dict[str, set[int]] = {}
    for by_task in seen.values():
        for task, numbers in by_task.items():
            of_tasks.setdefault(task, set()).update(numbers)
    for configuration, by_task in seen.items():
        of_all = set[int]().union(*by_task.values())
        for task, of_task in of_tasks.items():
            yield configuration, task, of_task if has_texts_as_draws else of_all


def drop_incomplete(results: pd.DataFrame) -> pd.DataFrame:
    """Return the trials that have every arm of the table."""
    num_arms = results["arm"].nunique()
    is_complete = results.groupby(list(TRIAL), dropna=False, sort=False)["arm"].transform("nunique") == num_arms
    return results[is_complete].reset_index(drop=True)


def _describe_place(configuration: Sequence[Cell], task: str) -> str:
    names = zip(("method", "model", "num_train", "num_test"), configuration, strict=True)
    return ", ".join([f"task {task}", *(f"{name} {value}" for name, value in names if value not in ("", None))])


def _count_missing(missing: set[int], expected: set[int]) -> str:
    first = ", ".join(map(str, sorted(missing)[:MAX_LISTED])) + (", ..." if len(missing) > MAX_LISTED else "")
    return f"{len(missing)} of {pluralize(len(expected), 'subsample')} missing or incomplete ({first})"
