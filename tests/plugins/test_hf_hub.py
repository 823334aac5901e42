"""The whole path from a record to its rows, through the real client library and a Hub on the loopback interface."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
        said = {"texts": list(dataset.inputs), "labels": list(map(int, dataset.labels)),
                "names": dataset.class_names, "fingerprint": dataset.fingerprint, **dataset.details}
    except PeekbenchError as error:
        said = {"error": str(error)}
    print(json.dumps(said))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path / "hub") as served:
        yield served


def load(hub: LoopbackHub, home: Path, *uses: str | tuple[str, dict[str, Any]], **more: str) -> list[dict[str, Any]]:
    """Load tasks in a new process; what it says of each."""
    asked = [(use, {}) if isinstance(use, str) else use for use in uses]
    done = hub.python(LOAD, home, json.dumps(asked), **more)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def load_one(hub: LoopbackHub, home: Path, use: str, options: dict[str, Any] | None = None, **more: str) -> Any:
    return load(hub, home, (use, options or {}), **more)[0]


def serve_pinned(hub: LoopbackHub, task: str) -> str:
    """Serve a task's repository under the commit that its record names; the commit in any case."""
    layout = LAYOUTS[task]
    (place, *_) = next(record for record in TASKS if record.name == task).places
    assert isinstance(place, HubFiles)
    assert place.branch.replace("/", "@") == layout.branch
    if place.revision:
        hub.serve_as(place.revision, layout.repository, layout.branch)
    return place.revision or hub.sha(layout.repository, layout.branch.replace("@", "/"))


def test_every_record_loads_from_a_repository_of_its_layout(hub: LoopbackHub, tmp_path: Path) -> None:
    assert len(LAYOUTS) == 25
    assert {task.name for task in TASKS} == set(LAYOUTS)
    for task in LAYOUTS:
        write_repository(task, hub.folder)
    commits = {task: serve_pinned(hub, task) for task in LAYOUTS}
    names = {task.name: tuple(dict(task.classes or {}).values()) for task in TASKS}
    for (task, layout), said in zip(
        LAYOUTS.items(), load(hub, tmp_path, *(f"hf.{task}" for task in LAYOUTS)), strict=True
    ):
        assert "error" not in said, said
        parts = range(len(layout.text))
        assert said["texts"] == ["\n".join(sentence(task, row, part) for part in parts) for row in range(ROWS)], task
        assert said["labels"] == [row % len(layout.labels) for row in range(ROWS)], task
        assert tuple(said["names"]) == names[task]
        assert said["revision"] == commits[task]
        assert said["rows_read"] == ROWS + len(layout.left_out)
    wanted = sorted(name for layout in LAYOUTS.values() for name in layout.files)
    assert sorted(path for method, path in hub.requests if method == "GET" and "/resolve/" in path) == sorted(
        f"/datasets/{layout.repository}/resolve/{commits[task]}/{name}"
        for task, layout in LAYOUTS.items()
        for name in layout.files
    ), "only the files of the split, each once"
    assert len(wanted) == 28


def test_offline_the_same_rows_come_from_the_cache_or_it_is_said_that_they_are_not_there(
    hub: LoopbackHub, tmp_path: Path
) -> None:
    for task in ("trec", "limit", "emo"):
        write_repository(task, hub.folder)
        serve_pinned(hub, task)
    online = load(hub, tmp_path, "hf.trec", "hf.limit")
    hub.stop()
    for _ in range(2):
        started = time.monotonic()
        offline = load(hub, tmp_path, "hf.trec", "hf.limit", "hf.emo", HF_HUB_OFFLINE="1")
        assert time.monotonic() - started < 15
        assert offline[:2] == online
        assert "hf.emo: emo-train.arrow in the dataset repository aladar/emo, main: not in this" in offline[2]["error"]
        assert "HF_HUB_OFFLINE is set. Run `peekbench prefetch SPEC`" in offline[2]["error"]
        for kept in (tmp_path / "cache" / "hf").glob("*.arrow"):  # the second time from the client's own cache
            kept.unlink()
    shutil.rmtree(tmp_path / "hf")
    for kept in (tmp_path / "cache" / "hf").glob("*.arrow"):
        kept.unlink()
    (gone,) = load(hub, tmp_path, "hf.trec", HF_HUB_OFFLINE="1")
    assert "not in this machine's cache" in gone["error"]


def test_what_is_known_is_found_without_the_client_library(hub: LoopbackHub, tmp_path: Path) -> None:
    write_repository("limit", hub.folder)
    load(hub, tmp_path, "hf.limit")
    code = (
        "import sys; from peekbench import load_dataset; load_dataset('hf.limit'); "
        "print('huggingface_hub' in sys.modules)"
    )
    hub.requests.clear()
    assert hub.python(code, tmp_path).stdout == "False\n"
    assert hub.requests == []


def test_a_branch_that_moves_is_not_followed(hub: LoopbackHub, tmp_path: Path) -> None:
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
    elsewhere = load_one(hub, tmp_path / "elsewhere", "hf.emo")
    assert (elsewhere["revision"], len(elsewhere["texts"])) == (after, 20)
    pinned = load_one(hub, tmp_path / "elsewhere", "hf.emo", {"revision": before})
    assert (pinned["revision"], pinned["texts"]) == (before, first["texts"])
    offline = load_one(hub, tmp_path / "here", "hf.emo", {"revision": after}, HF_HUB_OFFLINE="1")
    assert "not in this machine's cache" in offline["error"], "another commit of it is, but that was not asked for"


def test_a_place_that_is_gone_is_followed_by_the_next(hub: LoopbackHub, tmp_path: Path) -> None:
    """Of financial_phrasebank a commit of the main branch is known too."""
    layout = LAYOUTS["financial_phrasebank"]
    folder = hub.folder / "datasets" / layout.repository / "main"
    records = [{"sentence": f"text {row}", "label": row % 3} for row in range(9)]
    write_file(folder / "sentences_allagree" / "train-00000-of-00001.parquet", records, layout)
    sha = "0dd3028d70cbd18ded8887e65e83343b03a50482"
    hub.serve_as(sha, layout.repository)
    said = load_one(hub, tmp_path, "hf.financial_phrasebank")
    assert (said["revision"], len(said["texts"])) == (sha, 9)


def test_what_is_not_there_is_said_with_what_was_sought_and_how_to_do_without(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.folder.mkdir()
    write_repository("trec", hub.folder)
    limit, trec, revision = load(
        hub, tmp_path, ("hf.hyperpartisan_news_detection", {}), ("hf.trec", {}), ("hf.trec", {"revision": "nowhere"})
    )
    for part in (
        "data/*-training-bypublisher-*.zip in the dataset repository SemEvalWorkshop/hyperpartisan_news_detection, "
        "main: no such repository",
        "data/train-*.parquet in the dataset repository pietrolesci/hyperpartisan_news_detection, main: no such repo",
        "source `files`:\n  - {use: files, name: hf.hyperpartisan_news_detection, options: ",
    ):
        assert part in limit["error"]
    assert "CogComp/trec, 65752bf53af25bc935a0dce92fb5b6c930728450: no such commit or branch" in trec["error"]
    assert "CogComp/trec, nowhere: no such commit or branch" in revision["error"]


def test_a_gated_repository_is_said_to_be_one(hub: LoopbackHub, tmp_path: Path) -> None:
    write_repository("emo", hub.folder)
    hub.gated.add("aladar/emo")
    said = load_one(hub, tmp_path, "hf.emo")
    assert "the repository is gated. Ask for access on its page, huggingface.co/datasets/aladar/emo" in said["error"]
    assert "hf auth login" in said["error"]


def test_a_truncated_copy_is_no_copy(hub: LoopbackHub, tmp_path: Path) -> None:
    branch = write_repository("limit", hub.folder)
    (branch / "default" / "train").rename(branch / "default" / "partial-train")
    own = ("hf.dataset", {"id": "IBM/limit", "text": "sentence", "label": "motion"})
    for said in load(hub, tmp_path, own):
        assert "the Hub's copy is truncated (default/partial-train has the first rows only)" in said["error"]


def test_shards_that_are_missing_are_missed(hub: LoopbackHub, tmp_path: Path) -> None:
    branch = write_repository("yahoo_answers_topics", hub.folder)
    (branch / "yahoo_answers_topics" / "train-00000-of-00002.parquet").unlink()
    assert "1 of 2 files are there; complete them" in load_one(hub, tmp_path, "hf.yahoo_answers_topics")["error"]


def test_a_connection_that_breaks_in_a_file_is_no_file(hub: LoopbackHub, tmp_path: Path) -> None:
    write_repository("emo", hub.folder)
    hub.cut["emo-train.arrow"] = 500
    said = load_one(hub, tmp_path, "hf.emo")
    assert "hf.emo: " in said["error"]
    assert "cannot be reached" in said["error"]
    assert not list((tmp_path / "cache" / "hf").glob("*.arrow"))
    hub.cut.clear()
    assert len(load_one(hub, tmp_path, "hf.emo")["texts"]) == ROWS, "and nothing of it is left behind"


def test_a_dead_endpoint_fails_in_seconds(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.stop()
    started = time.monotonic()
    said = load_one(hub, tmp_path, "hf.trec")
    assert time.monotonic() - started < 15
    assert "cannot be reached" in said["error"]
    assert "HF_ENDPOINT" in said["error"]


def test_any_dataset_loads_by_its_parquet_copy_or_by_its_files(hub: LoopbackHub, tmp_path: Path) -> None:
    """A copy with several configurations, files named for the split, and a glob."""
    write_repository("frenk_hate_en", hub.folder)
    write_repository("rotten_tomatoes", hub.folder)
    write_repository("enron_spam", hub.folder)
    frenk = {"id": "classla/FRENK-hate-en", "label": "topic", "max_characters": 999}
    tomatoes = {"id": "cornell-movie-review-data/rotten_tomatoes"}
    spam = {"id": "SetFit/enron_spam", "class_names": {0: "ham", 1: "spam"}}
    said = load(
        hub,
        tmp_path,
        ("hf.dataset", frenk),
        ("hf.dataset", {**frenk, "config": "binary"}),
        ("hf.dataset", tomatoes),
        ("hf.dataset", {**tomatoes, "class_names": ["pos", "neg"]}),
        ("hf.dataset", {**tomatoes, "class_names": {"neg": "bad", "pos": "good"}}),
        ("hf.dataset", {**tomatoes, "split": "dev"}),
        ("hf.dataset", {**spam, "files": "tr*.jsonl"}),
        ("hf.dataset", {**spam, "files": "tr*.jsonl", "drop_missing": True}),
    )
    assert "there are, as configuration/split, binary/test, binary/train, multiclass/train" in said[0]["error"]
    assert (said[1]["names"], len(said[1]["texts"])) == (["lgbt", "migrants"], ROWS)
    assert (said[2]["names"], len(said[2]["texts"])) == (["neg", "pos"], ROWS)
    assert "is a ClassLabel of neg, pos, but the class names are for pos, neg" in said[3]["error"]
    assert (said[4]["names"], said[4]["labels"][:3]) == (["bad", "good"], [0, 1, 0])
    assert "there are test.parquet, train.parquet, validation.parquet" in said[5]["error"]
    assert "row 41: nothing in column 'text' or 'label'; so it is in 1 row. " in said[6]["error"]
    assert (said[7]["names"], len(said[7]["texts"])) == (["ham", "spam"], ROWS)
    assert CONVERSION == "refs@convert@parquet"


def test_what_many_tasks_lack_is_told_once(hub: LoopbackHub, tmp_path: Path) -> None:
    for task in ("emo", "limit"):
        write_repository(task, hub.folder)
    load(hub, tmp_path, "hf.emo", "hf.limit")
    hub.stop()
    specs = {
        "all": "[hf.all]",
        "some": "[hf.emo, hf.trec, hf.massive]",
        "one": "[hf.emo, hf.trec]",
        "small": "[hf.trec, hf.massive, hf.emo]",
    }
    for name, tasks in specs.items():
        text = SPEC.replace("[hf.emo, hf.trec]", tasks).replace("locked", name)
        (tmp_path / f"{name}.yaml").write_text(
            text.replace("num_test: 10", "num_test: 19") if name == "small" else text
        )

    def told(name: str, **more: str) -> list[str]:
        done = hub.python(CLI, tmp_path, "validate", str(tmp_path / f"{name}.yaml"), **more)
        assert done.returncode == 2, done.stderr
        return [line.removeprefix(f"peekbench: {tmp_path / name}.yaml: ") for line in done.stderr.splitlines()]

    (everything,) = told("all", HF_HUB_OFFLINE="1")
    first = "23 tasks (hf.ag_news, hf.amazon_counterfactual_en, hf.app_reviews, hf.blog_authorship_corpus, "
    assert everything.startswith(first), "and all others, since two of the spec's tasks are there"
    assert "): not in this machine's cache, and HF_HUB_OFFLINE is set. Run `peekbench prefetch" in everything
    (some,) = told("some")
    assert some.startswith("2 tasks (hf.trec, hf.massive): cannot be reached (")
    assert some.count("Check the network and HF_ENDPOINT") == 1
    (one,) = told("one", HF_HUB_OFFLINE="1")
    assert one.startswith("hf.trec: default/train/*.parquet in the dataset repository CogComp/trec, 65752bf53af25bc9")
    unreached, small = told("small")
    assert unreached.startswith("2 tasks (hf.trec, hf.massive): cannot be reached (")
    assert "task hf.emo: 40 rows, but" in small, "a fault of another kind has its own line"
    shutil.rmtree(tmp_path / "cache")
    (everything,) = told("all", HF_HUB_OFFLINE="1")
    assert everything.startswith(
        "25 tasks (hf.ag_news, hf.amazon_counterfactual_en, hf.app_reviews, ...): not in this machine's cache"
    )


def test_show_says_without_a_network_what_the_record_knows(hub: LoopbackHub, tmp_path: Path) -> None:
    write_repository("trec", hub.folder)
    serve_pinned(hub, "trec")
    whole = hub.python(CLI, tmp_path / "online", "show", "hf.trec")
    assert "\n40 rows\n" in whole.stdout
    assert "not shown" not in whole.stdout
    hub.stop()
    part = hub.python(CLI, tmp_path / "offline", "show", "hf.trec")
    assert part.returncode == 0, part.stderr
    for said in (
        "  revision: str, default ''",
        "rows: 5,452",
        "classes: abbreviation, entity, description, human, location, number",
        "from: default/train/*.parquet in the dataset repository CogComp/trec, branch refs/convert/parquet",
        "citation: li2002learning",
        "  The text is a question. Answer with the kind of thing that it asks for.",
        "not shown: texts, and how many rows each class has; hf.trec: default/train/*.parquet in the dataset",
        "cannot be reached (",
    ):
        assert said in part.stdout
    asked = hub.python(CLI, tmp_path / "offline", "show", "hf.trec", "--options", "{drop_duplicates: exact}")
    assert asked.returncode == 2, "who gives options wants the data"
    assert "cannot be reached" in asked.stderr


SPEC = """
name: locked
seed: 1
tasks: [hf.emo, hf.trec]
methods: [controls.null]
design: {num_train: 6, num_test: 10, num_subsamples: 2}
executor: {use: local, options: {workers: 2}}
"""
CLI = "import sys; from peekbench.cli import main; sys.argv[0] = 'peekbench'; main()"


def test_a_spec_is_locked_prefetched_and_run_without_a_network(hub: LoopbackHub, tmp_path: Path) -> None:
    for task in ("trec", "emo"):
        write_repository(task, hub.folder)
    pinned, before = serve_pinned(hub, "trec"), hub.keep("aladar/emo")
    spec = tmp_path / "specs" / "locked.yaml"
    spec.parent.mkdir()
    spec.write_text(SPEC)

    def command(home: str, *arguments: str, **more: str) -> str:
        done = hub.python(CLI, tmp_path / home, *arguments, **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"hf.emo: revision {before}" in command("one", "lock", str(spec))
    assert pinned in (spec.parent / "locked.lock").read_text()
    write_file(hub.branch("aladar/emo") / "emo-train.arrow", [{"text": "x", "label": 0}], LAYOUTS["emo"])
    printed = command("two", "prefetch", str(spec))
    assert printed.splitlines() == ["[1/2] hf.emo", "    40 rows", "[2/2] hf.trec", "    40 rows"]
    hub.stop()
    assert "4 of 4 trials done" in command("two", "run", str(spec), HF_HUB_OFFLINE="1")
    report = json.loads(Path("reports/locked/report.json").read_text())
    revisions = {task: data["details"]["revision"] for task, data in report["data"].items()}
    assert revisions == {"hf.emo": before, "hf.trec": pinned}
