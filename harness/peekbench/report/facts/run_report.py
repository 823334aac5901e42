"""Builds the report of a run, and of audits."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.data.preflight import count_uses, describe_data
from peekbench.errors import PeekbenchError, PluginError, SpecError
from peekbench.formatting import pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import AnalyzerEntry, RendererEntry
from peekbench.plugins.local_code import Code
from peekbench.records.report import Analysis, Extension, Report, RuleWorth, RunContent, read_estimates
from peekbench.records.verdicts import RowName, Settling, TrialEvidence, Verdict
from peekbench.report.facts.run_facts import (
    check_results,
    describe_extension,
    describe_provenance,
    make_command,
    session_command,
    warn_of_code_changes,
    warn_of_other_versions,
    warn_of_run,
)
from peekbench.report.facts.tables import (
    cost_table,
    describe_methods,
    look_tables,
    method_table,
    metric_table,
    task_table,
    text_tables,
)
from peekbench.report.render.advice import put_into_words
from peekbench.report.render.sentences import warn_of_controls
from peekbench.results.analyze import (
    AnalysisOptions,
    Analyzed,
    find_analysis,
    planned_trials,
    read_run,
    run_analysis,
    with_region,
)
from peekbench.results.columns import TRIAL
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.spec.experiment import ANALYSIS_OF_TEXTS, ExperimentSpec, canonical, make_spec
from peekbench.spec.lockfile import find_lock
from peekbench.store.identity import find_versions
from peekbench.store.maintenance import back_up
from peekbench.store.reader import Store, StoredMethod

if TYPE_CHECKING:
    from peekbench.spec.experiment import ExperimentSpec


MANY_USES = 5  # subsamples that test each text, from which the bias for other texts is estimated too


def extension_of(path: Path) -> Extension:
    """Return how to extend the run of a store."""
    with Store.open(path, verified=False) as store:
        num_missing = len(planned_trials(store)) - len(store.done())
        spec, sessions, seconds = store.spec(), store.sessions(), store.seconds_of_subsample()
        return describe_extension(spec, sessions, store.tasks(), num_missing, seconds)


def report_of_audits(spec: ExperimentSpec, analyses: Sequence[Analysis], session: Mapping[str, Any]) -> Report:
    """Return a report on the audits of a spec's tasks.

    Parameters
    ----------
    spec
        Spec that names the audits and the tasks.
    analyses
        Results of the audits.
    session
        Facts about this process and machine, and under `methods` about the resources of each audit.

    Returns
    -------
    Report
        Tables and figures of the audits.

    Examples
    --------
    >>> from peekbench import load_spec
    >>> from peekbench.execution.provenance import describe_session
    >>> spec = load_spec("specs/audit_small.yaml")
    >>> report_of_audits(spec, analyses=(), session=describe_session(spec.folder)).headline
    '4 audits of the data of 2 tasks'
    """
    tasks = {task.name: describe_data(spec, task) for task in spec.tasks}
    provenance = describe_provenance(spec, [session], [0])
    del provenance["sessions"]
    report = Report(
        name=spec.name,
        headline=f"{pluralize(len(spec.audits), 'audit')} of the data of {pluralize(len(tasks), 'task')}",
        tables=(task_table(tasks),),
        provenance=provenance,
        details={"spec": canonical(spec), "data": tasks, "sessions": [session]},
        formats=spec.report.formats,
        renderer=spec.report.renderer,
    )
    return add_analyses(report, analyses)


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
        spec, stored_methods = _read_spec(store, analyses, given), store.methods()
        tasks, sessions, failures = store.tasks(), store.sessions(), store.failures()
        metrics, texts, sizes, hosts = store.metrics(), store.texts(), store.session_sizes(), store.hosts()
        planned_looks, stopped_at = store.planned_looks(), store.stopped_at()
        versions, identifier = find_versions(spec, sessions, store.sessions_of_trials()), store.identifier()
        seconds, rows = store.seconds_of_subsample(), store.row_name()
        scores = read_run(store, AnalysisOptions(allow_incomplete=allow_incomplete))
    scores.record_look()
    results, planned = scores.table.results, scores.planned
    number = spec.design.look_number(stopped_at)
    command = shlex.join(session_command(sessions[-1])) if sessions else ""
    if analyses:
        command = make_command("report", [path], analyses, allow_incomplete=allow_incomplete)
    if not results.empty:
        scores = scores.with_analyses(_add_analysis_of_texts(spec, tasks))
    num_done = len(results[["task", "method", "num_train", "num_test", "subsample"]].drop_duplicates())
    num_missing = max(0, len(planned) - num_done - len(failures))
    methods = describe_methods(spec, stored_methods)
    method_tables = (method_table(methods), *cost_table(results), *metric_table(metrics, stored_methods))
    recorded_sessions = [
        {**session, "trials": size, "hosts": _hosts_of(number, hosts)}
        for number, (session, size) in enumerate(zip(sessions, sizes, strict=True))
    ]
    headline = f"{_experiment_in_words(spec, stored_methods)}. {num_done:,} of {pluralize(len(planned), 'trial')} done"
    if failures:
        headline += f", {len(failures):,} failed"
    if number is not None:
        headline += f". {_describe_stop(spec, number)}"
    report = Report(
        name=spec.name,
        headline=headline,
        warnings=(
            *warn_of_code_changes(versions),
            *warn_of_other_versions(sessions, sizes),
            *warn_of_run({task.name: spec.design_of(task) for task in spec.tasks}, tasks, texts, results),
            *_warn_of_missing_renderer(spec.report.renderer),
        ),
        tables=(
            *(replace(table, topic="data") for table in (task_table(tasks), *text_tables(texts))),
            *(replace(table, topic="methods") for table in method_tables),
            *look_tables(planned_looks, scores.looks.fractions),
        ),
        failures=tuple(failures),
        provenance={
            "identifier": identifier,
            **describe_provenance(spec, sessions, sizes, hosts),
            **_describe_chosen(analyses),
        },
        details={
            "identifier": identifier,
            "spec": canonical(spec),
            "data": tasks,
            "texts": texts,
            "sessions": recorded_sessions,
        },
        methods=methods,
        subjects=scores.subjects(),
        extension=describe_extension(canonical(spec), sessions, tasks, num_missing, seconds),
        command=command,
        formats=spec.report.formats,
        renderer=spec.report.renderer,
    )
    outcomes = (*scores.analyses, *check_results(results, scores.analyses, is_run=True))
    if on_analysis is not None:
        for analysis in outcomes:
            on_analysis(analysis)
    report = add_analyses(report, outcomes, rows)
    facts: dict[str, Any] = {
        "num_looks": spec.design.num_looks,
        "last_look": number,
        "copy_store": partial(back_up, path),
    }
    if sessions:
        facts["lock"] = find_lock(_list_spec_files(sessions[-1], spec.folder, spec.name))
    return replace(report, read_run=partial(read_content, report, scores, facts))


def _describe_stop(spec: ExperimentSpec, number: int) -> str:
    """Return a sentence on the planned look at which a run stopped."""
    return (
        f"Stopped at look {number} of {spec.design.num_looks}, at {spec.at_look(number).design.largest:,} of at most "
        f"{pluralize(spec.design.largest, 'subsample')}, because all verdicts were settled"
    )


def _add_analysis_of_texts(spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]]) -> tuple[AnalysisSpec, ...]:
    """Return the analyses of a spec, with that of other texts if verdicts are about texts that are used often."""
    names = {analysis.use for analysis in spec.analyses}
    uses = count_uses({task.name: spec.design_of(task) for task in spec.tasks}, tasks)
    if "summary" not in names or ANALYSIS_OF_TEXTS in names or max(uses.values()) <= MANY_USES:
        return spec.analyses
    return (*spec.analyses, make_component(AnalysisSpec, ANALYSIS_OF_TEXTS))


def _read_spec(store: Store, analyses: Sequence[str], given: Collection[Code]) -> ExperimentSpec:
    """Return the spec of a store, with other analyses if some are given."""
    chosen = {"analyses": [make_component(AnalysisSpec, use) for use in analyses]} if analyses else {}
    try:
        raw, origin = {**store.spec(), **chosen}, f"the spec in {store.path}"
        spec = make_spec(raw, folder=store.folder(), origin=origin, stored=True, given=given)
        for analysis in spec.analyses:
            _ = analysis.entry  # raises if only the store names its code
        return spec
    except SpecError as error:  # about an analysis, because only analyses are looked up
        remedy = make_command("report", [store.path], ["PLUGIN.THING"])
        raise SpecError(f"{error}\nTo report the run with other analyses, name them: {remedy}") from error


def _hosts_of(session: int, hosts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the machines of a session."""
    own = [host for host in hosts if host["session"] == session]
    return [{key: value for key, value in host.items() if key != "session"} for host in own]


def _describe_chosen(analyses: Sequence[str]) -> dict[str, str]:
    chosen = f"{', '.join(analyses)}; chosen for this report, instead of those of the spec"
    return {"analyses": chosen} if analyses else {}


def _warn_of_missing_renderer(use: str) -> Iterator[str]:
    if use:
        try:
            registry.find(use, RendererEntry)
        except PluginError as error:
            yield f"Figures are not drawn, because the renderer {use!r} cannot be loaded: {error}"


def methods_in_words(num_judged: int, num_controls: int) -> str:
    """Return the numbers of methods and controls."""
    numbers = ((num_judged, "method"), (num_controls, "control"))
    return " and ".join(pluralize(number, noun) for number, noun in numbers if number)


def _experiment_in_words(spec: ExperimentSpec, methods: Mapping[str, StoredMethod]) -> str:
    """Return the number of methods and tasks, the number of subsamples and the sample sizes."""
    num_controls = sum(method.control != "" for method in methods.values())
    design = spec.design
    repeats = [spec.design_of(task).num_subsamples for task in spec.tasks]
    numbers = sorted({number for number in repeats if isinstance(number, int)})
    if any(isinstance(number, Mapping) for number in repeats):
        subsamples = "with more or fewer subsamples by test size"
    elif len(numbers) == 1:
        subsamples = f"{pluralize(numbers[0], 'subsample')} per task"
    else:
        subsamples = f"{numbers[0]} to {numbers[-1]} subsamples per task"
    by_set = {"training": design.num_train, "test": design.num_test, "unlabeled": (design.num_unlabeled,)}
    sizes = (f"{', '.join(map(str, numbers))} {noun} rows" for noun, numbers in by_set.items() if all(numbers))
    shares = "" if design.train == "balanced" else "; training rows at natural class shares"
    listed = methods_in_words(len(methods) - num_controls, num_controls)
    return f"{listed} on {pluralize(len(spec.tasks), 'task')}, {subsamples}: {', '.join(sizes)}{shares}"


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
        rules=tuple(
            each
            for analysis in analyses
            for table in analysis.tables
            for each in table.statements
            if isinstance(each, RuleWorth) and each.kind != "test"  # its verdicts are those on the bias
        ),
        tables=(*(put_into_words(table) for analysis in analyses for table in analysis.tables), *report.tables),
        attachments={**_attachments(analyses), **report.attachments},
    )


def _describe_rows(analysis: Analysis, rows: RowName, max_subsamples: Mapping[int, int]) -> Analysis:
    """Return an analysis whose verdicts, and those on rules, name the rows of the tasks and advise what they allow."""

    def describe(verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
        return tuple(limit_advice(replace(verdict, rows=rows), max_subsamples) for verdict in verdicts)

    tables = tuple(
        replace(
            table,
            statements=tuple(
                replace(each, verdicts=describe(each.verdicts)) if isinstance(each, RuleWorth) else each
                for each in table.statements
            ),
        )
        for table in analysis.tables
    )
    return replace(analysis, verdicts=describe(analysis.verdicts), tables=tables)


def limit_advice(verdict: Verdict, max_subsamples: Mapping[int, int]) -> Verdict:
    """Return a verdict that advises no more subsamples than the rows of the tasks support, but more tasks.

    Parameters
    ----------
    verdict
        Verdict of a run.
    max_subsamples
        Subsamples per task that the rows support, by test size; empty if they are unknown.

    Examples
    --------
    >>> from peekbench.records.verdicts import Advice, Estimate, Settling, TrialEvidence
    >>> evidence = TrialEvidence(num_tasks=2, num_trials=40, settling=Settling(Advice(70, 0.8), Advice(200, 0.8)))
    >>> verdict = Verdict("lsa", "bias", "inconclusive", Estimate(0.0, -0.1, 0.1), evidence=evidence)
    >>> limited = limit_advice(verdict, {100: 50}).evidence.settling
    >>> limited.advice, limited.maximum, limited.num_tasks
    (None, 30, 4)
    """
    evidence = verdict.evidence
    if not isinstance(evidence, TrialEvidence) or evidence.settling is None or not max_subsamples:
        return verdict
    settling, number = evidence.settling, evidence.num_trials / evidence.num_tasks
    num_test = dict(verdict.parts).get("num_test")
    supported = max_subsamples.get(num_test) if isinstance(num_test, int) else None
    supported = max(round(number), min(max_subsamples.values()) if supported is None else supported)
    room = supported - round(number)
    first, any_bias = (
        advice if advice is not None and advice.subsamples <= room else None
        for advice in (settling.advice, settling.advice_for_any_bias)
    )
    if (first is not None and any_bias is not None) or room >= settling.maximum:
        return verdict
    refused = settling.advice if first is None else settling.advice_for_any_bias
    num_tasks = None if refused is None else ceil(evidence.num_tasks * (number + refused.subsamples) / supported)
    limited = Settling(first, any_bias, room, is_limited_by_rows=True, num_tasks=num_tasks)
    return replace(verdict, evidence=replace(evidence, settling=limited))


def _attachments(analyses: Sequence[Analysis]) -> dict[str, Callable[[Path], None]]:
    """Collect attachments; an analysis that runs with two sets of options attaches the same name twice."""
    attachments: dict[str, Callable[[Path], None]] = {}
    for analysis in analyses:
        for name, write in analysis.attachments.items():
            unique_name, number = name, 1
            while unique_name in attachments:
                number += 1
                unique_name = f"{Path(name).stem}-{number}{Path(name).suffix}"
            attachments[unique_name] = write
    return attachments


def read_content(report: Report, scores: Analyzed, facts: Mapping[str, Any]) -> RunContent:
    """Return what formats can write of a run or a table of scores.

    Parameters
    ----------
    report
        Report of the scores.
    scores
        The scores with the analyses of the report, whose options the estimates share.
    facts
        Fields of `RunContent` that only runs have.

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
    if not analysis.tables:
        raise PeekbenchError(f"{report.name} has no methods but controls, so there is nothing to export; add a method")
    return RunContent(
        report=report,
        results=rows,
        estimates=read_estimates(analysis.tables[0]),
        num_planned=len(scores.planned) or len(rows.drop_duplicates(list(TRIAL))),
        summaries={analysis.use: analysis.entry.summary for analysis in scores.chosen},
        **facts,
    )


def find_estimates_analysis(analyses: Sequence[AnalysisSpec]) -> AnalysisSpec:
    """Return the analysis for estimates, with the options of the first analysis that has the same options."""
    use = find_analysis("estimates")
    model = registry.find(use, AnalyzerEntry).options
    options = (analysis.raw_options() for analysis in analyses if analysis.entry.options is model)
    return make_component(AnalysisSpec, use, next(options, None))


def _list_spec_files(session: Mapping[str, Any], folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that can be the spec of a session: those of its command, and the one with the name of the spec.

    Stores do not name the file of a spec, only its folder.
    """
    named = (Path(argument).name for argument in session.get("command", ()))
    yield from (folder / file for file in (*named, f"{name}.yaml"))
