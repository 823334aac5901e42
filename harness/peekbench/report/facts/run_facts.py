"""What the results of a run depend on: sessions, code and copied rows; how to extend it; what weakens its results."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from peekbench.data.overlap import count_copied, count_repeated
from peekbench.data.preflight import MAX_OVERLAP, count_supported, warn_of_copies
from peekbench.records.answers import Predicted
from peekbench.records.data import IntArray
from peekbench.records.report import Analysis, Extension
from peekbench.records.scores import SCORES, Score, ScoringInput, average_sets
from peekbench.records.trials import Draw, Trial
from peekbench.records.verdicts import CopiedRows, TrialEvidence, Verdict
from peekbench.report.render import run_words
from peekbench.results.analyze import ask, find_analysis, planned_trials, without_controls
from peekbench.results.columns import TRIAL
from peekbench.results.missing_trials import drop_incomplete
from peekbench.spec.design import designs_by_task
from peekbench.store.differences import CodeVersion, describe_change, describe_version_changes
from peekbench.store.reader import Store

if TYPE_CHECKING:
    from peekbench.records.data import TableOptions


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


def find_command(sessions: Sequence[Mapping[str, Any]]) -> str:
    """Find the command that continues a run: that of its last session; empty if it was none."""
    if not sessions:
        return ""
    command = run_words.session_command(sessions[-1])
    if "--official" in command:
        return "peekbench run official.yaml"
    if "quickstart" in command:
        return "peekbench run quickstart.yaml"
    if "run" not in command:
        return ""
    return shlex.join(part for part in command if part != "--fresh")


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What readers of a part of a run's scores must know of the run."""

    extension: Extension
    tasks: Mapping[str, Mapping[str, Any]]
    """Facts about the data of its tasks."""
    copies: tuple[str, ...]
    """Warnings about copies of test rows."""

    @classmethod
    def read(cls, path: Path) -> RunFacts:
        """Read the facts from the store of a run."""
        with Store.open(path, verified=False) as store:
            tasks = store.tasks()
            copies = warn_of_copies(designs_by_task(store.spec()), tasks)
            return cls(describe_extension(store), tasks, tuple(copies))


def describe_extension(store: Store) -> Extension:
    """Return how to extend the run of an open store."""
    spec = store.spec()
    number: int | None = spec["design"]["num_subsamples"]
    if not isinstance(number, int) or any(task.get("num_subsamples") for task in spec["tasks"]):
        number = None
    return Extension(
        find_command(store.sessions()),
        of="run",
        num_subsamples=number,
        num_missing=max(0, len(planned_trials(store)) - len(store.done()) - len(store.failures())),
        seconds=store.seconds_of_subsample(),
        max_subsamples=count_supported(designs_by_task(spec), store.tasks()),
    )


def check_results(results: pd.DataFrame) -> tuple[Analysis, ...]:
    """Run the default analysis with the role 'check', without controls and incomplete trials; nothing if none is left.

    Parameters
    ----------
    results
        Results table.
    """
    results = without_controls(results)
    if results["arm"].value_counts().nunique() > 1:
        results = drop_incomplete(results)
    if not results["arm"].isin(("extra", "test")).any():
        return ()
    return (ask(find_analysis("check"), results),)


def warn_of_code_changes(versions: Mapping[str, Sequence[CodeVersion]]) -> Iterator[str]:
    """Yield a warning for each method plugin whose code changed between trials.

    Parameters
    ----------
    versions
        Versions of the code by plugin, as `peekbench.store.differences.find_versions` returns them.
    """
    for plugin, plugin_versions in versions.items():
        if len(plugin_versions) > 1:
            changes = [describe_change(old.code, new.code) for old, new in pairwise(plugin_versions)]
            yield run_words.warn_of_code_changes(plugin, [len(version.trials) for version in plugin_versions], changes)


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
        yield run_words.warn_of_other_versions(changes)


ScoreOfSet = Callable[[Predicted, Any], float | None]


def describe_copied_rows(
    analyses: Sequence[Analysis],
    path: Path,
    tasks: Mapping[str, Mapping[str, Any]],
    results: pd.DataFrame,
    prefix: str = "",
) -> list[Analysis]:
    """Return the analyses of a run whose verdicts on scores of whole test splits know about copied and removed rows.

    Parameters
    ----------
    analyses
        Analyses of the run.
    path
        Its store.
    tasks
        Facts about the data of its tasks.
    results
        Its results table.
    prefix
        What precedes the names of its methods in the analyses.
    """
    if not any(data["splits"] for data in tasks.values()):
        return list(analyses)
    ranges = {name: data["copies"]["test_rows"] for name, data in tasks.items()}
    copied = {name: np.concatenate([np.arange(*ends) for ends in each]) for name, each in ranges.items() if each}
    with Store.open(path, verified=False) as store:

        def describe(verdict: Verdict) -> Verdict:
            evidence = verdict.evidence
            if not isinstance(evidence, TrialEvidence) or evidence.published is None:
                return verdict
            rows = results
            for column, value in verdict.parts or (("method", verdict.method),):
                if isinstance(value, str):
                    value = value.removeprefix(prefix)
                rows = rows[rows[column] == value]
            names = [str(name) for name in rows["task"].unique()]
            evidence = replace(evidence, removed=_count_removed([tasks[name] for name in names]))
            facts = _count([tasks[name] for name in names])
            if facts.num_copied:
                facts = replace(facts, scores=_score_without(store, tasks, copied, rows, evidence.score))
            if facts.num_copied or facts.num_repeated or facts.num_private:
                evidence = replace(evidence, copied=facts)
            return replace(verdict, evidence=evidence)

        return [replace(analysis, verdicts=tuple(map(describe, analysis.verdicts))) for analysis in analyses]


def _count_removed(tasks: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return the number of rows that were removed from the test splits of tasks, and of all rows of these splits."""
    numbers = [task["splits"]["test"]["rows"] for task in tasks]
    read = [task["details"].get("test_rows_read", kept) for task, kept in zip(tasks, numbers, strict=True)]
    return sum(read) - sum(numbers), sum(read)


def _count(tasks: Sequence[Mapping[str, Any]]) -> CopiedRows:
    """Return the numbers of test rows of tasks that have copies; within a test set, features can be equal by chance."""
    copies = [task["copies"] for task in tasks]
    num_copied = sum(map(count_copied, copies))
    num_rows = sum(task["rows"]["test"] for task in copies)
    num_private = sum(task["pairs"].get("test-extra", [0, 0])[1] for task in copies)
    num_repeated = sum(count_repeated(task["copies"]) for task in tasks if task["row_name"] != "rows")
    are_few = not num_copied and not num_private and num_repeated < MAX_OVERLAP * num_rows
    return CopiedRows(num_copied, num_rows, num_repeated=num_repeated, num_private=num_private, are_few=are_few)


def _score_without(
    store: Store,
    tasks: Mapping[str, Mapping[str, Any]],
    copied: Mapping[str, IntArray],
    results: pd.DataFrame,
    name: str,
) -> dict[str, float]:
    """Return the mean of a score over subsamples, then over tasks, by arm; nothing if it is not defined."""
    scores: dict[str, dict[str, list[float]]] = {}
    for row in results.drop_duplicates(list(TRIAL)).to_dict("records"):
        draw = Draw(row["task"], row["num_train"], row["num_test"], row["subsample"])
        trial = Trial(draw, row["method"])
        score = _find_function(name, tasks[trial.draw.task])
        labels, rows = store.test_rows(trial.draw)
        is_new = ~np.isin(rows, copied.get(trial.draw.task, ()))
        for arm, predicted in store.predictions(trial).items():
            fits = [predicted[first : first + len(rows)] for first in range(0, len(predicted), len(rows))]
            try:
                values = [score(fit[is_new], labels[is_new]) for fit in fits]
            except ValueError:  # of scikit-learn
                return {}
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                return {}
            scores.setdefault(arm, {}).setdefault(trial.draw.task, []).append(average_sets(known, 1))
    return {arm: float(np.mean([np.mean(scores) for scores in by_task.values()])) for arm, by_task in scores.items()}


def _find_function(name: str, task: Mapping[str, Any]) -> ScoreOfSet:
    """Return a function that computes a score of predictions, of which higher values are better."""
    own = [score for score in SCORES if score.name == name]
    if not own:
        from peekbench.plugins.scorers import load_scorer  # noqa: PLC0415 - few reports need scikit-learn

        return load_scorer(name)
    return partial(_compute, own[0], task)


def _compute(score: Score, task: Mapping[str, Any], predicted: Predicted, labels: Any) -> float | None:
    function = score.functions.get(task["kind"])
    if function is None:
        return None
    value = function(ScoringInput(predicted, labels, len(task["class_names"])))
    if value is None or score.is_higher_better:
        return value
    return -value
