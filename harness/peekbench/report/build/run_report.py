"""What a report says, whatever it looks like."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.data.preflight import describe_data
from peekbench.execution.planning import make_trials
from peekbench.execution.provenance import describe_session
from peekbench.formatting import ScoreWords, pluralize
from peekbench.records.analysis import Analysis, Cell, Column, Table, Verdict
from peekbench.records.trials import TrialFailure
from peekbench.report.build.text_tables import text_tables
from peekbench.results.analyze import analyze
from peekbench.results.table import load_results
from peekbench.spec.experiment import canonical, make_spec
from peekbench.store.writer import Store

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records.figures import Figure
    from peekbench.spec.experiment import ExperimentSpec

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
QUESTION = "Does a method score higher because its unlabeled text is the test set's?"
CONTROLS = "Controls, whose bias is known beforehand: they test this run"
# Packages whose versions a reader looks for first; JSON has all of them.
NOTABLE = ("numpy", "scipy", "pandas", "scikit-learn", "gensim", "torch", "transformers", "datasets", "pymc", "bambi")


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """What a method is, as far as it is known."""

    name: str
    use: str = ""
    options: str = ""
    """In words, with what differs by task."""
    summary: str = ""
    """What its plugin says of it."""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a report shows, in its order."""

    name: str
    headline: str
    """One line on what was judged."""
    verdicts: tuple[Verdict, ...]
    warnings: tuple[str, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    failures: tuple[TrialFailure, ...]
    provenance: Mapping[str, str]
    """A few lines on what the numbers depend on."""
    record: Mapping[str, Any]
    """The rest, for machines: spec, data, sessions."""
    attachments: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)
    """Files that analyses want next to the report: name to what writes it."""
    methods: tuple[MethodFacts, ...] = ()
    command: str = ""
    """What repeats it, for a shell."""
    renderer: str = ""
    """Renderer of the figures, `plugin.thing`; by default the only one that is installed."""


def printable(report: Report) -> Report:
    """The same report without control characters, which data or a message may bring and a terminal would obey."""
    cleaned: Report = _without_codes(report)
    return cleaned


def _without_codes(value: Any) -> Any:
    """Without control characters, however deep they stand."""
    if isinstance(value, str):
        return UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, tuple):
        return tuple(map(_without_codes, value))
    if isinstance(value, Mapping):
        return {_without_codes(key): _without_codes(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _without_codes(getattr(value, part.name)) for part in fields(value)})
    return value


def split_verdicts(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """Those on methods, and those on controls."""
    return [one for one in verdicts if not one.control], [one for one in verdicts if one.control]


def legend(verdicts: Sequence[Verdict]) -> str:
    """What the decisions mean, in a sentence or two; nothing where there is none."""
    if not verdicts:
        return ""
    judged, controls = split_verdicts(verdicts)
    regions = {(one.region, one.unit) for one in judged or controls if one.region}
    if len(regions) == 1:
        ((region, unit),) = regions
        size = ScoreWords(unit == "difference").size(region or 0.0)
    else:
        size = "what is too small to matter (see 'region')"
    return (
        f"Biased: the interval excludes 0 and is not wholly within {size} of it. Equivalent: it is wholly within that. "
        "Inconclusive: neither."
    )


def report_of_table(path: Path, results: pd.DataFrame, analyses: Sequence[Analysis], name: str = "") -> Report:
    """A report on scores that somebody made; without a name, it bears that of the path."""
    trials = len(results) // max(1, results["arm"].nunique())
    judged = results.drop_duplicates("method")["control"].eq("").sum()
    methods_in_words = _methods_in_words(int(judged), results["method"].nunique() - int(judged))
    tasks = pluralize(results["task"].nunique(), "task")
    headline = f"{methods_in_words} on {tasks}, {pluralize(trials, 'trial')}, from {path}"
    report = _gather(name or path.stem, headline, analyses, (), (), {"source": str(path)}, {"source": str(path)})
    methods = tuple(MethodFacts(str(name)) for name in results["method"].unique())
    return replace(report, methods=methods, command=shlex.join(["peekbench", "analyze", str(path)]))


def report_of_audits(
    spec: ExperimentSpec, analyses: Sequence[Analysis], known: Mapping[str, Mapping[str, Any]]
) -> Report:
    """A report on what audits say of a spec's tasks, made here and now.

    Parameters
    ----------
    known
        What a reader should know of what each audit works with, by the audit's name.
    """
    session = {**describe_session(spec.folder), "methods": known}
    tasks = {task.name: describe_data(spec, task) for task in spec.tasks}
    headline = f"{pluralize(len(spec.audits), 'audit')} of the data of {pluralize(len(tasks), 'task')}"
    record = {"spec": canonical(spec), "data": tasks, "sessions": [session]}
    provenance = _provenance(spec, [session], [0])
    del provenance["sessions"]
    return _gather(spec.name, headline, analyses, (_task_table(tasks),), (), provenance, record)


def report_of_run(path: Path, *, allow_incomplete: bool = False) -> tuple[Report, tuple[str, ...]]:
    """A report on a run, from its store alone, and the file formats that its spec asks for.

    Raises
    ------
    ResultsError
        Where the run is not finished and `allow_incomplete` is not set.
    """
    with Store.open(path) as store:
        spec = make_spec(store.spec(), folder=store.folder(), origin=f"the spec in {path}")
        tasks, sessions, failures = store.tasks(), store.sessions(), store.failures()
        metrics, texts, sizes = store.metrics(), store.texts(), store.session_sizes()
    results = load_results(path)
    planned = list(make_trials(spec))
    analyses = () if results.empty else analyze(
        results, spec.analyses, allow_incomplete=allow_incomplete or spec.report.allow_incomplete, planned=planned
    )  # fmt: skip
    done = len(results[["task", "method", "num_train", "num_test", "subsample"]].drop_duplicates())
    failed = f", {len(failures):,} failed" if failures else ""
    headline = f"{_experiment_in_words(spec)}. {done:,} of {pluralize(len(planned), 'trial')} done{failed}"
    methods = _describe_methods(spec)
    tables = (
        *(replace(table, topic="data") for table in (_task_table(tasks), *text_tables(texts))),
        *(
            replace(table, topic="methods")
            for table in (_method_table(methods), *_cost_table(results), *_metric_table(metrics, spec))
        ),
    )
    made = [{**session, "trials": size} for session, size in zip(sessions, sizes, strict=True)]
    record = {"spec": canonical(spec), "data": tasks, "texts": texts, "sessions": made}
    report = _gather(spec.name, headline, analyses, tables, failures, _provenance(spec, sessions, sizes), record)
    report = replace(report, warnings=(*report.warnings, *_mixed_code(made)))
    command = shlex.join(_command(sessions[-1])) if sessions else ""
    report = replace(report, methods=methods, command=command, renderer=spec.report.renderer)
    return report, spec.report.formats


def _mixed_code(sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """A warning for each plugin of methods whose source files changed between sessions that made trials."""
    codes = [session.get("code", {}) for session in sessions if session["trials"]]
    names = dict.fromkeys(name for code in codes for name in code)
    return [
        f"The code of the plugin {name} changed while this run was made, and its numbers may be of both. Run the spec "
        "under another name to measure the new code alone"
        for name in names
        if len({code[name] for code in codes if name in code}) > 1
    ]


def _methods_in_words(num_judged: int, num_controls: int) -> str:
    kinds = ((num_judged, "method"), (num_controls, "control"))
    return " and ".join(pluralize(number, noun) for number, noun in kinds if number)


def _experiment_in_words(spec: ExperimentSpec) -> str:
    """What is compared on what, how often, and at which sizes."""
    num_controls = sum(method.entry.control != "" for method in spec.methods)
    design = spec.design
    repeats = design.num_subsamples
    times = (
        f"each drawn {pluralize(repeats, 'time')}" if isinstance(repeats, int) else "drawn more or less often by size"
    )
    sizes = (f"{', '.join(map(str, getattr(design, f'num_{part}')))} {part} rows" for part in ("train", "test"))
    what = _methods_in_words(len(spec.methods) - num_controls, num_controls)
    return f"{what} on {pluralize(len(spec.tasks), 'task')}, {times}: {', '.join(sizes)}"


def _gather(
    name: str,
    headline: str,
    analyses: Sequence[Analysis],
    tables: Sequence[Table],
    failures: Sequence[TrialFailure],
    provenance: Mapping[str, str],
    record: Mapping[str, Any],
) -> Report:
    return Report(
        name=name,
        headline=headline,
        verdicts=tuple(verdict for analysis in analyses for verdict in analysis.verdicts),
        warnings=tuple(dict.fromkeys(warning for analysis in analyses for warning in analysis.warnings)),
        figures=tuple(figure for analysis in analyses for figure in analysis.figures),
        tables=(*(table for analysis in analyses for table in analysis.tables), *tables),
        failures=tuple(failures),
        provenance=provenance,
        record=record,
        attachments=_attachments(analyses),
    )


def _attachments(analyses: Sequence[Analysis]) -> dict[str, Callable[[Path], None]]:
    """Of all analyses; where two want the same name, as an analysis with two sets of options may, both get a file."""
    found: dict[str, Callable[[Path], None]] = {}
    for analysis in analyses:
        for name, write in analysis.attachments.items():
            free, number = name, 1
            while free in found:
                number += 1
                free = f"{Path(name).stem}-{number}{Path(name).suffix}"
            found[free] = write
    return found


def _task_table(tasks: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = [
        (name, data["rows"], len(data["class_names"]) or None, min(data["class_counts"], default=None),
         max(data["class_counts"], default=None), _majority(data["class_counts"]), _left_out(data["details"]),
         _version(data["details"]), data["fingerprint"][:12])
        for name, data in tasks.items()
    ]  # fmt: skip
    counts = [Column(name, "count") for name in ("rows", "classes", "smallest class", "largest class")]
    texts = [Column(name) for name in ("left out", "version", "fingerprint")]
    return Table(
        "Tasks",
        (Column("task"), *counts, Column("majority", "fraction"), *texts),
        tuple(rows),
        "Majority: the accuracy of always naming the largest class. JSON has what each task is, and where its data "
        "come from.",
    )


def _majority(class_counts: Sequence[int]) -> float | None:
    return max(class_counts) / sum(class_counts) if class_counts else None


def _left_out(details: Mapping[str, Any]) -> str:
    """Rows that the data source left out, by reason."""
    return ", ".join(f"{number:,} {reason}" for reason, number in details.get("dropped", {}).items() if number)


def _version(details: Mapping[str, Any]) -> str:
    return str(details.get("version") or details.get("revision", "")[:12])


def _describe_methods(spec: ExperimentSpec) -> tuple[MethodFacts, ...]:
    return tuple(
        MethodFacts(
            method.name,
            method.use,
            _in_words({**method.raw_options(), **({"by_task": method.by_task} if method.by_task else {})}),
            method.entry.summary,
        )
        for method in spec.methods
    )


def _method_table(methods: Sequence[MethodFacts]) -> Table:
    columns = tuple(Column(name) for name in ("method", "use", "options", "what it is"))
    return Table("Methods", columns, tuple((one.name, one.use, one.options, one.summary) for one in methods))


def _command(session: Mapping[str, Any]) -> list[str]:
    """The command of a session as it is typed: Python shows a module that it was told to run as a file."""
    program, *arguments = session["command"]
    return [*(["python", "-m", "peekbench"] if program == "__main__.py" else [program]), *arguments]


def _in_words(options: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} ({_in_words(value)})" if isinstance(value, Mapping) else f"{name} {value}"
        for name, value in options.items()
    )


def _cost_table(results: pd.DataFrame) -> list[Table]:
    if results.empty:
        return []
    arms = list(results["arm"].unique())
    seconds = (results["fit_seconds"] + results["predict_seconds"]).groupby([results["method"], results["arm"]]).mean()
    rows = [(method, *(_mean(seconds, method, arm) for arm in arms)) for method in results["method"].unique()]
    columns = (Column("method"), *(Column(arm, "seconds") for arm in arms))
    return [Table("Mean time to fit and predict, by arm", columns, tuple(rows))]


def _mean(seconds: pd.Series[float], method: str, arm: str) -> Cell:
    return float(seconds[method, arm]) if (method, arm) in seconds.index else None


def _metric_table(metrics: Mapping[str, Mapping[str, Mapping[str, float]]], spec: ExperimentSpec) -> list[Table]:
    known = {method.name: method.entry.metrics for method in spec.methods}
    arms = list(dict.fromkeys(arm for by_arm in metrics.values() for arm in by_arm))
    rows = [
        (method, metric, *(by_arm.get(arm, {}).get(metric) for arm in arms), known[method].get(metric, ""))
        for method, by_arm in metrics.items()
        for metric in dict.fromkeys(name for values in by_arm.values() for name in values)
    ]
    columns = (Column("method"), Column("metric"), *(Column(arm, "number") for arm in arms), Column("what it is"))
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return [Table("Means of what methods recorded, by arm", columns, tuple(rows))] if rows else []


def _provenance(spec: ExperimentSpec, sessions: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> dict[str, str]:
    """The last session's circumstances, and whether earlier ones differed."""
    if not sessions:
        return {}
    last = sessions[-1]
    packages, machine, git = last["packages"], last["machine"], last["git"]
    versions = [f"{name} {packages[name]}" for name in NOTABLE if name in packages]
    lines = {
        "spec": f"{spec.name}, seed {spec.seed}; the whole spec is in report.json",
        "peekbench": f"{last['peekbench']}, Python {last['python']}",
        "packages": ", ".join(versions),
        "commit": f"{git['commit']}{' with uncommitted changes' if git['dirty'] else ''}" if git else "not in git",
        "machine": f"{machine['processor']}, {machine['cores']} cores, {machine['memory'] / 2**30:.0f} GiB, "
        f"{machine['system']}",
        **{f"for {name}": _in_words(known) for name, known in last.get("methods", {}).items() if known},
        "command": shlex.join(_command(last)),
        "sessions": _in_sessions(sessions, sizes),
    }
    differing = [
        key for key in ("peekbench", "python", "packages", "machine") if any(s[key] != last[key] for s in sessions)
    ]
    if differing:
        lines["caution"] = f"sessions differ in {', '.join(differing)}; report.json has each"
    return lines


def _in_sessions(sessions: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> str:
    """When the last ones began, and how many trials each made."""
    made = [f"{session['started']} ({pluralize(size, 'trial')})" for session, size in zip(sessions, sizes, strict=True)]
    return f"{len(sessions)}, begun {', '.join(made[-3:])}"
