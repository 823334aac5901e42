"""The files of a store: names, links, other kinds of files, moves, and the write-ahead log."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stored_session import SESSION

from peekbench.data.preflight import describe_tasks
from peekbench.errors import StoreError
from peekbench.execution.runner import run
from peekbench.records.answers import Predicted
from peekbench.records.trials import ArmResult, Draw, Trial, TrialResult
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store import writer
from peekbench.store.files import is_store
from peekbench.store.reader import Store
from peekbench.store.writer import StoreWriter

MakeSpec = Callable[..., ExperimentSpec]
PATH = Path("runs/small.sqlite")


def open_for(spec: ExperimentSpec, path: str | Path = PATH) -> StoreWriter:
    store = StoreWriter.for_run(path, spec, describe_tasks(spec))
    store.add_session(SESSION, "here")
    return store


def make_result(subsample: int = 0) -> TrialResult:
    scores = {
        "num_correct": 10,
        "score": 1 / 3,
        "log_loss": 1.1,
        "brier": 0.6,
        "macro_f1": 0.3,
        "micro_f1": None,
        "grade": None,
        "bits_per_byte": None,
    }
    predicted = Predicted(np.full((30, 3), 1 / 3, dtype=np.float32), np.zeros(30, dtype=int))
    return TrialResult(
        Trial(Draw("a", 12, 30, subsample), "toy.vote"),
        np.arange(30) % 3,
        np.arange(30),
        tuple(ArmResult(arm, scores, 0.5, 0.25, {}, predicted) for arm in ("base", "extra", "test")),
    )


def trials_without_log(path: Path = PATH) -> int:
    """Return the number of trials in a copy of the file alone."""
    copy = Path(shutil.copy(path, "copy.sqlite"))
    with Store.open(copy) as store:
        return len(store.done())


@pytest.mark.parametrize("name", [":memory:", "file:x.sqlite", "file:x?mode=memory", "a\0b"])
def test_special_names_are_refused(name: str, make_spec: MakeSpec) -> None:
    for access in (lambda: run(make_spec(), store=name), lambda: Store.open(name)):
        with pytest.raises(StoreError, match="give the path of a file"):
            access()
    assert not is_store(Path(name))
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "named pipe", "socket", "device"])
def test_other_kinds_of_files_are_refused_at_once(kind: str, make_spec: MakeSpec) -> None:
    path = Path("x")
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "folder":
            path.mkdir()
        elif kind == "named pipe":
            os.mkfifo(path)
        elif kind == "socket":
            listener.bind(str(path))
        else:
            path.symlink_to("/dev/null")
        assert not is_store(path)
        for access in (lambda: run(make_spec(), store=path), lambda: Store.open(path)):
            with pytest.raises(StoreError, match="store x is not a regular file"):
                access()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs the proc file system, where no file can be created")
def test_a_folder_without_room_for_files_is_named(make_spec: MakeSpec) -> None:
    with pytest.raises(StoreError, match=r"store /proc/x: no file can be created in /proc; choose another folder"):
        run(make_spec(), store="/proc/x")


def test_all_names_of_a_store_share_its_lock(make_spec: MakeSpec) -> None:
    Path("runs").mkdir()
    Path("link.sqlite").symlink_to(PATH)
    with pytest.raises(StoreError, match=r"link.sqlite is a link to .*small.sqlite, which does not exist; remove the"):
        run(make_spec(), store="link.sqlite")
    PATH.touch()
    with open_for(make_spec(), "link.sqlite"):
        for name in (PATH, "link.sqlite", PATH.absolute()):
            with pytest.raises(StoreError, match="in use by another run"):
                run(make_spec(), store=name)
    assert run(make_spec(), store="link.sqlite").finished == 12
    assert run(make_spec()).finished == 0


def _replace() -> None:
    shutil.copy(PATH, "copy")
    Path("copy").replace(PATH)


@pytest.mark.parametrize(
    "action",
    [
        PATH.unlink,
        _replace,
        lambda: PATH.rename("moved.sqlite"),
        lambda: Path(f"{PATH}-wal").rename("moved-wal"),
        lambda: shutil.rmtree("runs"),
    ],
    ids=["deleted", "replaced", "moved", "log_moved", "folder_deleted"],
)
def test_a_store_that_disappears_ends_the_run(action: Callable[[], object], make_spec: MakeSpec) -> None:
    with open_for(make_spec()) as store:
        store.save(make_result(0))
        action()
        with pytest.raises(StoreError, match="was moved, deleted or replaced during the run"):
            store.save(make_result(1))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_every_exit_leaves_an_empty_log(error: type[BaseException], make_spec: MakeSpec) -> None:
    with pytest.raises(error), open_for(make_spec()) as store:
        store.save(make_result(0))
        reader = Store.open(PATH)  # keeps SQLite from deleting the log
        reader.tasks()
        reader.close()
        raise error
    assert trials_without_log() == 1
    log = Path(f"{PATH}-wal")
    assert not log.exists() or not log.stat().st_size


def test_a_log_without_its_file_is_refused(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that a kill left is moved without its log. SQLite would delete the log when a new run starts."""
    monkeypatch.setattr(writer, "CHECKPOINT_SECONDS", float("inf"))
    Path("killed").mkdir()
    file, log = Path("killed/small.sqlite"), Path("killed/small.sqlite-wal")
    with open_for(make_spec()) as store:
        store.save(make_result(0))
        shutil.copy(PATH, "moved.sqlite")
        shutil.copy(f"{PATH}-wal", log)
    content = log.read_bytes()
    for is_empty_file_there in (False, True):
        if is_empty_file_there:
            file.touch()
        with pytest.raises(StoreError, match="small.sqlite-wal is here, but not the file itself.* move the file back"):
            run(make_spec(), store=file)
    assert log.read_bytes() == content
    shutil.move("moved.sqlite", file)
    with Store.open(file) as store:
        assert len(store.done()) == 1


def test_an_older_log_is_refused(make_spec: MakeSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite would put old pages over new ones."""
    monkeypatch.setattr(writer, "CHECKPOINT_SECONDS", float("inf"))
    with open_for(make_spec()) as store:
        store.save(make_result(0))
        shutil.copy(f"{PATH}-wal", "old-wal")
        store.save(make_result(1))
    before = PATH.read_bytes()
    shutil.copy("old-wal", f"{PATH}-wal")
    for access in (lambda: run(make_spec()), lambda: Store.open(PATH)):
        with pytest.raises(StoreError, match="small.sqlite-wal beside it is older than the file; move the log away"):
            access()
    assert PATH.read_bytes() == before
