from __future__ import annotations

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
from peekbench.spec.lockfile import lock_path, make_lock, read_lock, write_lock
from peekbench.store.writer import Store

MakeRaw = Callable[..., dict[str, Any]]


@pytest.fixture
def write_spec(make_raw: MakeRaw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A spec file whose method has a revision that changes by itself."""
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))

    def write(**options: int) -> Path:
        method: dict[str, Any] = {"use": "toy.short"} | ({"options": options} if options else {})
        path = tmp_path / "locked.yaml"
        path.write_text(yaml.safe_dump(make_raw(methods=[method, "toy.vote"])))
        return path

    return write


def lock(path: Path) -> None:
    spec = load_spec(path, locked=False)
    write_lock(make_lock(spec, spec.folders()), lock_path(path))


def revision(spec: ExperimentSpec) -> Any:
    return spec.options(spec.method("toy.short")).model_dump()["revision"]


def test_a_locked_spec_keeps_its_version_when_a_newer_one_comes(
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


def test_an_empty_cache_folder_asks_for_the_newest(write_spec: Callable[..., Path], tmp_path: Path) -> None:
    path = write_spec()
    lock(path)
    (tmp_path / "newest").write_text("9")
    spec = load_spec(path)
    assert make_lock(spec, spec.folders())["methods"]["toy.short"]["pinned"] == {"revision": 7}
    newest = make_lock(spec, Folders(spec=tmp_path, cache=tmp_path / "empty"))
    assert newest["methods"]["toy.short"]["pinned"] == {"revision": 9}


def test_methods_are_called_with_what_the_lock_pins_in_workers_too(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    lock(path)
    summary = run(load_spec(path).with_executor_options(workers=2))
    with Store.open(summary.store) as store:
        seen = {by_arm["revision"] for by_arm in store.metrics()["toy.short"].values()}
        assert seen == {7.0}
        assert store.spec()["methods"][0]["options"] == {"revision": 0}, "the spec is what was written"
    lock_path(path).unlink()
    assert run(load_spec(path)).finished == 0, "a lock is no change of the experiment"


def test_a_lock_for_other_settings_is_refused(write_spec: Callable[..., Path]) -> None:
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
def test_a_file_that_is_no_lock_is_refused(content: str, write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    lock_path(path).write_text(content)
    with pytest.raises(SpecError, match="locked.lock"):
        load_spec(path)


def test_a_pinned_option_that_does_not_fit_is_placed(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    lock(path)
    lock_path(path).write_text(lock_path(path).read_text().replace("revision: 7", "revision: x"))
    with pytest.raises(SpecError, match=r"methods\.toy\.short\.pinned\.revision: Input should be a valid integer"):
        load_spec(path)


def test_a_lock_is_read_as_it_was_written(write_spec: Callable[..., Path]) -> None:
    path = write_spec()
    spec = load_spec(path)
    content = make_lock(spec, spec.folders())
    assert list(content) == ["methods"], "the toy tasks do not change by themselves"
    write_lock(content, lock_path(path))
    assert read_lock(lock_path(path)) == content
    assert read_lock(path.with_name("other.lock")) == {}
    with pytest.raises(SpecError, match="cannot write"):
        write_lock(content, path.parent / "nowhere" / "x.lock")


def test_what_a_method_needs_is_got_before_workers_start_and_noted(write_spec: Callable[..., Path]) -> None:
    summary = run(load_spec(write_spec(revision=5)))
    with Store.open(summary.store) as store:
        (session,) = store.sessions()
    assert session["methods"] == {"toy.short": {"toy model": 5}}
    assert report_of_run(summary.store)[0].provenance["for toy.short"] == "toy model 5"
