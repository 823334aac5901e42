"""Tests of `summary.texts`, which reads the answers to single texts of a run or of a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import peekbench as pb
from peekbench import load_results
from peekbench.data.loading import load_dataset
from peekbench.data.sampling import Sampler
from peekbench.errors import SpecError
from peekbench.execution.runner import run
from peekbench.records import Draw
from peekbench.results import tidy
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.results.read import StoredPredictions
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.store.reader import Store

if TYPE_CHECKING:
    from peekbench.spec.experiment import ExperimentSpec


TRIAL = ["method", "num_train", "num_test", "task", "subsample", "arm"]
SHARED = [*TRIAL, "num_correct", "score"]


def rows_of_texts(store: Path, results: pd.DataFrame) -> pd.DataFrame:
    """A table with one row for each test text of each arm of a run."""
    tables = []
    for (method, model, task), rows in results.groupby(["method", "model", "task"]):
        arms = tuple(rows["arm"].unique())
        answers = StoredPredictions(store).answers(str(task), str(method), 12, 30, arms)
        assert answers is not None
        for arm, scores in answers.scores.items():
            subsamples = np.repeat(answers.subsamples, 30)
            of_arm = {"subsample": subsamples, "arm": arm, "text": answers.rows.ravel(), "score": scores.ravel()}
            if answers.groups is not None:
                of_arm["group"] = [f"author {group}" for group in answers.groups.ravel()]
            place = {"task": task, "method": method, "model": model, "num_train": 12, "num_test": 30}
            tables.append(pd.DataFrame({**place, **of_arm}))
    return pd.concat(tables)


def test_answers_are_those_of_the_sampled_texts(make_spec: Callable[..., ExperimentSpec]) -> None:
    spec = make_spec(design={"num_train": 12, "num_test": 30, "num_subsamples": 6, "crossover": False})
    store = run(spec).store
    results = load_results(store)
    task, method = str(results["task"].iloc[0]), str(results["method"].iloc[0])
    answers = StoredPredictions(store).answers(task, method, 12, 30, ("extra", "test"))
    assert answers is not None
    rows = results[(results["task"] == task) & (results["method"] == method)]
    for arm, scores in answers.scores.items():
        assert scores.sum(axis=1).tolist() == rows[rows["arm"] == arm]["num_correct"].tolist()
    sampler = Sampler(load_dataset(spec.source(spec.task(task))), spec.design, spec.seed, task)
    assert answers.subsamples.tolist() == list(range(6))
    for subsample, drawn in enumerate(answers.rows):
        assert np.array_equal(drawn, sampler.draw(Draw(task, 12, 30, subsample)).test)

    (analysis,) = analyze(store, AnalysisOptions(["summary.texts"])).analyses
    (table,) = analysis.tables
    names, spread = table.spread()
    for row in spread:
        cells: dict[str, Any] = dict(zip(names, row, strict=True))
        means = results[results["method"] == cells["method"]].pivot_table(index="task", columns="arm", values="score")
        assert cells["bias"] == pytest.approx((means["test"] - means["extra"]).mean())
        assert cells["bias, low"] <= cells["bias"] <= cells["bias, high"]
        assert cells["conclusion"] in ("biased up", "biased down", "equivalent", "inconclusive")

    with pytest.raises(SpecError, match="analysis summary.texts, option region: 1 is 100 points of the score"):
        analyze(store, AnalysisOptions([make_component(AnalysisSpec, "summary.texts", {"region": 1})]))

    texts = rows_of_texts(store, results).assign(independent_tasks="yes")
    (of_table,) = analyze(texts.sample(frac=1, random_state=0), AnalysisOptions(["summary.texts"])).analyses
    of_same = sorted(of_table.tables[0].spread()[1], key=repr)
    assert of_same == sorted(spread, key=repr), "the same answers give exactly the same numbers"
    added_up = tidy(texts, "texts").sort_values(TRIAL, ignore_index=True)
    pd.testing.assert_frame_equal(added_up[SHARED], results.sort_values(TRIAL, ignore_index=True)[SHARED])


def test_groups_of_a_task_are_the_units(tmp_path: Path) -> None:
    rows = pd.DataFrame({"text": [f"w{row % 7} w{row % 11} v{row % 2}" for row in range(300)]})
    rows = rows.assign(label=[f"c{row % 2}" for row in range(300)], author=[row // 2 % 30 for row in range(300)])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 5, "crossover": False}
    stores = {}
    for group in ("author", None):
        options = {"path": str(tmp_path / "rows.csv"), "group": group}
        task = {"use": "files", "name": "rows", "options": options}
        spec = {"name": f"of-{group}", "tasks": [task], "methods": ["classic.lsa"], "design": design}
        spec["executor"] = {"use": "local", "options": {"in_process": True}}
        stores[group] = pb.run(spec, progress=False).store
    for group, store in stores.items():
        answers = StoredPredictions(store).answers("rows", "classic.lsa", 12, 30, ("extra", "test"))
        assert answers is not None
        (analysis,) = analyze(store, AnalysisOptions(["summary.texts"])).analyses
        (table,) = analysis.tables
        names = [column.name for column in table.columns]
        assert ("groups" in names) == (group is not None)
        assert ("groups" in (table.note or "")) == (group is not None)
        if group is None:
            assert answers.groups is None
            continue
        assert answers.groups is not None
        authors = rows["author"].to_numpy()[answers.rows]
        pairs = {*zip(authors.ravel().tolist(), answers.groups.ravel().tolist(), strict=True)}
        assert len(pairs) == len({author for author, _ in pairs}) == len({number for _, number in pairs})
        assert table.rows[0][names.index("groups")] == len(pairs)
        texts = rows_of_texts(store, load_results(store))
        assert list(texts.columns[-2:]) == ["score", "group"]
        (of_table,) = analyze(texts.sample(frac=1, random_state=0), AnalysisOptions(["summary.texts"])).analyses
        for cell, expected in zip(of_table.tables[0].spread()[1][0], table.spread()[1][0], strict=True):
            assert cell == (pytest.approx(expected) if isinstance(expected, float) else expected)
    with Store.open(stores["author"]) as opened:
        assert opened.tasks()["rows"]["groups"] == 30
