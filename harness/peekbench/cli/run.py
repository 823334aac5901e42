"""Commands that run an experiment."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from peekbench.api.inputs import check_new_store, load
from peekbench.cli.analyze import FailOnOption, Printer, ReportOptions, apply_gate, parse_gate, report_run
from peekbench.cli.output import (
    FAILED,
    INTERRUPTED,
    ChangedCodeOption,
    FreshOption,
    IncompleteOption,
    KeepGoingOption,
    ReportsOption,
    SpecArgument,
    StoreOption,
    WorkersOption,
    fail,
    make_console,
    note,
    take_records,
    warn,
)
from peekbench.errors import DataError
from peekbench.execution.driver import FIRST_TRIALS
from peekbench.execution.observers import Observers
from peekbench.execution.runner import RunSummary, store_path
from peekbench.execution.runner import run as execute
from peekbench.formatting import pluralize
from peekbench.progress import make_display
from peekbench.records import Report

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
        flags = []
        if self.store:
            flags += ["--store", str(self.store)]
        if self.allow_changed_code:
            flags.append("--allow-changed-code")
        if self.fail_on:
            flags += ["--fail-on", self.fail_on]
        return shlex.join(["peekbench", "run", str(spec), *flags])


@dataclass(frozen=True, slots=True)
class QuickstartOptions:
    """Those options of `peekbench run` that a first run needs."""

    reports: ReportsOption = Path("reports")
    workers: WorkersOption = None
    fresh: FreshOption = False


@take_records
def run(spec: SpecArgument, options: RunOptions, printer: Printer) -> None:
    """Run a spec, or resume its run, and write the report.

    Example: peekbench run specs/quickstart.yaml --workers 2
    """
    _run_and_report(spec, options, printer)


@take_records
def quickstart(
    options: QuickstartOptions,
    printer: Printer,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="TRAIN TEST [EXTRA]", help="With --official: its files.")
    ] = None,
    official: Annotated[
        bool,
        typer.Option(
            "--official",
            help="Write and run official.yaml: is a score on the official test set in the file TEST inflated?",
        ),
    ] = False,
    text: Annotated[str | None, typer.Option(help="With --official: column of the texts.")] = None,
    label: Annotated[str | None, typer.Option(help="With --official: column of the labels.")] = None,
    group: Annotated[str | None, typer.Option(help="With --official: column of groups.")] = None,
) -> None:
    """Write quickstart.yaml, a spec to start from, and run it: one or two minutes, no download.

    Example: peekbench quickstart

    Example: peekbench quickstart --official train.csv test.csv --text question --label topic
    """
    spec, content = Path("quickstart.yaml"), SHIPPED.read_text(encoding="utf-8").partition("\n")[2]
    columns = dict(zip(COLUMN_OPTIONS, (text, label, group), strict=True))
    if official:
        spec, content = Path("official.yaml"), _write_official(files or (), columns)
    elif files or any(columns.values()):
        fail("files and columns need --official, as in: peekbench quickstart --official train.csv test.csv", 2)
    if spec.exists() and not (spec.is_file() and spec.read_text(encoding="utf-8", errors="replace") == content):
        fail(
            f"{spec} exists, edited or from another command. To run it: peekbench run {spec} --fresh. To add tasks, "
            f"methods or subsamples to its run: peekbench run {spec}. To write it again, rename or remove it",
            2,
        )
    spec.write_text(content, encoding="utf-8")
    run_options = RunOptions(reports=options.reports, workers=options.workers, fresh=options.fresh)
    try:
        _run_and_report(spec, run_options, printer)
    except DataError as error:
        if not official:
            raise
        spec.unlink()
        raise DataError(f"{error}. To name columns, add --text COLUMN --label COLUMN") from error


FILE_OPTIONS, COLUMN_OPTIONS = ("path", "test_path", "extra_path"), ("text", "label", "group")
OFFICIAL_SPEC = """\
# Is a score on the official test set inflated, because the method adapted to its unlabeled texts?
name: official
tasks:
  - use: files
    name: official
    options: {files}
methods:  # yours, such as my_file.py:fit; `peekbench show methods` lists others
  - {{name: lsa-50, use: classic.lsa, options: {{num_components: 50}}}}
  - controls.null  # its bias must be zero
design: {{num_train: all, num_test: all, folds: 5, num_subsamples: 20, train: natural}}  # short: official
"""


def _write_official(files: Sequence[Path], columns: Mapping[str, str | None]) -> str:
    """Return a spec of two files of official splits."""
    if not 2 <= len(files) <= 3:
        fail(
            f"--official needs two files with texts and labels, to train on and to score, not {len(files)}: "
            "peekbench quickstart --official train.csv test.csv (a third one can have private extra texts)",
            2,
        )
    options = dict(zip(FILE_OPTIONS, map(str, files), strict=False))
    options |= {name: column for name, column in columns.items() if column is not None}
    return OFFICIAL_SPEC.format(files=json.dumps(options, ensure_ascii=False))


def _run_and_report(spec: Path, options: RunOptions, printer: Printer) -> None:
    gate = parse_gate(options.fail_on)
    printer.start()
    summary, report = _run(spec, options, printer)
    if summary.failed:  # which weakens the verdicts that the gate judges
        fail(describe_failures(summary, options.command(spec)), FAILED)
    apply_gate(gate, report)


def _run(spec: Path, options: RunOptions, printer: Printer) -> tuple[RunSummary, Report]:
    experiment = load(spec, options.workers)
    if options.store is not None:
        check_new_store(options.store)
    path = options.store or store_path(experiment)
    try:
        # A live display would hide the prompt of a debugger in a method.
        is_live = not getattr(experiment.executor.options, "in_process", False)
        display = None if printer.quiet else make_display(make_console(err=True), is_live=is_live)
        with Observers(display, experiment.observers, warn) as observers:
            with display or nullcontext():
                summary = execute(
                    experiment,
                    store=path,
                    observers=observers,
                    keep_going=options.keep_going,
                    allow_changed_code=options.allow_changed_code,
                    fresh=options.fresh,
                )
            if summary.is_settled and not summary.finished + summary.failed:
                again = f"{options.command(spec)} --fresh"
                note(f"nothing to do: all verdicts are settled; for more subsamples, set `stop: none` and run: {again}")
            elif not summary.finished + summary.failed:
                note(f"nothing to do: all {summary.planned:,} trials are in {summary.store}")
            choices = ReportOptions(options.allow_incomplete)
            report = report_run(path, options.reports, printer, choices, experiment.code, observers.analysis_finished)
            observers.report_written(options.reports / report.name)
    except KeyboardInterrupt:
        fail(f"interrupted; finished trials are in {path}. To resume the run: {options.command(spec)}", INTERRUPTED)
    return summary, report


def describe_failures(summary: RunSummary, command: str) -> str:
    """Describe the failed trials and how to retry them."""
    lines = [f"{pluralize(summary.failed, 'trial')} failed; {summary.store} has all tracebacks"]
    for method, num_trials in summary.stopped.items():
        trials = pluralize(num_trials, "trial was", "trials were")
        first = f"its first {FIRST_TRIALS} trials failed"
        lines.append(f"  {method}: {first}; its other {trials} not tried")
    retry = f"To retry them: {command}"
    if summary.stopped:
        retry += " (--keep-going tries all trials)"
    return "\n".join([*lines, retry])
