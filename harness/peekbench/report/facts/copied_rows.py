"""Test rows that have copies, and the scores of stored predictions without those that are also train rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from peekbench.data.overlap import count_copied, count_repeated
from peekbench.data.preflight import MAX_OVERLAP
from peekbench.records.answers import Predicted
from peekbench.records.data import IntArray
from peekbench.records.report import Analysis
from peekbench.records.scores import SCORES, Score, ScoringInput, average_sets
from peekbench.records.trials import Draw, Trial
from peekbench.records.verdicts import CopiedRows, TrialEvidence, Verdict
from peekbench.results.columns import TRIAL
from peekbench.store.reader import Store

ScoreOfSet = Callable[[Predicted, Any], float | None]


def describe_copied_rows(
    analyses: Sequence[Analysis], path: Path, tasks: Mapping[str, Mapping[str, Any]], results: pd.DataFrame
) -> list[Analysis]:
    """Return the analyses of a run whose verdicts on scores of whole test splits know about rows that were copied.

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
    """
    if not any(data["copies"]["pairs"] for data in tasks.values()):
        return list(analyses)
    copied = {name: _rows_of(data["copies"]) for name, data in tasks.items() if data["copies"]["test_rows"]}
    with Store.open(path, verified=False) as store:

        def describe(verdict: Verdict) -> Verdict:
            evidence = verdict.evidence
            if not isinstance(evidence, TrialEvidence) or evidence.published is None:
                return verdict
            rows = results
            for column, value in verdict.parts or (("method", verdict.method),):
                rows = rows[rows[column] == value]
            names = [str(name) for name in rows["task"].unique()]
            facts = _count([tasks[name] for name in names])
            if facts.num_copied:
                facts = replace(facts, scores=_score_without(store, tasks, copied, rows, evidence.score))
            if not (facts.num_copied or facts.num_repeated or facts.num_private):
                return verdict
            return replace(verdict, evidence=replace(evidence, copied=facts))

        return [replace(analysis, verdicts=tuple(map(describe, analysis.verdicts))) for analysis in analyses]


def _count(tasks: Sequence[Mapping[str, Any]]) -> CopiedRows:
    """Return the numbers of test rows of tasks that have copies; within a test set, features can be equal by chance."""
    copies = [task["copies"] for task in tasks]
    num_copied = sum(map(count_copied, copies))
    num_rows = sum(task["rows"]["test"] for task in copies)
    num_private = sum(task["pairs"].get("test-extra", [0, 0])[1] for task in copies)
    num_repeated = sum(count_repeated(task["copies"]) for task in tasks if task["row_name"] != "rows")
    are_few = not num_copied and not num_private and num_repeated < MAX_OVERLAP * num_rows
    return CopiedRows(num_copied, num_rows, num_repeated=num_repeated, num_private=num_private, are_few=are_few)


def _rows_of(copies: Mapping[str, Any]) -> IntArray:
    return np.concatenate([np.arange(first, stop) for first, stop in copies["test_rows"]])


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
