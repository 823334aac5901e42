"""Sentences and tables on a run: headline, tasks, texts, methods, looks and provenance; warnings about its code."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peekbench.data.overlap import MAX_CHARACTERS
from peekbench.data.preflight import majority_share
from peekbench.data.texts import SIMILARITY
from peekbench.formatting import pluralize
from peekbench.records.report import Cell, Column, MethodFacts, Table
from peekbench.records.runs import StoredMethod
from peekbench.records.trials import Repeat, Trial
from peekbench.records.verdicts import Unit

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.spec.experiment import ExperimentSpec


Descriptions: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Names of tasks to descriptions of their data, as the store keeps them."""
Units: TypeAlias = Mapping[str, Unit]
"""Names of columns to their units."""
PAIRS = {
    "test-train": "test in train", "test-test": "within test", "train-train": "within train",
    "test-extra": "test in private extra", "extra-test": "private extra in test",
    "extra-train": "private extra in train", "all-all": "in all rows",
}  # fmt: skip
"""Pairs of places of copies to how tables name them."""


def _make_table(title: str, units: Units, rows: Iterable[Sequence[Cell]], note: str = "") -> Table:
    """Return a table without the columns in which all cells are empty."""
    rows = list(rows)
    kept = [place for place in range(len(units)) if any(row[place] not in (None, "") for row in rows)]
    columns = [Column(name, unit) for name, unit in units.items()]
    cells = tuple(tuple(row[place] for place in kept) for row in rows)
    return Table(title, tuple(columns[place] for place in kept), cells, note)


def task_table(tasks: Descriptions) -> Table:
    """Tabulate the size, classes, version and fingerprint of each task."""
    units: Units = {
        "task": "text", "rows": "count", "groups": "count", "classes": "count", "majority": "fraction",
        "version": "text", "fingerprint": "text",
    }  # fmt: skip
    rows = [
        (name, data["rows"], data.get("groups"), len(data["class_names"]) or None, majority_share(data),
         str(data["details"].get("version") or data["details"].get("revision", "")[:12]), data["fingerprint"][:12])
        for name, data in tasks.items()
    ]  # fmt: skip
    note = "Majority: accuracy of always predicting the largest class. The JSON report describes each task in full."
    return _make_table("Tasks", units, rows, note)


def describe_methods(spec: ExperimentSpec, stored: Mapping[str, StoredMethod]) -> tuple[MethodFacts, ...]:
    """Describe the methods of a run, in the order of its spec."""
    described = []
    for method in spec.methods:
        options = method.raw_options()
        if method.by_task:
            options = {**options, "by_task": method.model_dump(mode="json")["by_task"]}
        described.append(MethodFacts(method.name, method.use, options_in_words(options), stored[method.name].summary))
    return tuple(described)


def options_in_words(options: Mapping[str, Any]) -> str:
    """Return options as text: 'num_components 100, word2vec (epochs 5)'."""
    words = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            value = f"({options_in_words(value)})"
        words.append(f"{name} {value}")
    return ", ".join(words)


def method_tables(
    methods: Sequence[MethodFacts],
    stored: Mapping[str, StoredMethod],
    results: pd.DataFrame,
    metrics: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> list[Table]:
    """Return tables on the methods: plugins and options, the mean time of each arm, and the metrics that they recorded.

    Parameters
    ----------
    methods
        Descriptions of the methods.
    stored
        The methods, whose plugins have described their metrics.
    results
        Results table; without rows, there is no table of times.
    metrics
        Method to arm to metric to mean; without metrics, there is no table of them.
    """
    facts = [(method.name, method.use, method.options, method.summary) for method in methods]
    tables = [Table("Methods", tuple(map(Column, ("method", "use", "options", "description"))), tuple(facts))]
    if not results.empty:
        seconds = results["fit_seconds"] + results["predict_seconds"]
        means = seconds.groupby([results["method"], results["arm"]], sort=False).mean().unstack("arm")
        means = means.loc[results["method"].unique(), results["arm"].unique()].astype("object")
        means = means.where(means.notna(), None)
        units: dict[str, Unit] = {"method": "text", **dict.fromkeys(map(str, means.columns), "seconds")}
        tables.append(_make_table("Mean time to fit and predict, by arm", units, means.itertuples()))
    if metrics:
        arms = list(dict.fromkeys(arm for by_arm in metrics.values() for arm in by_arm))
        units = {"method": "text", "metric": "text", **dict.fromkeys(arms, "number"), "description": "text"}
        rows = [
            (method, metric, *(by_arm.get(arm, {}).get(metric) for arm in arms), stored[method].metrics.get(metric, ""))
            for method, by_arm in metrics.items()
            for metric in dict.fromkeys(name for values in by_arm.values() for name in values)
        ]
        tables.append(_make_table("Means of the metrics that methods recorded, by arm", units, rows))
    return [replace(table, topic="methods") for table in tables]


def copy_tables(tasks: Descriptions) -> list[Table]:
    """Return a table of the copies of rows; none without copies.

    Parameters
    ----------
    tasks
        Facts about the data of each task, with `copies` as `peekbench.data.overlap.find_copies` returns them.

    Returns
    -------
    list of Table
        One table, or an empty list.

    Examples
    --------
    >>> copies = {"likeness": "near", "rows": {"all": 9}, "pairs": {"all-all": [2, 4]}, "conflicting": 0}
    >>> copy_tables({"news": {"copies": {**copies, "examples": [[0, 7], [1, 3]]}}})[0].rows
    (('news', 'in all rows', 9, 2, 4, 0, '0 and 7; 1 and 3'),)
    """
    rows: list[tuple[Cell, ...]] = []
    for task, copies in ((task, data["copies"]) for task, data in tasks.items()):
        examples = "; ".join(f"{first} and {second}" for first, second in copies["examples"])
        more: tuple[Cell, ...] = (copies["conflicting"], examples)
        for pair, (equal, near) in copies["pairs"].items():
            number = copies["rows"][pair.partition("-")[0]]
            rows.append((task, PAIRS[pair], number, equal, near if copies["likeness"] == "near" else None, *more))
            more = (None, None)
    units: Units = {
        "task": "text", "copies": "text", "rows": "count", "with an equal row": "count",
        "with an equal or near one": "count", "copied texts with different labels": "count", "first copies": "text",
    }  # fmt: skip
    note = (
        "Rows are equal if they differ at most in case and white space, and near if the Jaccard similarity of their "
        f"five-character sequences is at least {SIMILARITY} (prompts: with equal references and numbers); near ones "
        f"are searched for in up to {MAX_CHARACTERS:,} characters. Test texts that are also train texts raise all "
        "scores; those that are also extra texts hide bias. Rows are counted from 0, as the data are loaded. In tasks "
        "of `files`, `hf` and `docstrings`, and in `measure`, the option `drop_duplicates` removes copies."
    )
    table = _make_table("Copies of rows", units, rows, note)
    return [table] if table.rows else []


# Packages whose versions readers look for first; the JSON report lists all packages.
MAIN_PACKAGES = (
    "numpy", "scipy", "pandas", "scikit-learn", "gensim", "torch", "transformers", "datasets", "pymc", "bambi",
)  # fmt: skip


def describe_provenance(spec: ExperimentSpec, sessions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Describe the last session.

    Parameters
    ----------
    spec
        Spec of the run.
    sessions
        Sessions of the run, oldest first.

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
    hardware = (machine["processor"], f"{machine['cores']} cores", f"{machine['memory'] / 2**30:.0f} GiB")
    return {
        "spec": f"{spec.name}, seed {spec.seed}; report.json has the full spec",
        "peekbench": f"{last['peekbench']}, Python {last['python']}",
        "packages": ", ".join(versions),
        "commit": last["commit"] or "unknown",
        "machine": ", ".join([*hardware, *machine["gpus"], machine["system"]]),
        **{f"used by {name}": options_in_words(facts) for name, facts in last.get("methods", {}).items() if facts},
        "command": shlex.join(session_command(last)),
        "sessions": f"{len(sessions)}, the last started {last['started']}",
    }


def session_command(session: Mapping[str, Any]) -> list[str]:
    """Write the command of a session as a user types it: Python records `python -m peekbench` as a file name."""
    program, *arguments = session["command"]
    if program == "__main__.py":
        return ["python", "-m", "peekbench", *arguments]
    return [program, *arguments]


def warn_of_code_changes(plugin: str, sizes: Sequence[int], changes: Sequence[str]) -> str:
    """Warn of a plugin whose versions made these numbers of trials."""
    trials = [pluralize(size, "trial") for size in sizes]
    later = ", then ".join(f"{size} ({change})" for size, change in zip(trials[1:], changes, strict=True))
    return (
        f"The code of the plugin {plugin} changed during this run, so its results mix {len(sizes)} versions of the "
        f"code: {trials[0]}, then {later}. To measure the present code alone, run the spec under another name"
    )


def warn_of_other_versions(changes: str) -> str:
    """Warn of sessions with different versions."""
    return (
        f"Trials of this run were made with different versions, on which results can depend: {changes}. To measure "
        "with one version alone, run the spec under another name"
    )


def state_progress(experiment: str, num_done: int, num_planned: int, num_failed: int) -> str:
    """Add to the description of an experiment how many of its trials are done."""
    progress = f"{experiment}. {num_done:,} of {pluralize(num_planned, 'trial')} done"
    if num_failed:
        progress += f", {num_failed:,} failed"
    return progress


def describe_scores(methods: str, num_tasks: int, num_trials: int, origins: Sequence[str]) -> str:
    """Describe tables of scores or runs: their methods, tasks, trials and origins."""
    trials = pluralize(num_trials, "trial")
    return f"{methods} on {pluralize(num_tasks, 'task')}, {trials}, from {', '.join(origins)}"


def warn_of_different_data(tasks: Sequence[str]) -> str:
    """Warn of tasks whose data differ between runs that are compared."""
    return (
        f"The runs have different data of {', '.join(tasks)}, so ranks also reflect how difficult they are. Rank "
        "methods in runs of the same data"
    )


def warn_of_left_out(column: str, names: Sequence[str]) -> str:
    """Warn of tasks or arms that a comparison leaves out."""
    return f"Excluded, because at least one run lacks it: {column} {', '.join(names)}"


def count_methods(num_judged: int, num_controls: int) -> str:
    """Count methods and controls."""
    numbers = ((num_judged, "method"), (num_controls, "control"))
    return " and ".join(pluralize(number, noun) for number, noun in numbers if number)


def count_methods_of(results: pd.DataFrame) -> str:
    """Count the methods and controls of a results table."""
    controls = results.drop_duplicates("method")["control"]
    return count_methods(int(controls.eq("").sum()), int(controls.ne("").sum()))


def describe_experiment(
    spec: ExperimentSpec, methods: Mapping[str, StoredMethod], tasks: Mapping[str, Mapping[str, Any]], rows: str
) -> str:
    """Describe the number of methods and tasks, the number of subsamples, the sample sizes, and groups.

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
    subsamples = "by test size, subsamples"
    if all(isinstance(number, int) for number in repeats):
        subsamples = f"{' to '.join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))} subsamples"
    num_train = design.num_train or sorted({size for task in spec.tasks for size in task.num_train})
    by_set = {"training": num_train, "test": design.num_test, "unlabeled": (design.num_unlabeled,)}
    listed_sizes = {noun: ", ".join(map(str, numbers)) for noun, numbers in by_set.items() if numbers and all(numbers)}
    sizes = ", ".join(f"{listed_size} {noun} rows" for noun, listed_size in listed_sizes.items())
    drawn = "random draws of these rows"
    if design.folds:
        drawn = f"random divisions of the official test split into {' or '.join(map(str, design.folds))} parts (folds)"
    if any(task.get("extra") for task in tasks.values()):
        drawn += f", with private {rows} in the place of a fold"
    listed = count_methods(len(methods) - num_controls, num_controls)
    return f"{listed} on {pluralize(len(spec.tasks), 'task')}: {sizes}; {subsamples} ({drawn}) per task"


def describe_stop(spec: ExperimentSpec, number: int) -> str:
    """State the planned look at which a run stopped."""
    done, largest = spec.at_look(number).design.largest, pluralize(spec.design.largest, "subsample")
    return (
        f"Stopped at look {number} of {spec.design.num_looks} (planned analyses), at {done:,} of at most {largest}, "
        "because all verdicts were settled"
    )


REPEATED = (
    "{method} depends on randomness that no seed controls: two fits to the same rows of {task} with the same seed "
    "gave the scores {first:.4f} and {second:.4f}, and {changed} of {all} predictions differ. This noise is part "
    "of all intervals, so the verdicts hold, but a repeated run gives different scores. peekbench seeds Python, "
    "NumPy and PyTorch; pass `seed` (in plugins, `context.seed`) to all other generators; those of a grader "
    "count as well"
)


def warn_of_repeats(repeats: Iterable[tuple[Trial, Repeat]]) -> Iterator[str]:
    """Yield a warning about each fit that differed when made twice.

    Examples
    --------
    >>> from peekbench.records.trials import Draw
    >>> trial = Trial(Draw("news", 100, 40, 0), "net")
    >>> [text.partition(":")[0] for text in warn_of_repeats([(trial, Repeat(12, 40, 0.4875, 0.5))])]
    ['net depends on randomness that no seed controls']
    """
    for trial, repeat in repeats:
        if repeat.num_changed:
            yield REPEATED.format(
                method=trial.method,
                task=trial.draw.task,
                first=repeat.first,
                second=repeat.second,
                changed=repeat.num_changed,
                all=repeat.num_predictions,
            )
