"""Reads the stores of the atlas and asks the analyses `summary` and `power` for every number.

An interval is that of a verdict of `summary`, which adjusts it for all configurations of the table that it receives.
Tables for other effects than the average bias are made by renaming: a boost is a bias whose arms are `base` and
`extra`; a method on one task is a configuration of its own.

The records are what docs/atlas.json contains. Scores and effects are fractions, or bits per byte if a section says so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict

from peekbench import Verdict, load_results, load_spec
from peekbench.records import TrialEvidence
from peekbench.results import Configuration, configurations
from peekbench.results.analyze import analyze, planned_trials
from peekbench.spec.experiment import canonical
from peekbench.store.writer import Store

sys.path.append(str(Path(__file__).parents[1] / "study"))

from pages import rows

POINTS, BITS = "points", "bits per byte"


class Record(BaseModel):
    """A record that does not change."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Effect(Record):
    """A mean difference between two arms."""

    mean: float
    low: float | None = None
    high: float | None = None
    decision: str = ""
    """Decision of `summary` on this difference, or the outcome of a control."""
    other_tasks: str = ""
    """What `summary` says about a bias in other tasks like these."""

    @property
    def is_up(self) -> bool:
        """Whether the difference is significantly positive."""
        return self.low is not None and self.low > 0

    @property
    def is_down(self) -> bool:
        """Whether the difference is significantly negative."""
        return self.high is not None and self.high < 0


class Cell(Record):
    """One method on one task."""

    boost: Effect
    bias: Effect


class Method(Record):
    """One method on all tasks of a section."""

    name: str
    spec: str
    """Name of the file in specs/atlas that runs the method, without suffix."""
    control: str
    subsamples: int
    """Subsamples per task."""
    base: float
    extra: float
    test: float
    boost: Effect
    bias: Effect
    detectable: float | None
    """Smallest average bias that the run detects with a power of 80% at a level of 5%; None for controls."""
    tasks: dict[str, Cell]


class Section(Record):
    """Methods on the same tasks with the same sizes."""

    name: str
    unit: str
    num_train: int
    num_test: int
    num_tasks: int
    methods: list[Method]


class Line(Record):
    """Effects of one method by dose or by size, averaged over tasks."""

    method: str
    control: str
    x: list[float]
    effects: list[Effect]


class Series(Record):
    """Lines over doses, numbers of test texts or numbers of train texts."""

    name: str
    """Name of the spec."""
    num_train: int | None
    """None if the lines are over this number."""
    num_test: int | None
    subsamples: int
    lines: list[Line]


class Run(Record):
    """A finished run of a spec."""

    spec: str
    purpose: str
    trials: int
    subsamples: int


class Atlas(Record):
    """All numbers of the atlas."""

    runs: list[Run]
    missing: list[str]
    """Specs without a finished store."""
    sections: list[Section]
    series: list[Series]

    def section(self, name: str) -> Section | None:
        """Return a section by name; None if its specs have not been run."""
        return next((section for section in self.sections if section.name == name), None)

    def one_series(self, name: str) -> Series | None:
        """Return the lines of a spec; None if it has not been run."""
        return next((series for series in self.series if series.name == name), None)


SPECS = Path(__file__).parents[2] / "specs" / "atlas"
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "docstrings": (
        "classic",
        "word2vec",
        "transductive",
        "transductive_encoder",
        "embedding",
        "sentence_encoders",
        "finetune",
        "prompting",
    ),
    "language modeling": ("language_modeling", "language_modeling_trained"),
    "hub": ("hub",),
}
"""Section of the page to the specs whose methods are adjusted together in it."""
SERIES = ("dose", "num_test", "num_train")
PURPOSES = {"dose": "dose response", "num_test": "number of test texts", "num_train": "number of train texts"}
OMITTED: Mapping[str, str] = {
    "finetune.overtrain": "`finetune.tapt` with more epochs",
    "prompting.batch_calibration_few_shot": "`prompting.batch_calibration` with longer prompts",
    "prompting.few_shot": "ignores unlabeled texts",
    "prompting.zero_shot": "ignores unlabeled texts",
    "prompting.packed": "`prompting.pretrain` with longer prompts",
    "prompting.supervised": "`prompting.pretrain` with one more step, which is the same in all arms",
    "tabular.pca": "has no texts",
    "tabular.screening": "has no texts",
    "tabular.standardize": "has no texts",
}
"""Methods of peekbench that no spec of the atlas runs, and why."""
DIGITS = 7  # of the numbers in docs/atlas.json, after the point
SEPARATOR = " on "


def spec_names() -> list[str]:
    """Return the specs of the atlas in the order of the page."""
    names = [name for group in SECTIONS.values() for name in group] + list(SERIES)
    return [name for name in names if (SPECS / f"{name}.yaml").is_file()]


def collect(folder: Path) -> Atlas:
    """Return the numbers of all finished runs.

    Parameters
    ----------
    folder
        Folder of the stores.
    """
    found = {name: results for name in spec_names() if (results := read_finished(name, folder)) is not None}
    return Atlas(
        runs=[_run(name, results) for name, results in found.items()],
        missing=[name for name in spec_names() if name not in found],
        sections=[
            collect_section(name, {spec: found[spec] for spec in specs if spec in found})
            for name, specs in SECTIONS.items()
            if found.keys() & set(specs)
        ],
        series=[collect_series(name, found[name]) for name in SERIES if name in found],
    )


def read_finished(name: str, folder: Path) -> pd.DataFrame | None:
    """Return the results table of a spec; None if there is no store, or the spec plans other trials than it has."""
    spec = load_spec(SPECS / f"{name}.yaml")
    path = folder / f"{spec.name}.sqlite"
    if not path.is_file():
        return None
    with Store.open(path) as store:
        stored, done = store.spec(), store.done()
    if _experiment(canonical(spec)) != _experiment(stored) or not set(planned_trials(path)) <= done:
        return None
    return load_results(path)


def _experiment(spec: Mapping[str, Any]) -> str:
    """Return what determines the trials of a spec."""
    parts = ("seed", "tasks", "methods", "design", "arms")
    return json.dumps([spec[part] for part in parts], sort_keys=True)


def _run(name: str, results: pd.DataFrame) -> Run:
    return Run(
        spec=name,
        purpose=PURPOSES.get(name) or next(section for section, specs in SECTIONS.items() if name in specs),
        trials=len(results) // results["arm"].nunique(),
        subsamples=int(results["subsample"].nunique()),
    )


def collect_section(name: str, by_spec: Mapping[str, pd.DataFrame]) -> Section:
    """Judge the methods of several specs together.

    Parameters
    ----------
    name
        Name of the section.
    by_spec
        Name of a spec to its results table.
    """
    tables = {spec: _name_controls(table, spec) for spec, table in by_spec.items()}
    specs = {method: spec for spec, table in tables.items() for method in table["method"].unique()}
    results = pd.concat(tables.values(), ignore_index=True).assign(model="")
    biases, boosts = judge(results), judge(as_bias(results, "extra", "base"))
    on_tasks = results.assign(method=results["method"] + SEPARATOR + results["task"], task="")
    task_biases, task_boosts = judge(on_tasks), judge(as_bias(on_tasks, "extra", "base"))
    detectable = _detectable(results)
    methods = []
    for configuration in configurations(results).configurations:
        method = configuration.label
        cells = {
            task: Cell(boost=task_boosts[method + SEPARATOR + task], bias=task_biases[method + SEPARATOR + task])
            for task in configuration.scores["bias"]
        }
        arms = {arm: _mean_over_tasks(configuration, arm) for arm in ("base", "extra", "test")}
        methods.append(
            Method(
                name=method, spec=specs[method], control=configuration.control, tasks=cells,
                subsamples=max(map(len, configuration.subsamples.values())), boost=boosts[method],
                bias=biases[method], detectable=detectable.get(method), **arms,
            )
        )  # fmt: skip
    return Section(
        name=name,
        unit=POINTS if results["num_correct"].notna().all() else BITS,
        num_train=int(results["num_train"].iloc[0]),
        num_test=int(results["num_test"].iloc[0]),
        num_tasks=int(results["task"].nunique()),
        methods=sorted(methods, key=lambda method: bool(method.control)),
    )


def _name_controls(results: pd.DataFrame, spec: str) -> pd.DataFrame:
    """Distinguish the controls of several specs."""
    is_control = results["control"] != ""
    named = results["method"].where(~is_control, results["method"].str.removeprefix("controls.") + f" ({spec})")
    return results.assign(method=named.astype(results["method"].dtype))


def _mean_over_tasks(configuration: Configuration, arm: str) -> float:
    means = [sum(values) / len(values) for values in configuration.scores[arm].values()]
    return round(sum(means) / len(means), DIGITS)


def _detectable(results: pd.DataFrame) -> dict[str, float]:
    (power,) = analyze(results, ["power"])
    table = rows(power, "Minimum detectable bias of this design")
    return {row["method"]: round(row["these tasks"], DIGITS) for row in table if row["these tasks"] is not None}


def collect_series(name: str, results: pd.DataFrame) -> Series:
    """Return lines over doses or sizes.

    Parameters
    ----------
    name
        Name of the spec: 'dose', 'num_test' or 'num_train'.
    results
        Its results table.
    """
    lines = _dose_lines(results) if name == "dose" else _size_lines(results, name)
    sizes = {size: int(results[size].iloc[0]) for size in ("num_train", "num_test") if name != size}
    subsamples = int(results["subsample"].nunique())
    sizes_or_none = {"num_train": sizes.get("num_train"), "num_test": sizes.get("num_test")}
    return Series(name=name, subsamples=subsamples, lines=_controls_last(lines), **sizes_or_none)


def _dose_lines(results: pd.DataFrame) -> Iterable[Line]:
    """Return the difference of each dose from `extra`; the dose of `test` is 1."""
    doses = {arm: float(arm.removeprefix("mix-")) for arm in results["arm"].unique() if arm.startswith("mix-")}
    doses["test"] = 1.0
    tables = [as_bias(results, arm, "extra") for arm in doses]
    named = [table.assign(method=table["method"] + SEPARATOR + arm) for table, arm in zip(tables, doses, strict=True)]
    effects = judge(pd.concat(named, ignore_index=True))
    for method, rows_of_method in results.groupby("method", sort=False):
        x = sorted(doses.items(), key=lambda item: item[1])
        yield Line(
            method=_short(str(method)),
            control=str(rows_of_method["control"].iloc[0]),
            x=[0.0, *(dose for _, dose in x)],
            effects=[Effect(mean=0.0, low=0.0, high=0.0), *(effects[f"{method}{SEPARATOR}{arm}"] for arm, _ in x)],
        )


def _size_lines(results: pd.DataFrame, size: str) -> Iterable[Line]:
    """Return the bias of each method by size."""
    lines: dict[str, dict[int, Effect]] = {}
    controls = dict(zip(results["method"], results["control"], strict=True))
    for configuration, verdict in judge_configurations(results.assign(model="")):
        key = dict(zip(("method", "model", "num_train", "num_test"), configuration.key, strict=True))
        lines.setdefault(str(key["method"]), {})[int(key[size] or 0)] = _effect(verdict)
    for method, effects in lines.items():
        x = sorted(effects)
        yield Line(method=_short(method), control=controls[method], x=x, effects=[effects[number] for number in x])


def _short(method: str) -> str:
    return method.removeprefix("controls.")


def _controls_last(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: bool(line.control))


def as_bias(results: pd.DataFrame, minuend: str, subtrahend: str) -> pd.DataFrame:
    """Return a results table whose bias is the difference of two arms.

    Parameters
    ----------
    results
        A results table.
    minuend, subtrahend
        Arms, such as 'extra' and 'base'; the difference is then the boost.
    """
    renamed = results["arm"].map({minuend: "test", subtrahend: "extra"}).astype(results["arm"].dtype)
    return results.assign(arm=renamed)[renamed.notna()].reset_index(drop=True)


def judge(results: pd.DataFrame) -> dict[str, Effect]:
    """Return the average bias of each configuration by its label, with the interval of its verdict."""
    return {configuration.label: _effect(verdict) for configuration, verdict in judge_configurations(results)}


def judge_configurations(results: pd.DataFrame) -> Sequence[tuple[Configuration, Verdict]]:
    """Return each configuration of a table with the verdict of `summary`, adjusted for all of them except controls."""
    (summary,) = analyze(results, ["summary"])
    return list(zip(configurations(results).configurations, summary.verdicts, strict=True))


def _effect(verdict: Verdict) -> Effect:
    low, high = (None if number is None else round(number, DIGITS) for number in verdict.estimate.limits)
    assert isinstance(verdict.evidence, TrialEvidence)
    mean, other_tasks = round(verdict.estimate.mean, DIGITS), verdict.evidence.other_tasks
    return Effect(mean=mean, low=low, high=high, decision=verdict.decision, other_tasks=other_tasks)
