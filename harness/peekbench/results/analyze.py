"""Analyzes scores: reads them, checks that no planned trial is missing, and runs analyses on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench.data.loading import load_dataset
from peekbench.errors import ResultsError, SpecError
from peekbench.plugins.boundary import Foreign
from peekbench.plugins.entries import AnalyzerEntry, AnalyzerRole
from peekbench.plugins.registry import find_default
from peekbench.records.data import Predictions, TableOptions
from peekbench.records.report import Analysis
from peekbench.records.runs import Looks, PlannedDesign
from peekbench.records.trials import Trial
from peekbench.results.columns import ColumnUse
from peekbench.results.missing_trials import drop_incomplete, lack_only_failed, only_complete
from peekbench.results.read import (
    StoredPredictions,
    is_results_table,
    load_table,
    read_files,
    read_store,
    refuse_options_of_store,
)
from peekbench.results.recorded_looks import look_at, read_looks
from peekbench.results.tidying import TidyTable, tidy_table
from peekbench.results.user_columns import find_metric, suggest_name
from peekbench.spec.components import AnalysisSpec, make_component, parse_analysis
from peekbench.spec.design import designs_by_task, list_trials
from peekbench.spec.experiment import ANALYSIS_OF_TEXTS, DEFAULT_ANALYSES, ExperimentSpec
from peekbench.store.files import is_store
from peekbench.store.reader import Store
from peekbench.store.writer import append_look


@dataclass(frozen=True, slots=True)
class Seen:
    """What an analysis can take besides the results table, if its entry says so."""

    looks: Looks = field(default_factory=Looks)
    predictions: Predictions | None = None
    """None if the answers to single texts are not known."""

    def keywords(self, entry: AnalyzerEntry) -> dict[str, Any]:
        """Return the keywords of the call of an analysis."""
        keywords: dict[str, Any] = {}
        if entry.sees_looks:
            keywords["looks"] = self.looks
        if entry.sees_predictions:
            keywords["predictions"] = self.predictions
        return keywords


NOTHING_SEEN = Seen()


def _as_component(analysis: AnalysisSpec | str) -> AnalysisSpec:
    if isinstance(analysis, str):
        return parse_analysis(analysis)
    return analysis


@dataclass(frozen=True, slots=True)
class AnalysisOptions:
    """Which scores to analyze, and how.

    Examples
    --------
    >>> AnalysisOptions(["summary"], TableOptions(region=0.02)).allow_incomplete
    False
    """

    analyses: Sequence[AnalysisSpec | str] = ()
    """Analyses by name, as YAML or from a spec; by default `summary` and `permutation`, and `summary.texts` if a
    table has rows of single texts of several runs."""
    table: TableOptions = field(default_factory=TableOptions)
    """How to read a table of another tool."""
    allow_incomplete: bool = False
    """Analyze the complete trials of a design with missing trials. Each analysis then has a warning."""
    origin: str = "the data frame"
    """What messages and reports call a data frame."""

    def choose_analyses(self) -> list[AnalysisSpec]:
        """Return the analyses as components, and the default ones if none are chosen."""
        return [_as_component(analysis) for analysis in self.analyses or DEFAULT_ANALYSES]

    def reading(self) -> TableOptions:
        """Return how to read a table, with the arms that any of the analyses needs."""
        arms = dict.fromkeys(arm for analysis in self.choose_analyses() for arm in analysis.entry.arms)
        return replace(self.table, arms=tuple(arms), drops_empty=self.allow_incomplete)


@dataclass(frozen=True, slots=True)
class Analyzed:
    """Scores of a source with all that is known about them: their table, design, looks and analyses."""

    source: Path | None
    """Store, file or folder; None for a data frame."""
    options: AnalysisOptions
    """How they were read and analyzed."""
    table: TidyTable
    """All scores that were selected."""
    complete: pd.DataFrame
    """Those of complete trials, as analyses take them."""
    planned: Sequence[Trial] = ()
    """Trials that a run planned; empty for a table, whose design is its own."""
    looks: Looks = field(default_factory=Looks)
    """Looks at the scores, the present one included."""
    warnings: tuple[str, ...] = ()
    """A warning if trials are missing."""
    chosen: tuple[AnalysisSpec, ...] = ()
    """Analyses, with the region of the table."""
    analyses: tuple[Analysis, ...] = ()
    """What they returned, in the same order."""
    look: Mapping[str, Any] | None = None
    """Record of this look at a run, if its store does not have it yet."""

    @property
    def origin(self) -> str:
        """Path of the source, or what messages call a data frame."""
        return str(self.source or self.options.origin)

    @property
    def complete_rows(self) -> pd.DataFrame:
        """The rows of complete trials as they were read."""
        if self.options.reading().needs_pairs:
            return drop_incomplete(self.table.results)
        return self.table.results

    @property
    def seen(self) -> Seen:
        """What analyses can take besides the table."""
        return Seen(self.looks, self.table.predictions)

    def record_look(self) -> None:
        """Record this look in the store of a run, which must be closed."""
        if self.source is not None and self.look is not None:
            append_look(self.source, self.look)

    def with_analyses(self, analyses: Sequence[AnalysisSpec]) -> Analyzed:
        """Return the scores with these analyses."""
        chosen = tuple(with_region(analysis, self.table.columns) for analysis in analyses)
        outcomes = tuple(run_analysis(analysis, self.complete, self.warnings, self.seen) for analysis in chosen)
        return replace(self, chosen=chosen, analyses=outcomes)


def analyze(source: pd.DataFrame | str | Path | Sequence[Path], options: AnalysisOptions | None = None) -> Analyzed:
    """Read scores and analyze them.

    Parameters
    ----------
    source
        A table of scores, such as `load_results` returns or reads: a data frame, a run's store, a file, a folder, or
        several files, which are one table.
    options
        Which scores to analyze, and how.

    Returns
    -------
    Analyzed
        The table, what is missing from its design, the looks at it, and the analyses. A look at a store is recorded
        there.

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
    >>> (permutation,) = analyze(scores, AnalysisOptions(["permutation"])).analyses
    >>> permutation.name
    'permutation'
    """
    options = options or AnalysisOptions()
    scores = read_scores(source, options)
    if scores.table.results.empty:
        raise ResultsError(f"{scores.origin}: no trial is finished; run its spec first")
    chosen = options.choose_analyses()
    table = scores.table
    if not options.analyses and table.columns and table.predictions is not None:  # one row for each text and run
        chosen.append(make_component(AnalysisSpec, ANALYSIS_OF_TEXTS))
    return scores.with_analyses(chosen)


def read_scores(source: pd.DataFrame | str | Path | Sequence[Path], options: AnalysisOptions) -> Analyzed:
    """Read scores and what is known about them, without any analysis; see `analyze`."""
    reading = options.reading()
    if not isinstance(source, pd.DataFrame | str | Path):
        options = replace(options, origin=", ".join(map(str, source)))
        source = read_files(source, reading)
    if isinstance(source, pd.DataFrame):
        table = TidyTable(source)
        if options.table.given or not is_results_table(source):
            table = tidy_table(source, options.origin, reading)
        return _complete(None, options, table, allow_incomplete=options.allow_incomplete)
    path = Path(source)
    if not is_store(path):
        table = load_table(path, reading)
        return _complete(path, options, table, allow_incomplete=options.allow_incomplete)
    refuse_options_of_store(path, replace(options.table, tasks=()))
    with Store.open(path) as store:
        scores = read_run(store, options)
    scores.record_look()
    return scores


def read_run(store: Store, options: AnalysisOptions) -> Analyzed:
    """Read the scores of an open store, see `read_scores`; call `record_look` after it is closed.

    Of a run with missing trials, the complete ones are analyzed if those of its methods without a failed trial are all
    there, or if its spec allows that.
    """
    table = TidyTable(read_store(store), predictions=StoredPredictions(store.path))
    planned = planned_trials(store)
    if table.results.empty:
        return Analyzed(store.path, options, table, table.results, planned)
    is_allowed = (
        options.allow_incomplete
        or store.spec()["report"]["allow_incomplete"]
        or lack_only_failed(table.results, planned, {failure.trial.method for failure in store.failures()})
    )
    scores = _complete(store.path, options, table, planned, allow_incomplete=is_allowed)
    if len(scores.table.results) == len(table.results):
        looks, look = look_at(store, scores.complete)
        return replace(scores, looks=looks, look=look)
    _, look = look_at(store, drop_incomplete(table.results))  # a look at a part counts as one at all
    return replace(scores, look=look)


def planned_trials(store: Store) -> list[Trial]:
    """Return the trials that the spec of a store plans, up to the look at which its run stopped."""
    spec = store.spec()
    designs = designs_by_task(spec, store.stopped_at())
    return list(list_trials(designs, [method["name"] for method in spec["methods"]]))


def _complete(
    source: Path | None,
    options: AnalysisOptions,
    table: TidyTable,
    planned: Sequence[Trial] = (),
    *,
    allow_incomplete: bool,
) -> Analyzed:
    """Select scores, and drop incomplete trials or refuse them."""
    if tasks := tuple(options.table.tasks):
        table = replace(table, results=_select_tasks(table.results, tasks))
        planned = [trial for trial in planned if trial.draw.task in tasks]
    complete = table.results
    warnings: tuple[str, ...] = ()
    if planned or options.reading().needs_pairs:
        complete, warnings = only_complete(
            table.results, planned, allow_incomplete=allow_incomplete, has_texts_as_draws=table.has_texts_as_draws
        )
    return Analyzed(source, options, table, complete, planned, read_looks(complete), warnings)


def _select_tasks(results: pd.DataFrame, tasks: Sequence[str]) -> pd.DataFrame:
    """Select the rows of tasks, which must all have scores."""
    for task in tasks:
        if not (results["task"] == task).any():
            remedy = suggest_name(task, results["task"].unique().tolist(), "tasks")
            raise ResultsError(TableOptions(tasks=[task]).argument, f": the run has no such task; {remedy}")
    return results[results["task"].isin(tasks)].reset_index(drop=True)


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
    if columns.region is not None and columns.region < 0:
        raise ResultsError(TableOptions(region=columns.region).argument, ": a width is at least 0; give a larger one")
    if columns.region is not None:
        return analysis.model_copy(update={"options": options.model_copy(update={"region": columns.region})})
    if columns.not_like_accuracy:
        raise ResultsError(*columns.not_like_accuracy)
    return analysis


def find_analysis(role: AnalyzerRole) -> str:
    """Return the name of the default analysis with a role.

    Raises
    ------
    PluginError
        If no plugin of peekbench has one.
    """
    return find_default(AnalyzerEntry, f"analysis for a {role}", lambda entry: entry.role == role)


def ask(use: str, results: pd.DataFrame, seen: Seen = NOTHING_SEEN, columns: ColumnUse | None = None) -> Analysis:
    """Run one analysis with its default options, and the region of a table, on a table of any form."""
    analysis = with_region(make_component(AnalysisSpec, use), columns or ColumnUse())
    return run_analysis(analysis, results, (), seen)


def forecast(design: PlannedDesign, analyses: Sequence[AnalysisSpec]) -> tuple[Analysis, ...]:
    """Ask the analyses of a spec that can forecast; if none can, the default one that can.

    Raises
    ------
    PluginError
        If none can, and there is no default.
    """
    chosen = [analysis for analysis in analyses if analysis.entry.forecast is not None]
    if not chosen:
        use = find_default(AnalyzerEntry, "forecast", lambda entry: entry.forecast is not None)
        chosen = [make_component(AnalysisSpec, use)]
    return tuple(
        Foreign(f"forecast of {analysis.use}", analysis.use, analysis.options).call(
            analysis.entry.forecast, {"design": design}, Analysis, options=analysis.options
        )
        for analysis in chosen
        if analysis.entry.forecast is not None
    )


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
    visible = results
    if not analysis.entry.sees_controls:
        visible = without_controls(results)
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
    caller = Foreign(f"analysis {analysis.use}", analysis.use, analysis.options)
    keywords = {"options": analysis.options, **seen.keywords(analysis.entry)}
    outcome: Analysis = caller.call(analysis.entry.analyze, {"results": visible}, Analysis, **keywords)
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


def check_analyses(spec: ExperimentSpec) -> None:
    """Refuse analyses that could not be made of the trials of a spec.

    Raises
    ------
    SpecError
        If an analysis needs an arm that the spec lacks, or a score that is not defined for a task.
    """
    arms = [arm.name for arm in spec.arms]
    for position, analysis in enumerate(spec.analyses):
        if missing := [arm for arm in analysis.entry.arms if arm not in arms]:
            raise SpecError(f"analyses[{position}]: {analysis.use} needs the arm {missing[0]!r}; add it to `arms`")
        score = getattr(analysis.options, "score", "score")
        if score == "score":
            continue
        from peekbench.plugins.scorers import check_score  # noqa: PLC0415 - few reports need scikit-learn

        for task in spec.tasks:
            try:
                check_score(score, load_dataset(spec.source(task)), task.name, None)
            except SpecError as error:
                raise SpecError(f"analyses[{position}]: {error}") from error
