"""The identifier of a run: equal for the same experiment, different for any other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peekbench.execution.runner import run
from peekbench.report import report_of_run
from peekbench.report.render.json_report import render_json
from peekbench.store.differences import run_identifier
from peekbench.store.reader import Store

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


def test_reports_show_the_identifier_of_their_run(make_spec: Callable[..., Any]) -> None:
    first, second = (run(make_spec(analyses=[use]), store=Path(f"{use}.sqlite")) for use in ("toy.count", "summary"))
    with Store.open(first.store) as one, Store.open(second.store) as other:
        assert one.identifier() == other.identifier()
        identifier = one.identifier()
    report = report_of_run(second.store)
    assert report.provenance["identifier"] == json.loads(render_json(report))["identifier"] == identifier
