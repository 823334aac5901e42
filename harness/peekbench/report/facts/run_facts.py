"""What the numbers of a run depend on, in words: its design, sessions, machines and code; and what weakens them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from peekbench.data.preflight import MAX_LISTED, count_supported, warn_of_design
from peekbench.errors import PluginError
from peekbench.formatting import list_names, pluralize
from peekbench.plugins import registry
from peekbench.plugins.entries import RendererEntry
from peekbench.plugins.graders import explain_equal_grades
from peekbench.records.report import Analysis, Extension
from peekbench.records.runs import StoredMethod
from peekbench.records.trials import Draw, Trial
from peekbench.report.facts.tables import options_in_words
from peekbench.results.analyze import ask, find_analysis, planned_trials, without_controls
from peekbench.results.missing_trials import drop_incomplete
from peekbench.spec.design import designs_by_task
from peekbench.store.differences import CodeVersion, describe_change, describe_version_changes
from peekbench.store.reader import Store

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records.data import TableOptions
    from peekbench.spec.design import Design
    from peekbench.spec.experiment import ExperimentSpec


# Packages whose versions readers look for first; the JSON report lists all packages.
MAIN_PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "gensim", "torch", "transformers", "datasets", "pymc", "bambi",
)  # fmt: skip
COLUMN_OPTIONS = ("--text=", "--label=", "--group=")
MAX_SESSIONS = 3
"""Sessions whose start is shown; the JSON report has all."""
MAX_MACHINES = 10
"""Machines that are named; the JSON report has all."""


def make_command(
    name: str,
    paths: Sequence[Path | str],
    analyses: Sequence[str] = (),
    table: TableOptions | None = None,
    *,
    allow_incomplete: bool = False,
) -> str:
    """Return the command that makes a report of runs or tables again."""
    options = [part for use in filter(None, analyses) for part in ("--analysis", use)]
    if table is not None:
        options += table.arguments()
    if allow_incomplete:
        options.append("--allow-incomplete")
    return shlex.join(["peekbench", name, *map(str, paths), *options])


def describe_provenance(
    spec: ExperimentSpec,
    sessions: Sequence[Mapping[str, Any]],
    sizes: Sequence[int],
    hosts: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """Describe the last session, and warn if earlier ones differ from it.

    Parameters
    ----------
    spec
        Spec of the run.
    sessions
        Sessions of the run, oldest first.
    sizes
        Number of trials that each session finished.
    hosts
        Machines of all sessions, as `Store.hosts` returns them.

    Returns
    -------
    dict[str, str]
        Label to text, in the order in which reports show them; empty if there is no session.
    """
    if not sessions:
        return {}
    last = sessions[-1]
    packages, machine = last["packages"], last["machine"]
    versions = [f"{name} {packages[name]}" for name in MAIN_PACKAGES if name in packages]
    lines = {
        "spec": f"{spec.name}, seed {spec.seed}; report.json has the full spec",
        "peekbench": f"{last['peekbench']}, Python {last['python']}",
        "packages": ", ".join(versions),
        "commit": last["commit"] or "unknown",
        "machine": ", ".join(
            [
                machine["processor"],
                f"{machine['cores']} cores",
                f"{machine['memory'] / 2**30:.0f} GiB",
                *machine.get("gpus", ()),  # missing in stores of earlier versions
                machine["system"],
            ]
        ),
        **{f"used by {name}": options_in_words(facts) for name, facts in last.get("methods", {}).items() if facts},
        **_machines_in_words(hosts),
        "command": shlex.join(session_command(last)),
        "sessions": _sessions_in_words(sessions, sizes),
    }
    differing = [
        key
        for key in ("peekbench", "python", "packages", "machine")
        if any(session[key] != last[key] for session in sessions)
    ]
    if differing:
        lines["warning"] = f"sessions differ in {', '.join(differing)}; report.json describes each session"
    return lines


def session_command(session: Mapping[str, Any]) -> list[str]:
    """Return the command of a session as a user types it: Python records `python -m peekbench` as a file name."""
    program, *arguments = session["command"]
    if program == "__main__.py":
        return ["python", "-m", "peekbench", *arguments]
    return [program, *arguments]


def extending_command(sessions: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> str:
    """Return the command of the last session that continues a run; empty if it was no command.

    `quickstart` has written a spec, which has what it was given as options of its task.
    """
    if not sessions:
        return ""
    command, spec = session_command(sessions[-1]), "quickstart.yaml"
    if "--official" in command:
        spec = "official.yaml"
        written = ["--official", "--text", "--label", "--group", *options.values(), *options.get("text", ())]
        command = [part for part in command if part not in written and not part.startswith(COLUMN_OPTIONS)]
    line = shlex.join(command).replace("peekbench quickstart", f"peekbench run {spec}", 1)
    if "peekbench run " not in line:
        return ""
    return line


def extension_of(path: Path) -> Extension:
    """Return how to extend the run of a store that is closed."""
    with Store.open(path, verified=False) as store:
        return describe_extension(store)


def describe_extension(store: Store) -> Extension:
    """Return how to extend the run of an open store."""
    spec = store.spec()
    number: int | None = spec["design"]["num_subsamples"]
    if not isinstance(number, int) or any(task.get("num_subsamples") for task in spec["tasks"]):
        number = None
    stop = spec["design"].get("stop")
    return Extension(
        extending_command(store.sessions(), spec["tasks"][0]["options"]),
        of="run",
        num_subsamples=number,
        is_fixed=bool(stop) and stop["method"] == "group_sequential",
        num_missing=max(0, len(planned_trials(store)) - len(store.done()) - len(store.failures())),
        seconds=store.seconds_of_subsample(),
        max_subsamples=count_supported(designs_by_task(spec), store.tasks()),
    )


def _machines_in_words(hosts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Describe the machines with their numbers of trials, if there are several."""
    trials: Counter[str] = Counter()
    machines = {}
    for host in hosts:
        trials[host["name"]] += host["trials"]
        machines[host["name"]] = host["machine"]
    names = [name for name, size in trials.most_common() if size]
    if len(names) < 2:
        return {}
    described = [
        f"{name} ({pluralize(trials[name], 'trial')}; {machines[name]['processor']}, {machines[name]['cores']} cores)"
        for name in names
    ]
    return {"machines": list_names(described, MAX_MACHINES)}


def _sessions_in_words(sessions: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> str:
    started = [
        f"{session['started']} ({pluralize(size, 'trial')})" for session, size in zip(sessions, sizes, strict=True)
    ]
    shown = ", ".join(started[-MAX_SESSIONS:])
    if len(sessions) > MAX_SESSIONS:
        return f"{len(sessions):,}; the last {MAX_SESSIONS} started {shown}"
    return f"{len(sessions)}, started {shown}"


BLOCK = ["method", "num_train", "num_test", "task"]
STANDARD_ERRORS = 2.0  # above guessing, for a base arm that has learned something


def check_results(
    results: pd.DataFrame, analyses: Sequence[Analysis] = (), *, is_run: bool = False
) -> tuple[Analysis, ...]:
    """Run the default analysis with the role 'check', without incomplete trials.

    Parameters
    ----------
    results
        Results table.
    analyses
        Analyses of the same table. If one of them judges controls, they are not checked again.
    is_run
        Whether the table is from a store. Its base arms are shared where plugins declare it, so methods with the same
        language model are not expected to have the same base arm.

    Returns
    -------
    tuple of Analysis
        One analysis, or none if there is nothing to check.
    """
    if any(verdict.control for analysis in analyses for verdict in analysis.verdicts):
        results = without_controls(results)
    if results["arm"].value_counts().nunique() > 1:
        results = drop_incomplete(results)
    if is_run:
        results = results.assign(model="")
    if not results["arm"].isin(("extra", "test")).any():
        return ()
    return (ask(find_analysis("check"), results),)


def warn_of_run(
    designs: Mapping[str, Design],
    tasks: Mapping[str, Mapping[str, Any]],
    results: pd.DataFrame,
) -> Iterator[str]:
    """Yield warnings about a run that its results table alone does not show.

    Parameters
    ----------
    designs
        Design of each task.
    tasks
        Facts about each task's data.
    results
        Results table.
    """
    yield from _warn_of_base_arms(without_controls(results), tasks)
    yield from warn_of_design(designs, tasks)


def warn_of_grades(store: Store, results: pd.DataFrame) -> Iterator[str]:
    """Yield a warning about each method of an open store whose answers in a task all have the grade 0, or all 1."""
    graded = without_controls(results)
    graded = graded[graded["grade"].notna()]
    for (method, task), rows in graded.groupby(["method", "task"], sort=False):
        if rows["grade"].nunique() == 1:
            draw = Draw(str(task), *map(int, rows[["num_train", "num_test", "subsample"]].iloc[0]))
            answers = store.generated(Trial(draw, str(method)))["extra"]
            yield from filter(None, [explain_equal_grades(f"{method} in {task}", rows["grade"].tolist(), answers)])


def _chance(task: Mapping[str, Any]) -> float:
    """Return the accuracy of guessing: of a class, or of all labels of a text."""
    number = len(task["class_names"])
    return 0.5**number if task["kind"] == "multilabel" else 1 / number


def _warn_of_base_arms(results: pd.DataFrame, tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a warning about base arms that are not clearly more accurate than guessing."""
    chance = {name: _chance(task) for name, task in tasks.items() if task["class_names"]}
    base = results[(results["arm"] == "base") & results["task"].isin(list(chance))]
    if base.empty:
        return
    blocks = base.groupby(BLOCK, sort=False, dropna=False)
    scores = blocks["score"].agg(["mean", "std", "count"]).assign(answers=blocks["num_scored"].min()).reset_index()
    scores["chance"] = scores["task"].map(chance)
    binomial = scores["mean"] * (1 - scores["mean"]) / scores["answers"].astype(float)
    variance = np.maximum(scores["std"].fillna(0.0) ** 2, binomial) / scores["count"]
    scores["excess"] = scores["mean"] - scores["chance"]
    poor = scores[scores["excess"] <= STANDARD_ERRORS * np.sqrt(variance)].sort_values("excess")
    if poor.empty:
        return
    varying = [size for size in ("num_train", "num_test") if scores[size].nunique() > 1]
    named = "; ".join(_describe_base_arm(row, varying) for row in poor.head(MAX_LISTED).to_dict("records"))
    if len(poor) > MAX_LISTED:
        named += f" and {len(poor) - MAX_LISTED} more"
    yield (
        f"Base arms that are not clearly better than guessing: {named}. They have learned little, so their boost says "
        "little: increase num_train, or check the method and labels"
    )


def _describe_base_arm(row: Mapping[Any, Any], sizes: Sequence[str]) -> str:
    place = ", ".join([row["task"], *(f"{size} {row[size]}" for size in sizes)])
    return f"{row['method']} in {place}: {row['mean']:.1%} (guessing: {row['chance']:.1%})"


def warn_of_code_changes(versions: Mapping[str, Sequence[CodeVersion]]) -> Iterator[str]:
    """Yield a warning for each method plugin whose code changed between trials.

    Parameters
    ----------
    versions
        Versions of the code by plugin, as `peekbench.store.differences.find_versions` returns them.
    """
    for plugin, of_plugin in versions.items():
        if len(of_plugin) > 1:
            sizes = [pluralize(len(version.trials), "trial") for version in of_plugin]
            changes = [describe_change(old.code, new.code) for old, new in pairwise(of_plugin)]
            later = ", then ".join(f"{size} ({change})" for size, change in zip(sizes[1:], changes, strict=True))
            yield (
                f"The code of the plugin {plugin} changed during this run, so its results mix {len(of_plugin)} "
                f"versions of the code: {sizes[0]}, then {later}. To measure the present code alone, run the spec "
                "under another name"
            )


def warn_of_other_versions(sessions: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> Iterator[str]:
    """Yield a warning if sessions that finished trials differ in versions on which results depend.

    Parameters
    ----------
    sessions
        Sessions of the run, oldest first.
    sizes
        Number of trials that each session finished.
    """
    made = [session for session, size in zip(sessions, sizes, strict=True) if size]
    if changes := describe_version_changes(made):
        yield (
            f"Trials of this run were made with different versions, on which results can depend: {changes}. To measure "
            "with one version alone, run the spec under another name"
        )


def count_methods(num_judged: int, num_controls: int) -> str:
    """Return the numbers of methods and controls."""
    numbers = ((num_judged, "method"), (num_controls, "control"))
    return " and ".join(pluralize(number, noun) for number, noun in numbers if number)


def describe_experiment(
    spec: ExperimentSpec, methods: Mapping[str, StoredMethod], tasks: Mapping[str, Mapping[str, Any]], rows: str
) -> str:
    """Return the number of methods and tasks, the number of subsamples, the sample sizes, and groups.

    Parameters
    ----------
    spec
        Spec of the run.
    methods
        Its methods.
    tasks
        Facts about each task's data.
    rows
        What reports call the rows of the tasks, such as 'texts'.
    """
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
    num_train = design.num_train or sorted({size for task in spec.tasks for size in task.num_train})
    by_set = {"training": num_train, "test": design.num_test, "unlabeled": (design.num_unlabeled,)}
    listed_sizes = {noun: ", ".join(map(str, of_set)) for noun, of_set in by_set.items() if of_set and all(of_set)}
    sizes = ", ".join(f"{listed_size} {noun} rows" for noun, listed_size in listed_sizes.items())
    if design.folds:
        sizes += f", the official test split in {' or '.join(map(str, design.folds))} folds"
    if private := _count_in_words(tasks, "extra", f"private {rows.removesuffix('s')}"):
        sizes += f", {private} in the place of the left-out fold"
    if design.train != "balanced" and any(facts["class_names"] for facts in tasks.values()):
        sizes += "; training rows at natural class shares"
    if groups := _count_in_words(tasks, "groups", "group"):
        sizes += f"; {groups}, none in two sets"
    listed = count_methods(len(methods) - num_controls, num_controls)
    return f"{listed} on {pluralize(len(spec.tasks), 'task')}, {subsamples}: {sizes}"


def _count_in_words(tasks: Mapping[str, Mapping[str, Any]], key: str, noun: str) -> str:
    """Return a number of the tasks' data, as in '40 to 90 groups (2 of 3 tasks)'; empty if no task has it."""
    numbers = [task[key] for task in tasks.values() if task.get(key)]
    if not numbers:
        return ""
    words = pluralize(max(numbers), noun)
    if min(numbers) < max(numbers):
        words = f"{min(numbers):,} to {words}"
    if len(numbers) < len(tasks):
        words += f" ({len(numbers)} of {len(tasks)} tasks)"
    return words


def describe_stop(spec: ExperimentSpec, number: int) -> str:
    """Return a sentence on the planned look at which a run stopped."""
    return (
        f"Stopped at look {number} of {spec.design.num_looks}, at {spec.at_look(number).design.largest:,} of at most "
        f"{pluralize(spec.design.largest, 'subsample')}, because all verdicts were settled"
    )


def describe_sessions(
    sessions: Sequence[Mapping[str, Any]], sizes: Sequence[int], hosts: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return all sessions with their numbers of trials and their machines, for the JSON report."""
    described = []
    for number, (session, size) in enumerate(zip(sessions, sizes, strict=True)):
        own = [{**host} for host in hosts if host["session"] == number]
        for host in own:
            del host["session"]
        described.append({**session, "trials": size, "hosts": own})
    return described


def warn_of_missing_renderer(use: str) -> Iterator[str]:
    """Yield a warning if the renderer of a spec is not installed any more."""
    if use:
        try:
            registry.find(use, RendererEntry)
        except PluginError as error:
            yield f"Figures are not drawn, because the renderer {use!r} cannot be loaded: {error}"
