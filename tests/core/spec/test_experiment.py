"""Reading and validating the spec of an experiment."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from peekbench.errors import SpecError
from peekbench.spec.components import AnalysisSpec, MethodSpec, make_component
from peekbench.spec.experiment import ExperimentSpec, canonical, load_spec, make_spec, parse_spec

MINIMAL = """
name: small
tasks: [toy.words]
methods: [toy.vote]
design: {num_train: 9, num_test: 20, num_subsamples: 2}
analyses: [toy.count]
"""
MakeRaw = Callable[..., dict[str, Any]]


def refuse(raw: Any, folder: Path = Path()) -> str:
    with pytest.raises(SpecError) as caught:
        make_spec(raw, folder=folder)
    return str(caught.value)


def test_minimal_spec_has_defaults(tmp_path: Path) -> None:
    spec = parse_spec(MINIMAL, folder=tmp_path)
    assert [arm.name for arm in spec.arms] == ["base", "extra", "test"]
    assert spec.seed == 0
    assert spec.executor.use == "local"
    assert spec.tasks[0].name == "toy.words"
    assert spec.methods[0].name == "toy.vote"
    assert spec.report.formats == ("html", "markdown", "json")
    assert spec.folder == tmp_path
    assert "num_unlabeled" not in canonical(spec)["design"], "stores of such specs stay the same"
    default = parse_spec(MINIMAL.replace("analyses: [toy.count]", ""), folder=tmp_path)
    assert [analysis.use for analysis in default.analyses] == ["summary", "permutation"]


def test_options_have_the_model_and_defaults_of_the_plugin(tmp_path: Path) -> None:
    spec = parse_spec(MINIMAL, folder=tmp_path)
    assert type(spec.methods[0].options).__name__ == "Vote"
    assert spec.methods[0].raw_options() == {"boldness": 1.0, "trust": 1.0, "model": "none", "seconds": 0.0}
    assert spec.methods[0].model == "none"


@pytest.mark.parametrize(
    ("parts", "errors"),
    [
        ({"nmae": "x"}, ["nmae: no such option; did you mean name?"]),
        ({"name": "../x"}, ["name: '../x' is not a name; use letters"]),
        ({"methods": [{"use": "toy.vote", "options": {7: 1}}]}, ["methods[0].options[7]: Keys should be strings: 7"]),
        ({"seed": "7"}, ["seed: Input should be a valid integer: '7'"]),
        ({"tasks": "toy.words"}, ["tasks: Input should be a list: 'toy.words'"]),
        ({"tasks": ["toy.wrods"]}, ["tasks[0].use: no data source 'toy.wrods'; did you mean toy.words?"]),
        ({"tasks": ["toy.vote"]}, ["tasks[0].use: no data source 'toy.vote'; it is one of the methods, which"]),
        ({"tasks": ["toy.words", "toy.words"]}, ["tasks[1].name: 'toy.words' is taken"]),
        ({"tasks": [{"use": "toy.words", "name": name} for name in ("news", "News")]},
         ["tasks[1].name: 'News' differs from 'news' only by case, spaces"]),
        ({"methods": ["toy.vote", {"use": "toy.vote", "options": {"boldness": "x", "y": 1}}]},
         ["methods[1].options.boldness: Input should be a valid number", "methods[1].options.y: no such option"]),
        ({"methods": [{"options": {}}]}, ["methods[0].use: is missing; add it"]),
        ({"methods": [7]}, ["methods[0]: Input should be a mapping: 7"]),
        ({"design": {"num_train": 5, "num_test": [9, 9], "num_subsamples": 1}}, ["design.num_test: [9, 9] has a num"]),
        ({"design": {"num_train": 5, "num_test": [9, 20], "num_unlabeled": 19, "num_subsamples": 1}},
         ["design.num_unlabeled: 19 is smaller than num_test 20, whose texts are among them; use at least 20, or a s"]),
        ({"tasks": [{"use": "toy.words", "num_test": [30, 40]}]},
         ["tasks[0].num_test: 40 is not in the design's num_test [30]; add it there, or remove it here"]),
        ({"design": {"num_train": 5, "num_test": [9, 20], "num_subsamples": {9: 1, 20: "x"}}},
         ["design.num_subsamples[20]: Input should be a valid integer: 'x'"]),
        ({"design": {"num_train": 5, "num_test": [9, 20], "num_subsamples": {"9": 1}}},
         ["design.num_subsamples: has entries for [9], num_test is [9, 20]"]),
        ({"arms": ["base", "extra"]}, ["arms: arm 'test' is missing"]),
        ({"arms": ["extra", "test", "test"]}, ["arms: arm 'test' is duplicated"]),
        ({"arms": ["extra", "test", "tset"]}, ["arms[2]: 'tset' is not an arm"]),
        ({"arms": ["extra", "test", {"mix": 1.5}]}, ["arms[2].mix: 1.5 is not a share between 0"]),
        ({"arms": ["extra", "test", {"cross": 31}]}, ["arms[2]: cross-31 with num_test 30 has 31 blocks; use 2 to 30"]),
        ({"arms": ["extra", "test", {"mix": 0.01}], "design": {"num_train": 6, "num_test": 20, "num_subsamples": 1}},
         ["arms[2]: mix-0.01 with num_test 20 has 0 of the test texts, as the arm extra; use"]),
        ({"tasks": ["toy.all", {"use": "toy.words", "name": "x", "options": {"num_rows": "x"}}]},
         ["tasks[1].options.num_rows: Input should be a valid integer"]),
        ({"analyses": ["summray"]}, ["analyses[0].use: no plugin 'summray' is installed; did you mean summary?"]),
        ({"report": {"formats": ["pdf"]}}, ["report.formats[0]: 'pdf' is not one of html, markdown, "]),
        ({"design": {"num_train": 5, "num_test": 9, "num_subsamples": 2, "train": "balancd"}},
         ["design.train: Input should be 'balanced' or 'natural': 'balancd'; did you mean balanced?"]),
    ],
)  # fmt: skip
def test_errors_name_the_place_and_the_problem(parts: dict[str, Any], errors: list[str], make_raw: MakeRaw) -> None:
    message = refuse(make_raw(**parts))
    for error in errors:
        assert f"\n  {error}" in message
    assert message.count("\n") == len(errors)


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"num_train": 5}, "num_train: no such option; num_train belongs in design"),
        ({"pinned": {}}, "pinned: no such option"),
        ({"report": {"format": []}}, "report.format: no such option; did you mean formats?"),
        (
            {"methods": [{"use": "toy.vote", "options": {"bold": 1}}]},
            "options.bold: no such option; did you mean boldness?",
        ),
        ({"methods": [{"use": "toy.constant", "options": {"x": 1}}]}, "options.x: no such option; remove it"),
        (
            {"methods": [{"use": "finetune.tapt", "options": {"epoch": 2}}]},
            "epochs belongs in methods[0].options.pretraining",
        ),
    ],
)
def test_unknown_options_get_a_suggestion(parts: dict[str, Any], error: str, make_raw: MakeRaw) -> None:
    assert error in refuse(make_raw(**parts))


def test_all_errors_are_listed_at_once(make_raw: MakeRaw) -> None:
    message = refuse(make_raw(seed=-1, tasks=["toy.wrods"], arms=["base"]))
    assert all(place in message for place in ("seed:", "tasks[0].use:", "arms:"))


@pytest.mark.parametrize(
    "text",
    [
        "name: a\nname: b\n",
        "name: a\nmethods:\n- use: toy.vote\n  options: {boldness: 1, boldness: 2}\n",
        "name: a\ndesign: {num_subsamples: {5: 1, 5: 2}}\n",
    ],
)
def test_duplicated_keys_are_errors(text: str) -> None:
    with pytest.raises(SpecError, match=r"duplicate of line \d"):
        parse_spec(text, folder=Path())


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    text = MINIMAL.replace("methods: [toy.vote]", "methods: [{<<: &v {use: toy.vote}, name: a}, {<<: *v, name: b}]")
    assert [method.name for method in parse_spec(text, folder=tmp_path).methods] == ["a", "b"]


def test_groups_are_replaced_by_their_members(make_raw: MakeRaw) -> None:
    spec = make_spec(make_raw(tasks=[{"use": "toy.all", "options": {"num_rows": 99}}]), folder=Path())
    assert [(task.name, task.raw_options()["num_rows"]) for task in spec.tasks] == [("toy.words", 99)]


def test_spec_is_frozen(make_spec: Callable[..., ExperimentSpec]) -> None:
    spec = make_spec()
    for model, name in (
        (spec, "seed"),
        (spec, "folder"),
        (spec, "pinned"),
        (spec.methods[0], "name"),
        (spec.methods[0].options, "boldness"),
    ):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(model, name, 1)


def test_mappings_of_a_spec_are_frozen(make_raw: MakeRaw, tmp_path: Path) -> None:
    method = {"use": "toy.vote", "by_task": {"b": {"boldness": 1}}}
    design = {"num_train": 6, "num_test": [10, 20], "num_subsamples": {10: 4, 20: 2}}
    raw = make_raw(methods=[method], design=design)
    spec = make_spec(raw, folder=tmp_path).with_pinned({}, "the versions")
    by_task: Any = spec.methods[0].by_task
    mappings: list[Any] = [spec.pinned, spec.design.num_subsamples, by_task, by_task["b"], spec.methods[0].by_task]
    for mapping in mappings:
        with pytest.raises(TypeError, match="cannot be changed"):
            mapping["b"] = 1
    copied = pickle.loads(pickle.dumps(spec))
    assert copied == spec
    with pytest.raises(TypeError, match="cannot be changed"):
        copied.methods[0].by_task["b"] = {}
    assert type(canonical(spec)["methods"][0]["by_task"]) is dict
    assert canonical(copied) == canonical(spec)
    assert canonical(spec)["design"]["num_subsamples"] == {"10": 4, "20": 2}


def test_number_of_subsamples_by_test_size(make_raw: MakeRaw) -> None:
    design = {"num_train": [6, 12], "num_test": [10, 20], "num_subsamples": {10: 4, 20: 2}}
    spec = make_spec(make_raw(design=design), folder=Path())
    assert [spec.design.repeats(size) for size in (10, 20)] == [4, 2]
    assert list(spec.design.points()) == [(6, 10), (6, 20), (12, 10), (12, 20)]


def test_canonical_form_is_read_back_as_the_same_spec(make_raw: MakeRaw, tmp_path: Path) -> None:
    parts = {
        "arms": ["base", "extra", "test", {"mix": 0.25}],
        "design": {"num_train": 6, "num_test": [10, 20], "num_subsamples": {10: 4, 20: 2}, "crossover": False},
    }
    spec = make_spec(make_raw(**parts), folder=tmp_path)
    again = make_spec(json.loads(json.dumps(canonical(spec))), folder=tmp_path)
    assert again == spec
    assert [arm.name for arm in again.arms] == ["base", "extra", "test", "mix-0.25"]


def test_executor_options_can_be_overridden(make_spec: Callable[..., ExperimentSpec], tmp_path: Path) -> None:
    spec = make_spec(executor="local").with_executor_options(workers=3)
    assert spec.executor.raw_options()["workers"] == 3
    assert spec.folder == tmp_path
    with pytest.raises(SpecError, match=r"options\.workers: Input should be greater than or equal to 1: 0"):
        make_spec().with_executor_options(workers=0)


def test_base_keys_ignore_options_without_effect_on_the_base_arm(make_spec: Any) -> None:
    methods = make_spec(
        methods=[
            "toy.vote",
            {"use": "toy.vote", "name": "bold", "options": {"boldness": 9}},
            {"use": "toy.vote", "name": "other", "options": {"model": "x"}},
        ]
    ).methods
    assert methods[0].base_key() == methods[1].base_key() != methods[2].base_key()


def test_unreadable_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"name: caf\xe9")
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "broken.yaml").write_text("name: [a")
    for name, message in (
        ("none.yaml", "No such file"),
        (".", "Is a directory"),
        ("latin.yaml", "UTF-8"),
        ("empty.yaml", "this is empty"),
        ("broken.yaml", "is not valid YAML"),
    ):
        with pytest.raises(SpecError, match=message) as caught:
            load_spec(tmp_path / name)
        assert str(tmp_path) in str(caught.value)


def test_components_outside_of_a_spec() -> None:
    assert make_component(AnalysisSpec, "toy.count", {"heading": "x"}).raw_options() == {"heading": "x"}
    with pytest.raises(SpecError, match="no analysis 'toy.cuont'"):
        make_component(AnalysisSpec, "toy.cuont")


SPECS = sorted((Path(__file__).parents[3] / "specs").rglob("*.yaml"))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_shipped_specs_are_valid(path: Path) -> None:
    assert load_spec(path).name


def with_differing_options(by_task: Any, name: str = "toy.vote", **options: Any) -> dict[str, Any]:
    return {"use": "toy.vote", "name": name, "options": options, "by_task": by_task}


def test_options_can_differ_by_task(make_raw: MakeRaw) -> None:
    spec = make_spec(make_raw(methods=[with_differing_options({"b": {"boldness": 3}}, model="m")]), folder=Path())
    method = spec.methods[0]
    assert [getattr(spec.options(method, task), "boldness", None) for task in ("", "a", "b")] == [1, 1, 3]
    assert {getattr(spec.options(method, task), "model", None) for task in ("", "a", "b")} == {"m"}
    assert make_spec(canonical(spec), folder=Path()) == spec


def test_nested_options_by_task_are_merged() -> None:
    options = {"model": "x", "pretraining": {"epochs": 4, "batch_size": 8}}
    raw = {"use": "finetune.tapt", "options": options, "by_task": {"a": {"pretraining": {"batch_size": 2}}}}
    pretraining = MethodSpec.model_validate(raw).options_for("a").pretraining  # type: ignore[attr-defined]
    assert (pretraining.epochs, pretraining.batch_size, pretraining.learning_rate) == (4, 2, 1e-4)


@pytest.mark.parametrize(
    ("by_task", "error"),
    [
        ({"c": {"boldness": 3}}, "methods[0].by_task: there is no task 'c'"),
        ({"b": {"boldnes": 3}}, "boldnes: no such option; did you mean boldness?"),
        ({"b": {"model": "m"}}, "methods[0].by_task.b: 'model' must be the same for all tasks"),
    ],
)
def test_invalid_options_by_task_are_errors(by_task: Any, error: str, make_raw: MakeRaw) -> None:
    assert error in refuse(make_raw(methods=[with_differing_options(by_task)]))


def test_base_keys_include_options_by_task_with_an_effect() -> None:
    """`boldness` has no effect without unlabeled texts; `classification` may have one."""
    plain, bold, bolder = (
        MethodSpec.model_validate(with_differing_options(by_task))
        for by_task in ({}, {"b": {"boldness": 2}}, {"b": {"boldness": 3}})
    )
    assert plain.base_key("b") == bold.base_key("b") == bolder.base_key("b")
    options = {"model": "x", "classification": {"epochs": 3}}
    same, other = (
        MethodSpec.model_validate(
            {"use": "finetune.tapt", "options": options, "by_task": {"a": {"classification": new}}}
        )
        for new in ({"epochs": 3}, {"epochs": 4})
    )
    assert same.base_key("a") == make_component(MethodSpec, "finetune.tapt", options).base_key() != other.base_key("a")
    assert same.base_key("b") == other.base_key("b")
