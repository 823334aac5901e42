"""Reading any spec file ends in a spec or in a clear error."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peekbench import yaml_loader
from peekbench.errors import PeekbenchError
from peekbench.spec.experiment import ExperimentSpec, make_spec, parse_spec

VALID: dict[str, Any] = {
    "name": "fuzzed",
    "seed": 3,
    "tasks": ["toy.all", {"use": "toy.words", "name": "b", "options": {"num_rows": 99, "noise": 0.5}}],
    "methods": [{"use": "toy.vote", "name": "v", "options": {"boldness": 2.0}}, "toy.constant"],
    "design": {"num_train": [6, 12], "num_test": [10, 20], "num_subsamples": {10: 4, 20: 2}, "crossover": False},
    "arms": ["base", "extra", "test", {"mix": 0.25}],
    "analyses": ["toy.count"],
    "executor": {"use": "local", "options": {"workers": 2}},
    "report": {"formats": ["json"]},
}
FUZZ = settings(derandomize=True, deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.dates(), st.binary(max_size=8),
    st.sampled_from(["toy.words", "toy.all", "toy.vote", "toy", "local", ".", "toy.", "a.b.c", 10**400, "mix", -0.0]),
)  # fmt: skip
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=6), st.integers(), st.sampled_from(list(VALID))), inner, max_size=4),
    ),
    max_leaves=12,
)


def read(text: str) -> None:
    try:
        assert isinstance(parse_spec(text, folder=Path()), ExperimentSpec)
    except PeekbenchError as error:
        assert str(error)


@pytest.mark.slow
@FUZZ
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    read(text)


@pytest.mark.slow
@FUZZ
@given(trees)
def test_any_values(tree: Any) -> None:
    read(yaml.safe_dump(tree, allow_unicode=True))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


@pytest.mark.slow
@FUZZ
@given(st.sampled_from(places(VALID)[1:]), trees, st.booleans())
def test_any_change_to_a_valid_spec(place: tuple[Any, ...], value: Any, remove: bool) -> None:
    raw: Any = copy.deepcopy(VALID)
    parent = raw
    for step in place[:-1]:
        parent = parent[step]
    if remove:
        del parent[place[-1]]
    else:
        parent[place[-1]] = value
    try:
        make_spec(raw, folder=Path())
    except PeekbenchError as error:
        assert str(error)


def test_the_unchanged_spec_is_valid() -> None:
    assert make_spec(VALID, folder=Path()).name == "fuzzed"


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1 or ''}, *a{n - 1 or ''}]\n" for n in range(1, 40)),
        "tasks: &x {use: *x}",
        "name: " + "[" * 5000,
        "seed: " + "9" * 5000,
        "name: 2026-01-01",
        "!!python/object/apply:os.system ['true']",
        "name: \ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
        "--- a\n--- b",
        "<<: {name: a}\n<<: {name: b}",
        "seed: " + "1:" * 300_000 + "1",
        "z: &a0 [x, x]\n" + "".join(f"z{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 24)) + "tasks: *a23",
        "name: x\na: &a " + "x" * 500_000 + "\nb: [" + "*a, " * 2000 + "]",
        "name: x\ntasks: [" + ", ".join(f"t{n}" for n in range(4000)) + "]",
        "name: x\ntasks: [toy.words]\nmethods: [{use: toy.vote, options: {"
        + ", ".join(f"{'o' * 900}{n}: 1" for n in range(300)) + "}}]",
        "name: x\ndesign: {num_train: 5, num_subsamples: 2, num_test: [" + "1, " * 15_000 + "]}",
        "name: " + "x" * 900_000,
        "seed: !!bool x",
    ],
)  # fmt: skip
def test_yaml_traps_are_errors_within_seconds(text: str) -> None:
    started = time.process_time()  # independent of other processes
    with pytest.raises(PeekbenchError) as caught:
        parse_spec(text, folder=Path())
    assert time.process_time() - started < 5
    assert len(str(caught.value)) < 20_000


def test_values_are_counted_after_aliases_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_loader, "MAX_VALUES", 10)
    assert yaml_loader.read_yaml("a: &a [1, 2, 3]\nb: *a", "spec") == {"a": [1, 2, 3], "b": [1, 2, 3]}
    with pytest.raises(PeekbenchError, match="more than 10 values"):
        yaml_loader.read_yaml("a: &a [1, 2, 3]\nb: &b [*a]\nc: [*b, *b]", "spec")


def test_long_lists_of_errors_are_shortened() -> None:
    with pytest.raises(PeekbenchError) as caught:
        make_spec({**VALID, "methods": [f"{'x' * 2000}{number}" for number in range(50)]}, folder=Path())
    lines = str(caught.value).split("\n")
    assert lines[1].startswith("  methods[0].use: ")
    assert lines[-1] == "  and more errors"
    assert max(map(len, lines)) < 700
