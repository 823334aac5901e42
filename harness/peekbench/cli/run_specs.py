"""Runs specs one after the other: each run with its report, and at the end a summary and the status of the worst."""

from __future__ import annotations

import shlex
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from peekbench.cli.app import fail, load
from peekbench.cli.gate import Gate
from peekbench.cli.output import ERROR, FAILED, GATED, INTERRUPTED, SUCCESS, echo, make_console, note, warn
from peekbench.cli.plugin_option import plugin_arguments
from peekbench.cli.reports import Printer, report_run
from peekbench.errors import PeekbenchError
from peekbench.formatting import pluralize, shorten

if TYPE_CHECKING:
    from peekbench.execution.observers import Observers
    from peekbench.execution.runner import RunSummary
    from peekbench.records import Report
    from peekbench.spec.experiment import ExperimentSpec

CRASHED = 1
"""Exit status of Python after an exception that is no error of the user."""
SEVERITY = (SUCCESS, GATED, FAILED, ERROR, CRASHED)
"""Exit statuses of single specs, the worst last."""
MAX_ERROR = 300  # characters of an error in the summary


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of `peekbench run`."""

    reports: Path
    store: Path | None = None
    workers: int | None = None
    allow_incomplete: bool = False
    keep_going: bool = False
    allow_changed_code: bool = False
    printer: Printer = Printer()  # noqa: RUF009 - frozen
    gate: Gate | None = None

    def command(self, spec: Path) -> str:
        """Return the command that resumes the run of a spec."""
        flags = [*(["--store", str(self.store)] if self.store else [])]
        flags += ["--allow-changed-code"] if self.allow_changed_code else []
        flags += ["--fail-on", self.gate.argument()] if self.gate else []
        flags += plugin_arguments()
        return shlex.join(["peekbench", "run", str(spec), *flags])


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Outcome of one of several specs."""

    spec: Path
    status: int
    words: str


def run_specs(specs: Sequence[Path], options: RunOptions) -> None:
    """Run specs and write their reports.

    An error of one of several specs does not stop the others; an interruption does.

    Raises
    ------
    PeekbenchError
        If the only spec has an error, or if several specs cannot be combined with the options.
    typer.Exit
        With the worst status, if it is not `SUCCESS`.
    """
    if len(specs) == 1:
        summary, report, _ = _run(specs[0], options)
        status, problem = _judge(summary, report, options, specs[0])
        if status != SUCCESS:
            fail(problem, status)
        return
    for option, is_given in (("--store", options.store is not None), ("--json", options.printer.form == "json")):
        if is_given:
            raise PeekbenchError(f"{option} is for one spec, and there are {len(specs)}; give one spec")
    outcomes = []
    for number, spec in enumerate(specs, start=1):
        note(f"[{number}/{len(specs)}] {spec}")
        outcomes.append(_try(spec, options))
        note("")
    if not options.printer.is_quiet:
        _print_outcomes(outcomes)
    worst = max((outcome.status for outcome in outcomes), key=SEVERITY.index)
    if worst != SUCCESS:
        raise typer.Exit(worst)


def _try(spec: Path, options: RunOptions) -> _Outcome:
    """Run one of several specs; print its error, if it has one."""
    try:
        summary, report, written = _run(spec, options)
        status, problem = _judge(summary, report, options, spec)
    except PeekbenchError as error:
        echo(f"peekbench: {error}", err=True)
        return _Outcome(spec, ERROR, " ".join(shorten(str(error), MAX_ERROR).split()))
    except Exception as error:
        echo(traceback.format_exc().rstrip(), err=True)
        return _Outcome(spec, CRASHED, " ".join(shorten(f"{type(error).__name__}: {error}", MAX_ERROR).split()))
    words = "; ".join(filter(None, (_count_verdicts(report), *(str(path) for path in written[:1]))))
    if status != SUCCESS:
        echo(f"peekbench: {problem}", err=True)
    if status == FAILED:
        words = f"{pluralize(summary.failed, 'trial')} failed; {words}"
    return _Outcome(spec, status, words)


def _judge(summary: RunSummary, report: Report, options: RunOptions, spec: Path) -> tuple[int, str]:
    """Return the exit status of a run, and what the user is told about it.

    Failed trials come before the gate, because they weaken the verdicts that it judges.
    """
    if problem := _describe_failures(summary, options.command(spec)):
        return FAILED, problem
    problem = options.gate.describe(report) if options.gate else ""
    return GATED if problem else SUCCESS, problem


def _print_outcomes(outcomes: Sequence[_Outcome]) -> None:
    labels = {SUCCESS: "done", GATED: "verdict", FAILED: "failed trials", ERROR: "error", CRASHED: "crashed"}
    width = max(len(labels[outcome.status]) for outcome in outcomes)
    num_done = sum(outcome.status == SUCCESS for outcome in outcomes)
    echo(f"{num_done} of {pluralize(len(outcomes), 'spec')} done")
    for outcome in outcomes:
        echo(f"  {labels[outcome.status].ljust(width)}  {outcome.spec}: {outcome.words}")


def _count_verdicts(report: Report) -> str:
    decisions = [verdict.decision for verdict in report.verdicts if not verdict.control]
    counts = [f"{decisions.count(decision)} {decision}" for decision in dict.fromkeys(decisions)]
    controls = [verdict for verdict in report.verdicts if verdict.control and verdict.decision != "passed"]
    counts += [f"control {verdict.method} {verdict.decision}" for verdict in controls]
    return ", ".join(counts)


def _run(spec: Path, options: RunOptions) -> tuple[RunSummary, Report, list[Path]]:
    """Run one spec and report it."""
    from peekbench.cli.inputs import check_new_store  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.observers import Observers  # noqa: PLC0415 - for a fast --help
    from peekbench.execution.runner import store_path  # noqa: PLC0415 - for a fast --help

    experiment = load(spec, options.workers)
    if options.store is not None:
        check_new_store(options.store)
    path = options.store or store_path(experiment)
    try:
        with Observers(experiment, path, warn) as observers:
            summary = _execute(experiment, path, options, observers)
            _describe_summary(summary)
            allow_incomplete = options.allow_incomplete or experiment.report.allow_incomplete or summary.failed > 0
            report, written = report_run(
                path,
                options.reports,
                options.printer,
                allow_incomplete=allow_incomplete,
                on_analysis=observers.analysis_finished,
            )
            observers.report_written(options.reports / report.name)
    except KeyboardInterrupt:
        fail(f"interrupted; finished trials are in {path}. To resume the run: {options.command(spec)}", INTERRUPTED)
    return summary, report, written


def _execute(experiment: ExperimentSpec, path: Path, options: RunOptions, observers: Observers) -> RunSummary:
    from peekbench.execution.progress import NullProgress  # noqa: PLC0415 - for a fast --help
    from peekbench.progress.displays import make_progress  # noqa: PLC0415 - for a fast --help
    from peekbench.results.sequential import run as execute  # noqa: PLC0415 - for a fast --help

    is_quiet, is_json = options.printer.is_quiet, options.printer.form == "json"
    # A live display would hide the prompt of a debugger in a method.
    is_live = not getattr(experiment.executor.options, "in_process", False)
    with (
        nullcontext(NullProgress()) if is_quiet else make_progress(make_console(err=True), is_live=is_live) as progress,
        redirect_stdout(sys.stderr) if is_json else nullcontext(),  # methods in this process may print
    ):
        return execute(
            experiment,
            store=path,
            progress=observers.watch(progress),
            keep_going=options.keep_going,
            allow_changed_code=options.allow_changed_code,
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
            "computed again. To measure the present code alone, give the run another name in the spec, or move the "
            "store"
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
    """Yield a line on each method whose first trials all failed.

    Parameters
    ----------
    stopped
        Number of trials that were not tried, by method.
    """
    from peekbench.execution.work_queue import FIRST_TRIALS  # noqa: PLC0415 - for a fast --help

    for method, num_trials in stopped.items():
        trials = pluralize(num_trials, "trial was", "trials were")
        yield f"  {method}: its first {FIRST_TRIALS} trials failed in the same way; its other {trials} not tried"
