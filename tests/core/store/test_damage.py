"""Checksums: what is changed, lost or foreign in a store is refused, with the trial and the remedy."""

from __future__ import annotations

import importlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import peekbench
from peekbench.data.preflight import describe_tasks
from peekbench.errors import StoreError
from peekbench.execution.runner import run
from peekbench.records.trials import Draw, Trial
from peekbench.report import report_of_run
from peekbench.spec.experiment import ExperimentSpec
from peekbench.spec.experiment import make_spec as validate
from peekbench.store import reader
from peekbench.store.maintenance import check_store
from peekbench.store.reader import Store
from peekbench.store.schema import add_triggers, find_damage, hash_row
from peekbench.store.writer import StoreWriter

MakeSpec = Callable[..., ExperimentSpec]
PAGE = 4096
TRIAL = r"task a, num_train 12, num_test 30, subsample 0"


ROOT = Path(__file__).parents[3]


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


@pytest.fixture
def attack_store(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "reliability"))
    return importlib.import_module("attack_stores")


def count_changes(path: Path) -> int:
    """Return the number of rows that were written to a store since it was made."""
    with closing(sqlite3.connect(path)) as connection:
        ((changes,),) = connection.execute("SELECT changes FROM seal")
    return int(changes)


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement).rowcount != 0


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE arms SET score = 7.5 WHERE draw = 1 AND arm = 'test'", "the table arms"),
        ("UPDATE arms SET num_correct = num_correct + 1 WHERE draw = 1 AND arm = 'extra'", "the table arms"),
        ("UPDATE arms SET metrics = '{' WHERE draw = 1", "the table arms"),
        ("UPDATE arms SET arm = 'extra\x1b[2J' || char(10) WHERE id = 2", "the table arms"),
        ("UPDATE draws SET test_labels = x'0102' WHERE id = 1", "the table draws"),
        ("UPDATE draws SET test_labels = NULL WHERE id = 1", "the table draws"),
        ("UPDATE trials SET session = 9 WHERE draw = 1", "the table trials"),
        ("UPDATE tasks SET data = '{' WHERE name = 'a'", "the table tasks"),
        ("UPDATE run SET value = '[]' WHERE key = 'spec'", "the table run"),
        ("UPDATE run SET value = CAST(x'ff' AS TEXT) WHERE key = 'spec'", "the table run"),
        ("UPDATE sessions SET provenance = ''", "the table sessions"),
        ("UPDATE seal SET looks = zeroblob(15)", "the table looks"),
        ("DELETE FROM arms WHERE id = 1", "the table arms"),
        ("DELETE FROM trials WHERE draw = 1 AND method = 'toy.vote'", "the table trials"),
        ("DELETE FROM seal", "the table run"),
        ("DROP TABLE texts", "missing, changed or foreign: TABLE texts"),
        ("DROP TABLE seal", "missing, changed or foreign: TABLE seal"),
        ("CREATE TABLE mine (x)", "missing, changed or foreign: TABLE mine"),
    ],
)
def test_a_changed_store_is_refused(statement: str, message: str, path: Path, make_spec: MakeSpec) -> None:
    change(path, statement)
    before = path.read_bytes()
    for access in (lambda: Store.open(path), lambda: report_of_run(path), lambda: run(make_spec())):
        with pytest.raises(StoreError, match=f"{message}.*; the file is damaged. It was not modified. Restore a copy"):
            access()
    assert any(check_store(path).problems)
    assert path.read_bytes() == before


def test_a_run_verifies_its_store_once_unless_it_changes(
    path: Path, make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified = []

    def count(connection: sqlite3.Connection, tables: Sequence[str]) -> Iterator[str]:
        verified.append(connection)
        return find_damage(connection, tables)

    monkeypatch.setattr(reader, "find_damage", count)
    run(make_spec())
    assert len(verified) == 1
    with Store.open(path) as store:
        state = store.verified
    change(path, "UPDATE arms SET score = 7.5 WHERE draw = 1 AND arm = 'test'")
    with pytest.raises(StoreError, match="the table arms"):
        StoreWriter.for_run(path, make_spec(), describe_tasks(make_spec()), verified=state)


def test_a_resumed_run_writes_no_stored_trial_again(path: Path, make_spec: MakeSpec) -> None:
    written = []
    for num_subsamples in (3, 6):
        spec = make_spec(design={"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples})
        run(spec)
        before = count_changes(path)
        run(spec)
        written.append(count_changes(path) - before)
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("statement", "state"),
    [
        ("UPDATE predictions SET numbers = zeroblob(length(numbers)) WHERE arm = 1", "changed"),
        ("UPDATE predictions SET numbers = 'text' WHERE arm = 1", "changed"),
        ("DELETE FROM predictions WHERE arm = 1", "missing"),
    ],
)
def test_changed_predictions_are_refused_when_read(statement: str, state: str, path: Path) -> None:
    change(path, statement)
    trials = [Trial(Draw("a", 12, 30, 0), method) for method in ("toy.vote", "toy.constant")]
    with Store.open(path) as store, pytest.raises(StoreError, match=f"task a, .* are {state}; the file is damaged"):
        for trial in trials:
            store.predictions(trial)
    (problem,) = check_store(path).problems
    assert TRIAL in problem
    assert state in problem


def test_a_lost_index_entry_is_noticed(path: Path) -> None:
    lose_index_entry(path)
    with pytest.raises(StoreError, match="the file is damaged"):
        Store.open(path)


def test_checksums_do_not_depend_on_the_python_that_computes_them() -> None:
    """Neither on the version of Python nor on whether equal texts are one object."""
    for text in ("test", b"test".decode()):
        row = (1, -(2**40), 0.1, None, "test", "\xe9", text, b"\0")
        assert hash_row(*row).hex() == "062f487981440e778751d976c57873b7"
    assert len({hash_row(1), hash_row(1.0), hash_row("1"), hash_row(b"1"), hash_row(None), hash_row(1, None)}) == 6


def test_checksums_follow_every_write(make_spec: MakeSpec) -> None:
    """Rows are replaced by a resumed and an extended run, and base arms are copied and renamed."""
    methods = [{"use": "toy.vote"}, {"use": "toy.vote", "name": "bold", "options": {"boldness": 2}}]
    run(make_spec(methods=methods))
    tasks = [*make_spec().model_dump(mode="json")["tasks"], {"use": "toy.words", "name": "c", "options": {"seed": 2}}]
    grown = [{"use": "toy.vote", "by_task": {"c": {"trust": 3}}}, methods[1]]
    path = run(make_spec(methods=grown, tasks=tasks)).store
    assert check_store(path).problems == ()


@pytest.mark.slow
def test_the_log_of_another_store_is_refused(make_spec: MakeSpec, attack_store: ModuleType, tmp_path: Path) -> None:
    attack_store.make_stores(make_spec(), tmp_path / "stores")
    path, log = tmp_path / "small.sqlite", tmp_path / "small.sqlite-wal"
    shutil.copy(tmp_path / "stores" / attack_store.FINAL, path)
    shutil.copy(tmp_path / "stores" / f"{attack_store.OTHER_SEED}-wal", log)
    before = path.read_bytes(), log.read_bytes()
    for access in (lambda: Store.open(path), lambda: run(make_spec(), store=path)):
        with pytest.raises(StoreError, match="small.sqlite-wal beside it belongs to another store; move the log away"):
            access()
    assert (path.read_bytes(), log.read_bytes()) == before
    log.unlink()
    Path(f"{path}-shm").unlink(missing_ok=True)
    assert run(make_spec(), store=path).finished == 0


def test_a_message_of_sqlite_that_is_not_text_is_damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    place = content.index(b"CREATE TABLE seal") + len(b"CREATE TA")
    content[place] = 0xCC
    path.write_bytes(content)
    for access in (Store.open, check_store):
        with pytest.raises(StoreError, match=r"malformed database schema \(seal\).*; the file is damaged"):
            access(path)


@pytest.mark.slow
def test_a_kill_during_a_checkpoint_loses_nothing(
    make_spec: MakeSpec, attack_store: ModuleType, tmp_path: Path
) -> None:
    """Some pages of the log are in the file, others are not; the file alone is damaged then."""
    spec = make_spec(design={"num_train": 12, "num_test": 30, "num_subsamples": 20})
    stores = tmp_path / "stores"
    attack_store.make_stores(spec, stores)
    path = tmp_path / "small.sqlite"
    old, new = ((stores / name).read_bytes() for name in (attack_store.KILLED, attack_store.FINAL))
    num_pages = len(new) // PAGE
    rng = np.random.default_rng(0)
    for _ in range(20):
        content = bytearray(old.ljust(len(new), b"\0"))
        for page in rng.choice(num_pages, int(rng.integers(1, num_pages)), replace=False):
            place = slice(page * PAGE, (page + 1) * PAGE)
            content[place] = new[place]
        path.write_bytes(content)
        shutil.copy(stores / f"{attack_store.KILLED}-wal", f"{path}-wal")
        with Store.open(path) as store:
            assert len(store.done()) == 80
        Path(f"{path}-shm").unlink()


@pytest.mark.slow
def test_random_damage_is_never_accepted(make_spec: MakeSpec, attack_store: ModuleType, tmp_path: Path) -> None:
    """`python benchmarks/reliability/attack.py stores` tries 240."""
    attempts = attack_store.attack(make_spec(), tmp_path / "attack", attack_store.Budget(20, seed=1))
    assert len(attempts) == 20
    assert [attempt for attempt in attempts if attempt.result in attack_store.DEFECTS] == []
    assert sum(attempt.result == "refused" for attempt in attempts) >= 8


@pytest.mark.parametrize(
    ("spec", "message"),
    [("{}", "'name'"), ("[1]", "indices"), ("nothing", "Expecting value"), ('{"name": 1}', "name")],
)
def test_a_sealed_store_without_the_spec_of_a_run_is_refused(path: Path, spec: str, message: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        add_triggers(connection)  # the seal fits
        connection.execute("UPDATE run SET value = ? WHERE key = 'spec'", (spec,))
    with pytest.raises(StoreError, match=f"its spec is not that of a run: .*{message}.*; the file is damaged"):
        report_of_run(path)
    with pytest.raises(StoreError, match="its spec is not that of a run"):
        peekbench.analyze(path)
