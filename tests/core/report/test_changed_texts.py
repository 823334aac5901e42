"""The viewer of the test texts whose answers change."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peekbench.api.run_view import RunPredictions
from peekbench.errors import ResultsError, StoreError
from peekbench.execution.runner import run
from peekbench.report import changed_texts
from peekbench.report.facts import changed_texts as module
from peekbench.store.reader import Store


@pytest.fixture
def store(make_spec: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    leak = {"use": "controls.leak", "options": {"share": 0.5}}
    return run(make_spec(methods=["toy.vote", "controls.null", leak])).store


def test_texts_that_turn_are_counted_and_shown_with_their_probabilities(store: Path) -> None:
    counts, texts = changed_texts(store)
    by_method: dict[Any, Any] = {row[0]: row[1:] for row in counts.rows}
    assert by_method["controls.null"][1:] == (0, 0, 0.0)
    assert by_method["controls.leak"][2] == 0 < by_method["controls.leak"][1], "known labels turn no answer wrong"
    names = [column.name for column in texts.columns]
    rows: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in texts.rows]
    assert {row["method"] for row in rows} <= {"toy.vote", "controls.leak"}
    for row in rows:
        assert row["change"] == pytest.approx(row["probability, test"] - row["probability, extra"])
        assert row["right, test"] != row["right, extra"]
    assert max(sum(row["method"] == method for row in rows) for method in by_method) <= 2 * module.MAX_TEXTS
    answers = RunPredictions(store).to_pandas(method="toy.vote")
    shares = answers.pivot_table(index=["task", "text"], columns="arm", values="correct", aggfunc="mean")
    turned = (shares["test"] - shares["extra"]).round(9)
    assert by_method["toy.vote"][:3] == (len(turned), (turned > 0).sum(), (turned < 0).sum())


def change_tasks(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> None:
    tasks = Store.tasks
    monkeypatch.setattr(
        Store, "tasks", lambda self: {name: {**stored, **facts} for name, stored in tasks(self).items()}
    )


@pytest.mark.parametrize("stated", ["other", "see its card", "cc-by-nc-nd-4.0"])
def test_data_whose_license_may_forbid_it_are_refused(
    store: Path, monkeypatch: pytest.MonkeyPatch, stated: str
) -> None:
    change_tasks(monkeypatch, details={"license": stated})
    with pytest.raises(ResultsError, match=rf"no task has texts that a report may show.*\({stated}\)"):
        changed_texts(store)


def test_an_open_license_permits_it(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_tasks(monkeypatch, details={"license": "cc-by-sa-4.0"})
    assert changed_texts(store)[1].rows


def test_other_data_and_missing_predictions_are_refused(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        change_tasks(patch, fingerprint="of other rows")
        with pytest.raises(ResultsError, match="its data are not those of the run"):
            changed_texts(store)
    with monkeypatch.context() as patch:
        change_tasks(patch, kind="regression")
        with pytest.raises(ResultsError, match="it has no classes"):
            changed_texts(store)
    with sqlite3.connect(store) as connection:
        connection.execute("DELETE FROM predictions")
    with pytest.raises(StoreError, match="predictions of arm .* are missing"):
        changed_texts(store)


def test_tasks_without_texts_are_left_out(
    make_spec: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = ["toy.words", "tabular.classification"]
    design = {"num_train": 20, "num_test": 20, "num_subsamples": 2}
    counts, texts = changed_texts(run(make_spec(tasks=tasks, methods=["controls.null"], design=design)).store)
    assert counts.note.endswith("Left out: tabular.classification: its rows are features, not texts.")
    assert [row[0] for row in counts.rows] == ["controls.null"] and not texts.rows
