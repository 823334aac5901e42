"""Options of commands that read scores and print reports; writes the files of a report, and prints it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, get_args

import typer

from peekbench.cli.output import ERROR, GATED, be_quiet, echo, keep_results_apart, make_console, note
from peekbench.errors import PeekbenchError, ResultsError
from peekbench.formatting import pluralize
from peekbench.plugins.local_code import Code, locate_code
from peekbench.plugins.registry import check_format
from peekbench.plugins.similar_names import OF_FEW, find_nearest
from peekbench.records import Report
from peekbench.records.data import TableOptions
from peekbench.records.report import Analysis, Subject
from peekbench.records.verdicts import Decision, Verdict
from peekbench.report import changed_texts, render_text, report_of_run, write_pictures, write_report
from peekbench.report.facts.run_facts import make_command
from peekbench.report.render.files import check_same_report, folder_name
from peekbench.report.render.json_report import render_json
from peekbench.results import IN_RULES, label_configuration
from peekbench.store.files import RUNS

MAX_BESIDE = 4
"""Files that a report names beside the first one."""
BIASED, FAILED_CONTROLS = "biased", "controls failed"

FailOnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="[RULE:]DECISION[,...]",
        help="End with status 4 if a method's verdict on its bias is one of these, such as biased,inconclusive; or its "
        "verdict under a rule, as in cross-10:higher,inconclusive. Repeatable.",
    ),
]


@dataclass(frozen=True, slots=True)
class TableFlags:
    """Options of commands that read tables of scores of other tools."""

    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="COLUMN=TARGET",
            help="Meaning of a column of the table, such as seed=subsample, or of a value of the column of arms, such "
            "as none=base; repeatable.",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="COLUMN", help="Column that says nothing about the scores; repeatable."),
    ] = None
    pair_by_order: Annotated[
        bool, typer.Option("--pair-by-order", help="Pair rows that have no number of the draw in their order.")
    ] = False
    percent: Annotated[bool, typer.Option("--percent", help="Read scores as percentages.")] = False
    independent_tasks: Annotated[
        bool,
        typer.Option(
            "--independent-tasks",
            help="Different tasks have independent draws: the same number, such as a seed, does not mean related rows.",
        ),
    ] = False
    region: Annotated[
        float | None,
        typer.Option(
            "--region",
            metavar="WIDTH",
            min=0,
            help="Largest bias that is negligible, in the unit of the table's scores.",
        ),
    ] = None
    task: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="TASK", help="Task of the table to read; repeatable. Default: all tasks."),
    ] = None

    earlier: Annotated[
        list[int] | None,
        typer.Option(
            "--earlier",
            metavar="NUMBER",
            min=1,
            help="Mean number of subsamples per task at an earlier analysis of the table, if it was extended since; "
            "repeatable, ascending.",
        ),
    ] = None

    def read(self) -> TableOptions:
        """Return how to read the table."""
        columns = _parse_mapping(self.columns or ())
        ignore = tuple(self.ignore or ())
        tasks = tuple(self.task or ())
        earlier = tuple(self.earlier or ())
        return TableOptions(
            columns, ignore, self.pair_by_order, self.percent, self.independent_tasks, self.region, tasks, earlier
        )


def _parse_mapping(arguments: Iterable[str]) -> dict[str, str]:
    """Return the mapping of columns that arguments such as 'seed=subsample' give."""
    mapping: dict[str, str] = {}
    for argument in arguments:
        source, _, target = (part.strip() for part in argument.rpartition("="))
        if not source or not target:
            raise ResultsError(f"--map {argument}: not a mapping; write COLUMN=TARGET, such as seed=subsample")
        if mapping.setdefault(source, target) != target:
            raise ResultsError(f"--map names two targets for the column {source!r}; name one")
    return mapping


@dataclass(frozen=True, slots=True)
class Gate:
    """Finds the verdicts at which a command fails, for one use of `--fail-on`."""

    names: tuple[str, ...]
    """Decisions, both directions of a bias, or the failure of any control, without repetitions."""
    rule: str = ""
    """Arm whose difference from extra is judged instead of the bias, such as 'cross-10'."""

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Return the gate of a value of `--fail-on`. Case does not matter; spaces can be hyphens or underscores.

        Examples
        --------
        >>> Gate.parse("biased, no-signal")
        Gate(names=('biased', 'no signal'), rule='')
        >>> Gate.parse("cross-10: higher").rule
        'cross-10'
        """
        rule, _, listed = text.rpartition(":")
        if "," in rule:
            before, _, rule = rule.rpartition(",")
            options = shlex.join(["--fail-on", before.strip(), "--fail-on", f"{rule.strip()}:{listed.strip()}"])
            raise PeekbenchError(f"--fail-on {text}: a rule needs an option of its own: {options}")
        rule = "" if rule.strip() == "test" else rule.strip()  # its verdict is that on the bias
        known = (BIASED, *get_args(Decision), *(IN_RULES.values() if rule else ()), FAILED_CONTROLS)
        names = [" ".join(part.lower().replace("-", " ").replace("_", " ").split()) for part in listed.split(",")]
        for name in names:
            if name not in known:
                near = find_nearest(name, known, OF_FEW)
                problem = f"no decision is called {name!r}" if name else "the name of a decision is missing"
                nearest = f"did you mean {near}? Decisions" if near else "decisions"
                raise PeekbenchError(f"--fail-on: {problem}; {nearest} are {', '.join(known)}")
        return cls(tuple(dict.fromkeys(names)), rule)

    @property
    def option(self) -> str:
        """The option that makes this gate, as in messages."""
        return f"--fail-on {self.value}"

    @property
    def value(self) -> str:
        """The value of the option."""
        names = ",".join(name.replace(" ", "-") for name in self.names)
        return f"{self.rule}:{names}" if self.rule else names

    def check(self, name: str, *, num_methods: int, num_controls: int, rules: Collection[str]) -> None:
        """Refuse a gate that could never fail, because no verdict can have one of its decisions.

        Parameters
        ----------
        name
            Name of the run or the table, for errors.
        num_methods, num_controls
            Methods and controls that have, or will have, a verdict on their bias.
        rules
            Arms other than test that have, or will have, a verdict of their own.
        """
        if self.rule and self.rule not in rules:
            listed = f"its rules are {', '.join(('test', *sorted(rules)))}" if rules else "it has the rule test only"
            raise PeekbenchError(
                f"{self.option}: {name} has no verdict on the rule {self.rule}, so it could never fail; {listed}"
            )
        if not num_methods and self.names != (FAILED_CONTROLS,):
            raise PeekbenchError(
                f"{self.option}: {name} has no verdict on the bias of a method, so it could never fail; use scores "
                "with the arms extra and test of a method that is not a control, and an analysis that reaches "
                "verdicts, such as summary"
            )
        if not num_controls and self.names == (FAILED_CONTROLS,):
            raise PeekbenchError(
                f"{self.option}: {name} has no verdict on a control; leave out {FAILED_CONTROLS}, or add a method such "
                "as controls.null to the spec"
            )

    def judge(self, report: Report) -> Judgment:
        """Judge the configurations of a report by their leading verdicts, as in the report: of the first analysis.

        A table cannot exempt a method from the gate: one that it calls a control is judged as a method too. A report
        without a verdict that could have one of the decisions is an error.
        """
        biases = [verdict for verdict in report.verdicts if verdict.effect == "bias"]
        rules = {each.rule for each in report.rules}
        of_rule = [verdict for each in report.rules if each.rule == self.rule for verdict in each.verdicts]
        methods = [each for each in report.subjects if not each.control or report.extension.of == "table"]
        controls = [each for each in report.subjects if each.control]
        num_methods, num_controls = (sum(any(map(each.matches, biases)) for each in of) for of in (methods, controls))
        self.check(report.name, num_methods=num_methods, num_controls=num_controls, rules=rules)
        found, unjudged, number = list[str](), list[str](), 0
        if self.names != (FAILED_CONTROLS,):
            number += len(methods)
            for subject in methods:
                verdict = next(filter(subject.matches, of_rule if self.rule else biases), None)
                found += self._find(verdict)
                unjudged += self._find_gap(subject, verdict)
        if FAILED_CONTROLS in self.names:
            number += len(controls)
            for subject in controls:
                verdict = next(filter(subject.matches, biases), None)
                if verdict is not None and verdict.decision == "failed":
                    found.append(f"control {verdict.method} failed")
                unjudged += _name_gap(subject, verdict)
        return Judgment(tuple(found), tuple(unjudged), number)

    def _find(self, verdict: Verdict | None) -> Iterator[str]:
        """Yield a verdict in words if it has one of the decisions."""
        if verdict is None:
            return
        decision = _decision(verdict)
        word = IN_RULES.get(decision, decision) if self.rule else decision
        if {decision, word} & {*self.names} or (BIASED in self.names and decision.startswith(BIASED)):
            yield f"{verdict.method} is {word}" + (f" under {self.rule}" if self.rule else "")

    def _find_gap(self, subject: Subject, verdict: Verdict | None) -> Iterator[str]:
        """Yield what is missing for the verdict on a method, so that the gate could not fail because of it."""
        is_open = verdict is not None and _decision(verdict) == "inconclusive" and not verdict.is_possible
        if verdict is not None and is_open and "inconclusive" not in self.names:
            yield f"{verdict.method}: no verdict is possible with so few trials, or with this fit; add subsamples"
        else:
            yield from _name_gap(subject, verdict)


@dataclass(frozen=True, slots=True)
class Judgment:
    """What a gate found in a report."""

    found: tuple[str, ...]
    """Verdicts at which the command fails, in words."""
    unjudged: tuple[str, ...]
    """Configurations without a verdict on all their tasks, and why."""
    number: int
    """Number of verdicts that the gate needs."""

    def __str__(self) -> str:
        """Return how many verdicts were judged."""
        return f"{self.number - len(self.unjudged)} of {pluralize(self.number, 'verdict')} judged"


def _decision(verdict: Verdict) -> str:
    """Return the decision about a method, or the one that a method with the scores of a control would get."""
    return str(getattr(verdict.evidence, "decision", None) or verdict.decision)


def _name_gap(subject: Subject, verdict: Verdict | None) -> Iterator[str]:
    """Yield what is missing for a verdict on all tasks of a configuration."""
    label = label_configuration(dict(subject.cells)) if verdict is None else verdict.method
    if subject.lost_tasks:
        tasks = ", ".join(subject.lost_tasks)
        yield f"{label}: no complete trial of {tasks}; add the missing rows, or remove all rows of this method or task"
    elif verdict is None:
        is_control = "; to judge a method that a table calls a control: --ignore control" if subject.control else ""
        yield f"{label}: no analysis reached a verdict{is_control}"


def parse_gates(values: Sequence[str] | None) -> list[Gate]:
    """Return a gate for each use of `--fail-on`."""
    return [Gate.parse(value) for value in values or ()]


def apply_gates(gates: Sequence[Gate], report: Report) -> None:
    """End the command with the status `GATED` if a verdict of a report has a decision of a gate.

    If a verdict is missing, it ends with the status `ERROR`.
    """
    judgments = {gate.option: gate.judge(report) for gate in gates}
    for option, judgment in judgments.items():
        if judgment.found:
            echo(f"peekbench: {option}: {', '.join(judgment.found)} ({judgment})", err=True)
        if judgment.unjudged:
            listed = "\n  ".join(judgment.unjudged)
            echo(f"peekbench: {option}: {judgment}; without a verdict:\n  {listed}", err=True)
        elif not judgment.found:
            note(f"{option}: passed ({judgment})")
    controls = [each for each in report.subjects if each.control and report.extension.of == "table"]
    if gates and controls:
        names = ", ".join(str(dict(each.cells)["method"]) for each in controls)
        note(f"The table calls {names} controls; `--fail-on` judges them as methods, too")
    if any(judgment.found for judgment in judgments.values()):
        raise typer.Exit(GATED)
    if any(judgment.unjudged for judgment in judgments.values()):
        raise typer.Exit(ERROR)


@dataclass(frozen=True, slots=True)
class Printer:
    """Prints reports to the standard output, as options choose."""

    full: Annotated[bool, typer.Option("--full", help="Print the whole report instead of one screen.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False
    json: Annotated[
        bool,
        typer.Option("--json", help="Print the report as JSON, as in report.json; everything else goes to stderr."),
    ] = False

    def start(self) -> None:
        """Check the options, and leave the standard output to reports: what plugins print goes to the standard error.

        With `--quiet`, there are no notes and warnings.
        """
        given = [name for name in ("full", "quiet", "json") if getattr(self, name)]
        if len(given) > 1:
            raise PeekbenchError(f"{' and '.join(f'--{name}' for name in given)} exclude each other; give one of them")
        keep_results_apart()
        be_quiet(self.quiet)

    def write_and_print(
        self, report: Report, folder: Path | None, *, again: str = "", pictures: Path | None = None
    ) -> None:
        """Write the files of a report, then print it, so that the files do not depend on the terminal.

        Without a folder, no files are written; `again` is the command that prints the whole report, and `pictures` a
        folder for the screen and all figures as SVG.
        """
        written: list[Path] = []
        if folder is None:
            report = replace(report, formats=())
        try:
            if folder is not None:
                check_same_report(report, folder)
                written += write_report(report, folder)
            drawn = [] if pictures is None else write_pictures(report, pictures)
        except PeekbenchError:
            self._print(report, [])
            raise
        more = f"All tables: {again} --full" if again else "All tables: add --full"
        more += "" if folder or again else ", or --reports FOLDER to write it to files"
        closing = [*_list_files(written, folder), *_list_files(drawn, pictures, "Pictures")]
        if not self.full:
            closing.append(more)
        self._print(report, closing)

    def _print(self, report: Report, closing: Sequence[str]) -> None:
        if self.json:
            echo(render_json(report), end="")
        elif not self.quiet:
            render_text(report, make_console(), closing, full=self.full)


def _list_files(paths: Sequence[Path], folder: Path | None, heading: str = "Report") -> list[str]:
    """Return a line that names the first of the files or folders in a folder, with the others beside it."""
    if not paths or folder is None:
        return []
    numbers = Counter(path.relative_to(folder).parts[0] for path in paths)
    files = [name for name in numbers if folder / name in paths]
    folders = [f"{name} ({pluralize(number, 'file')})" for name, number in numbers.items() if name not in files]
    first, *beside = files or folders
    others = beside if len(beside) <= MAX_BESIDE or not files else [pluralize(len(beside), "file")]
    others = [*others, *(folders if files else [])]
    return [f"{heading}: {folder / first}", *([f"{' ' * len(heading)}  and {', '.join(others)}"] if others else [])]


def show_report(report: Report, folder: Path | None, printer: Printer) -> None:
    """Print a report. If a folder is given, write the report's files into a folder of it that has the report's name."""
    printer.write_and_print(report, None if folder is None else folder / folder_name(report.name))


def check_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Return formats with the code that they name; refuse those that do not exist before anything is analyzed."""
    return tuple(check_format(locate_code(name, Path.cwd())) for name in formats)


@dataclass(frozen=True, slots=True)
class ReportChoices:
    """What the report of a run contains instead of what its spec says, and who publishes it."""

    allow_incomplete: bool = False
    analyses: Sequence[str] = ()
    formats: Sequence[str] = ()
    author: str = ""
    license: str = ""
    pictures: Path | None = None
    texts: bool = False
    code: Collection[Code] = ()
    """Code that the caller gave, which alone is imported."""


def report_run(
    path: Path,
    reports: Path | None,
    printer: Printer,
    choices: ReportChoices,
    on_analysis: Callable[[Analysis], None] | None = None,
) -> Report:
    """Write the files of a run's report, print it, and return it."""
    chosen = check_formats(choices.formats)
    allow_incomplete, analyses = choices.allow_incomplete, choices.analyses
    report = report_of_run(
        path, allow_incomplete=allow_incomplete, analyses=analyses, given=choices.code, on_analysis=on_analysis
    )
    formats = chosen or report.formats
    if choices.texts and "html" not in formats:
        raise PeekbenchError("--texts: only the HTML report shows texts; add --format html")
    texts = changed_texts(path, choices.code) if choices.texts else ()
    report = replace(report, formats=formats, author=choices.author, license=choices.license, texts=texts)
    run = path.stem if path.parent == RUNS and path.suffix == ".sqlite" else str(path)
    again = make_command("report", [run], analyses, allow_incomplete=allow_incomplete)
    folder = None if reports is None else reports / report.name
    printer.write_and_print(report, folder, again=again, pictures=choices.pictures)
    return report
