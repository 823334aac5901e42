"""Specs as plain data, which other processes turn into the same specs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from peekbench.errors import SpecError
from peekbench.spec.compatibility import spec_from_plain, spec_to_plain
from peekbench.spec.experiment import ExperimentSpec, load_spec

SPECS = sorted((Path(__file__).parents[3] / "specs").rglob("*.yaml"))


def rebuild(spec: ExperimentSpec) -> ExperimentSpec:
    """Send a spec through JSON, and check that nothing that a worker asks of it has changed."""
    rebuilt = spec_from_plain(json.loads(json.dumps(spec_to_plain(spec))))
    assert rebuilt == spec
    assert rebuilt.folders() == spec.folders()
    for task in spec.tasks:
        assert rebuilt.source(task) == spec.source(task)
        for method in spec.methods:
            assert rebuilt.options(method, task.name) == spec.options(method, task.name)
    return rebuilt


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_shipped_specs_are_rebuilt_from_less_than_10_kb(path: Path) -> None:
    spec = load_spec(path)
    rebuild(spec)
    assert len(zlib.compress(json.dumps(spec_to_plain(spec)).encode())) < 10_000


def test_pinned_versions_and_differing_options_are_kept(make_spec: Callable[..., ExperimentSpec]) -> None:
    methods = ["toy.short", {"use": "toy.vote", "by_task": {"b": {"boldness": 3}}}]
    design = {"num_train": [6, 12], "num_test": [10, 20], "num_subsamples": {10: 3, 20: 1}, "crossover": False}
    spec = make_spec(methods=methods, design=design, arms=["base", "extra", "test", {"mix": 0.25}])
    locked = rebuild(spec.with_pinned({("methods", "toy.short"): {"revision": 7}}, "the versions"))
    assert [locked.options(method).model_dump().get("revision") for method in locked.methods] == [7, None]
    assert locked != rebuild(spec)


def test_missing_plugin_gives_the_error_of_a_spec_that_names_it(make_spec: Callable[..., ExperimentSpec]) -> None:
    plain = spec_to_plain(make_spec())
    plain["spec"]["methods"][1] = {"use": "gone.method", "name": "toy.constant", "options": {"strength": 3}}
    with pytest.raises(SpecError, match=r"methods\[1\]\.use: no plugin 'gone' is installed"):
        spec_from_plain(plain)
