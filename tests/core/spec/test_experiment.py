from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from peekbench.errors import SpecError
from peekbench.spec.analysis_only import is_analysis_only, load_analysis_only
from peekbench.spec.components import AnalysisSpec, MethodSpec, make_component, parse_options
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


def test_a_minimal_spec_has_sensible_defaults(tmp_path: Path) -> None:
    spec = parse_spec(MINIMAL, folder=tmp_path)
    assert [arm.name for arm in spec.arms] == ["base", "extra", "test"]
    assert spec.seed == 0
    assert spec.executor.use == "local"
    assert spec.tasks[0].name == "toy.words"
    assert spec.methods[0].name == "toy.vote"
    assert spec.report.formats == ("html", "text", "markdown", "json", "cards")
    assert spec.folder == tmp_path
    default = parse_spec(MINIMAL.replace("analyses: [toy.count]", ""), folder=tmp_path)
    assert [analysis.use for analysis in default.analyses] == ["summary", "permutation"]


def test_options_are_the_plugins_own_model_with_its_defaults(tmp_path: Path) -> None:
    spec = parse_spec(MINIMAL, folder=tmp_path)
    assert type(spec.methods[0].options).__name__ == "Vote"
    assert spec.methods[0].raw_options() == {"boldness": 1.0, "trust": 1.0, "model": "none"}
    assert spec.methods[0].model == "none"


@pytest.mark.parametrize(
    ("parts", "faults"),
    [
        ({"nmae": "x"}, ["nmae: no such setting; remove it or correct its name"]),
        ({"name": "../x"}, ["name: String should match pattern"]),
        ({"name": None}, ["name: Input should be a valid string; got None"]),
        ({"seed": -1}, ["seed: Input should be greater than or equal to 0; got -1"]),
        ({"seed": "7"}, ["seed: Input should be a valid integer; got '7'"]),
        ({"tasks": []}, ["tasks: is empty; name at least one"]),
        ({"tasks": "toy.words"}, ["tasks: Input should be a valid list; got 'toy.words'"]),
        ({"tasks": ["toy.wrods"]}, ["tasks[0].use: no data source 'toy.wrods' (did you mean 'words'?); toy offers"]),
        ({"tasks": ["nothing.here"]}, ["tasks[0].use: no plugin 'nothing' is installed"]),
        ({"tasks": ["toy.vote"]}, ["tasks[0].use: no data source 'toy.vote' ('toy.vote' is among the methods)"]),
        ({"tasks": ["toy.words", "toy.words"]}, ["tasks[1].name: 'toy.words' is taken; give each entry a `name`"]),
        ({"tasks": [{"use": "toy.all", "name": "x"}]}, ["tasks[0].name: 'toy.all' is a group"]),
        ({"tasks": [{"use": "toy.words", "options": {"num_rows": "x"}}]}, ["tasks[0].options.num_rows: Input should"]),
        ({"methods": ["toy.vote", {"use": "toy.vote", "options": {"boldness": "x", "y": 1}}]},
         ["methods[1].options.boldness: Input should be a valid number", "methods[1].options.y: no such setting"]),
        ({"methods": [{"options": {}}]}, ["methods[0].use: is missing; add it"]),
        ({"methods": [7]}, ["methods[0]: Input should be a valid dictionary"]),
        ({"design": {"num_train": 0, "num_test": 5, "num_subsamples": 1}}, ["design.num_train[0]: Input should be"]),
        ({"design": {"num_train": 5, "num_test": [9, 9], "num_subsamples": 1}}, ["design.num_test: [9, 9] has a num"]),
        ({"tasks": [{"use": "toy.words", "num_test": [30, 40]}]},
         ["tasks[0].num_test: 40 is not in the design's num_test [30]; add it there, or remove it here"]),
        ({"tasks": [{"use": "toy.words", "num_test": [30, 30]}]}, ["tasks[0].num_test: [30, 30] has a number twice"]),
        ({"design": {"num_train": 5, "num_test": [9, 20], "num_subsamples": {"9": 1}}},
         ["design: num_subsamples has entries for [9], num_test is [9, 20]"]),
        ({"arms": ["base", "extra"]}, ["arms: arm 'test' is missing"]),
        ({"arms": ["extra", "test", "test"]}, ["arms: arm 'test' stands twice"]),
        ({"arms": ["extra", "test", "tset"]}, ["arms[2]: 'tset' is no arm"]),
        ({"arms": ["extra", "test", {"mix": 1.5}]}, ["arms[2]: mix: 1.5 is not a share between 0 and 1"]),
        ({"arms": ["extra", "test", {"mix": 1e-05}]}, ["arms[2]: mix: 1e-05 has more than 4 decimals; round it"]),
        ({"arms": ["extra", "test", {"mix": True}]}, ["arms[2]: mix: True is not a share"]),
        ({"arms": ["extra", "test", {"mix": 0.01}], "design": {"num_train": 6, "num_test": 20, "num_subsamples": 1}},
         ["arms[2].mix: 0.01 of num_test 20 is 0 texts, as in the arm extra"]),
        ({"tasks": ["toy.all", {"use": "toy.words", "name": "x", "options": {"num_rows": "x"}}]},
         ["tasks[1].options.num_rows: Input should"]),
        ({"analyses": ["summray"]}, ["analyses[0].use: no plugin 'summray' is installed (did you mean 'summary'?)"]),
        ({"executor": {"use": "local", "options": {"workers": 0}}}, ["executor.options.workers: Input should be"]),
        ({"report": {"formats": ["pdf"]}}, ["report.formats[0]: Input should be 'html', 'text', 'markdown', "]),
    ],
)  # fmt: skip
def test_faults_are_named_with_their_place(parts: dict[str, Any], faults: list[str], make_raw: MakeRaw) -> None:
    message = refuse(make_raw(**parts))
    for fault in faults:
        assert f"\n  {fault}" in message
    assert message.count("\n") == len(faults)


def test_all_faults_are_listed_at_once(make_raw: MakeRaw) -> None:
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
def test_keys_that_stand_twice_are_errors(text: str) -> None:
    with pytest.raises(SpecError, match="stands in line . already; remove one"):
        parse_spec(text, folder=Path())


def test_anchors_and_merges_work(tmp_path: Path) -> None:
    text = MINIMAL.replace("methods: [toy.vote]", "methods: [{<<: &v {use: toy.vote}, name: a}, {<<: *v, name: b}]")
    assert [method.name for method in parse_spec(text, folder=tmp_path).methods] == ["a", "b"]
    text = MINIMAL.replace("methods: [toy.vote]", "methods: [&v {use: toy.vote, name: a}, {<<: *v, name: b}]")
    assert [method.name for method in parse_spec(text, folder=tmp_path).methods] == ["a", "b"], "a merge is overruled"
    text = MINIMAL.replace("methods: [toy.vote]", "methods: [{<<: [{use: toy.vote}, {use: x.y}]}, {use: toy.constant}]")
    assert [method.use for method in parse_spec(text, folder=tmp_path).methods] == ["toy.vote", "toy.constant"]


def test_groups_stand_for_their_members(make_raw: MakeRaw) -> None:
    spec = make_spec(make_raw(tasks=[{"use": "toy.all", "options": {"num_rows": 99}}]), folder=Path())
    assert [(task.name, task.raw_options()["num_rows"]) for task in spec.tasks] == [("toy.words", 99)]


def test_a_spec_is_frozen(make_spec: Callable[..., ExperimentSpec]) -> None:
    spec = make_spec()
    for thing, name in ((spec, "seed"), (spec.methods[0], "name"), (spec.methods[0].options, "boldness")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(thing, name, 1)


def test_repeats_may_depend_on_the_test_size(make_raw: MakeRaw) -> None:
    design = {"num_train": [6, 12], "num_test": [10, 20], "num_subsamples": {10: 4, 20: 2}}
    spec = make_spec(make_raw(design=design), folder=Path())
    assert [spec.design.repeats(size) for size in (10, 20)] == [4, 2]
    assert list(spec.design.points()) == [(6, 10), (6, 20), (12, 10), (12, 20)]


def test_the_canonical_form_reads_back_as_the_same_spec(make_raw: MakeRaw, tmp_path: Path) -> None:
    parts = {
        "arms": ["base", "extra", "test", {"mix": 0.25}],
        "design": {"num_train": 6, "num_test": [10, 20], "num_subsamples": {10: 4, 20: 2}},
    }
    spec = make_spec(make_raw(**parts), folder=tmp_path)
    again = make_spec(json.loads(json.dumps(canonical(spec))), folder=tmp_path)
    assert again == spec
    assert [arm.name for arm in again.arms] == ["base", "extra", "test", "mix-0.25"]


def test_a_spec_survives_pickling_with_its_folder(make_spec: Callable[..., ExperimentSpec], tmp_path: Path) -> None:
    again = pickle.loads(pickle.dumps(make_spec()))
    assert again == make_spec()
    assert again.folder == tmp_path


def test_executor_options_can_be_overruled(make_spec: Callable[..., ExperimentSpec], tmp_path: Path) -> None:
    spec = make_spec().with_executor_options(workers=3)
    assert spec.executor.raw_options()["workers"] == 3
    assert spec.folder == tmp_path
    with pytest.raises(SpecError, match=r"options\.workers: Input should be greater"):
        make_spec().with_executor_options(workers=0)


def test_base_keys_agree_where_options_have_no_effect_on_the_base_arm(make_spec: Any) -> None:
    methods = make_spec(
        methods=[
            "toy.vote",
            {"use": "toy.vote", "name": "bold", "options": {"boldness": 9}},
            {"use": "toy.vote", "name": "other", "options": {"model": "x"}},
        ]
    ).methods
    assert methods[0].base_key() == methods[1].base_key() != methods[2].base_key()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
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


def test_things_named_outside_of_a_spec() -> None:
    assert make_component(AnalysisSpec, "toy.count", {"heading": "x"}).raw_options() == {"heading": "x"}
    with pytest.raises(SpecError, match="no analysis 'toy.cuont'"):
        make_component(AnalysisSpec, "toy.cuont")
    assert parse_options("{a: 1}") == {"a": 1}
    with pytest.raises(SpecError, match="is not a mapping"):
        parse_options("[1]")


SPECS = sorted((Path(__file__).parents[3] / "specs").rglob("*.yaml"))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.name)
def test_shipped_specs_fit(path: Path) -> None:
    assert (load_analysis_only if is_analysis_only(path) else load_spec)(path).name


def with_exceptions(by_task: Any, name: str = "toy.vote", **options: Any) -> dict[str, Any]:
    return {"use": "toy.vote", "name": name, "options": options, "by_task": by_task}


def test_options_may_differ_by_task(make_raw: MakeRaw) -> None:
    spec = make_spec(make_raw(methods=[with_exceptions({"b": {"boldness": 3}}, model="m")]), folder=Path())
    method = spec.methods[0]
    assert [getattr(spec.options(method, task), "boldness", None) for task in ("", "a", "b")] == [1, 1, 3]
    assert {getattr(spec.options(method, task), "model", None) for task in ("", "a", "b")} == {"m"}
    assert make_spec(canonical(spec), folder=Path()) == spec


def test_of_a_nested_option_only_what_differs_is_written() -> None:
    options = {"model": "x", "pretraining": {"epochs": 4, "batch_size": 8}}
    raw = {"use": "finetune.tapt", "options": options, "by_task": {"a": {"pretraining": {"batch_size": 2}}}}
    pretraining = MethodSpec.model_validate(raw).options_for("a").pretraining  # type: ignore[attr-defined]
    assert (pretraining.epochs, pretraining.batch_size, pretraining.learning_rate) == (4, 2, 1e-4)


@pytest.mark.parametrize(
    ("by_task", "fault"),
    [
        ({"c": {"boldness": 3}}, "methods[0].by_task: there is no task 'c'; write its name in this spec"),
        ({"b": {"boldnes": 3}}, "boldnes: no such setting"),
        ({"b": {"boldness": "x"}}, "boldness: Input should be a valid number"),
        ({"b": {"model": "m"}}, "[b] has 'model', which is one for all tasks; add a method for these"),
        ({"b": 3}, "methods[0].by_task.b: Input should be"),
    ],
)
def test_exceptions_that_do_not_fit_are_told_with_their_place(by_task: Any, fault: str, make_raw: MakeRaw) -> None:
    assert fault in refuse(make_raw(methods=[with_exceptions(by_task)]))


def test_base_keys_take_exceptions_into_account_that_matter_there() -> None:
    """`boldness` has no effect without unlabeled texts, `model` may have."""
    plain, bold, bolder = (
        MethodSpec.model_validate(with_exceptions(by_task))
        for by_task in ({}, {"b": {"boldness": 2}}, {"b": {"boldness": 3}})
    )
    assert plain.base_key() == bold.base_key() == bolder.base_key()
    options = {"model": "x", "classification": {"epochs": 3}}
    same, other = (
        MethodSpec.model_validate(
            {"use": "finetune.tapt", "options": options, "by_task": {"a": {"classification": new}}}
        )
        for new in ({"epochs": 3}, {"epochs": 4})
    )
    assert same.base_key() == make_component(MethodSpec, "finetune.tapt", options).base_key() != other.base_key()
