"""Reads the stores of the atlas and asks `summary` and `power` for every number of docs/atlas.json.

An interval is that of a verdict of `summary`, which adjusts it for all configurations of the table that it receives.
Other effects than the average bias are judged by renaming: a boost is a bias whose arms are `base` and `extra`; a
method on one task is a configuration of its own. Scores and effects are fractions, or bits per byte.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
from atlas_records import Atlas, Effect, Method, Run, Section, State, Task

from peekbench import load_results, load_spec
from peekbench.data.preflight import share_of_copies
from peekbench.records import FloatArray
from peekbench.results import Configuration, configurations
from peekbench.results.analyze import AnalysisOptions, analyze, planned_trials, without_controls
from peekbench.results.missing_trials import drop_incomplete
from peekbench.spec.design import designs_by_task
from peekbench.spec.experiment import ExperimentSpec, canonical
from peekbench.store.reader import Store
from peekbench_stats import resolve_score, select_score, units_of
from peekbench_summary.estimates import estimate_these_tasks
from peekbench_summary.forecast import minimum_detectable

sys.path.append(str(Path(__file__).parents[1] / "study"))


SPECS = Path(__file__).parents[2] / "specs" / "atlas"
DOCS = SPECS.parents[1] / "docs"
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "docstrings": (
        "classic",
        "word2vec",
        "transductive",
        "transductive_encoder",
        "embedding",
        "prompting",
    ),
    "hub": ("hub", "hub_embedding"),
    "natural": ("hub_natural",),
    "replication": ("hub_replication",),
    "cross-fitting": ("protocols_hub",),
    "more folds": ("protocols_hub_20",),
    "membership": ("membership_hub",),
    "words": ("words",),
    "trained": ("finetune",),
    "sentence encoders": ("sentence_encoders",),
    "language modeling": ("language_modeling", "language_modeling_trained"),
}
"""Section of the page to the specs whose methods are adjusted together in it."""
RULES: Mapping[str, str] = {"cross-fitting": "cross-5", "more folds": "cross-20", "membership": "swap-in-5"}
"""Section to the arm whose bias it has, in place of that of `test`."""
PUBLISHED: dict[str, Path] = {
    "gemma": Path("methods", "gemma_scores.csv"),
    "in context": Path("methods", "in_context_scores.csv"),
    "sums": Path("methods", "sums_scores.csv"),
}
"""Tables of scores below docs/, which `peekbench analyze` reads: name to path. A table is a section for each of its
sizes, named as in 'gemma, 50, 100'."""
ON_THE_HUB = (
    "hub", "hub_embedding", "hub_natural", "hub_replication", "protocols_hub", "protocols_hub_20",
    "membership_hub", "words", "official_hub", "official_prompts", "sizes",
)  # fmt: skip
STRESS_TESTS = ("embedding.whitening", "embedding.all_but_the_top", "embedding.tsdae")
"""Methods that lost accuracy on tasks that the atlas does not report; the finding leaves them out."""
PLACEBOS = 20
"""Random exchanges of `test` and `extra`, which leave no bias."""
DIGITS = 7
SEPARATOR = " on "


def spec_names() -> list[str]:
    """Return the specs of docs/atlas.json in the order of the page."""
    return [name for group in SECTIONS.values() for name in group]


def missing_specs(atlas: Atlas) -> list[str]:
    """Return the specs without a finished run."""
    return [name for name in spec_names() if name not in atlas.runs]


def collect(folder: Path, earlier: Atlas | None = None) -> Atlas:
    """Return the numbers of all finished runs.

    Parameters
    ----------
    folder
        Folder of the stores.
    earlier
        Numbers from which the tables are taken that no store of the folder belongs to.
    """
    found = {name: results for name in spec_names() if (results := read_finished(name, folder)) is not None}
    loaded = {name: load_spec(SPECS / f"{name}.yaml") for name in found}
    groups = {
        section: [name for name in names if name in found]
        for section, names in SECTIONS.items()
        if found.keys() & set(names)
    }
    judged = found | {
        name: replace_test(found[name], arm) for section, arm in RULES.items() for name in groups.get(section, ())
    }
    atlas = Atlas(
        runs={name: describe_run(folder / f"{spec.name}.sqlite", found[name]) for name, spec in loaded.items()},
        tasks={name: task for spec in loaded.values() for name, task in read_tasks(folder / f"{spec.name}.sqlite")},
        sections={
            section: collect_section(
                {name: judged[name] for name in names}, {name: loaded[name] for name in names}, folder
            )
            for section, names in groups.items()
        },
        words=next((compare_biases(found[name]) for name in SECTIONS["words"] if name in found), None),
        placebo=next((count_placebos(found[name]) for name in SECTIONS["replication"] if name in found), None),
    )
    of_tables = dict(item for name, path in PUBLISHED.items() for item in collect_table(name, DOCS / path))
    atlas = atlas.model_copy(update={"sections": atlas.sections | of_tables})
    if earlier is None:
        return atlas
    is_new = {name for names in SECTIONS.values() if found.keys() & set(names) for name in names}
    return Atlas(
        runs={name: run for name, run in earlier.runs.items() if name not in is_new} | atlas.runs,
        tasks=earlier.tasks | atlas.tasks,
        sections={
            name: section for name in SECTIONS if (section := (earlier.sections | atlas.sections).get(name)) is not None
        }
        | of_tables,
        words=atlas.words or earlier.words,
        placebo=earlier.placebo if atlas.placebo is None else atlas.placebo,
    )


def describe_run(path: Path, results: pd.DataFrame) -> Run:
    with Store.open(path) as store:
        session = store.sessions()[-1]
    machine = session["machine"]
    return Run(
        commit=str(session["commit"])[:10],
        machine=", ".join([machine["processor"], f"{machine['cores']} cores", *machine.get("gpus", ())]),
        seconds=round(float(results[["fit_seconds", "predict_seconds"]].sum().sum())),
    )


def read_finished(name: str, folder: Path) -> pd.DataFrame | None:
    """Return the results table of a spec; None if there is no store, or the spec plans other trials than it has."""
    spec = load_spec(SPECS / f"{name}.yaml")
    path = folder / f"{spec.name}.sqlite"
    if not path.is_file():
        return None
    with Store.open(path) as store:
        is_finished = set(planned_trials(store)) <= store.done()
        is_same = _experiment(canonical(spec)) == _experiment(store.spec())
    if not (is_same and is_finished):
        return None
    return load_results(path)


def _experiment(spec: Mapping[str, Any]) -> str:
    """Return what determines the trials of a spec; a store adds the sizes of official splits to its tasks."""
    tasks = [{key: task[key] for key in ("name", "use", "kind", "options")} for task in spec["tasks"]]
    return json.dumps([tasks, *(spec[part] for part in ("seed", "methods", "design", "arms"))], sort_keys=True)


def collect_section(
    tables: Mapping[str, pd.DataFrame], specs: Mapping[str, ExperimentSpec], folder: Path | None = None
) -> Section:
    """Judge the methods of several specs together, by the name of the spec.

    Parameters
    ----------
    tables
        Results tables.
    specs
        The specs, which tell the options of methods.
    folder
        Folder of the stores, whose answers tell what selection gains; None if there are none.
    """
    named = {name: _name_controls(table, name) for name, table in tables.items()}
    spec_of = {method: name for name, table in named.items() for method in table["method"].unique()}
    options = {method.name: method.options for spec in specs.values() for method in spec.methods}
    results = pd.concat(named.values(), ignore_index=True).assign(model="")
    majorities = results.groupby("task", observed=True)["majority"].mean()
    states = {
        configuration.label: state_of(configuration, majorities)
        for configuration in configurations(results).configurations
    }
    judged = results[results["method"].map(states).isin(["judged", "control"])]
    biases, boosts = judge(judged), judge(as_bias(results, "extra", "base"))
    on_tasks = as_methods(results)
    task_biases, task_boosts = judge(on_tasks), judge(as_bias(on_tasks, "extra", "base"))
    detectable = _detectable(judged)
    methods = []
    for configuration in configurations(results).configurations:
        name, scores = configuration.label, configuration.scores
        tasks = list(scores["bias"])
        methods.append(
            Method(
                name=name, spec=spec_of[name], state=states[name], options=_describe(options.get(name)),
                subsamples=max(map(len, configuration.subsamples.values())),
                majority=None if majorities.isna().any() else round(float(majorities[tasks].mean()), DIGITS),
                base=_mean(scores["base"]), extra=_mean(scores["extra"]), boost=boosts[name],
                bias=biases.get(name) or Effect(mean=_mean(scores["bias"])),
                detectable=detectable.get(name),
                biases={task: task_biases[name + SEPARATOR + task] for task in tasks},
                boosts={task: task_boosts[name + SEPARATOR + task] for task in tasks},
            )
        )  # fmt: skip
    return Section(
        num_train=int(results["num_train"].iloc[0]),
        num_test=int(results["num_test"].iloc[0]),
        methods=methods,
        selection=None
        if folder is None or majorities.isna().any()
        else measure_selection(specs.values(), states, folder),
    )


def collect_table(name: str, path: Path) -> Iterator[tuple[str, Section]]:
    """Yield a section for each pair of sizes of a published table of scores, with its name."""
    results = drop_incomplete(load_results(path)).fillna({"num_train": 0, "num_test": 0})
    for (num_train, num_test), rows in results.groupby(["num_train", "num_test"]):
        section = collect_section({name: rows.reset_index(drop=True)}, {})
        of_trials = rows[["fit_seconds", "predict_seconds"]].sum(axis=1, min_count=1)
        seconds = of_trials.groupby(rows["method"]).sum(min_count=1).dropna().round().to_dict()
        methods = [method.model_copy(update={"seconds": seconds.get(method.name)}) for method in section.methods]
        yield f"{name}, {num_train}, {num_test}", section.model_copy(update={"methods": methods})


def count_placebos(results: pd.DataFrame) -> float:
    """Return how many pairs of method and task are biased, on average, if arms change places in random subsamples."""
    generator = np.random.default_rng(0)
    results = results[results["control"] == ""].assign(model="")
    trials = pd.MultiIndex.from_frame(results[["task", "subsample"]])
    arms = results["arm"].astype(str)
    exchanged = arms.replace({"test": "extra", "extra": "test"})
    counts = []
    for _ in range(PLACEBOS):
        drawn = trials.unique()
        is_exchanged = trials.isin(drawn[generator.random(len(drawn)) < 0.5])
        effects = judge(as_methods(results.assign(arm=arms.where(~is_exchanged, exchanged))))
        counts.append(sum(effect.decision.startswith("biased") for effect in effects.values()))
    return fmean(counts)


def as_methods(results: pd.DataFrame) -> pd.DataFrame:
    """Return a results table with a configuration for each pair of method and task."""
    return results.assign(method=results["method"].astype(str) + SEPARATOR + results["task"].astype(str), task="")


def _name_controls(results: pd.DataFrame, spec: str) -> pd.DataFrame:
    """Distinguish the controls of several specs."""
    names = results["method"].astype(str)
    controls = names.str.removeprefix("controls.") + f" ({spec})"
    return results.assign(method=names.where(results["control"] == "", controls))


def state_of(configuration: Configuration, majorities: pd.Series) -> State:
    """Return whether a method can be judged: it must react to unlabeled texts and beat the most frequent class."""
    scores = configuration.scores
    if configuration.control:
        return "control"
    if all(
        difference == 0 for effect in ("boost", "bias") for of_task in scores[effect].values() for difference in of_task
    ):
        return "inert"
    above = fmean(fmean(of_task) - float(majorities[task]) for task, of_task in scores["extra"].items())
    return "at chance" if above <= 0 else "judged"  # NaN for language models, which have no classes


def _describe(options: Any) -> str:
    return "" if options is None else json.dumps(options.model_dump(mode="json", exclude_unset=True))[1:-1]


def _mean(by_task: Mapping[str, Sequence[float]]) -> float:
    return round(fmean(map(fmean, by_task.values())), DIGITS)


def _detectable(results: pd.DataFrame) -> dict[str, float]:
    """Return what a t test at a level of 5% detects, without adjustment for the number of methods."""
    scored = without_controls(results)
    scored = select_score(scored, resolve_score(scored, "score"), "power")
    detectable = {}
    for configuration in configurations(scored).configurations:
        units = units_of(configuration, configuration.scores["bias"])
        estimate = estimate_these_tasks(units, 0.95, is_skewed=False)
        bias = minimum_detectable(estimate.standard_error, estimate.degrees, 0.05)
        if bias is not None:
            detectable[configuration.label] = round(bias, DIGITS)
    return detectable


def read_tasks(path: Path) -> Iterator[tuple[str, Task]]:
    """Yield the names and the data of the tasks of a store."""
    with Store.open(path) as store:
        designs = designs_by_task(store.spec())
        for name, facts in store.tasks().items():
            overlap = None
            if facts["row_name"] != "rows":
                overlap = round(share_of_copies(designs[name], facts)["extra"], DIGITS)
            yield name, Task(
                rows=facts["rows"], classes=len(facts["class_names"]) or None,
                near_duplicates=overlap, fingerprint=facts["fingerprint"][:12],
            )  # fmt: skip


def measure_selection(specs: Iterable[ExperimentSpec], states: Mapping[str, State], folder: Path) -> Effect | None:
    """Measure what it gains to publish the method that is best on the scored texts.

    In each trial, the method with the highest score of `base` or `extra` on one set is compared with the one that is
    best on the next set; both are scored on the first. No method has adapted to the texts that score it.
    """
    scores: dict[str, list[FloatArray]] = {}  # of each task: (n_subsamples, n_sets) of every candidate
    for spec in specs:
        with Store.open(folder / f"{spec.name}.sqlite") as store:
            for method in spec.methods:
                if states.get(method.name) == "judged":
                    for task in spec.tasks:
                        answers = store.answers(
                            task.name, method.name, spec.design.num_train[0], spec.design.num_test[0], ["base", "extra"]
                        )
                        for of_arm in answers.scores.values():
                            sets = of_arm.reshape(len(of_arm), spec.design.num_sets, -1).mean(axis=2)
                            scores.setdefault(task.name, []).append(sets)
    return gain_of_selection(scores) if scores else None


def gain_of_selection(scores: Mapping[str, Sequence[FloatArray]]) -> Effect:
    """Return the mean gain of selection.

    Parameters
    ----------
    scores
        Of each task, the scores of every candidate: (n_subsamples, n_sets), of which the first subsamples are shared.
    """
    gains = []
    for of_task in scores.values():
        shared = min(map(len, of_task))
        stacked = np.stack([each[:shared] for each in of_task])  # (n_candidates, n_subsamples, n_sets)
        best = stacked.argmax(axis=0)
        here = np.take_along_axis(stacked, best[None], axis=0)[0]
        elsewhere = np.take_along_axis(stacked, np.roll(best, 1, axis=1)[None], axis=0)[0]
        gains.append((here - elsewhere).mean(axis=1))
    return _average(gains)


def compare_biases(results: pd.DataFrame) -> Effect:
    """Return the mean bias of the second method minus that of the first, paired by subsample."""
    first, second = (
        configuration.scores["bias"]
        for configuration in configurations(results[results["control"] == ""].assign(model="")).configurations
    )
    return _average([np.subtract(second[task], first[task]) for task in first])


def _average(of_tasks: Sequence[FloatArray]) -> Effect:
    """Return the mean of the tasks' means: (n_subsamples,) of each task."""
    mean = fmean(float(of_task.mean()) for of_task in of_tasks)
    error = math.sqrt(sum(of_task.var(ddof=1) / len(of_task) for of_task in of_tasks)) / len(of_tasks)
    low, high = mean - 1.96 * error, mean + 1.96 * error
    return Effect(mean=round(mean, DIGITS), low=round(low, DIGITS), high=round(high, DIGITS))


def as_bias(results: pd.DataFrame, minuend: str, subtrahend: str) -> pd.DataFrame:
    """Return a results table whose bias is the difference of two arms; with 'extra' and 'base', it is the boost."""
    renamed = results["arm"].astype(str).map({minuend: "test", subtrahend: "extra"})
    return results.assign(arm=renamed)[renamed.notna()].reset_index(drop=True)


def replace_test(results: pd.DataFrame, arm: str) -> pd.DataFrame:
    """Return a results table in which a different arm is `test`."""
    kept = results[results["arm"] != "test"]
    return kept.assign(arm=kept["arm"].astype(str).replace({arm: "test"})).reset_index(drop=True)


def judge(results: pd.DataFrame) -> dict[str, Effect]:
    """Return the average bias of each configuration by its label, adjusted for all of them except controls."""
    return {configuration.label: effect for configuration, effect in _judge_each(results)}


def _judge_each(results: pd.DataFrame) -> Iterator[tuple[Configuration, Effect]]:
    (summary,) = analyze(results, AnalysisOptions(["summary"], allow_incomplete=True)).analyses
    for configuration, verdict in zip(configurations(results).configurations, summary.verdicts, strict=True):
        low, high = (None if number is None else round(number, DIGITS) for number in verdict.estimate.limits)
        mean = round(verdict.estimate.mean, DIGITS)
        yield configuration, Effect(mean=mean, low=low, high=high, decision=verdict.decision)
