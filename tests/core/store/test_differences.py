"""The identifier of a run: equal for the same experiment, different for any other."""

from __future__ import annotations

from typing import Any

import pytest

from peekbench.store.differences import run_identifier

SPEC = {"name": "a", "seed": 1, "tasks": [{"name": "news"}], "methods": ["lsa"], "design": {"num_test": 9}, "arms": []}
DATA = {"news": {"fingerprint": "ab", "rows": 4}}
FILES = [{"methods": {"lsa": {"sha256": {"weights": "cd"}, "device": "cpu"}, "knn": {"dimensions": 3}}}]


@pytest.mark.parametrize(
    ("spec", "data", "files"),
    [
        ({"seed": 2}, {}, FILES),
        ({"methods": ["lsa", "knn"]}, {}, FILES),
        ({"design": {"num_test": 8}}, {}, FILES),
        ({}, {"news": {"fingerprint": "ac"}}, FILES),
        ({}, {}, [{"methods": {"lsa": {"sha256": {"weights": "ce"}}}}]),
    ],
)
def test_what_changes_numbers_changes_the_identifier(spec: Any, data: Any, files: Any) -> None:
    assert run_identifier({**SPEC, **spec}, {**DATA, **data}, files) != run_identifier(SPEC, DATA, FILES)


def test_what_changes_no_number_changes_no_identifier() -> None:
    elsewhere = {**SPEC, "name": "b", "executor": {"use": "ray"}, "report": {}, "analyses": ["permutation"]}
    files = [{"methods": {"lsa": {"sha256": {"weights": "cd"}, "device": "cuda"}}, "machine": "other"}, {}]
    data = {"news": {**DATA["news"], "details": {"cache": "/home/me"}}}
    assert run_identifier(elsewhere, data, files) == run_identifier(SPEC, DATA, FILES)
