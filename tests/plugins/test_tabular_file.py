"""The data source `tabular.file`: columns, categories, missing values and errors; methods on tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import needs_hf  # noqa: F401
import numpy as np
import pandas as pd
import pytest
from pydantic import ValidationError

import peekbench as pb
from peekbench.data.dataset_checks import check_dataset
from peekbench.data.loading import fingerprint
from peekbench.errors import DataError
from peekbench.execution.work import SpecWork
from peekbench.records.data import Dataset, Folders, Labeled, SourceRef, Task
from peekbench.records.trials import TrialResult, WorkItem
from peekbench.spec.experiment import make_spec
from peekbench_tabular import Impute, Pca
from peekbench_tabular.file import load
from peekbench_tabular.methods import impute, pca
from peekbench_tabular.options import FileOptions

PETS = "kind,age,weight,home\ncat,3,4.5,flat\ndog,?,20,house\ncat,7,,\ndog,10,31.5,flat\n"
Read = Callable[..., Dataset]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Return a function that writes files to the spec's folder and loads them."""

    def write_and_load(content: str = PETS, name: str = "pets.csv", test: str = "", **options: Any) -> Dataset:
        (tmp_path / name).write_text(content)
        options = {"path": name, "label": "kind", **options}
        if test:
            (tmp_path / "test.csv").write_text(test)
            options["test_path"] = "test.csv"
        dataset = load(options=FileOptions.model_validate(options), folders=Folders(tmp_path, tmp_path / "cache"))
        check_dataset(dataset, "tabular.file")
        return dataset

    return write_and_load


NAN = np.nan


def test_numbers_keep_missing_values_and_categories_become_columns(read: Read) -> None:
    dataset = read()
    expected = [[3, 4.5, 1, 0], [NAN, 20, 0, 1], [7, NAN, 0, 0], [10, 31.5, 1, 0]]
    np.testing.assert_array_equal(np.asarray(dataset.inputs), expected)
    assert (dataset.class_names, list(dataset.labels)) == (("cat", "dog"), [0, 1, 0, 1])


def test_encodings_without_one_hot_columns(read: Read) -> None:
    ordinal = np.asarray(read(encode="ordinal").inputs)
    np.testing.assert_array_equal(ordinal[:, 2], [0, 1, NAN, 0])
    frame: Any = read(encode="none").inputs
    assert [str(kind) for kind in frame.dtypes] == ["float64", "float64", "category"]
    assert list(frame["home"].cat.categories) == ["flat", "house"]
    prints = {fingerprint(read(encode=encode)) for encode in ("one-hot", "ordinal", "none")}
    prints.add(fingerprint(read(PETS.replace("house", "hut"), encode="none")))
    assert len(prints) == 4


def test_the_code_of_a_category_does_not_depend_on_the_rows_that_have_it(read: Read) -> None:
    """Otherwise, the encoding would itself adapt to the test rows."""
    rows = np.asarray(read("kind,home\ncat,b\ndog,c\ncat,a\ndog,c\n", encode="ordinal").inputs)
    others = np.asarray(read("kind,home\ndog,a\ncat,a\ncat,a\ndog,b\ncat,c\n", encode="ordinal").inputs)
    assert rows.ravel().tolist() == [1, 2, 0, 2]
    assert others.ravel().tolist() == [0, 0, 0, 1, 2]


def test_every_format_gives_the_same_rows(read: Read, tmp_path: Path) -> None:
    frame = pd.DataFrame({
        "kind": ["cat", "dog", "cat", "dog"], "age": [3, None, 7, 10], "weight": [4.5, 20, None, 31.5],
        "home": ["flat", "house", None, "flat"],
    })  # fmt: skip
    frame.to_parquet(tmp_path / "pets.parquet")
    found = {fingerprint(read())}
    found.add(fingerprint(pb.load_dataset("tabular.file", {"path": "pets.parquet", "label": "kind"}, folder=tmp_path)))
    found.add(fingerprint(read(PETS.replace(",", ";"))))
    found.add(fingerprint(read(PETS.replace(",", "\t"), "pets.tsv")))
    assert len(found) == 1


def test_official_splits_share_their_categories(read: Read) -> None:
    dataset = read(test="home,kind,age,weight\ntent,cat,1,2\nflat,dog,2,30\n")
    assert dataset.splits == ("train",) * 4 + ("test",) * 2
    assert np.asarray(dataset.inputs)[4].tolist() == [1, 2, 0, 0, 1]
    with pytest.raises(DataError, match=r"differ in the columns home; remove or rename"):
        read(test="kind,age,weight\ncat,1,2\n")


@pytest.mark.parametrize("sign", [-999, "-999", -999.0])
def test_numbers_stand_for_missing_values_in_any_notation(sign: Any, read: Read, tmp_path: Path) -> None:
    pd.DataFrame({"kind": ["a", "b"], "age": [-999.0, 2.5]}).to_parquet(tmp_path / "ages.parquet")
    stored = pb.load_dataset(
        "tabular.file", {"path": "ages.parquet", "label": "kind", "missing": sign}, folder=tmp_path
    )
    written = read("kind,age\na,-999.0\nb,2.5\n", "ages.csv", missing=sign)
    for dataset in (stored, written):
        np.testing.assert_array_equal(np.ravel(dataset.inputs), [NAN, 2.5])


def test_columns_can_be_chosen_dropped_and_declared_as_categories(read: Read) -> None:
    assert np.shape(read(drop="home").inputs) == (4, 2)
    assert np.shape(read(categorical=["age"], drop=["weight", "home"]).inputs) == (4, 3)
    np.testing.assert_array_equal(np.asarray(read(missing=[20], drop=["age", "home"]).inputs).ravel()[1], NAN)


def test_regression_has_numbers_as_targets(read: Read) -> None:
    dataset = read(label="weight", kind="regression", drop_missing=True)
    assert (dataset.kind, list(dataset.labels)) == ("regression", [4.5, 20, 31.5])
    assert dataset.details["dropped"] == {"missing": 1}


def test_rows_of_a_group_stay_together(read: Read) -> None:
    dataset = read(PETS + "cat,5,4,\n", group="home", drop_missing=True)
    assert (dataset.groups, np.shape(dataset.inputs)) == (("flat", "house", "flat"), (3, 2))
    with pytest.raises(DataError, match=r"row 3: no group; .*`drop_missing`"):
        read(group="home")
    test = "kind,age,weight,home\ncat,1,2,house\ndog,3,4,tent\n"
    dataset = read(test=test, group="home", drop_missing=True, drop_shared_groups=True)
    assert dataset.groups == ("flat", "flat", "house", "tent")


def test_class_names_merge_labels(read: Read) -> None:
    dataset = read(PETS + "wolf,3,40,house\n", class_names={"cat": "cat", "dog": "canine", "wolf": "canine"})
    assert (dataset.class_names, list(dataset.labels)) == (("cat", "canine"), [0, 1, 0, 1, 1])


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (PETS, {"label": "kinds"}, r"no column 'kinds'; did you mean 'kind'\?"),
        (PETS, {"label": "weight", "kind": "regression"}, r"row 3: no label; .*`drop_missing`"),
        (PETS, {"label": "home", "kind": "regression"}, r"row 1: the label 'flat' is not a number; give"),
        (PETS, {"label": "home"}, r"1 of 4 rows have the label ''.*row 3.*`drop_missing` to True"),
        (PETS.replace("10", "old"), {}, r"'age' has numbers, but also 'old'\. .*`missing` to \[old\]"),
        (PETS.replace("4.5", '"1,004.5"'), {}, r"'weight' has numbers, but also '1,004\.5'\. Write numbers as 1234\.5"),
        ("kind,zip\na,01234\nb,99999\n", {}, r"'zip' has numbers, but also '01234'.*add 'zip' to `categorical`"),
        (
            "kind,day\n" + "".join(f"a,2024-01-{day}\nb,2023-01-{day}\n" for day in range(10, 30)),
            {},
            r"'day' has 40 diff",
        ),
        ("kind,a,a\nx,1,2\ny,3,4\n", {}, r"two columns have the name 'a'"),
        ("kind,a\nx,1\ny,3,4\n", {}, r"line 3: 3 fields, but the header has 2"),
        ("kind\nx\ny\n", {"drop": []}, r"no column is left for the features"),
        ("kind,a\n", {}, r"has no rows"),
    ],
)
def test_unsuitable_tables_are_errors(content: str, options: dict[str, Any], message: str, read: Read) -> None:
    with pytest.raises(DataError, match=message):
        read(content, **options)


def test_one_hot_codes_that_fill_the_memory_are_refused(read: Read) -> None:
    content = "kind,code\n" + "".join(f"{'ab'[row % 2]},c{row}\n" for row in range(16_000))
    with pytest.raises(DataError, match=r"one-hot codes would be 16,000 features; set `encode` to ordinal"):
        read(content, "codes.csv", categorical="code")
    assert np.shape(read(content, "codes.csv", categorical="code", encode="ordinal").inputs) == (16_000, 1)


def test_missing_files_name_the_nearest_one(read: Read) -> None:
    read()
    with pytest.raises(DataError, match=r"no such file; did you mean \S*/pets\.csv\?"):
        read(name="other.csv", path="pest.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": "kind"}, "'kind' is named twice"),
        ({"path": "pets.xlsx"}, "unknown file format"),
        ({"kind": "regression", "class_names": ["a", "b"]}, "a regression has no classes"),
        ({"group": "home", "drop_shared_groups": True}, "a test split at `test_path`"),
    ],
)
def test_contradictory_options_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        FileOptions.model_validate({"path": "pets.csv", "label": "kind", **options})


STEPS = """
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

mixed = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_include="category")),
        remainder=make_pipeline(SimpleImputer(), StandardScaler()),
    ),
    LogisticRegression(),
)
"""


def score_arms(folder: Path, methods: list[Any], kind: str = "classification", **options: Any) -> dict[str, Any]:
    """Return the scores of base, extra and test by method, for a table with three numbers, a category and gaps."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(300, 3)) * [1, 10, 1000]
    sizes = rng.integers(0, 3, size=300)
    target = numbers[:, 0] + numbers[:, 1] / 10 + sizes - 1
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    frame = pd.DataFrame(numbers, columns=["x", "y", "z"]).assign(size=np.array(["S", "M", "L"])[sizes], target=target)
    if kind == "classification":
        frame["target"] = np.where(target > 0, "high", "low")
    frame.to_csv(folder / "table.csv", index=False)
    (folder / "steps.py").write_text(STEPS)
    source = {"path": "table.csv", "label": "target", "kind": kind, **options}
    raw = {
        "name": "table", "tasks": [{"use": "tabular.file", "name": "table", "options": source}], "methods": methods,
        "design": {"num_train": 40, "num_test": 60, "num_subsamples": 1}, "analyses": ["summary"],
    }  # fmt: skip
    spec = make_spec(raw, folder=folder)
    worker, scores = SpecWork(spec), {}
    for trial in spec.trials():
        (outcome,) = worker(WorkItem((trial,), has_base=False))
        assert isinstance(outcome, TrialResult), str(outcome)
        scores[trial.method] = [arm.score for arm in outcome.arms]
    return scores


PREPARED = {"use": "tabular.pca", "options": {"prepare": True, "num_components": 4}}


@pytest.mark.parametrize("strategy", ["mean", "knn"])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_methods_impute_and_scale(strategy: str, kind: str, tmp_path: Path) -> None:
    """Without scaling, the largest component would be the column without a signal."""
    methods = [{"use": "tabular.impute", "options": {"strategy": strategy}}, PREPARED]
    scores = score_arms(tmp_path, methods, kind)
    floor = {"classification": 0.7, "regression": 0.5}[kind]
    assert min(scores["tabular.impute"]) > floor
    assert scores["tabular.pca"][0] > floor


def test_an_imputer_learns_from_the_unlabeled_rows() -> None:
    train = Labeled(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 1.0, 2.0, 3.0]))
    task = Task("t", "regression", (), "", SourceRef("tabular.file"))
    context: Any = None
    predicted = {}
    for name, unlabeled in {"base": None, "test": np.array([[5.0], [7.0], [NAN]])}.items():
        predictor = impute(unlabeled, train, task, options=Impute(), context=context)
        predicted[name] = float(predictor.predict(np.array([[NAN]]))[0])
    assert predicted == pytest.approx({"base": 1.5, "test": 6})


def test_estimators_and_controls_take_data_frames_with_missing_values(tmp_path: Path) -> None:
    scores = score_arms(tmp_path, ["steps.py:mixed", "controls.null", "controls.leak"], encode="none")
    assert min(scores["mixed"]) > 0.75
    assert len(set(scores["controls.null"])) == 1
    base, extra, test = scores["controls.leak"]
    assert base == extra < test


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("tabular.standardize", {}, "which this method does not take; .*`prepare` of tabular.pca or tabular.screening"),
        ("tabular.screening", {}, "missing values"),
        ("tabular.pca", {}, "missing values"),
        ("tabular.impute", {"encode": "none"}, "a data frame; set `encode` of the task to one-hot"),
    ],
)
def test_methods_refuse_what_they_cannot_take(
    method: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=message):
        score_arms(tmp_path, [method], **options)


def test_columns_of_very_different_units_are_an_error_without_scaling(tmp_path: Path) -> None:
    rng, labels = np.random.default_rng(0), np.repeat([0, 1, 2], 20)
    centers = np.array([[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3730], [47.5, 15, 217, 5080]])  # of penguins
    train = Labeled(rng.normal(size=(60, 4)) * [2.7, 1, 6, 400] + centers[labels], labels)
    task = Task("t", "classification", ("a", "b", "c"), "", SourceRef("tabular.file"))
    context: Any = None
    with pytest.raises(DataError, match="columns have very different units"):
        pca(None, train, task, options=Pca(), context=context)
    pca(None, train, task, options=Pca(prepare=True), context=context)
