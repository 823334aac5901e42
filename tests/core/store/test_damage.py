"""What is damaged or foreign in the files of a store is refused, with the remedy."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import peekbench
from peekbench.errors import PeekbenchError, StoreError
from peekbench.execution.observers import Observers
from peekbench.execution.runner import run
from peekbench.records.runs import TrialFinished
from peekbench.report import report_of_run
from peekbench.spec.experiment import ExperimentSpec
from peekbench.spec.experiment import make_spec as validate
from peekbench.store import writer
from peekbench.store.reader import Store

MakeSpec = Callable[..., ExperimentSpec]
PAGE = 4096


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete store of the small spec."""
    folder = tmp_path_factory.mktemp("finished")
    raw = {
        "name": "small",
        "seed": 7,
        "tasks": [{"use": "toy.words", "name": "a"}, {"use": "toy.words", "name": "b", "options": {"seed": 1}}],
        "methods": ["toy.vote", "toy.constant"],
        "design": {"num_train": 12, "num_test": 30, "num_subsamples": 3},
    }
    return run(validate(raw, folder=folder), store=folder / "small.sqlite").store


@pytest.fixture
def path(finished: Path) -> Path:
    """A copy of this store where runs of the spec expect it."""
    copy = Path("runs/small.sqlite")
    copy.parent.mkdir()
    return Path(shutil.copy(finished, copy))


def leave_log(spec: ExperimentSpec, killed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run a spec, copy its store with the log as a kill after the last trial leaves them, and return the store."""
    monkeypatch.setattr(writer, "CHECKPOINT_SECONDS", float("inf"))
    store = killed.with_name(f"of_{killed.name}")

    class Snapshots:
        def trial_finished(self, event: TrialFinished) -> None:
            for ending in ("", "-wal"):
                shutil.copy(f"{store}{ending}", f"{killed}{ending}")

    return run(spec, store=store, observers=Observers(Snapshots())).store


def lose_index_entry(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE tbl_name = 'arms'"))
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(path.read_bytes())
    start = (roots["sqlite_autoindex_arms_1"] - 1) * size
    count = int.from_bytes(content[start + 3 : start + 5], "big")
    content[start + 3 : start + 5] = (count - 1).to_bytes(2, "big")
    path.write_bytes(content)


def test_a_lost_index_entry_is_refused(path: Path, make_spec: MakeSpec) -> None:
    lose_index_entry(path)
    before = path.read_bytes()
    for access in (lambda: Store.open(path), lambda: report_of_run(path), lambda: run(make_spec())):
        with pytest.raises(StoreError, match=r"the file is damaged\. It was not modified\. Restore a copy"):
            access()
    assert path.read_bytes() == before


@pytest.mark.parametrize("spec", ["{}", "[1]", "nothing", '{"name": 1}'])
def test_a_store_without_the_spec_of_a_run_is_refused(path: Path, spec: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE run SET value = ? WHERE key = 'spec'", (spec,))
    for read in (report_of_run, peekbench.analyze):
        with pytest.raises(PeekbenchError, match=r"spec .*is (not that of a run|invalid)"):
            read(path)


@pytest.mark.slow
def test_the_log_of_another_store_is_refused(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_log(make_spec(seed=8), tmp_path / "other", monkeypatch)
    path, log = tmp_path / "small.sqlite", tmp_path / "small.sqlite-wal"
    run(make_spec(), store=path)
    shutil.copy(tmp_path / "other-wal", log)
    before = path.read_bytes(), log.read_bytes()
    for access in (lambda: Store.open(path), lambda: run(make_spec(), store=path)):
        with pytest.raises(StoreError, match="small.sqlite-wal beside it belongs to another store; move the log away"):
            access()
    assert (path.read_bytes(), log.read_bytes()) == before
    log.unlink()
    Path(f"{path}-shm").unlink(missing_ok=True)
    assert run(make_spec(), store=path).finished == 0


@pytest.mark.slow
def test_a_kill_during_a_checkpoint_loses_nothing(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some pages of the log are in the file, others are not; the file alone is damaged then."""
    spec = make_spec(design={"num_train": 12, "num_test": 30, "num_subsamples": 20})
    killed = tmp_path / "killed"
    new = leave_log(spec, killed, monkeypatch).read_bytes()
    old, path = killed.read_bytes(), tmp_path / "small.sqlite"
    num_pages = len(new) // PAGE
    rng = np.random.default_rng(0)
    for _ in range(20):
        content = bytearray(old.ljust(len(new), b"\0"))
        for page in rng.choice(num_pages, int(rng.integers(1, num_pages)), replace=False):
            place = slice(page * PAGE, (page + 1) * PAGE)
            content[place] = new[place]
        path.write_bytes(content)
        shutil.copy(f"{killed}-wal", f"{path}-wal")
        with Store.open(path) as store:
            assert len(store.done()) == 80
        Path(f"{path}-shm").unlink()


@pytest.mark.slow
def test_truncated_files_and_logs_give_no_wrong_trial(
    make_spec: MakeSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A truncated file is refused; a truncated log loses its last trials, which the next run computes again."""
    killed, damaged = tmp_path / "killed", tmp_path / "damaged"
    final = leave_log(make_spec(), killed, monkeypatch)
    with Store.open(final) as store:
        trials = store.done()
    rng = np.random.default_rng(0)
    content, log = final.read_bytes(), Path(f"{killed}-wal").read_bytes()
    for place in rng.integers(1, len(content) - 1, 5):
        damaged.write_bytes(content[:place])
        with pytest.raises(StoreError):
            Store.open(damaged)
    for place in rng.integers(len(log) // 2, len(log) - 1, 5):
        shutil.copy(killed, damaged)
        Path(f"{damaged}-wal").write_bytes(log[:place])
        with Store.open(damaged) as store:
            assert store.done() < trials
        Path(f"{damaged}-shm").unlink(missing_ok=True)
