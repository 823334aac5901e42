"""The JSON schema of specs, compared with what peekbench accepts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from peekbench.spec.json_schema import make_schema

SPECS = Path(__file__).parents[3] / "specs"


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = make_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(SPECS.rglob("*.yaml")), ids=lambda path: path.name)
def test_shipped_specs_match_and_name_the_schema(path: Path, validator: Any) -> None:
    text = path.read_text()
    assert list(validator.iter_errors(yaml.safe_load(text))) == []
    pointer = text.splitlines()[0]
    assert pointer.startswith("# yaml-language-server: $schema=")
    assert (path.parent / pointer.partition("=")[2]).resolve() == (SPECS / "schema.json").resolve()


@pytest.mark.parametrize(
    "parts",
    [
        {"tasks": ["toy.words", {"use": "toy.words", "name": "b", "options": {"num_rows": 50}}]},
        {"arms": ["extra", "test", {"mix": 0.25}]},
        {"design": {"num_train": [6], "num_test": 10, "num_subsamples": {"10": 3}}},
        {"analyses": ["summary", {"use": "permutation", "options": {"level": 0.9}}]},
        {"executor": "local"},
        {"report": {"renderer": "figures"}},
    ],
)
def test_valid_specs_match(parts: dict[str, Any], make_raw: Any, validator: Any) -> None:
    assert list(validator.iter_errors(make_raw(**parts))) == []


@pytest.mark.parametrize(
    "parts",
    [
        {"methods": ["toy.voet"]},
        {"methods": [{"use": "toy.vote", "options": {"bold": 1}}]},
        {"methods": [{"use": "toy.vote", "options": {"boldness": "much"}}]},
        {"methods": [{"use": "toy.vote", "nmae": "x"}]},
        {"tasks": ["toy.vote"]},
        {"design": {"num_train": 5, "num_test": 5}},
        {"analyses": ["toy.vote"]},
        {"arms": ["extra", "test", {"mix": 2}]},
        {"sede": 1},
        {"folder": "here"},
        {"pinned": {}},
    ],
)
def test_invalid_specs_do_not_match(parts: dict[str, Any], make_raw: Any, validator: Any) -> None:
    assert list(validator.iter_errors(make_raw(**parts)))


@pytest.mark.slow
def test_shipped_schema_is_current() -> None:
    """To update it, run `peekbench show spec-schema > specs/schema.json`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    printed = subprocess.run(
        [sys.executable, "-m", "peekbench", "show", "spec-schema"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert json.loads(printed) == json.loads((SPECS / "schema.json").read_text())
    assert printed == (SPECS / "schema.json").read_text()
