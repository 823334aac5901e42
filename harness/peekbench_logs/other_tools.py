"""Results of HELM, MTEB and Every Eval Ever, which have scores of single texts or of experiments.

HELM writes `per_instance_stats.json` in the folder of each run, with an object for each text and each draw of train
examples. MTEB repeats classification with several draws of train texts; a result has the scores of each. A file of
samples of Every Eval Ever has a line for each text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, RootModel

from peekbench.errors import ResultsError
from peekbench_logs.tables import (
    TOLERANCE,
    Log,
    Part,
    ScoredAnswer,
    TaskLog,
    find_file,
    parse,
    read_bounded,
    text_id,
)


class StatName(Part):
    """Name of a statistic of HELM."""

    name: str


class Stat(Part):
    """A statistic of one text."""

    name: StatName
    mean: float | None = None


class Instance(Part):
    """Statistics of one text in one draw of train examples."""

    instance_id: str
    train_trial_index: int = 0
    perturbation: Any = None
    stats: list[Stat]


class Instances(RootModel[list[Instance]]):
    """All texts of a run in all draws."""


class RunSpec(Part):
    """What HELM ran."""

    scenario_spec: dict[str, Any]
    adapter_spec: dict[str, Any] = Field(default_factory=dict)


def read_helm(path: Path) -> list[Log]:
    """Read a run: one log for each draw of train examples.

    Parameters
    ----------
    path
        A file `per_instance_stats.json`, or a folder that contains a single one.
    """
    file = find_file(path, "per_instance_stats.json")
    instances = parse(Instances, read_bounded(file, "helm"), file).root
    task, settings = "task", {}
    if (described := file.with_name("run_spec.json")).is_file():
        spec = parse(RunSpec, described.read_bytes(), described)
        values = [str(value) for value in (spec.scenario_spec.get("args") or {}).values()]
        task = ", ".join([str(spec.scenario_spec.get("class_name")).rpartition(".")[2], *values])
        settings = {name: spec.adapter_spec.get(name) for name in ("method", "max_train_instances", "num_outputs")}
    trials: dict[int, list[ScoredAnswer]] = {}
    for instance in instances:
        if instance.perturbation is None:
            values_of = {stat.name.name: stat.mean for stat in instance.stats}
            trials.setdefault(instance.train_trial_index, []).append(ScoredAnswer(instance.instance_id, values_of))
    return [
        Log(file, {task: TaskLog(file, trials[number], {}, settings=settings, has_directions=False)})
        for number in sorted(trials)
    ]


class TaskResult(Part):
    """Scores of a task by split, one object for each subset of its data."""

    task_name: str
    dataset_revision: str | None = None
    scores: dict[str, list[dict[str, Any]]]


def read_mteb(path: Path) -> list[Log]:
    """Read a result: one log for each of its experiments, whose train texts MTEB draws with the same seeds.

    Parameters
    ----------
    path
        A file `TASK.json`, or a folder that contains a single one.

    Raises
    ------
    ResultsError
        If there are no scores of single experiments, or their mean is not the score of the task.
    """
    file = find_file(path, "[!m]*.json")  # beside it lies model_meta.json
    result = parse(TaskResult, read_bounded(file, "mteb"), file)
    experiments: dict[str, Sequence[dict[str, Any]]] = {}
    for split, subsets in result.scores.items():
        for scores in subsets:
            parts = [result.task_name]
            if split != "test":
                parts.append(split)
            if len(subsets) > 1:
                parts.append(str(scores.get("hf_subset")))
            task = ", ".join(parts)
            experiments[task] = scores.get("scores_per_experiment") or ()
            _check_means(experiments[task], scores, f"{file}: {task}")
    numbers = {len(of_task) for of_task in experiments.values()}
    if numbers == {0} or len(numbers) != 1:
        raise ResultsError(
            f"{file} is a result of MTEB without scores of single experiments, which only classification has; repeat "
            "the evaluation with several training seeds, and analyze a table of task, subsample, arm and score"
        )
    settings = {"dataset_revision": result.dataset_revision}
    return [
        Log(
            file,
            {
                task: TaskLog(file, [ScoredAnswer("", of_task[number])], dict(of_task[number]), settings=settings)
                for task, of_task in experiments.items()
            },
        )
        for number in range(*numbers)
    ]


def _check_means(experiments: Sequence[dict[str, Any]], stated: dict[str, Any], place: str) -> None:
    for name in experiments[0] if experiments else ():
        mean = math.fsum(experiment[name] for experiment in experiments) / len(experiments)
        if name in stated and not math.isclose(mean, stated[name], rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise ResultsError(f"{place}: the mean of {name} is {mean:.6g}, and the result states {stated[name]}")


class Evaluation(Part):
    """Score of the answer to one text."""

    score: float


class SampleLine(Part):
    """The answer to one text."""

    sample_id: str
    evaluation_name: str
    sample_hash: str | None = None
    evaluation: Evaluation


def read_every_eval_ever(path: Path) -> Log:
    """Read the samples of an evaluation.

    Parameters
    ----------
    path
        A file `ID_samples.jsonl`, or a folder that contains a single one.
    """
    file = find_file(path, "*.jsonl")
    answers: dict[str, list[ScoredAnswer]] = {}
    for number, content in enumerate(read_bounded(file, "every-eval-ever").splitlines(), 1):
        place = f"{file}, line {number}"
        line = parse(SampleLine, content, place)
        answer = ScoredAnswer(text_id(line.sample_id, place), {"score": line.evaluation.score}, line.sample_hash or "")
        answers.setdefault(line.evaluation_name, []).append(answer)
    tasks = {task: TaskLog(file, of_task, {}, has_directions=False) for task, of_task in answers.items()}
    return Log(file, tasks)
