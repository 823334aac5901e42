"""The command line; the only place that prints or exits.

Exit statuses: 0 all is well, 2 the user can mend it, 3 trials failed, 130 interrupted. Commands import what they need
when they run, so that `peekbench --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, Optional

import typer

from peekbench.errors import PeekbenchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from peekbench.pilot import Timing
    from peekbench.spec import ExperimentSpec

FAILED, INTERRUPTED = 3, 130

app = typer.Typer(
    name="peekbench",
    help="Does a method score higher because the unlabeled text it adapts to was the test set's?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="YAML file of the experiment.")]
StoreOption = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads it at run time
    typer.Option("--store", metavar="FILE", help="The run's store; by default runs/NAME.sqlite."),
]
ReportsOption = Annotated[Path, typer.Option("--reports", metavar="FOLDER", help="Where reports are written.")]
WorkersOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option("--workers", min=1, help="Overrules the executor's `workers`; the numbers stay the same."),
]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Analyse a design with holes; the report says so.")
]


def _console() -> Console:
    from rich.console import Console

    return Console()


@app.command()
def run(
    spec: SpecArgument,
    store: StoreOption = None,
    reports: ReportsOption = Path("reports"),
    workers: WorkersOption = None,
    allow_incomplete: IncompleteOption = False,
) -> None:
    """Run a spec, or what of it is not done yet, and report.

    Example: peekbench run specs/quickstart.yaml --workers 2
    """
    from peekbench.execute import run as execute
    from peekbench.execute import store_path
    from peekbench.progress import make_progress

    console = _console()
    experiment = _load(spec, workers)
    path = store or store_path(experiment)
    try:
        with make_progress(console) as progress:
            summary = execute(experiment, store=path, progress=progress)
    except KeyboardInterrupt:
        again = f"peekbench run {spec}" + (f" --store {store}" if store else "")
        _fail(f"interrupted; what is done is in {path}. To go on: {again}", INTERRUPTED)
    if not summary.finished and not summary.failed:
        console.print(f"nothing to do: all {summary.planned:,} trials are in {path}", highlight=False, markup=False)
    _report(path, reports, console, allow_incomplete or experiment.report.allow_incomplete or summary.failed > 0)
    if summary.failed:
        _fail(
            f"{summary.failed:,} trials failed; the report names them, {path} has every traceback. "
            "Run the spec again to try them once more",
            FAILED,
        )


@app.command()
def plan(
    spec: SpecArgument,
    pilot: Annotated[bool, typer.Option(help="Time one trial of each method at each design point.")] = True,
    power: Annotated[bool, typer.Option("--power", help="Also forecast how small a bias the design detects.")] = False,
    workers: WorkersOption = None,
) -> None:
    """Say how much work a spec is, before doing it: trials, fits, time, disk; with --power also what it can show.

    Example: peekbench plan specs/quickstart.yaml --power
    """
    from peekbench.plan import measure
    from peekbench.tasks import describe_tasks

    experiment = _load(spec, workers)
    tasks = describe_tasks(experiment)
    num_classes = {name: len(task["class_names"]) for name, task in tasks.items()}
    size = measure(experiment, {name: max(1, number) for name, number in num_classes.items()})
    typer.echo(f"{experiment.name}: {size.trials:,} trials, {size.fits:,} fits, {size.bytes / 1e6:,.0f} MB of disk")
    timing = _time_pilot(experiment) if pilot else None
    if power:
        _forecast(experiment, num_classes, timing)
    if timing is not None and timing.failures:
        raise typer.Exit(FAILED)


def _forecast(experiment: ExperimentSpec, num_classes: Mapping[str, int], timing: Timing | None) -> None:
    from peekbench.analysis import forecast
    from peekbench.plan import planned_design
    from peekbench.report import render_tables

    design = planned_design(experiment, num_classes, {} if timing is None else timing.seconds)
    console = _console()
    for analysis in forecast(design, experiment.analyses):
        for warning in analysis.warnings:
            typer.echo(f"caution: {warning}", err=True)
        render_tables(analysis.tables, console)


def _time_pilot(experiment: ExperimentSpec) -> Timing:
    from peekbench.pilot import time_pilot
    from peekbench.progress import duration

    timing = time_pilot(experiment)
    for failure in timing.failures:
        typer.echo(f"a pilot trial failed: {failure.trial}: {failure.error}", err=True)
    for (method, num_train, num_test), seconds in timing.seconds.items():
        typer.echo(f"  {method}, num_train {num_train}, num_test {num_test}: {seconds:.3f} s a trial")
    workers = int(getattr(experiment.executor.options, "workers", 1))
    typer.echo(
        f"time: about {duration(timing.total / workers)} with {workers} worker{'s' * (workers > 1)}, "
        "from one timed trial of each method at each design point"
    )
    return timing


@app.command()
def validate(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML files.")],
    data: Annotated[bool, typer.Option(help="Load the tasks' data and check that there are enough rows.")] = True,
) -> None:
    """Check specs: settings, plugins, options, and that the data suffice for the design.

    Example: peekbench validate specs/*.yaml
    """
    from peekbench.reanalysis import is_reanalysis, load_reanalysis
    from peekbench.tasks import check_tasks

    bad = 0
    for path in specs:
        try:
            if is_reanalysis(path):
                named = [analysis.use for analysis in load_reanalysis(path).analyses]
                typer.echo(f"{path}: good, {len(named)} analyses of scores that are there already: {', '.join(named)}")
                continue
            experiment = _load(path)
            if data:
                check_tasks(experiment)
        except PeekbenchError as error:
            place = "" if str(path) in str(error) else f"{path}: "
            typer.echo(f"peekbench: {place}{error}", err=True)
            bad += 1
            continue
        designs = [experiment.design_of(task) for task in experiment.tasks]
        draws = sum(design.repeats(num_test) for design in designs for _, num_test in design.points())
        trials = draws * len(experiment.methods)
        typer.echo(f"{path}: good, {len(experiment.tasks)} tasks, {len(experiment.methods)} methods, {trials:,} trials")
    if bad:
        raise typer.Exit(2)


@app.command()
def describe(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML files.")],
) -> None:
    """Describe the tasks' texts as the design draws them: lengths, tokens, duplicates between train, extra and test.

    Example: peekbench describe specs/quickstart.yaml
    """
    from peekbench.report import render_tables, text_tables
    from peekbench.texts import describe_texts

    for path in specs:
        experiment = _load(path)
        tables = text_tables({task.name: describe_texts(experiment, task) for task in experiment.tasks})
        render_tables(tables, _console())


@app.command()
def prefetch(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC...", help="YAML files.")],
) -> None:
    """Download all data and models of specs, so that they run without a network.

    Example: peekbench prefetch specs/quickstart.yaml && HF_HUB_OFFLINE=1 peekbench run specs/quickstart.yaml
    """
    from peekbench.prefetch import prefetch as fetch

    for path in specs:
        for line in fetch(_load(path)):
            typer.echo(line)


@app.command()
def lock(
    spec: SpecArgument,
    newest: Annotated[
        bool, typer.Option("--newest", help="Look for the newest versions, instead of those in use here.")
    ] = False,
) -> None:
    """Write SPEC's lock file: the revisions that its data and models have, for the same numbers elsewhere.

    Example: peekbench lock specs/hub.yaml
    """
    from tempfile import TemporaryDirectory

    from peekbench.locking import lock_path, make_lock, write_lock
    from peekbench.records import Folders
    from peekbench.spec import load_spec

    experiment = load_spec(spec, locked=False)
    with TemporaryDirectory() as empty:
        folders = Folders(spec=experiment.folder, cache=Path(empty)) if newest else experiment.folders()
        content = make_lock(experiment, folders)
    if not content:
        typer.echo(f"{spec}: nothing to lock: no task or method loads what changes by itself")
        return
    write_lock(content, lock_path(spec))
    for group in content.values():
        for name, entry in group.items():
            typer.echo(f"{name}: " + ", ".join(f"{option} {value}" for option, value in entry["pinned"].items()))
    typer.echo(f"written: {lock_path(spec)}")


@app.command()
def analyze(
    path: Annotated[Path, typer.Argument(help="A store, a CSV or Parquet file, or a folder mM/nN/MODEL/TASK/.")],
    analyses: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--analysis", metavar="PLUGIN.THING", help="Instead of summary and permutation; repeatable."),
    ] = None,
    spec: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--spec", metavar="SPEC", help="YAML file that says which analyses, of which scores."),
    ] = None,
    reports: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--reports", metavar="FOLDER", help="Also write report files into this folder."),
    ] = None,
    allow_incomplete: IncompleteOption = False,
) -> None:
    """Judge scores, of a run or of any other tool.

    Example: peekbench analyze accuracies.csv
    """
    from peekbench.analysis import analyze as analyse
    from peekbench.analysis import planned_trials
    from peekbench.reanalysis import load_reanalysis
    from peekbench.report import render_text, report_of_table, write_report
    from peekbench.results import load_results

    asked = None if spec is None else load_reanalysis(spec)
    if asked is not None and analyses:
        _fail("give either --spec or --analysis, not both", 2)
    results = load_results(path)
    planned = planned_trials(path)
    if asked is None:
        report = report_of_table(
            path, results, analyse(results, analyses, allow_incomplete=allow_incomplete, planned=planned)
        )
    else:
        results = asked.only.of(results)
        may_have_holes = allow_incomplete or asked.report.allow_incomplete
        found = analyse(results, asked.analyses, allow_incomplete=may_have_holes, planned=asked.only.among(planned))
        report = report_of_table(path, results, found, name=asked.name)
    console = _console()
    render_text(report, console)
    if reports is not None:
        formats = () if asked is None else (asked.report.formats,)
        _say_written(console, write_report(report, reports, *formats))


@app.command()
def report(
    run_: Annotated[str, typer.Argument(metavar="RUN", help="A run's name, or the path of its store.")],
    reports: ReportsOption = Path("reports"),
    allow_incomplete: IncompleteOption = False,
    svg: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="Also draw the top of the report as a picture."),
    ] = None,
) -> None:
    """Report a run again from its store.

    Example: peekbench report quickstart
    """
    from peekbench.execute import RUNS

    path = Path(run_) if Path(run_).is_file() else RUNS / f"{run_}.sqlite"
    _report(path, reports, _console(), allow_incomplete, svg)


def _report(path: Path, reports: Path, console: Console, allow_incomplete: bool, svg: Path | None = None) -> None:
    from peekbench.report import export_svg, render_text, report_of_run, write_report

    made, formats = report_of_run(path, allow_incomplete=allow_incomplete)
    render_text(made, console)
    _say_written(console, write_report(made, reports / made.name, formats))
    if svg is not None:
        export_svg(made, svg)


def _say_written(console: Console, paths: list[Path]) -> None:
    for path in paths:
        console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)


@app.command("list")
def list_things(
    what: Annotated[str, typer.Argument(help="all, plugins, tasks, methods, analyses or executors.")] = "all",
) -> None:
    """List what the installed plugins offer.

    Example: peekbench list methods
    """
    from peekbench.catalogue import list_plugins, list_tasks, list_things

    lines = list_plugins() if what == "plugins" else list_tasks() if what == "tasks" else list_things(what)
    for line in lines:
        typer.echo(line)


@app.command()
def show(
    use: Annotated[str, typer.Argument(metavar="PLUGIN.THING", help="As in a spec's `use`.")],
    options: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Of a task: load its data with these, as YAML: '{path: reviews.csv}'."),
    ] = None,
) -> None:
    """Show one task, method, analysis or executor with its options; of a task also texts and a prompt.

    Example: peekbench show hf.trec
    """
    from peekbench.catalogue import describe
    from peekbench.uses import parse_options

    for number, paragraph in enumerate(describe(use, None if options is None else parse_options(options))):
        typer.echo(("\n" if number else "") + paragraph)


@app.command()
def check(
    use: Annotated[str, typer.Argument(metavar="PLUGIN.METHOD", help="As in a spec's `use`.")],
    options: Annotated[str, typer.Option(help="The method's options as YAML: '{num_components: 5}'.")] = "{}",
) -> None:
    """Check that a method keeps its contract: seeds, invariances, base arm, light import.

    Example: peekbench check classic.lsa --options '{num_components: 5}'
    """
    from peekbench.testing import check_method
    from peekbench.uses import parse_options

    outcomes = check_method(use, parse_options(options))
    for outcome in outcomes:
        typer.echo(f"{'passed' if outcome.passed else 'FAILED'}  {outcome.name}")
        if not outcome.passed:
            typer.echo(f"        {outcome.message}")
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(FAILED)


@app.command()
def schema(
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--output", "-o", metavar="FILE", help="Write it there instead of printing it."),
    ] = None,
) -> None:
    """Write the JSON schema of specs, options of the installed plugins included.

    Example: peekbench schema -o specs/schema.json
    """
    import json

    from peekbench.schema import broken_plugins, make_schema

    for message in broken_plugins().values():
        typer.echo(f"left out: {message}", err=True)
    text = json.dumps(make_schema(), indent=1, sort_keys=True) + "\n"
    if output is None:
        typer.echo(text, nl=False)
    else:
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise PeekbenchError(f"cannot write {output}: {error.strerror}; choose another place") from error


@app.command()
def version() -> None:
    """Print the version.

    Example: peekbench version
    """
    from importlib.metadata import version as version_of

    typer.echo(version_of("peekbench"))


def _load(path: Path, workers: int | None = None) -> ExperimentSpec:
    from peekbench.spec import load_spec

    spec = load_spec(path)
    return spec if workers is None else spec.with_executor_options(workers=workers)


def _fail(message: str, status: int) -> NoReturn:
    typer.echo(f"peekbench: {message}", err=True)
    raise typer.Exit(status)


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM, which batch systems send, end a run as Ctrl-C does."""
    import signal

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main() -> None:
    """Entry point of the command `peekbench`."""
    try:
        with _terminated_like_interrupted():
            app()
    except PeekbenchError as error:
        typer.echo(f"peekbench: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
