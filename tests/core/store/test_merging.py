"""Stores of shards: they are read while they are written and after a kill, and merged bit by bit."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_session import SESSION

from peekbench.data.preflight import describe_tasks
from peekbench.errors import PeekbenchError, StoreError
from peekbench.records.answers import Predicted
from peekbench.records.runs import Host
from peekbench.records.trials import ArmResult, Draw, Trial, TrialFailure, TrialResult
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store import merging
from peekbench.store.files import Shard, has_log, log_path
from peekbench.store.merging import MergeCounts, merge_shard, open_shard
from peekbench.store.reader import Store
from peekbench.store.writer import StoreWriter, append_look

MakeSpec = Callable[..., ExperimentSpec]
Outcome = TrialResult | TrialFailure
EXACT = [1 / 3, 5e-324, -0.0, float(np.nextafter(1.0, 0.0)), float(np.nextafter(0.5, 1.0))]
FOLDER = Path("shards")
TABLES = {
    "draws": "SELECT task, num_train, num_test, subsample, test_labels, test_rows FROM draws ORDER BY 1, 2, 3, 4",
    "arms": "SELECT task, subsample, owner, arms.arm, num_correct, score, brier, fit_seconds, metrics, numbers "
    "FROM arms JOIN draws ON draws.id = draw JOIN predictions ON predictions.arm = arms.id ORDER BY 1, 2, 3, 4",
    "trials": "SELECT task, subsample, method, hosts.name, error, traceback FROM trials JOIN draws ON draws.id = draw "
    "LEFT JOIN hosts ON hosts.id = trials.host ORDER BY 1, 2, 3",
}


def make_outcomes(number: int = 4) -> list[Outcome]:
    """Return classifications of two machines, with numbers that are easily rounded, and a failure."""
    rng = np.random.default_rng(0)
    outcomes: list[Outcome] = []
    for subsample in range(number):
        arms = [
            ArmResult(
                arm,
                {"num_correct": 10, "score": EXACT[subsample % 5], "log_loss": 1e-17, "brier": None, "macro_f1": 0.3,
                 "micro_f1": None, "grade": None, "bits_per_byte": None},
                0.1, 1e-9, {"loss": float(rng.normal()), "größe": 1e-17},
                Predicted(rng.dirichlet(np.ones(3), 30).astype("<f4"), rng.integers(3, size=30)),
            )
            for arm in ("base", "extra", "test")
        ]  # fmt: skip
        trial = Trial(Draw("a", 12, 30, subsample), "toy.vote")
        rows = rng.permutation(30).astype(np.int64)
        outcomes.append(TrialResult(trial, np.arange(30) % 3, rows, tuple(arms), f"node-{subsample % 2 + 1}"))
    return [*outcomes, TrialFailure(Trial(Draw("a", 12, 30, number), "toy.vote"), "ValueError: ü\n", "Traceback")]


def create(spec: ExperimentSpec, shard: str = "1/2") -> StoreWriter:
    store = StoreWriter.for_shard(FOLDER, Shard.parse(shard), spec, describe_tasks(spec), SESSION, "node-1")
    store.add_host(Host("node-2", {**SESSION["machine"], "cores": 8}, {"numpy": "2"}))
    return store


def write(spec: ExperimentSpec, *outcomes: Outcome) -> Path:
    with create(spec) as store:
        store.save(*outcomes)
    return store.path


def read(path: Path) -> set[Trial]:
    """Return the finished trials of a shard, and check that reading leaves no trace."""
    before = sorted(path.parent.iterdir())
    with open_shard(path, is_whole=True) as store:
        done = set() if store is None else store.done()
        assert sorted(path.parent.iterdir()) == before
    assert sorted(path.parent.iterdir()) == before
    return done


def merge(spec: ExperimentSpec, *paths: Path, into: str = "run.sqlite") -> MergeCounts:
    counts = MergeCounts()
    with StoreWriter.for_run(into, spec, describe_tasks(spec)) as store:
        for path in paths:
            with open_shard(path, is_whole=True) as shard:
                assert shard is not None
                counts += merge_shard(store, shard)
    return counts


def content(path: str | Path) -> dict[str, list[Any]]:
    """Return the rows of trials, with the bits of all numbers."""
    with closing(sqlite3.connect(path, uri=True)) as connection:
        rows = {table: connection.execute(query).fetchall() for table, query in TABLES.items()}
    return {
        table: [
            tuple(struct.pack("<d", value) if isinstance(value, float) else value for value in row) for row in found
        ]
        for table, found in rows.items()
    }


@pytest.fixture
def killed(make_spec: MakeSpec) -> Path:
    """A store with two trials in the file and three outcomes in the log, as a killed job leaves it."""
    spec = make_spec()
    first, second, *others = make_outcomes()
    with create(spec) as store:
        store.save(first, second)
        store._copy_log()
        for outcome in others:
            store.save(outcome)
        copy = Path("killed") / store.path.name
        copy.parent.mkdir()
        shutil.copy(store.path, copy)
        shutil.copy(log_path(store.path), log_path(copy))
    return copy


def trials(outcomes: list[Outcome]) -> set[Trial]:
    return {outcome.trial for outcome in outcomes if isinstance(outcome, TrialResult)}


def test_merged_trials_have_the_same_bits(make_spec: MakeSpec) -> None:
    spec = make_spec()
    outcomes = make_outcomes(5)
    paths = [write(spec, *outcomes[:3]), write(spec, *outcomes[2:])]
    assert merge(spec, *paths) == MergeCounts(added=5, repeated=1, failed=1)
    with StoreWriter.for_run("whole.sqlite", spec, describe_tasks(spec)) as whole:
        whole.add_session(SESSION, "node-1")
        whole.add_host(Host("node-2", {**SESSION["machine"], "cores": 8}, {"numpy": "2"}))
        for outcome in outcomes:
            whole.save(outcome)
    assert content("run.sqlite") == content("whole.sqlite")
    with Store.open("run.sqlite") as store, Store.open("whole.sqlite") as whole:
        assert store.hosts()[:2] == [{**host, "trials": host["trials"] - 1} for host in whole.hosts()]
        assert [session["shard_file"] for session in store.sessions()] == [path.name for path in paths]
        hosts = store.hosts()
    assert merge(spec, *paths) == MergeCounts(repeated=6)
    assert content("run.sqlite") == content("whole.sqlite")
    with Store.open("run.sqlite") as store:
        assert store.hosts() == hosts


def test_a_job_that_goes_on_after_a_merge_remains_one_session(make_spec: MakeSpec) -> None:
    spec = make_spec()
    first, *others = make_outcomes()
    with create(spec) as store:
        store.save(first)
        assert merge(spec, store.path) == MergeCounts(added=1)
        store.save(*others)
    assert merge(spec, store.path) == MergeCounts(added=3, repeated=1, failed=1)
    with Store.open("run.sqlite") as run:
        assert run.session_sizes() == [5]
        assert [(host["name"], host["trials"]) for host in run.hosts()] == [("node-1", 2), ("node-2", 2)]


def test_a_shard_that_differs_changes_nothing(make_spec: MakeSpec) -> None:
    spec = make_spec()
    first, second, *_ = make_outcomes()
    assert isinstance(second, TrialResult)
    merge(spec, write(spec, second))
    before = content("run.sqlite")
    changed = replace(second.arms[2], scores={**second.arms[2].scores, "macro_f1": 0.4})
    path = write(spec, first, replace(second, arms=(*second.arms[:2], changed)))
    with pytest.raises(StoreError, match="macro_f1 of arm test of task a"):
        merge(spec, path)
    assert content("run.sqlite") == before


def test_a_store_is_read_while_its_job_writes_it(make_spec: MakeSpec) -> None:
    """As if the job were on another machine: it holds no lock, and is not disturbed."""
    outcomes = make_outcomes(6)
    with create(make_spec()) as store:
        lock = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        subprocess.run([sys.executable, "-c", lock, store.path], check=True)
        with open_shard(store.path, is_whole=False) as shard:
            assert shard is not None
            assert str(shard.shard()) == "1/2"
        for number, outcome in enumerate(outcomes):
            assert read(store.path) == trials(outcomes[:number])
            store.save(outcome)
            if number % 2:
                store._copy_log()  # as SQLite does if the log is long
    assert list(FOLDER.iterdir()) == [store.path]
    assert read(store.path) == trials(outcomes)
    with Store.open(store.path):
        assert list(FOLDER.iterdir()) == [store.path]


def test_what_is_read_while_the_log_is_copied_is_read_again(
    make_spec: MakeSpec, killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its pages are copied, a new log begins, so the file that was read before does not fit it."""
    whole, log = killed.read_bytes(), log_path(killed).read_bytes()
    killed.write_bytes(whole[:8192])
    log_path(killed).write_bytes(log[:32])

    def finish(seconds: float) -> None:
        killed.write_bytes(whole)
        log_path(killed).write_bytes(log)

    monkeypatch.setattr(time, "sleep", finish)
    assert read(killed) == trials(make_outcomes())


def test_a_kill_at_any_moment_leaves_the_trials_before(killed: Path) -> None:
    log = log_path(killed).read_bytes()
    numbers = []
    for size in [*range(0, len(log), 997), len(log)]:
        log_path(killed).write_bytes(log[:size])
        numbers.append(len(read(killed)))
    assert numbers == sorted(numbers)
    assert set(numbers) == {2, 3, 4}


def test_a_kill_while_the_log_is_copied_loses_nothing(killed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some pages of the file are new, others are old or missing."""
    monkeypatch.setattr(merging, "PAUSE", 0)
    whole = killed.read_bytes()
    with closing(sqlite3.connect(shutil.copy(killed, "new.sqlite"))) as connection:
        shutil.copy(log_path(killed), "new.sqlite-wal")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    new = Path("new.sqlite").read_bytes()
    for page in range(1, len(new) // 4096):
        killed.write_bytes(new[: page * 4096] + whole[page * 4096 :])
        assert read(killed) == trials(make_outcomes())
        with open_shard(killed, is_whole=False) as shard:
            assert shard is not None


def test_a_job_that_has_just_started_has_no_trial(make_spec: MakeSpec) -> None:
    path = write(make_spec())
    content = path.read_bytes()
    for size in (0, 4096):
        path.write_bytes(content[:size])
        if size:  # SQLite has created the file
            path.unlink()
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
        for is_whole in (False, True):
            with open_shard(path, is_whole=is_whole) as shard:
                assert shard is None


def test_damage_is_refused_with_the_name_of_the_file(
    make_spec: MakeSpec, killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "PAUSE", 0)
    path = write(make_spec(), *make_outcomes())
    rng = np.random.default_rng(36)
    expected = content(path)
    num_refused = 0
    for file in (path, killed):
        whole = file.read_bytes()
        for _ in range(40):
            damaged = bytearray(whole)
            place = int(rng.choice(np.flatnonzero(np.frombuffer(whole, np.uint8)[100:]))) + 100
            damaged[place] ^= int(rng.integers(1, 256))
            file.write_bytes(damaged)
            try:
                with open_shard(file, is_whole=True) as shard:
                    assert shard is not None
                    assert content(shard.uri) == expected
            except StoreError as error:
                assert str(file) in str(error)
                num_refused += 1
        file.write_bytes(whole)
    assert num_refused > 20


def test_only_merging_changes_what_shards_become(make_spec: MakeSpec) -> None:
    spec = make_spec()
    path = write(spec, *make_outcomes())
    content = path.read_bytes()
    assert not append_look(path, {})
    with pytest.raises(StoreError, match=f"{path} is that of shard 1/2"):
        StoreWriter.for_run(path, spec, describe_tasks(spec))
    assert path.read_bytes() == content
    path.unlink()
    StoreWriter.for_run(path, spec, describe_tasks(spec)).close()
    with pytest.raises(StoreError, match=f"{path} is not that of a shard"), open_shard(path, is_whole=False):
        pass


def test_saved_trials_reach_the_disk_within_a_second(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    synced = []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    outcome = make_outcomes(1)[0]
    with create(make_spec()) as store:
        monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(now[0]))
        for moment, outcomes in ((100.5, [outcome]), (101.1, []), (102.5, []), (103.0, []), (103.5, [])):
            now[0] = moment
            store.save(*outcomes)
    assert synced == [100.5]
    assert not has_log(store.path)


@pytest.mark.parametrize("text", ["3", "0/4", "5/4", "a/b", "1/0", "-1/4", "1/4/2", " 1/4", "\u0661/\u0664", "0/0"])
def test_wrong_shards_are_refused(text: str) -> None:
    with pytest.raises(PeekbenchError, match="--shard"):
        Shard.parse(text)
