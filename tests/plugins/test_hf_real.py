"""Real rows of 13 of the 25 tasks, from an optional mirror next to the repository."""

from __future__ import annotations

import json
from pathlib import Path

import needs_hf  # noqa: F401
import pytest
from loopback_hub import LoopbackHub

from peekbench import load_dataset
from peekbench.data.labels import name_labels
from peekbench_hf.definition import HubFiles
from peekbench_hf.tasks import TASKS

MIRROR = Path(__file__).parents[3] / "shared" / "data" / "hub"
ROWS = {
    "ag_news": 6000, "amazon_counterfactual_en": 6000, "clickbait_notclickbait_dataset": 6000, "climate_fever": 1535,
    "disaster_response_messages": 5182, "emotion": 6000, "financial_phrasebank": 2264, "limit": 6000,
    "massive": 6000, "movie_rationales": 1600, "mtop_domain": 6000, "rotten_tomatoes": 6000, "trec": 5452,
}  # fmt: skip
KNOWN = {  # text and class of a row
    "trec": ("How did serfdom develop in and then leave Russia ?", "description"),
    "massive": ("wake me up at nine am on friday", "alarm"),
    "mtop_domain": ("how long did Faye work for Kohls", "people"),
}
LOAD = """
import json, sys
from peekbench import load_dataset
for task in sys.argv[1:]:
    dataset = load_dataset(f"hf.{task}")
    print(json.dumps([task, dataset.fingerprint, dataset.details["revision"]]))
"""
pytestmark = pytest.mark.skipif(
    not MIRROR.is_dir(), reason="the mirror of Hub datasets is not available next to the repository"
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEEKBENCH_CACHE", str(tmp_path / "cache"))


@pytest.mark.slow
def test_rows_are_the_same_from_a_mirror_and_through_the_client(tmp_path: Path) -> None:
    fingerprints = {}
    for task, rows in ROWS.items():
        dataset = load_dataset(f"hf.{task}", {"data_dir": str(MIRROR)})
        assert len(dataset.inputs) == rows, task
        assert set(dataset.labels) == set(range(len(dataset.class_names))), task
        fingerprints[task] = dataset.fingerprint
        if task in KNOWN:
            row = list(dataset.inputs).index(KNOWN[task][0])
            assert name_labels(dataset.labels, dataset.class_names)[row] == KNOWN[task][1]
    with LoopbackHub(MIRROR) as hub:
        for task_definition in TASKS:
            location = task_definition.locations[0]
            if task_definition.name in ROWS and isinstance(location, HubFiles) and location.revision:
                hub.serve_as(location.revision, location.repository, location.branch)
        process = hub.python(LOAD, tmp_path / "client", *ROWS)
    assert process.returncode == 0, process.stderr
    loaded = [json.loads(line) for line in process.stdout.splitlines()]
    assert {task: fingerprint for task, fingerprint, _ in loaded} == fingerprints
    assert all(len(revision) == 40 for _, _, revision in loaded)
