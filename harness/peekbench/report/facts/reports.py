"""Reports of a run and of a table of scores, as data."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import sqrt
from pathlib import Path
from typing import Any

import pandas as pd

from peekbench.data.preflight import count_uses, warn_of_copies, warn_of_design
from peekbench.errors import PeekbenchError, SpecError
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry
from peekbench.plugins.names import Code
from peekbench.records.data import TableOptions
from peekbench.records.report import Analysis, Extension, MethodFacts, Report, RunContent
from peekbench.records.trials import RowLimit
from peekbench.records.verdicts import RowName, Settling, TrialEvidence, Verdict
from peekbench.report.facts import run_facts
from peekbench.report.facts.run_facts import RunFacts, check_results, describe_copied_rows, make_command
from peekbench.report.render import run_words
from peekbench.report.render.sentences import warn_of_controls
from peekbench.results.analyze import AnalysisOptions, Analyzed, find_analysis, read_run, run_analysis, with_region
from peekbench.results.columns import TRIAL
from peekbench.results.recorded_looks import next_earlier
from peekbench.spec.components import AnalysisSpec, make_component, parse_analysis
from peekbench.spec.experiment import ANALYSIS_OF_TEXTS, ExperimentSpec, canonical, make_spec
from peekbench.store.differences import find_versions
from peekbench.store.files import is_store
from peekbench.store.reader import Store

MANY_USES = 5  # subsamples that test each text, from which the bias for other texts is estimated too


def report_of_run(
    path: Path,
    *,
    allow_incomplete: bool = False,
    analyses: Sequence[str] = (),
    given: Collection[Code] = (),
    on_analysis: Callable[[Analysis], None] | None = None,
) -> Report:
    """Return a report on a run, from its store alone.

    Of the plugins of the run, only those of its analyses and of its renderer are needed.

    Parameters
    ----------
    path
        Store of the run, such as `runs/quickstart.sqlite`.
    allow_incomplete
        Analyze a design with missing trials instead of refusing it; the report warns about them.
    analyses
        Analyses to do, as `plugin.thing`; by default those of the run's spec.
    given
        Code that the caller gave, such as `ExperimentSpec.code`; the report imports no other code.
    on_analysis
        Receives each analysis of the report.

    Returns
    -------
    Report
        Verdicts, tables, figures, failures and provenance of the run.

    Raises
    ------
    ResultsError
        If trials are missing and neither `allow_incomplete` nor the spec allows that.
    SpecError
        If an analysis is not installed, or does not have its stored options any more.

    Examples
    --------
    >>> report = report_of_run(Path("runs/quickstart.sqlite"))
    >>> [verdict.method for verdict in report.verdicts if verdict.control]
    ['controls.null', 'controls.leak']
    """
    with Store.open(path) as store:
        spec, stored = _read_spec(store, analyses, given), store.methods()
        tasks, sessions, failures = store.tasks(), store.sessions(), store.failures()
        metrics, sizes, hosts = store.metrics(), store.session_sizes(), store.hosts()
        stopped_at = store.stopped_at()
        versions, identifier = find_versions(spec, sessions, store.sessions_of_trials()), store.identifier()
        extension, rows = run_facts.describe_extension(store), store.row_name()
        scores = read_run(store, AnalysisOptions(allow_incomplete=allow_incomplete))
        repeats = store.repeats()
    scores.record_look()
    results, num_planned = scores.table.results, len(scores.planned)
    number = spec.design.look_number(stopped_at)
    if not results.empty:
        scores = scores.with_analyses(_add_analysis_of_texts(spec, tasks))
    num_done = len(results.drop_duplicates(list(TRIAL)))
    experiment = run_words.describe_experiment(spec, stored, tasks, rows)
    headline = run_words.state_progress(experiment, num_done, num_planned, len(failures))
    if number is not None:
        headline += f". {run_words.describe_stop(spec, number)}"
    command = ""
    if sessions:
        command = shlex.join(run_words.session_command(sessions[-1]))
    provenance = {"identifier": identifier, **run_words.describe_provenance(spec, sessions)}
    if analyses:
        command = make_command("report", [path], analyses, allow_incomplete=allow_incomplete)
        provenance["analyses"] = f"{', '.join(analyses)}; chosen for this report, instead of those of the spec"
    methods = run_words.describe_methods(spec, stored)
    designs = {task.name: spec.design_of(task) for task in spec.tasks}
    report = Report(
        name=spec.name,
        headline=headline,
        warnings=(
            *run_facts.warn_of_code_changes(versions),
            *run_facts.warn_of_other_versions(sessions, sizes),
            *run_words.warn_of_repeats(repeats),
            *warn_of_design(designs, tasks),
        ),
        tables=(
            *(replace(table, topic="data") for table in (run_words.task_table(tasks), *run_words.copy_tables(tasks))),
            *run_words.method_tables(methods, stored, results, metrics),
        ),
        failures=tuple(failures),
        provenance=provenance,
        details={
            "identifier": identifier,
            "spec": canonical(spec),
            "data": tasks,
            "sessions": [
                {**session, "trials": size, "hosts": [host for host in hosts if host["session"] == number]}
                for number, (session, size) in enumerate(zip(sessions, sizes, strict=True))
            ],
            "repeats": [{"method": trial.method, **trial.draw._asdict(), **asdict(again)} for trial, again in repeats],
        },
        methods=methods,
        extension=extension,
        has_copies=any(warn_of_copies(designs, tasks)),
        command=command,
        formats=spec.report.formats,
        renderer=spec.report.renderer,
    )
    judged = describe_copied_rows(scores.analyses, path, tasks, scores.complete_rows)
    outcomes = (*judged, *check_results(results))
    if on_analysis is not None:
        for analysis in outcomes:
            on_analysis(analysis)
    report = add_analyses(report, outcomes, rows)
    return replace(report, read_run=partial(read_content, report, scores))


def report_of_table(scores: Analyzed, name: str = "") -> Report:
    """Return a report on a table of scores that another tool produced, or on a part of the scores of a run.

    Parameters
    ----------
    scores
        The scores with their analyses, as `peekbench.results.analyze.analyze` returns them.
    name
        Name of the report; by default the name of the file without its suffix.

    Returns
    -------
    Report
        Verdicts, tables and figures of the analyses.

    Examples
    --------
    >>> import pandas as pd
    >>> from peekbench.results.analyze import AnalysisOptions, analyze
    >>> scores = pd.DataFrame({"task": ["trec"], "method": ["lsa"], "extra": [0.7], "test": [0.72]})
    >>> report_of_table(analyze(scores, AnalysisOptions(["permutation"], origin="scores.csv"))).headline
    '1 method on 1 task, 1 trial, from scores.csv'
    """
    results, columns = scores.complete_rows, scores.table.columns
    methods, num_trials = run_words.count_methods_of(results), len(results.drop_duplicates(list(TRIAL)))
    provenance = {"source": scores.origin}
    details: dict[str, Any] = {"source": scores.origin}
    if columns:
        provenance["columns"] = str(columns)
        details["columns"] = columns.as_json()
    make = _command_of(scores)
    command = make(scores.options.table)
    if command:
        provenance["command"] = command
    analyses, copies = list(scores.analyses), tuple[str, ...]()
    if scores.source is not None and is_store(scores.source):
        run = RunFacts.read(scores.source)
        extension, copies = run.extension, run.copies
        analyses = describe_copied_rows(analyses, scores.source, run.tasks, results)
    else:
        extension = extend_table(results, scores.options.table, make)
    report = Report(
        name=name or Path(scores.origin.partition(", ")[0]).stem,
        headline=run_words.describe_scores(methods, results["task"].nunique(), num_trials, [scores.origin]),
        warnings=(*columns.warnings, *copies),
        provenance=provenance,
        details=details,
        methods=tuple(MethodFacts(str(method)) for method in results["method"].unique()),
        extension=extension,
        has_one_run=scores.table.has_texts_as_draws,
        has_copies=bool(copies),
        command=command,
    )
    report = add_analyses(report, [*analyses, *check_results(scores.complete)])
    return replace(report, read_run=partial(read_content, report, scores))


def _command_of(scores: Analyzed) -> Callable[[TableOptions], str]:
    """Return a function from options of a table to the command that makes the report; none reads a data frame."""
    if scores.source is None:
        return lambda _: ""
    uses = [str(use) for use in scores.options.analyses]
    return partial(make_command, "analyze", [scores.source], uses, allow_incomplete=scores.options.allow_incomplete)


def extend_table(results: pd.DataFrame, options: TableOptions, make: Callable[[TableOptions], str]) -> Extension:
    """Return how to extend a table.

    Parameters
    ----------
    results
        Results table, as it was analyzed.
    options
        How the table was read.
    make
        Returns the command that makes the report with other options.
    """
    earlier = next_earlier(results, options.earlier_numbers)
    return Extension(make(replace(options, earlier=earlier)), earlier=earlier)


def _add_analysis_of_texts(spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> tuple[AnalysisSpec, ...]:
    """Return the analyses of a spec, with that of other texts if verdicts are about texts that are used often."""
    names = {analysis.use for analysis in spec.analyses}
    uses = count_uses({task.name: spec.design_of(task) for task in spec.tasks}, tasks)
    is_used_often = max(uses.values()) > MANY_USES and not spec.design.folds  # verdicts of folds are about both
    # Only accuracies and grades of single texts are known, which must not stand beside verdicts about another score.
    is_chosen = any(getattr(analysis.options, "score", "score") != "score" for analysis in spec.analyses)
    if "summary" not in names or ANALYSIS_OF_TEXTS in names or not is_used_often or is_chosen:
        return spec.analyses
    return (*spec.analyses, make_component(AnalysisSpec, ANALYSIS_OF_TEXTS))


def _read_spec(store: Store, analyses: Sequence[str], given: Collection[Code]) -> ExperimentSpec:
    """Return the spec of a store, with other analyses if some are given."""
    raw, origin = store.spec(), f"the spec in {store.path}"
    try:
        if analyses:
            raw["analyses"] = [parse_analysis(use) for use in analyses]
        spec = make_spec(raw, folder=store.folder(), origin=origin, stored=True, given=given)
        for analysis in spec.analyses:
            _ = analysis.entry  # raises if only the store names its code
        return spec
    except SpecError as error:  # about an analysis, because only analyses are looked up
        remedy = make_command("report", [store.path], ["PLUGIN.THING"])
        raise SpecError(f"{error}\nTo report the run with other analyses, name them: {remedy}") from error


def add_analyses(report: Report, analyses: Sequence[Analysis], rows: RowName = "texts") -> Report:
    """Return the report with the results of analyses, placed before its own warnings, figures and tables.

    Parameters
    ----------
    report
        Report with a name, a headline and tables on methods and data.
    analyses
        Analyses in the order in which the report shows them.
    rows
        What sentences call the rows of the tasks.
    """
    analyses = [_describe_rows(analysis, rows, report.extension.max_subsamples) for analysis in analyses]
    warnings = dict.fromkeys(
        warning for analysis in analyses for warning in (*analysis.warnings, *warn_of_controls(analysis.verdicts))
    )
    return replace(
        report,
        verdicts=(*(verdict for analysis in analyses for verdict in analysis.verdicts), *report.verdicts),
        warnings=(*warnings, *report.warnings),
        figures=(*(figure for analysis in analyses for figure in analysis.figures), *report.figures),
        tables=(*(table for analysis in analyses for table in analysis.tables), *report.tables),
    )


def _describe_rows(analysis: Analysis, rows: RowName, max_subsamples: Mapping[int, RowLimit]) -> Analysis:
    """Return an analysis whose verdicts name the rows of the tasks and advise what they allow."""
    verdicts = (limit_advice(replace(verdict, rows=rows), max_subsamples) for verdict in analysis.verdicts)
    return replace(analysis, verdicts=tuple(verdicts))


def limit_advice(verdict: Verdict, max_subsamples: Mapping[int, RowLimit]) -> Verdict:
    """Return a verdict that advises no more subsamples than the rows of the tasks support.

    Parameters
    ----------
    verdict
        Verdict of a run.
    max_subsamples
        Subsamples per task that the rows support, by test size; empty if they are unknown.

    Examples
    --------
    >>> from peekbench.records.trials import RowLimit
    >>> from peekbench.records.verdicts import Advice, Estimate, Settling, TrialEvidence
    >>> evidence = TrialEvidence(num_tasks=2, num_trials=40, settling=Settling(Advice(70, 0.8)))
    >>> verdict = Verdict("lsa", "bias", "inconclusive", Estimate(0.0, -0.1, 0.1), evidence=evidence)
    >>> limited = limit_advice(verdict, {100: RowLimit(50, "news", 500)}).evidence.settling
    >>> limited.advice, limited.maximum, limited.limit.task
    (None, 30, 'news')
    """
    evidence = verdict.evidence
    if not isinstance(evidence, TrialEvidence) or evidence.settling is None or not max_subsamples:
        return verdict
    settling, number = evidence.settling, evidence.num_trials / evidence.num_tasks
    num_test: Any = dict(verdict.parts).get("num_test")
    limit = max_subsamples.get(num_test, min(max_subsamples.values()))
    supported = max(round(number), limit.num_subsamples)
    room = supported - round(number)
    if room >= settling.maximum or (settling.advice is not None and settling.advice.subsamples <= room):
        return verdict
    half_width = settling.half_width
    if half_width is not None:
        half_width *= sqrt((number + settling.maximum) / supported)
    limited = Settling(None, room, limit, half_width)
    return replace(verdict, evidence=replace(evidence, settling=limited))


def read_content(report: Report, scores: Analyzed) -> RunContent:
    """Collect the content of a run or a table of scores for formats of plugins.

    Parameters
    ----------
    report
        Report of the scores.
    scores
        The scores with the analyses of the report, whose options the estimates share.

    Raises
    ------
    PeekbenchError
        If there are no trials, or only those of controls.
    """
    rows = scores.complete_rows
    if rows.empty:
        raise PeekbenchError(f"{scores.origin} has no finished trial, so there is nothing to export; finish the run")
    component = with_region(find_estimates_analysis(scores.chosen), scores.table.columns)
    analysis = run_analysis(component, rows, (), scores.seen)
    if not analysis.estimates:
        raise PeekbenchError(f"{report.name} has no methods but controls, so there is nothing to export; add a method")
    return RunContent(report=report, results=rows, estimates=analysis.estimates)


def find_estimates_analysis(analyses: Sequence[AnalysisSpec]) -> AnalysisSpec:
    """Return the analysis for estimates, with the options of the first analysis that has the same options."""
    use = find_analysis("estimates")
    model = registry.find(use, AnalyzerEntry).options
    options = (analysis.raw_options() for analysis in analyses if analysis.entry.options is model)
    return make_component(AnalysisSpec, use, next(options, None))
