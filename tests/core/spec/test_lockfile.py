"""Lock files: writing, reading and applying them."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from peekbench.errors import SpecError
from peekbench.execution.runner import run
from peekbench.records.data import Folders
from peekbench.report import report_of_run
from peekbench.spec.experiment import ExperimentSpec, load_spec
from peekbench.spec.lockfile import CHECKSUM, HEAD, lock_path, make_lock, read_lock, write_lock
from peekbench.store.reader import Store

MakeRaw = Callable[..., dict[str, Any]]


@pytest.fixture
def write_spec(make_raw: MakeRaw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Return a function that writes a spec whose method has a revision that can change."""
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))

    def write(**options: int) -> Path:
        method: dict[str, Any] = {"use": "toy.short"} | ({"options": options} if options else {})
        path = tmp_path / "locked.yaml"
        path.write_text(yaml.safe_dump(make_raw(methods=[method, "toy.vote"])))
        return path

    return write


def lock(path: Path) -> None:
    spec = load_spec(path, locked=False)
    write_lock(make_lock(spec.pinnable(), spec.folders()), lock_path(path))


def revision(spec: ExperimentSpec) -> Any:
    return spec.options(spec.method("toy.short")).model_dump()["revision"]


def test_locked_spec_keeps_its_version_when_a_newer_one_appears(
    write_spec: Callable[..., Path], tmp_path: Path
) -> None:
    path = write_spec()
    assert revision(load_spec(path)) == 0
    lock(path)
    (tmp_path / "newest").write_text("8")
    (tmp_path / "cache" / "toy-revision").unlink()
    assert revision(load_spec(path)) == 7
    assert revision(load_spec(path, locked=False)) == 0
    lock(path)
    assert revision(load_spec(path)) == 8


def test_empty_cache_folder_gives_the_newest_version(write_spec: Callable[..., Path], tmp_path: Path) -> None:
    path = write_spec()
    lock(path)
    (tmp_path / "newest").write_text("9")
    spec = load_spec(path)
    assert make_lock(spec.pinnable(), spec.folders())["methods"]["toy.short"].pinned == {"revision": 7}
    newest = make_lock(spec.pinnable(), Folders(spec=tmp_path, cache=tmp_path / "empty"))
    assert newest["methods"]["toy.short"].pinned == {"revision": 9}


@pytest.mark.slow
def test_workers_call_methods_with_pinned_options(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    lock(path)
    summary = run(load_spec(path).with_executor_options(workers=2, in_process=False))
    with Store.open(summary.store) as store:
        seen = {by_arm["revision"] for by_arm in store.metrics()["toy.short"].values()}
        assert seen == {7.0}
        assert store.spec()["methods"][0]["options"]["revision"] == 0, "the store keeps the spec as written"
    lock_path(path).unlink()
    assert run(load_spec(path)).finished == 0, "a lock does not change the experiment"


def test_lock_for_other_options_is_refused(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    lock(path)
    write_spec(revision=3)
    with pytest.raises(SpecError, match=r"methods: toy\.short was locked with other settings .*lock SPEC. again"):
        load_spec(path)
    lock(path)
    assert revision(load_spec(path)) == 3


@pytest.mark.parametrize(
    "content",
    ["[1]", "tasks: 3", "methods: {toy.short: {use: toy.short}}", "{a: b}", "\x00", "methods: {toy.short: 1}"],
)
def test_file_that_is_not_a_lock_is_refused(content: str, write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    lock_path(path).write_text(content)
    with pytest.raises(SpecError, match=r"locked\.lock is incomplete or was changed.*write it again"):
        load_spec(path)
    write_body(lock_path(path), content)
    with pytest.raises(SpecError, match=r"locked\.lock"):
        load_spec(path)


def write_body(path: Path, body: str) -> None:
    """Write a lock file with a correct checksum."""
    path.write_text(f"{HEAD}{CHECKSUM}{hashlib.sha256(body.encode()).hexdigest()}\n{body}")


def test_a_lock_cut_at_any_place_is_refused(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    lock(path)
    content = lock_path(path).read_text()
    for size in range(len(content)):
        lock_path(path).write_text(content[:size])
        with pytest.raises(SpecError, match="checksum does not match"):
            read_lock(lock_path(path))
    lock_path(path).write_text(content.replace("revision: 7", "revision: 8"))
    with pytest.raises(SpecError, match="checksum does not match"):
        load_spec(path)
    lock_path(path).write_bytes(content.replace("\n", "\r\n").encode())  # as version control may write it
    assert revision(load_spec(path)) == 7


def test_a_lock_is_written_completely_or_not_at_all(
    write_spec: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_spec()
    lock(path)
    before = lock_path(path).read_text()

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(SpecError, match="No space left"):
        write_lock({"methods": {}}, lock_path(path))
    assert lock_path(path).read_text() == before
    assert {file.name for file in path.parent.iterdir()} == {path.name, lock_path(path).name, "cache"}


def test_a_lock_that_is_a_pipe_is_refused(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    os.mkfifo(lock_path(path))
    with pytest.raises(SpecError, match="not a regular file"):
        load_spec(path)


def test_error_names_the_place_of_an_invalid_pinned_option(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    lock(path)
    body = lock_path(path).read_text().removeprefix(HEAD).partition("\n")[2]
    write_body(lock_path(path), body.replace("revision: 7", "revision: x"))
    with pytest.raises(SpecError, match=r"methods\.toy\.short\.pinned\.revision: 'x' is not a whole number"):
        load_spec(path)


def test_lock_is_read_as_written(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    spec = load_spec(path)
    content = make_lock(spec.pinnable(), spec.folders())
    assert list(content) == ["methods"], "the toy tasks have no versions"
    write_lock(content, lock_path(path))
    assert read_lock(lock_path(path)) == content
    assert read_lock(path.with_name("other.lock")) == {}
    with pytest.raises(SpecError, match="cannot write"):
        write_lock(content, path / "x.lock")


def test_prefetched_facts_are_stored_and_reported(write_spec: Callable[..., Path]) -> None:
    summary = run(load_spec(write_spec(revision=5)))
    with Store.open(summary.store) as store:
        (session,) = store.sessions()
    assert session["methods"] == {"toy.short": {"toy model": 5}}
    assert report_of_run(summary.store).provenance["used by toy.short"] == "toy model 5"
