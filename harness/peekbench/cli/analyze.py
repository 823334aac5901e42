"""Commands that analyze scores and data, and report the results."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer

from peekbench.cli.app import (
    IncompleteOption,
    ReportsOption,
    RunArgument,
    SpecArgument,
    app,
    complete_runs,
    fail,
    load,
    run_path,
    scores_path,
)
from peekbench.cli.gate import FailOnOption, Gate, apply_gate
from peekbench.cli.reports import FullOption, JsonOption, Printer, QuietOption, report_run, show_report
from peekbench.cli.table_options import (
    IgnoreOption,
    LowerOption,
    MapOption,
    PairOption,
    PercentOption,
    RegionOption,
    read_table_options,
)


@app.command()
def analyze(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            autocompletion=complete_runs,
            help="Name, spec or store of a run; RO-Crate of a run; table of scores; - for standard input; or folder of "
            "tables mM/nN/MODEL/TASK/.",
        ),
    ],
    analyses: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--analysis",
            metavar="PLUGIN.THING",
            help="Analysis to do; repeatable. Default: as in a spec that names none.",
        ),
    ] = None,
    spec: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--spec", metavar="SPEC", help="YAML spec with a selection of scores and the analyses to do."),
    ] = None,
    columns: MapOption = None,
    ignore: IgnoreOption = None,
    pair_by_order: PairOption = False,
    percent: PercentOption = False,
    lower_is_better: LowerOption = False,
    region: RegionOption = None,
    reports: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--reports", metavar="FOLDER", help="Write the report's files into FOLDER/NAME."),
    ] = None,
    allow_incomplete: IncompleteOption = False,
    fail_on: FailOnOption = None,
    full: FullOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Analyze the scores of a run or of any other tool.

    Example: peekbench analyze accuracies.csv
    """
    from peekbench.cli.inputs import find_analysis_spec  # noqa: PLC0415 - for a fast --help
    from peekbench.report import report_of_table  # noqa: PLC0415 - for a fast --help
    from peekbench.results.analyze import analyze as run_analyses  # noqa: PLC0415 - for a fast --help
    from peekbench.results.analyze import (  # noqa: PLC0415 - for a fast --help
        choose_analyses,
        drop_incomplete,
        needed_arms,
        only_complete,
        planned_trials,
    )
    from peekbench.results.looks import look_at  # noqa: PLC0415 - for a fast --help
    from peekbench.results.read import load_table  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.analysis_only import load_analysis_only  # noqa: PLC0415 - for a fast --help
    from peekbench.store.files import crate_store, is_store  # noqa: PLC0415 - for a fast --help

    gate = Gate.parse(fail_on)
    printer = Printer.choose(full=full, quiet=quiet, as_json=as_json)
    if spec is None and not analyses and crate_store(path) is not None:  # as `peekbench report` does
        report, _ = report_run(run_path(str(path)), reports, printer, allow_incomplete=allow_incomplete)
        apply_gate(gate, report)
        return
    analysis_spec = None if spec is None else load_analysis_only(find_analysis_spec(spec))
    if analysis_spec is not None and analyses:
        fail("--spec and --analysis exclude each other; give one of them", 2)
    is_input = str(path) == "-"
    path = path if is_input else scores_path(path)
    options = read_table_options(
        columns,
        ignore,
        pair_by_order=pair_by_order,
        percent=percent,
        lower_is_better=lower_is_better,
        region=region,
    )
    arguments = [str(path), *(part for name in analyses or () for part in ("--analysis", name)), *options.arguments()]
    arguments += ["--spec", str(spec)] if spec is not None else []
    command = shlex.join(["peekbench", "analyze", *arguments, *(["--allow-incomplete"] if allow_incomplete else [])])
    if analysis_spec is not None:
        options = options.combine(analysis_spec.table)
    wanted = analyses if analysis_spec is None else analysis_spec.analyses
    options = replace(options, arms=needed_arms(choose_analyses(wanted)))
    table = load_table(path, options)
    results, planned, name = table.results, planned_trials(path), "stdin" if is_input else ""
    if analysis_spec is not None:
        results, planned = analysis_spec.only.select_rows(results), analysis_spec.only.select_trials(planned)
        name = analysis_spec.name
        allow_incomplete = allow_incomplete or analysis_spec.report.allow_incomplete
    looks = None
    if not is_input and is_store(path):
        only_complete(results, planned, allow_incomplete=allow_incomplete)  # results that are refused are not looked at
        looks = look_at(path, drop_incomplete(table.results))
    selected = replace(table, results=results)
    effects = run_analyses(selected, wanted, allow_incomplete=allow_incomplete, planned=planned, looks=looks)
    source = Path("standard input") if is_input else path
    analyzed = drop_incomplete(results) if planned or options.needs_pairs else results
    report = report_of_table(source, analyzed, effects, name=name, columns=table.columns)
    report = replace(report, command=command, provenance={**report.provenance, "command": command})
    if analysis_spec is not None:
        settings = analysis_spec.report
        report = replace(report, formats=settings.formats, renderer=settings.renderer)
    show_report(report, reports, printer)
    apply_gate(gate, report)


@app.command()
def audit(
    spec: SpecArgument,
    reports: ReportsOption = Path("reports"),
    full: FullOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Audit the tasks' data with the audits of SPEC, without a run.

    Example: peekbench audit specs/audit_small.yaml
    """
    from peekbench.execution.audits import audit as run_audits  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.audits import prepare  # noqa: PLC0415 - for a fast --help
    from peekbench.report import report_of_audits  # noqa: PLC0415 - for a fast --help

    printer = Printer.choose(full=full, quiet=quiet, as_json=as_json)
    experiment = load(spec)
    prepared = prepare(experiment)
    report = report_of_audits(experiment, run_audits(experiment), prepared)
    printer.write_and_print(report, reports / report.name / "audits")


@app.command()
def report(
    run_: RunArgument,
    reports: ReportsOption = Path("reports"),
    allow_incomplete: IncompleteOption = False,
    analyses: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--analysis", metavar="PLUGIN.THING", help="Analysis to do instead of those of the spec; repeatable."
        ),
    ] = None,
    formats: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format to write instead of those of the spec, such as html, or PLUGIN.THING of `peekbench list "
            "formats`; repeatable.",
        ),
    ] = None,
    author: Annotated[str, typer.Option(help="Person or organization that publishes the results.")] = "",
    license_: Annotated[
        str, typer.Option("--license", metavar="URL", help="License of the results: a URL or an SPDX identifier.")
    ] = "",
    pictures: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FOLDER", help="Draw the top of the report and all figures as SVG into this folder."),
    ] = None,
    full: FullOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write the report of a run again, from its store.

    Example: peekbench report quickstart
    """
    printer = Printer.choose(full=full, quiet=quiet, as_json=as_json)
    path = run_path(run_)
    report_run(
        path,
        reports,
        printer,
        allow_incomplete=allow_incomplete,
        analyses=analyses or (),
        formats=formats or (),
        publication=(author, license_),
        pictures=pictures,
    )


ScoresArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", autocompletion=complete_runs, help="Name, spec or store of a run, or a table of scores."
    ),
]
FilesOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--reports", metavar="FOLDER", help="Write the report's files into FOLDER/NAME."),
]
AnalysisOption = Annotated[
    str,
    typer.Option("--analysis", metavar="PLUGIN.THING", help="Analysis to use. Default: the only one for this command."),
]


@app.command()
def compare(
    before: ScoresArgument,
    after: ScoresArgument,
    columns: MapOption = None,
    ignore: IgnoreOption = None,
    pair_by_order: PairOption = False,
    percent: PercentOption = False,
    lower_is_better: LowerOption = False,
    region: RegionOption = None,
    reports: FilesOption = None,
    allow_incomplete: IncompleteOption = False,
    analysis: AnalysisOption = "",
    full: FullOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare two runs: settings, data, versions, boost and bias, verdicts.

    Example: peekbench compare runs/before.sqlite runs/after.sqlite
    """
    from peekbench.report import report_of_comparison  # noqa: PLC0415 - for a fast --help

    printer = Printer.choose(full=full, quiet=quiet, as_json=as_json)
    paths = scores_path(before), scores_path(after)
    table = read_table_options(
        columns,
        ignore,
        pair_by_order=pair_by_order,
        percent=percent,
        lower_is_better=lower_is_better,
        region=region,
    )
    report = report_of_comparison(*paths, allow_incomplete=allow_incomplete, analysis=analysis, table=table)
    show_report(report, reports, printer)


@app.command()
def leaderboard(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...", autocompletion=complete_runs, help="Names, specs or stores of runs, or tables of scores."
        ),
    ],
    columns: MapOption = None,
    ignore: IgnoreOption = None,
    pair_by_order: PairOption = False,
    percent: PercentOption = False,
    lower_is_better: LowerOption = False,
    region: RegionOption = None,
    reports: FilesOption = None,
    allow_incomplete: IncompleteOption = False,
    analysis: AnalysisOption = "",
    full: FullOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Rank the methods of one or several runs by their uncontaminated score, that of the arm extra.

    Example: peekbench leaderboard quickstart
    """
    from peekbench.report import report_of_ranking  # noqa: PLC0415 - for a fast --help

    printer = Printer.choose(full=full, quiet=quiet, as_json=as_json)
    paths = [scores_path(run) for run in runs]
    table = read_table_options(
        columns,
        ignore,
        pair_by_order=pair_by_order,
        percent=percent,
        lower_is_better=lower_is_better,
        region=region,
    )
    report = report_of_ranking(paths, allow_incomplete=allow_incomplete, analysis=analysis, table=table)
    show_report(report, reports, printer)
