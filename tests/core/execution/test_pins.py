"""Versions of data and models that can change: a run keeps those of its start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from peekbench.execution.resuming import StoredRun
from peekbench.execution.runner import run
from peekbench.report import report_of_run
from peekbench.spec.experiment import load_spec
from peekbench.store.reader import Store

WriteSpec = Callable[..., Path]


@pytest.fixture
def write_spec(make_raw: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteSpec:
    """Return a function that writes a spec whose method has a revision that can change."""
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))

    def write(num_subsamples: int = 3, **options: int) -> Path:
        design = {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples}
        path = tmp_path / "pinned.yaml"
        methods = [{"use": "toy.short", "options": options}, "toy.vote"]
        path.write_text(yaml.safe_dump(make_raw(methods=methods, design=design)))
        return path

    return write


def publish(revision: int, folder: Path) -> None:
    """Let a newer revision appear, which this machine would use."""
    (folder / "newest").write_text(str(revision))
    (folder / "cache" / "toy-revision").unlink()


def revisions(store: Path) -> set[float]:
    """Return the mean revision of the fits of each arm."""
    with Store.open(store) as opened:
        assert opened.spec()["methods"][0]["options"]["revision"] == 0, "the store keeps the spec as written"
        return {arm["revision"] for arm in opened.metrics()["toy.short"].values()}


def test_a_resumed_run_keeps_its_versions(write_spec: WriteSpec, tmp_path: Path) -> None:
    assert revisions(run(load_spec(write_spec())).store) == {7.0}
    publish(8, tmp_path)
    summary = run(load_spec(write_spec(num_subsamples=6)))
    assert (summary.finished, revisions(summary.store)) == (12, {7.0})
    assert revisions(run(load_spec(write_spec()), fresh=True).store) == {8.0}


def test_a_component_with_other_options_is_pinned_anew(write_spec: WriteSpec, tmp_path: Path) -> None:
    stored = StoredRun.read(run(load_spec(write_spec())).store)
    publish(8, tmp_path)
    pinned = [stored.pin(load_spec(write_spec(**options))) for options in ({}, {"fit": 1}, {"revision": 5})]
    assert [spec.options(spec.method("toy.short")).model_dump()["revision"] for spec in pinned] == [7, 8, 5]


def test_prefetched_facts_are_stored_and_reported(write_spec: WriteSpec) -> None:
    store = run(load_spec(write_spec(revision=5))).store
    with Store.open(store) as opened:
        (session,) = opened.sessions()
    assert session["methods"] == {"toy.short": {"toy model": 5}}
    assert report_of_run(store).provenance["used by toy.short"] == "toy model 5"
