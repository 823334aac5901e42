"""The store: saving, resuming, changes of a spec, and damaged files."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_session import SESSION

from peekbench.data.preflight import describe_tasks
from peekbench.errors import StoreError
from peekbench.execution.runner import run
from peekbench.records.answers import Predicted
from peekbench.records.trials import ArmResult, Draw, Trial, TrialFailure, TrialResult
from peekbench.results import load_results
from peekbench.spec.components import MethodSpec
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.reader import Store
from peekbench.store.schema import VERSION
from peekbench.store.writer import StoreWriter

MakeSpec = Callable[..., ExperimentSpec]
DRAW = Draw("a", 12, 30, 0)
SCORES = {
    "num_correct": 10,
    "score": 1 / 3,
    "log_loss": 1.1,
    "brier": 0.6,
    "macro_f1": 0.3,
    "micro_f1": None,
    "grade": None,
    "bits_per_byte": None,
}


def open_for(spec: ExperimentSpec, path: str = "runs/small.sqlite") -> StoreWriter:
    store = StoreWriter.for_run(path, spec, describe_tasks(spec))
    store.add_session(SESSION, "here")
    return store


def make_result(method: str = "toy.vote", arms: tuple[str, ...] = ("base", "extra", "test")) -> TrialResult:
    predicted = Predicted(np.full((30, 3), 1 / 3, dtype=np.float32), np.arange(30) // 10)  # not the most probable ones
    return TrialResult(
        Trial(DRAW, method),
        np.arange(30) % 3,
        np.arange(30),
        tuple(ArmResult(arm, SCORES, 0.5, 0.25, {"loss": 2.0}, predicted) for arm in arms),
    )


def content(path: Path) -> dict[str, list[Any]]:
    """Return the results without times."""
    with Store.open(path) as store:
        columns = store.result_columns()
    return {name: values for name, values in columns.items() if not name.endswith("seconds")}


def test_a_stored_trial_is_read_back_unchanged(make_spec: MakeSpec) -> None:
    with open_for(make_spec()) as store:
        result = make_result()
        store.save(result)
        columns = store.result_columns()
        assert columns["arm"] == ["base", "extra", "test"]
        assert columns["num_correct"] == [10, 10, 10]
        assert columns["score"] == [1 / 3] * 3
        assert columns["fit_seconds"] == [0.5] * 3
        assert columns["model"] == ["none"] * 3
        predictions = store.predictions(result.trial)
        assert set(predictions) == {"base", "extra", "test"}
        np.testing.assert_array_equal(predictions["test"].numbers, result.arms[2].predicted.numbers, strict=True)
        np.testing.assert_array_equal(predictions["test"].labels, np.arange(30) // 10)
        assert store.done() == {result.trial}
        assert store.metrics() == {"toy.vote": {arm: {"loss": 2.0} for arm in ("base", "extra", "test")}}


def test_idle_seconds_copy_the_log_into_the_file(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    result = make_result()
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with open_for(make_spec()) as store:
        store.save(result)
        for seconds, expected in ((0.5, set()), (1.0, {result.trial})):
            now[0] = 100 + seconds
            store.save()
            copy = shutil.copy(store.path, "copy.sqlite")  # without the log
            with Store.open(copy) as copied:
                assert copied.done() == expected


def test_a_trial_is_stored_completely_or_not_at_all(make_spec: MakeSpec) -> None:
    with open_for(make_spec()) as store:
        complete = make_result()
        broken = replace(complete, arms=(*complete.arms[:2], "not an arm"))  # type: ignore[arg-type]
        with pytest.raises(AttributeError):
            store.save(broken)
        assert store.done() == set()
        assert store.result_columns()["arm"] == []
        store.save(complete)
        assert store.done() == {complete.trial}


def test_a_shared_base_arm_is_stored_once_and_read_for_each_method(make_spec: MakeSpec) -> None:
    spec = make_spec(methods=["toy.vote", {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}])
    run(spec)
    connection = sqlite3.connect("runs/small.sqlite")
    assert connection.execute("SELECT count(*) FROM arms WHERE arm = 'base'").fetchone() == (6,)
    connection.close()
    columns = content(Path("runs/small.sqlite"))
    assert columns["arm"].count("base") == 12
    with Store.open("runs/small.sqlite") as store:
        base = [store.predictions(Trial(DRAW, method))["base"] for method in ("toy.vote", "bold")]
    assert np.array_equal(base[0].numbers, base[1].numbers)


def test_a_method_added_later_uses_the_stored_base_arm(make_spec: MakeSpec) -> None:
    run(make_spec(methods=["toy.vote"]))
    run(make_spec(methods=["toy.vote", {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}]))
    grown = content(Path("runs/small.sqlite"))
    run(make_spec(name="whole", methods=["toy.vote", {"use": "toy.vote", "name": "bold", "options": {"boldness": 3}}]))
    assert grown == content(Path("runs/whole.sqlite"))


def test_a_failure_is_replaced_by_a_later_success(make_spec: MakeSpec) -> None:
    with open_for(make_spec()) as store:
        trial = make_result().trial
        store.save(TrialFailure(trial, "ValueError: no", "Traceback ..."))
        assert store.failures() == [TrialFailure(trial, "ValueError: no", "Traceback ...")]
        assert store.done() == set()
        store.save(make_result())
        assert store.failures() == []
        assert store.done() == {trial}


@pytest.mark.slow
def test_a_second_run_computes_only_new_trials(make_spec: MakeSpec) -> None:
    first = run(make_spec())
    assert (first.planned, first.resumed, first.finished) == (12, 0, 12)
    before = content(first.store)
    again = run(make_spec())
    assert (again.planned, again.resumed, again.finished) == (12, 12, 0)
    assert content(first.store) == before
    design = {"num_train": 12, "num_test": 30, "num_subsamples": 5}
    more = run(make_spec(design=design))
    assert (more.planned, more.resumed, more.finished) == (20, 12, 8)
    methods = ["toy.constant", "toy.vote", "classic.lsa"]
    assert run(make_spec(design=design, methods=methods)).finished == 10
    tasks = [*make_spec().model_dump(mode="json")["tasks"], {"use": "toy.words", "name": "c", "options": {"seed": 2}}]
    assert run(make_spec(design=design, methods=methods, tasks=tasks)).finished == 15
    run(make_spec(name="whole", design=design, methods=methods, tasks=tasks))
    assert content(Path("runs/small.sqlite")) == content(Path("runs/whole.sqlite"))


@pytest.mark.slow
def test_options_for_new_tasks_may_be_added_with_the_tasks(make_spec: MakeSpec) -> None:
    """The option `trust` changes base arms; two methods share base arms in the old tasks."""
    task_options = {"trust": 3}
    methods = [{"use": "toy.vote"}, {"use": "toy.vote", "name": "bold", "options": {"boldness": 2}}, "toy.constant"]
    first = run(make_spec(methods=methods))
    tasks = [*make_spec().model_dump(mode="json")["tasks"], {"use": "toy.words", "name": "c", "options": {"seed": 2}}]
    grown = [{"use": "toy.vote", "by_task": {"c": task_options}}, *methods[1:]]
    more = run(make_spec(methods=grown, tasks=tasks))
    assert (more.resumed, more.finished) == (first.planned, 9)
    run(make_spec(name="whole", methods=grown, tasks=tasks))
    assert content(Path("runs/small.sqlite")) == content(Path("runs/whole.sqlite"))


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"seed": 8}, "seed: 7 before, 8 now"),
        ({"arms": ["extra", "test"]}, 'arms: ["base", "extra", "test"] before, ["extra", "test"] now'),
        (
            {"methods": [{"use": "toy.vote", "options": {"boldness": 2}}, "toy.constant"]},
            "methods[toy.vote].options.boldness: 1.0 before, 2.0 now",
        ),
        ({"tasks": [{"use": "toy.words", "name": "a"}]}, "tasks: 'b' was removed"),
        (
            {"design": {"num_train": [12, 24], "num_test": 30, "num_subsamples": 3}},
            "design.num_train: [12] before, [12, 24] now",
        ),
        (
            {"design": {"num_train": 12, "num_test": 30, "num_subsamples": 3, "train": "natural"}},
            'design.train: "balanced" before, "natural" now',
        ),
    ],
)
def test_other_changes_are_an_error_that_lists_them(parts: dict[str, Any], line: str, make_spec: MakeSpec) -> None:
    summary = run(make_spec())
    before = content(summary.store)
    with pytest.raises(StoreError) as caught:
        run(make_spec(**parts))
    assert f"\n  {line}\n" in str(caught.value)
    assert "give the spec another name" in str(caught.value)
    assert content(summary.store) == before
    assert run(make_spec()).finished == 0


def test_a_changed_base_key_of_a_plugin_is_a_change(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    run(make_spec())
    monkeypatch.setattr(MethodSpec, "base_key", lambda method, task="": f"other {method.name}")
    with pytest.raises(
        StoreError, match="base arm of method toy.vote in task a: toy.vote .* before, other toy.vote now"
    ):
        run(make_spec())


def test_changed_data_are_an_error(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    import peekbench.data.preflight

    run(make_spec())
    monkeypatch.setattr(peekbench.data.preflight, "fingerprint", lambda dataset: "f" * 64)
    with pytest.raises(StoreError, match="data of task a: fingerprint [0-9a-f]{12} before, f{12} now"):
        run(make_spec())


def test_files_that_are_not_stores_are_refused(make_spec: MakeSpec, tmp_path: Path) -> None:
    (tmp_path / "text.sqlite").write_text("This is not a database but a text of sufficient length." * 20)
    connection = sqlite3.connect(tmp_path / "other.sqlite")
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    for name, message in (("text.sqlite", "file is not a database"), ("other.sqlite", "not a peekbench store")):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(StoreError, match=message):
            open_for(make_spec(), str(tmp_path / name))
        with pytest.raises(StoreError, match=message):
            Store.open(tmp_path / name)
        connection = sqlite3.connect(tmp_path / name)
        connection.close()
        assert (tmp_path / name).read_bytes()[100:] == before[100:]
    with pytest.raises(StoreError, match="no such file"):
        Store.open(tmp_path / "none.sqlite")


def test_a_run_killed_before_its_first_transaction_can_be_resumed(make_spec: MakeSpec, tmp_path: Path) -> None:
    for name in ("no_bytes.sqlite", "no_tables.sqlite"):
        connection = sqlite3.connect(tmp_path / name)
        if name == "no_tables.sqlite":
            connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        with pytest.raises(StoreError, match="is still empty; wait for its run"):
            Store.open(tmp_path / name)
        assert run(make_spec(), store=tmp_path / name).finished == 12


def test_a_store_of_another_version_is_refused(make_spec: MakeSpec) -> None:
    path = run(make_spec()).store
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for access in (lambda: run(make_spec()), lambda: Store.open(path)):
        with pytest.raises(StoreError, match=f"has version 99, this peekbench reads version {VERSION}"):
            access()


DELETED = ["sessions", "draws", "methods", "predictions", "run"]


@pytest.mark.parametrize("part", ["start", "middle", "cut", *DELETED])
def test_a_damaged_store_is_refused_and_not_modified(part: str, make_spec: MakeSpec) -> None:
    path = run(make_spec()).store
    damaged = bytearray(path.read_bytes())
    if part in DELETED:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(f"DELETE FROM {part}")
        connection.close()
        damaged = bytearray(path.read_bytes())
    elif part == "start":
        damaged[0:4096] = os.urandom(4096)
    elif part == "middle":
        damaged[4096 : len(damaged) // 2] = b"\xff" * (len(damaged) // 2 - 4096)
    else:
        del damaged[5000:]
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="[Rr]estore a copy"):
        run(make_spec())
    assert path.read_bytes() == bytes(damaged)


def test_a_store_in_use_is_refused(make_spec: MakeSpec) -> None:
    with open_for(make_spec()), pytest.raises(StoreError, match="in use by another run"):
        run(make_spec())
    assert run(make_spec()).finished == 12


def test_a_store_can_be_read_while_it_is_written(make_spec: MakeSpec) -> None:
    with open_for(make_spec()) as store:
        store.save(make_result())
        assert content(store.path)["arm"] == ["base", "extra", "test"]


def test_paths_that_cannot_be_written_are_refused(make_spec: MakeSpec, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in ("/proc/peekbench/x.sqlite", str(tmp_path / "file" / "x.sqlite")):
        with pytest.raises(StoreError, match="create the folder|make the folder writable"):
            run(make_spec(), store=path)


def test_a_file_system_without_locks_is_named(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = fcntl.flock

    def fail(file: int, operation: int) -> None:
        if str(Path("runs").absolute()) in str(Path(f"/proc/self/fd/{file}").readlink()):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(
        StoreError, match=r"this file system has no locks.*: choose a folder on a local disk with --store"
    ):
        run(make_spec())
    store = run(make_spec(), store=tmp_path / "local" / "small.sqlite").store
    assert len(load_results(store)) == 36


def test_a_full_disk_loses_no_stored_trial(make_spec: MakeSpec) -> None:
    """SQLite's limit on pages causes the same error as a full disk."""
    spec = make_spec(design={"num_train": 12, "num_test": 30, "num_subsamples": 40})
    with open_for(spec) as store:
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {pages + 12}")
        saved = 0
        with pytest.raises(StoreError, match="full; free some disk space"):
            for subsample in range(40):
                result = make_result()
                store.save(replace(result, trial=Trial(Draw("a", 12, 30, subsample), "toy.vote")))
                saved += 1
        assert 0 < saved < 40
    with Store.open("runs/small.sqlite") as again:
        assert len(again.done()) == saved
        assert len(again.result_columns()["arm"]) == 3 * saved
    assert run(spec).finished == 2 * 2 * 40 - saved


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("mounting a small file system is not permitted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_run_resumes_after_a_full_disk(make_spec: MakeSpec, tiny_disk: Path) -> None:
    spec = make_spec(design={"num_train": 12, "num_test": 150, "num_subsamples": 100})
    with pytest.raises(StoreError, match="free some disk space"):
        run(spec, store=tiny_disk / "x.sqlite")
    with Store.open(tiny_disk / "x.sqlite") as store:
        done = len(store.done())
    assert 0 < done < 400
    subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_disk)], check=True)
    assert run(spec, store=tiny_disk / "x.sqlite").finished == 400 - done
