"""Commands that check a spec, run an experiment, and fix the versions of its data and models."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peekbench.cli.app import (
    ChangedCodeOption,
    FreshOption,
    IncompleteOption,
    KeepGoingOption,
    ReportsOption,
    SpecArgument,
    StoreOption,
    WorkersOption,
    app,
    fail,
    load,
    take_records,
)
from peekbench.cli.output import FAILED, INTERRUPTED, echo, make_console, note, warn
from peekbench.cli.reports import FailOnOption, Gate, Printer, ReportChoices, apply_gates, parse_gates, report_run
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize

if TYPE_CHECKING:
    from peekbench.execution.observers import Observers
    from peekbench.execution.runner import RunSummary
    from peekbench.records import Report
    from peekbench.spec.experiment import ExperimentSpec

SHIPPED = Path(__file__).with_name("quickstart.yaml")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `peekbench run`."""

    store: StoreOption = None
    reports: ReportsOption = Path("reports")
    workers: WorkersOption = None
    allow_incomplete: IncompleteOption = False
    keep_going: KeepGoingOption = False
    allow_changed_code: ChangedCodeOption = False
    fresh: FreshOption = False
    fail_on: FailOnOption = None

    def command(self, spec: Path) -> str:
        """Return the command that resumes the run of a spec."""
        flags = ["--store", str(self.store)] if self.store else []
        flags += ["--allow-changed-code"] if self.allow_changed_code else []
        for gate in parse_gates(self.fail_on):
            flags += ["--fail-on", gate.value]
        return shlex.join(["peekbench", "run", str(spec), *flags])


@app.command()
@take_records
def run(spec: SpecArgument, options: RunOptions, printer: Printer) -> None:
    """Run a spec, or resume its run, and write the report.

    Example: peekbench run specs/quickstart.yaml --workers 2
    """
    _run_and_report(spec, options, printer)


@app.command()
@take_records
def quickstart(options: RunOptions, printer: Printer) -> None:
    """Write quickstart.yaml, a spec to start from, and run it: one or two minutes, no download.

    Example: peekbench quickstart
    """
    spec, text = Path("quickstart.yaml"), SHIPPED.read_text(encoding="utf-8").partition("\n")[2]
    if not spec.exists():
        spec.write_text(text, encoding="utf-8")
    elif not spec.is_file() or spec.read_bytes() != text.encode():
        fail(f"{spec} has been edited. To run it: peekbench run {spec}. To start again, rename or remove it", 2)
    _run_and_report(spec, options, printer)


def _run_and_report(spec: Path, options: RunOptions, printer: Printer) -> None:
    gates = parse_gates(options.fail_on)
    printer.start()
    summary, report = _run(spec, options, printer, gates)
    if problem := _describe_failures(summary, options.command(spec)):  # they weaken the verdicts that the gate judges
        fail(problem, FAILED)
    apply_gates(gates, report)


def _run(spec: Path, options: RunOptions, printer: Printer, gates: Sequence[Gate]) -> tuple[RunSummary, Report]:
    from peekbench.cli.inputs import check_new_store  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.observers import Observers  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.runner import store_path  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.arms import BLOCK_RULES  # noqa: PLC0415 - for a fast --help

    experiment = load(spec, options.workers)
    num_controls = sum(bool(method.entry.control) for method in experiment.methods)
    for gate in gates:  # one that could never fail is refused before the run
        gate.check(
            experiment.name,
            num_methods=len(experiment.methods) - num_controls,
            num_controls=num_controls,
            rules=[arm.name for arm in experiment.arms if arm.is_rule and not BLOCK_RULES[arm.kind].sees_as_many_texts],
        )
    if options.store is not None:
        check_new_store(options.store)
    path = options.store or store_path(experiment)
    try:
        with Observers(experiment, path, warn) as observers:
            summary = _execute(experiment, path, options, printer, observers)
            _describe_summary(summary)
            allow_incomplete = options.allow_incomplete or experiment.report.allow_incomplete or summary.failed > 0
            choices = ReportChoices(allow_incomplete, code=experiment.code)
            report = report_run(path, options.reports, printer, choices, observers.analysis_finished)
            observers.report_written(options.reports / report.name)
    except KeyboardInterrupt:
        fail(f"interrupted; finished trials are in {path}. To resume the run: {options.command(spec)}", INTERRUPTED)
    return summary, report


def _execute(
    experiment: ExperimentSpec, path: Path, options: RunOptions, printer: Printer, observers: Observers
) -> RunSummary:
    from peekbench.execution.observers import Progress  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.runner import run as execute  # noqa: PLC0415 - for a fast --help
    from peekbench.progress.displays import make_progress  # noqa: PLC0415 - for a fast --help

    # A live display would hide the prompt of a debugger in a method.
    is_live = not getattr(experiment.executor.options, "in_process", False)
    shown = nullcontext(Progress()) if printer.quiet else make_progress(make_console(err=True), is_live=is_live)
    with (
        shown as progress,
        redirect_stdout(sys.stderr) if printer.json else nullcontext(),  # methods in this process may print
    ):
        return execute(
            experiment,
            store=path,
            progress=observers.watch(progress),
            keep_going=options.keep_going,
            allow_changed_code=options.allow_changed_code,
            fresh=options.fresh,
        )


def _describe_summary(summary: RunSummary) -> None:
    if not summary.finished and not summary.failed:
        kept = (
            "the trials up to the look at which it stopped" if summary.is_settled else f"all {summary.planned:,} trials"
        )
        note(f"nothing to do: {kept} are in {summary.store}")
    for plugin in summary.changed_code:
        warn(
            f"the code of the plugin {plugin} differs from the code that made trials in {summary.store}, which are not "
            "computed again. To measure the present code alone, give the run another name in the spec, or delete them "
            "with --fresh"
        )


def _describe_failures(summary: RunSummary, command: str) -> str:
    """Return what failed and how to retry it; empty if nothing failed."""
    if not summary.failed:
        return ""
    lines = [
        f"{pluralize(summary.failed, 'trial')} failed. The report lists them, and {summary.store} has all tracebacks",
        *describe_stopped(summary.stopped),
    ]
    lines.append(f"To retry them: {command}" + (" (--keep-going tries all trials)" if summary.stopped else ""))
    return "\n".join(lines)


def describe_stopped(stopped: Mapping[str, int]) -> Iterator[str]:
    """Yield a line on each method whose first trials all failed, given the number of its trials that were not tried."""
    from peekbench.execution.driver import FIRST_TRIALS  # noqa: PLC0415 - for a fast --help

    for method, num_trials in stopped.items():
        trials = pluralize(num_trials, "trial was", "trials were")
        yield f"  {method}: its first {FIRST_TRIALS} trials failed in the same way; its other {trials} not tried"


@app.command()
def validate(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML specs.")],
    data: Annotated[bool, typer.Option(help="Load the tasks' data and check the number of rows.")] = True,
    download: Annotated[
        bool, typer.Option("--download", help="Download all data and models, so that runs need no network.")
    ] = False,
    texts: Annotated[
        bool,
        typer.Option(
            "--texts",
            help="Describe the texts as the design draws them: lengths, tokens, duplicates between train, extra and "
            "test.",
        ),
    ] = False,
    lock: Annotated[
        bool,
        typer.Option(
            "--lock",
            help="Write the revisions of data and models to a lock file beside the spec, for equal results elsewhere.",
        ),
    ] = False,
    newest: Annotated[
        bool, typer.Option("--newest", help="With --lock: the newest versions, instead of those in use here.")
    ] = False,
) -> None:
    """Check specs: options, libraries, models on this machine, and whether the data suffice for the design.

    Example: peekbench validate specs/*.yaml
    """
    if newest and not lock:
        fail("--newest chooses the versions that --lock writes; add --lock", 2)
    num_invalid = 0
    for path in specs:
        try:
            if lock:
                _lock(path, newest=newest)
            for warning in _validate(path, with_data=data, download=download):
                warn(f"{path}: {warning}")
            if texts:
                _describe_texts(load(path))
        except PeekbenchError as error:
            place = "" if str(path) in str(error) else f"{path}: "
            echo(f"peekbench: {place}{error}", err=True)
            num_invalid += 1
    if num_invalid:
        raise typer.Exit(2)


def _validate(path: Path, *, with_data: bool, download: bool) -> list[str]:
    """Check one spec, print a summary of it with a line on each task with official splits, and return warnings."""
    from peekbench.data.data_warnings import expected_overlaps, warn_of_data  # noqa: PLC0415 - for a fast --help
    from peekbench.data.preflight import describe_splits, describe_tasks  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.planning import measure  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.preparation import check_files, prefetch  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.analysis_only import is_analysis_only, load_analysis_only  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.experiment import DEFAULT_ANALYSES  # noqa: PLC0415 - for a fast --help

    if path.is_file() and is_analysis_only(path):  # a pipe can be read only once
        names = [analysis.use for analysis in load_analysis_only(path).analyses]
        analyses = pluralize(len(names), "analysis", "analyses")
        echo(f"{path}: OK: {analyses} of existing scores: {', '.join(names)}")
        return []
    experiment = load(path)
    if download:
        for line in prefetch(experiment):
            echo(line)
    check_files(experiment)
    splits, warnings = [], []
    if with_data:
        facts = describe_tasks(experiment)
        if any(each.use not in DEFAULT_ANALYSES or each.options.model_fields_set for each in experiment.analyses):
            from peekbench.results.rehearsal import check_analyses  # noqa: PLC0415 - others validate without pandas

            check_analyses(experiment, facts)
        splits = [f"  {line}" for line in describe_splits(experiment)]
        warnings = list(warn_of_data(experiment, facts, expected_overlaps(experiment)))
    size = measure(experiment, dict.fromkeys((task.name for task in experiment.tasks), 1))
    work = f"{pluralize(size.trials, 'trial')}, {pluralize(size.fits, 'fit')}"
    tasks, methods = pluralize(len(experiment.tasks), "task"), pluralize(len(experiment.methods), "method")
    for line in [f"{path}: OK: {tasks}, {methods}, {work}", *splits]:
        echo(line)
    return warnings


def _describe_texts(experiment: ExperimentSpec) -> None:
    from peekbench.data.text_statistics import describe_texts  # noqa: PLC0415 - for a fast --help
    from peekbench.report import render_tables, text_tables  # noqa: PLC0415 - for a fast --help

    tables = text_tables({task.name: describe_texts(experiment, task) for task in experiment.tasks})
    render_tables(tables, make_console())


def _lock(path: Path, *, newest: bool) -> None:
    """Write the lock file of a spec."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - for a fast --help

    from peekbench.cli.inputs import find_spec  # noqa: PLC0415 - for a fast --help
    from peekbench.records.data import Folders  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.experiment import load_spec  # noqa: PLC0415 - for a fast --help
    from peekbench.spec.lockfile import lock_path, make_lock, write_lock  # noqa: PLC0415 - for a fast --help

    experiment = load_spec(find_spec(path), locked=False)
    with TemporaryDirectory() as empty:
        folders = Folders(spec=experiment.folder, cache=Path(empty)) if newest else experiment.folders()
        content = make_lock(experiment.pinnable(), folders)
    if not content:
        echo(f"{path}: nothing to lock: no task, method or audit loads a revision from the Hub")
        return
    write_lock(content, lock_path(path))
    for group in content.values():
        for name, entry in group.items():
            echo(f"{name}: " + ", ".join(f"{option} {value}" for option, value in entry["pinned"].items()))
    echo(f"written: {lock_path(path)}")
