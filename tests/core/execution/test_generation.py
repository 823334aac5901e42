"""Tests of tasks with generated answers, from the data to the report."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import peekbench as pb
from peekbench.errors import DataError, PluginError, StoreError
from peekbench.store.reader import Store

CODE = '''
import random


def {grader}(answer, reference):
    return {grade}


def load_sums():
    from peekbench import Dataset
    pairs = [(a, b) for a in range(20) for b in range(20)]
    return Dataset([f"{{a}}+{{b}}" for a, b in pairs], [str(a + b) for a, b in pairs], kind="generation")


def fit(unlabeled, train, task, seed, samples: int = 1):
    """Knows a sum, which is right more often if its prompt is among the unlabeled ones."""
    known = set(unlabeled or ())

    def answer(prompt):
        rng = random.Random(f"{{seed}} {{prompt}}")
        right = str(sum(map(int, prompt.split("+"))))
        answers = [right if rng.random() < (0.9 if prompt in known else 0.5) else "0" for _ in range(samples)]
        return answers[0] if samples == 1 else answers

    return lambda prompts: [answer(prompt) for prompt in prompts]
'''
DESIGN = {"num_train": 10, "num_test": 40, "num_subsamples": 6}


def write_spec(folder: Path, grade: str = "answer == reference", name: str = "grade", **parts: Any) -> Path:
    (folder / "sums.py").write_text(CODE.format(grade=grade, grader=name), encoding="utf-8")
    spec = {
        "name": "sums", "tasks": [{"use": "sums.py:load_sums", "grader": "sums.py:grade"}],
        "methods": ["sums.py:fit", "controls.leak", "controls.null"], "design": DESIGN,
        "executor": {"use": "local", "options": {"in_process": True}}, **parts,
    }  # fmt: skip
    path = folder / "spec.yaml"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a run with controls, crossover scoring and a rule."""
    folder = tmp_path_factory.mktemp("generation")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        parts: dict[str, Any] = {"design": {**DESIGN, "crossover": 2}, "arms": ["base", "extra", "test", {"cross": 4}]}
        return pb.run(write_spec(folder, **parts), progress=False)


def test_membership_is_measured_and_controls_are_exact(run: Any) -> None:
    means = run.arms.groupby("method")[["bias", "cross-4"]].mean()
    assert means["bias"]["fit"] == pytest.approx(0.4, abs=0.1)
    assert means["bias"]["controls.null"] == 0.0
    with Store.open(run.store) as store:
        planted = store.metrics()["controls.leak"]["test"]["planted_gain"]
    assert means["bias"]["controls.leak"] == pytest.approx(planted)
    assert planted > 0.15


def test_scores_are_grades_in_points_and_answers_are_stored(run: Any) -> None:
    results = pb.load_run(run.store).results
    assert (results["score"] == results["grade"]).all()
    assert (results["num_correct"] == (results["score"] * 80).round()).all()
    rows = run.predictions.to_pandas(method="fit", subsample=0)
    assert ((rows["prediction"] != "0") | (rows["text"] == 0)).eq(rows["grade"] == 1).all()
    assert "points" in str(run.report())
    again, own = (
        report.tables["by task"].to_pandas().sort_values("method", ignore_index=True)
        for report in (pb.analyze(run.predictions.to_pandas()), run.report())
    )
    pd.testing.assert_frame_equal(again, own)
    with Store.open(run.store) as store:
        trial = next(iter(run.predictions))
        assert {len(answers) for answers in store.generated(trial).values()} == {80}
        answers = store.answers("load_sums", "fit", 10, 40, ["extra", "test"])
        assert answers.scores["test"].mean() > answers.scores["extra"].mean()


def test_several_answers_have_their_mean_grade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    methods = [{"use": "sums.py:fit", "options": {"samples": 3}}]
    found = pb.run(write_spec(tmp_path, methods=methods), progress=False)
    results = pb.load_run(found.store).results
    assert results["num_correct"].isna().any()
    assert (results["grade"] == results["score"]).all()
    assert "points" in str(found.report())
    assert found.predictions.to_pandas()["prediction"].map(len).eq(3).all()
    table = tmp_path / "scores.csv"
    results.to_csv(table, index=False)
    assert pb.analyze(table).verdicts[0].estimate == found.report().verdicts[0].estimate


def test_a_changed_grader_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parts: dict[str, Any] = {"methods": ["controls.null"]}
    pb.run(write_spec(tmp_path, **parts), progress=False)
    more = write_spec(tmp_path, grade="1.0", design={**DESIGN, "num_subsamples": 7}, **parts)
    with pytest.raises(StoreError, match=r"graders has changed.*\n.*plugin sums\.py"):
        pb.run(more, progress=False)


@pytest.mark.parametrize(
    ("grade", "message"),
    [
        (
            "1 / 0",
            r"sums.py:grade: ZeroDivisionError: .*\(sums.py, line \d+, in grade\).* graded the answer '.*' by '.*'",
        ),
        ("2", r"sums.py:grade returned 2; return a number from 0 to 1; it graded the answer"),
        ("float('nan')", "sums.py:grade returned nan"),
    ],
)
def test_graders_that_fail_name_the_answer_and_the_reference(
    grade: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        pb.run(write_spec(tmp_path, grade=grade, methods=["controls.null"]), progress=False)
    fails_for_others = f"1.0 if answer == reference else {grade}"
    with pytest.raises(PluginError, match=message):
        pb.run(write_spec(tmp_path, grade=fails_for_others, methods=["controls.null"]), progress=False)


def test_references_that_a_grader_cannot_read_are_refused_before_the_first_fit() -> None:
    with pytest.raises(DataError, match="the reference names no letter"):
        pb.measure(fit_to(["A"] * 20), (SUMS[0], ["A", *SUMS[1][1:]]), grader="choice", **FEW)


def fit_to(answers: Any) -> Any:
    def fit(unlabeled: Any, train: Any) -> Any:
        return answers

    return fit


SUMS = ([f"{a} and {b}" for a in range(10) for b in range(10)], [str(a + b) for a in range(10) for b in range(10)])
FEW: dict[str, Any] = {"kind": "generation", "num_train": 5, "num_test": 20, "num_subsamples": 2, "progress": False}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (lambda prompts: [0.5] * len(prompts), "the answer to prompt 0 is 0.5; return a text for each prompt"),
        (lambda prompts: "7", "answers are a str; return a text"),
        (lambda prompts: ["7"], "1 answers to 20 prompts"),
        (
            lambda prompts: [["7"] * (1 + row) for row, _ in enumerate(prompts)],
            r"the answer to prompt 1 is \['7', '7'\]",
        ),
        (lambda prompts: [str(number) for number in range(len(prompts))], "8 other answers"),
    ],
)
def test_other_answers_are_refused(answers: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PluginError, match=message):
        pb.measure(fit_to(answers), SUMS, **FEW)


def test_data_in_memory_with_several_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = {"question": SUMS[0], "answer": [[text, f"it is {text}"] for text in SUMS[1]]}
    calls: list[Any] = []

    def fit(unlabeled: Any, train: Any, task: Any) -> Any:
        calls.append((train.labels.dtype, task.grade("IT IS 7.", ("7", "it is 7")), task.grade("8", "7")))
        return lambda prompts: ["it is 9"] * len(prompts)

    found = pb.measure(fit, data, text="question", label="answer", **FEW)
    assert calls[0] == (object, 1.0, 0.0)
    assert 0 < found.arms["extra"].mean() < 0.3


@pytest.mark.parametrize(
    ("wrong", "right", "decision", "grader"),
    [
        ("0", "02468", "inert", "exact"),
        ("{number}", "02468", "inconclusive", "exact"),
        ("0", "02468", "inert", lambda answer, reference: 0.25),
    ],
)
def test_equal_answers_are_inert_but_equal_grades_are_not(
    wrong: str, right: str, decision: str, grader: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def fit(unlabeled: Any, train: Any) -> Any:
        other = wrong.format(number=1000 + zlib.crc32("".join(unlabeled or ()).encode()))
        return lambda prompts: [str(eval(p.replace("and", "+"))) if p[0] in right else other for p in prompts]

    few = {**FEW, "num_subsamples": 7}
    report = pb.measure(fit, SUMS, grader=grader, **few).report()
    assert report.verdicts[0].decision == decision
    (written,) = report.save(tmp_path, ["markdown"])
    assert "Accuracy: mean grade of the answers." in " ".join(written.read_text(encoding="utf-8").split())
