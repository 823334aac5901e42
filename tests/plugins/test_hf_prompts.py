"""Instructions and class names of Hub tasks from options, and from one file for several tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from peekbench import DataError, Dataset, Folders
from peekbench_hf.options import HubTaskOptions
from peekbench_hf.prompts import with_prompt
from peekbench_hf.source import load
from peekbench_hf.tasks import TASKS


def load_trec(folder: Path, prompts: str | None = None, **options: Any) -> Dataset:
    """Load rows of two of the classes of trec from a mirror, with a file of prompts."""
    files = folder / "hub" / "datasets" / "CogComp" / "trec" / "refs@convert@parquet" / "default" / "train"
    files.mkdir(parents=True, exist_ok=True)
    labels = ["ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"] * 2
    rows = {"text": [f"text {row}" for row in range(12)], "coarse_label": labels}
    pq.write_table(pa.table(rows), files / "0.parquet")
    if prompts is not None:
        (folder / "prompts.yml").write_text(prompts, encoding="utf-8")
        options["prompts"] = "prompts.yml"
    (task,) = (task for task in TASKS if task.name == "trec")
    parsed = HubTaskOptions.model_validate({"data_dir": folder / "hub", **options})
    return load(options=parsed, folders=Folders(folder, folder / "cache"), task=task)


def test_instructions_and_class_names_can_be_given(tmp_path: Path) -> None:
    default = load_trec(tmp_path)
    named = load_trec(tmp_path, instruction="Which kind?", class_names={"human": "person"})
    assert named.instruction == "Which kind?"
    assert named.class_names == ("abbreviation", "entity", "description", "person", "location", "number")
    assert list(named.labels) == list(default.labels)
    listed = load_trec(tmp_path, class_names=["a", "b", "c", "d", "e", "f"])
    assert (listed.class_names, listed.instruction) == (tuple("abcdef"), default.instruction)
    for names, problem in [
        (["a", "b"], "2 names for 6 classes; name all in this order: abbreviation"),
        ({"people": "person"}, "no class has the default name 'people'"),
        ({"human": "number"}, "give each class a name of its own"),
    ]:
        with pytest.raises(DataError, match=f"^hf.trec: class_names: {problem}"):
            load_trec(tmp_path, class_names=names)


def test_prompts_of_several_tasks_come_from_one_file(tmp_path: Path) -> None:
    default = load_trec(tmp_path)
    filled = load_trec(tmp_path, "hf.trec: {instruction: 'Which kind?', class_names: {human: person}}")
    assert (filled.instruction, filled.class_names[3]) == ("Which kind?", "person")
    changed = load_trec(tmp_path, "hf.trec: {instruction: 'What kind?', class_names: {human: person}}")
    assert changed.fingerprint != filled.fingerprint, "a run must not go on with other prompts"
    own = load_trec(tmp_path, "hf.trec: {instruction: 'Which kind?'}", instruction="Mine.", class_names=list("abcdef"))
    assert (own.instruction, own.class_names) == ("Mine.", tuple("abcdef"))
    for text in ("", "hf.trec: {instruction: null}", "hf.emo: {instruction: Another.}"):
        assert load_trec(tmp_path, text).instruction == default.instruction


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hf.trek: {}", "hf.trek: no such task; did you mean hf.trec?"),
        ("hf.trec: {}\nhf.trec: {}", "line 2: the key 'hf.trec' is a duplicate of line 1"),
        ("hf.trec: {instructions: a}", "hf.trec.instructions: Extra inputs are not permitted"),
        ("hf.trec: Which kind?", "hf.trec: .* expected for each task"),
        ("[1]", "the file: .* expected for each task"),
        ("hf.trec: {}\nhf.emo: {instruction: 'Who?}", "is not valid YAML: line 2"),
        ("[" * 200 + "]" * 200, "line 1: nested more than 100 levels deep"),
    ],
)
def test_a_wrong_file_of_prompts_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"prompts.yml:? {problem}"):
        load_trec(tmp_path, text)


def test_the_file_of_the_study_has_its_class_names() -> None:
    path = Path(__file__).parents[2] / "specs" / "paper" / "prompts.yml"
    prompts = yaml.safe_load(path.read_text("utf-8"))
    assert list(prompts) == [f"hf.{task.name}" for task in TASKS]
    given = [with_prompt(task, HubTaskOptions(prompts=path), Folders(path.parent, path.parent)) for task in TASKS]
    assert [task.instruction for task in given] == [task.instruction for task in TASKS], "its sentences are not ours"
    renamed = [task for task, ours in zip(given, TASKS, strict=True) if task.classes != ours.classes]
    assert {task.name: ", ".join((task.classes or {}).values()) for task in renamed} == {
        "app_reviews": "1, 2, 3, 4, 5",
        "climate_fever": "supported, refuted, not enough info, disputed",
        "disaster_response_messages": "direct message, news story, social media post",
        "trec": "Abbreviation, Entity, Description and abstract concept, Human being, Location, Numeric value",
        "tweets_hate_speech_detection": "not hate speech, hate speech",
        "yelp_review_full": "1, 2, 3, 4, 5",
    }
