"""Loading Hub tasks end to end, through the real client library and a Hub server on the loopback interface."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import pytest
from hub_repositories import CONVERSION, LAYOUTS, ROWS, sentence, write_file, write_repository
from loopback_hub import LoopbackHub

from peekbench_hf.definition import HubFiles
from peekbench_hf.tasks import TASKS

LOAD = """
import json, sys
from peekbench import PeekbenchError, load_dataset
for use, options in json.loads(sys.argv[1]):
    try:
        dataset = load_dataset(use, options)
        result = {"texts": list(dataset.inputs), "labels": list(map(int, dataset.labels)),
                "names": dataset.class_names, "splits": dataset.splits,
                "fingerprint": dataset.fingerprint, **dataset.details}
    except PeekbenchError as error:
        result = {"error": str(error)}
    print(json.dumps(result))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path / "hub") as server:
        yield server


def load(
    hub: LoopbackHub, home: Path, *uses: str | tuple[str, dict[str, Any]], **variables: str
) -> list[dict[str, Any]]:
    """Load tasks in a new process; return the rows or the error of each."""
    components = [(use, {}) if isinstance(use, str) else use for use in uses]
    process = hub.python(LOAD, home, json.dumps(components), **variables)
    assert process.returncode == 0, process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def load_one(hub: LoopbackHub, home: Path, use: str, options: dict[str, Any] | None = None, **variables: str) -> Any:
    return load(hub, home, (use, options or {}), **variables)[0]


def serve_pinned(hub: LoopbackHub, task: str) -> str:
    """Serve a task's repository under the commit in its definition, if there is one; return the commit."""
    layout = LAYOUTS[task]
    (location, *_) = next(definition for definition in TASKS if definition.name == task).locations
    assert isinstance(location, HubFiles)
    assert location.branch.replace("/", "@") == layout.branch
    if location.revision:
        hub.serve_as(location.revision, layout.repository, layout.branch)
    return location.revision or hub.sha(layout.repository, layout.branch.replace("@", "/"))


@pytest.mark.slow
def test_every_task_loads_from_a_repository_with_its_layout(hub: LoopbackHub, tmp_path: Path) -> None:
    assert len(LAYOUTS) == 25
    assert {task.name for task in TASKS} == set(LAYOUTS)
    for task in LAYOUTS:
        write_repository(task, hub.folder)
    commits = {task: serve_pinned(hub, task) for task in LAYOUTS}
    names = {task.name: tuple(dict(task.classes or {}).values()) for task in TASKS}
    for (task, layout), result in zip(
        LAYOUTS.items(), load(hub, tmp_path, *(f"hf.{task}" for task in LAYOUTS)), strict=True
    ):
        assert "error" not in result, result
        parts = range(len(layout.text))
        assert result["texts"] == ["\n".join(sentence(task, row, part) for part in parts) for row in range(ROWS)], task
        assert result["labels"] == [row % len(layout.labels) for row in range(ROWS)], task
        assert tuple(result["names"]) == names[task]
        assert result["revision"] == commits[task]
        assert result["rows_read"] == ROWS + len(layout.dropped)
    assert sorted(path for method, path in hub.requests if method == "GET" and "/resolve/" in path) == sorted(
        f"/datasets/{layout.repository}/resolve/{commits[task]}/{name}"
        for task, layout in LAYOUTS.items()
        for name in layout.files
    ), "each file of the split is downloaded once, and no others"
    assert sum(len(layout.files) for layout in LAYOUTS.values()) == 28


@pytest.mark.slow
def test_offline_loading_uses_the_cache_or_reports_missing_data(hub: LoopbackHub, tmp_path: Path) -> None:
    for task in ("trec", "limit", "emo"):
        write_repository(task, hub.folder)
        serve_pinned(hub, task)
    test_split = replace(LAYOUTS["trec"], files=("default/test/0000.parquet",), stray=())
    write_repository("trec", hub.folder, layout=test_split)
    serve_pinned(hub, "trec")
    uses = "hf.trec", "hf.limit", ("hf.trec", {"splits": "official"})
    online = load(hub, tmp_path, *uses)
    assert online[2]["splits"] == ["train"] * ROWS + ["test"] * ROWS
    assert online[2]["revision"] == online[0]["revision"]
    hub.requests.clear()
    for _ in range(2):
        offline = load(hub, tmp_path, *uses, "hf.emo", HF_HUB_OFFLINE="1")
        assert not hub.requests
        assert offline[:3] == online
        assert "hf.emo: the dataset repository aladar/emo, main: not in this" in offline[3]["error"]
        assert "HF_HUB_OFFLINE is set. Run `peekbench validate --download SPEC`" in offline[3]["error"]
        for path in (tmp_path / "cache" / "hf").glob("*.arrow"):  # the second round uses the client's cache
            path.unlink()
    shutil.rmtree(tmp_path / "hf")
    for path in (tmp_path / "cache" / "hf").glob("*.arrow"):
        path.unlink()
    (missing,) = load(hub, tmp_path, "hf.trec", HF_HUB_OFFLINE="1")
    assert "not in this machine's cache" in missing["error"]


@pytest.mark.slow
def test_a_task_stays_at_the_first_commit_of_a_moving_branch(hub: LoopbackHub, tmp_path: Path) -> None:
    write_repository("emo", hub.folder)
    before = hub.keep("aladar/emo")
    first = load_one(hub, tmp_path / "here", "hf.emo")
    assert first["revision"] == before
    path = hub.branch("aladar/emo") / "emo-train.arrow"
    records = [{"text": f"new text {row}", "label": row % 4} for row in range(20)]
    write_file(path, records, LAYOUTS["emo"])
    after = hub.sha("aladar/emo")
    assert after != before
    assert load_one(hub, tmp_path / "here", "hf.emo") == first
    elsewhere, pinned = load(hub, tmp_path / "elsewhere", "hf.emo", ("hf.emo", {"revision": before}))
    assert (elsewhere["revision"], len(elsewhere["texts"])) == (after, 20)
    assert (pinned["revision"], pinned["texts"]) == (before, first["texts"])
    offline = load_one(hub, tmp_path / "here", "hf.emo", {"revision": after}, HF_HUB_OFFLINE="1")
    assert "not in this machine's cache" in offline["error"], "another commit is cached, but was not requested"


@pytest.mark.slow
def test_problems_of_repositories_are_one_line_with_a_remedy(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.folder.mkdir()
    for task in ("trec", "emo", "frenk_hate_en"):
        write_repository(task, hub.folder)
    hub.gated.add("aladar/emo")
    branch = write_repository("yahoo_answers_topics", hub.folder)
    (branch / "yahoo_answers_topics" / "train-00000-of-00002.parquet").unlink()
    expected: list[tuple[Any, str]] = [
        (
            "hf.hyperpartisan_news_detection",
            "the dataset repository SemEvalWorkshop/hyperpartisan_news_detection: it does not exist, or is private and "
            "needs `hf auth login`; the dataset repository pietrolesci/hyperpartisan_news_detection: it does not exist,"
            " or is private and needs `hf auth login`. Correct .* a file of your own with the data source `files`$",
        ),
        ("hf.trec", "CogComp/trec, 65752bf53af25bc935a0dce92fb5b6c930728450: no such commit or branch"),
        ("hf.emo", "gated. Ask for access on its page, huggingface.co/datasets/aladar/emo, then log in with `hf auth"),
        ("hf.yahoo_answers_topics", "1 of 2 files exist"),
        (
            ("hf.dataset", {"id": "classla/FRENK-hate-en", "label": "topic"}),
            "no such configuration and split; available: binary/test, binary/train, multiclass/train. Set `config`, ",
        ),
    ]
    for (_, message), result in zip(expected, load(hub, tmp_path, *(use for use, _ in expected)), strict=True):
        assert re.search(message, result["error"]), result["error"]
        assert "\n" not in result["error"]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "kind"), [("limit", "SHA-256"), ("emo", "SHA-1 of git")])
def test_a_changed_bit_is_detected(task: str, kind: str, hub: LoopbackHub, tmp_path: Path) -> None:
    """Of a file in LFS and of another one, on the way and in the cache of the client library."""
    (path,) = (write_repository(task, hub.folder) / name for name in LAYOUTS[task].files)
    position = path.read_bytes().index(b"says in sentence")
    hub.flipped[path.name] = position

    def error_in(result: dict[str, Any]) -> str:
        assert not list((tmp_path / "cache" / "hf").glob("*.arrow"))
        return str(result["error"])

    for result in load(hub, tmp_path, f"hf.{task}", f"hf.{task}"):  # the file is not kept
        assert f"{path.name} of " in (error := error_in(result))
        assert re.search(f"the file has the {kind} [0-9a-f]+ .*, but the Hub lists .* Try again", error)
    hub.flipped.clear()
    loaded = load_one(hub, tmp_path, f"hf.{task}")
    assert loaded["texts"][0] == sentence(task, 0)
    hub.stop()
    (cached,) = (tmp_path / "hf" / "hub").rglob(path.name)
    content = bytearray(cached.read_bytes())
    content[position] ^= 1
    for stored in (tmp_path / "cache" / "hf").glob("*.arrow"):
        stored.unlink()
    assert load_one(hub, tmp_path, f"hf.{task}", HF_HUB_OFFLINE="1") == loaded
    for stored in (tmp_path / "cache" / "hf").glob("*.arrow"):
        stored.unlink()
    cached.write_bytes(content)
    damaged, removed = load(hub, tmp_path, f"hf.{task}", f"hf.{task}", HF_HUB_OFFLINE="1")
    assert f"the file has the {kind}" in error_in(damaged)
    assert "it was damaged, and is now removed" in error_in(damaged)
    assert "not in this machine's cache" in error_in(removed)


@pytest.mark.slow
def test_other_datasets_load_from_the_parquet_copy_or_from_files(hub: LoopbackHub, tmp_path: Path) -> None:
    """The datasets have several configurations, files named after the split, and a glob pattern.

    Those without a Parquet copy show that the next location is used if the first does not exist.
    """
    write_repository("frenk_hate_en", hub.folder)
    write_repository("rotten_tomatoes", hub.folder)
    write_repository("enron_spam", hub.folder)
    frenk = {"id": "classla/FRENK-hate-en", "label": "topic"}
    tomatoes = {"id": "cornell-movie-review-data/rotten_tomatoes"}
    spam = {"id": "SetFit/enron_spam", "class_names": {0: "ham", 1: "spam"}}
    results = load(
        hub,
        tmp_path,
        ("hf.dataset", frenk),
        ("hf.dataset", {**frenk, "config": "binary"}),
        ("hf.dataset", tomatoes),
        ("hf.dataset", {**tomatoes, "class_names": ["pos", "neg"]}),
        ("hf.dataset", {**tomatoes, "class_names": {"neg": "bad", "pos": "good"}}),
        ("hf.dataset", {**tomatoes, "split": "dev"}),
        ("hf.dataset", spam),
        ("hf.dataset", {**spam, "drop_missing": True}),
    )
    assert "binary/test, binary/train, multiclass/train" in results[0]["error"]
    assert (results[1]["names"], len(results[1]["texts"])) == (["lgbt", "migrants"], ROWS + 1)
    assert (results[2]["names"], len(results[2]["texts"])) == (["neg", "pos"], ROWS)
    assert (results[3]["names"], results[3]["labels"][:3]) == (["pos", "neg"], [1, 0, 1])
    assert (results[4]["names"], results[4]["labels"][:3]) == (["bad", "good"], [0, 1, 0])
    assert "test.parquet, train.parquet, validation.parquet" in results[5]["error"]
    assert "row 40 of the train split: no text" in results[6]["error"]
    assert (results[7]["names"], len(results[7]["texts"])) == (["ham", "spam"], ROWS)
    assert CONVERSION == "refs@convert@parquet"


SPEC = """
name: locked
seed: 1
tasks: [hf.emo, hf.trec]
methods: [controls.null]
design: {num_train: 6, num_test: 10, num_subsamples: 2}
executor: {use: local, options: {workers: 2}}
"""
CLI = "import sys; from peekbench.cli import main; sys.argv[0] = 'peekbench'; main()"


@pytest.mark.slow
def test_a_spec_is_prefetched_and_then_run_offline(hub: LoopbackHub, tmp_path: Path) -> None:
    for task in ("trec", "emo"):
        write_repository(task, hub.folder)
    pinned, before = serve_pinned(hub, "trec"), hub.keep("aladar/emo")
    spec = tmp_path / "specs" / "locked.yaml"
    spec.parent.mkdir()
    spec.write_text(SPEC)

    def command(home: str, *arguments: str, **variables: str) -> str:
        process = hub.python(CLI, tmp_path / home, *arguments, **variables)
        assert process.returncode == 0, process.stderr
        return process.stdout

    printed = command("two", "validate", "--download", str(spec))
    assert printed.splitlines()[:2] == ["[1/2] hf.emo", "[2/2] hf.trec"]
    hub.stop()
    assert "The text is a question." in command("offline", "show", "hf.trec")
    assert "4 of 4 trials done" in command("two", "run", str(spec), HF_HUB_OFFLINE="1")
    report = json.loads(Path("reports/locked/report.json").read_text())
    revisions = {task: data["details"]["revision"] for task, data in report["data"].items()}
    assert revisions == {"hf.emo": before, "hf.trec": pinned}
