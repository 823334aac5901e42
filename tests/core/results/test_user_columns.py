"""Columns of users' tables: recognized, named by the user, harmless, or refused."""

from __future__ import annotations

import importlib
import io
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from typer.testing import CliRunner
from user_tables import UserTable, user_tables

from peekbench.cli.app import app
from peekbench.errors import ResultsError
from peekbench.records.data import TableOptions
from peekbench.results import load_results, pair_arms, tidy
from peekbench.results.columns import USER_COLUMNS, normalize
from peekbench.results.tidying import tidy_table

LONG = pd.DataFrame(
    {
        "task": "news", "method": ["a", "a", "b", "b"] * 2, "num_test": 100, "subsample": [3] * 4 + [5] * 4,
        "arm": ["extra", "test"] * 4, "score": [0.5, 0.52, 0.6, 0.58, 0.7, 0.75, 0.65, 0.68],
    }
)  # fmt: skip
EXPECTED = tidy(LONG, "canonical")
WIDE = LONG.pivot(index=["task", "method", "num_test", "subsample"], columns="arm", values="score").reset_index()


def parse(text: str, **options: Any) -> pd.DataFrame:
    return tidy(pd.read_csv(io.StringIO(text)), "here", **options)


def describe(table: pd.DataFrame, **options: Any) -> str:
    return str(tidy_table(table, "here", TableOptions(**options)).columns)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ({"task": "Dataset", "method": "system", "num_test": "N", "subsample": "Random Seed", "score": "Acc"}, {}),
        ({"task": "TASK", "method": "Method Name", "num_test": "test-size", "subsample": "fold"}, {}),
        ({"arm": "condition", "subsample": "run", "score": "accuracy"}, {}),
        ({"method": "config"}, {"columns": {"Config": "method"}}),
        ({"subsample": "no", "arm": "unlabeled"}, {"columns": {"no": "Subsample", "unlabeled": "arm"}}),
    ],
)
def test_columns_are_recognized_or_named(names: dict[str, str], options: dict[str, Any]) -> None:
    pd.testing.assert_frame_equal(tidy(LONG.rename(columns=names), "here", **options), EXPECTED)


@pytest.mark.parametrize(
    "names",
    [
        {"extra": "Extra", "test": "TEST"},
        {"extra": "acc_extra", "test": "acc_test"},
        {"extra": "extra accuracy", "test": "test accuracy"},
        {"extra": "Accuracy (extra)", "test": "Accuracy (test)"},
    ],
)
def test_columns_of_arms_have_many_spellings(names: dict[str, str]) -> None:
    pd.testing.assert_frame_equal(tidy(WIDE.rename(columns=names), "here"), EXPECTED)


def test_counts_of_each_arm_are_read() -> None:
    counts = WIDE.assign(**{f"num_correct_{arm}": (WIDE[arm] * 100).round().astype(int) for arm in ("extra", "test")})
    pd.testing.assert_frame_equal(tidy(counts.drop(columns=["extra", "test"]), "here"), EXPECTED)
    with_scores = counts.rename(columns={"num_correct_extra": "Extra correct"})
    pd.testing.assert_frame_equal(tidy(with_scores, "here"), EXPECTED)


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (lambda scores: (scores * 100).round(3), {"percent": True}),
        (lambda scores: (scores * 100).round(3).astype(str) + " %", {}),
        (lambda scores: (scores * 100).round(3).astype(str).str.replace(".", ",") + "%", {"percent": True}),
        (lambda scores: scores.astype(str).str.replace(".", ","), {}),
    ],
)
def test_percentages_and_decimal_commas_are_read_exactly(write: Any, options: dict[str, Any]) -> None:
    table = WIDE.assign(extra=write(WIDE["extra"]), test=write(WIDE["test"]))
    pd.testing.assert_frame_equal(tidy(table, "here", **options), EXPECTED, check_exact=True)


def test_fractions_among_percentages_are_refused() -> None:
    table = pd.DataFrame({"task": "a", "extra": ["71.5", "0.72"], "test": ["71.5", "72"]})
    with pytest.raises(ResultsError, match="row 2, column 'extra': 0.72 is at most 1, but other cells are percentages"):
        tidy(table, "mixed", percent=True)
    assert tidy(table.replace("0.72", "0.72%"), "mixed", percent=True)["score"].min() == 0.0072


def test_percentages_without_the_number_of_test_texts_are_shown_as_fractions() -> None:
    table = WIDE.assign(extra=WIDE["extra"] * 100, test=WIDE["test"] * 100)
    rest = table.drop(columns="num_test")
    options = TableOptions(percent=True)
    (warning,) = tidy_table(rest, "here", options).columns.warnings
    assert "add num_test, the number of test texts, to see percentage points" in warning
    counts = rest.assign(extra_correct=1, test_correct=1)
    fractions = WIDE.drop(columns="num_test").assign(majority="60%")
    for other, other_options in (
        (table, options),
        (counts, options),
        (fractions, TableOptions()),
        (table.rename(columns={"num_test": "n"}), TableOptions(percent=True, ignore=("n",))),
    ):
        assert tidy_table(other, "here", other_options).columns.warnings == ()


def test_several_columns_form_a_column_together() -> None:
    table = LONG.assign(seed=[1, 1, 1, 1, 2, 2, 2, 2], fold="f7").drop(columns="subsample")
    mapped = tidy(table, "here", columns={"seed": "subsample", "fold": "subsample"})
    pd.testing.assert_frame_equal(mapped.assign(subsample=mapped["subsample"] * 2 + 3), EXPECTED)
    split = tidy(LONG.assign(config=["x", "x", "y", "y"] * 2), "here", columns={"config": "method"})
    assert split["method"].unique().tolist() == ["a, x", "b, y"]


def test_what_was_done_with_each_column_is_described() -> None:
    table = LONG.rename(columns={"subsample": "seed", "method": "config"}).assign(
        notes=list("stuvwxyz"), **{"": range(8)}
    )
    assert describe(table, columns={"config": "method"}, ignore=["Notes"]) == (
        "used task, num_test, arm, score; mapped config=method, seed=subsample; ignored column 8 without a name (it "
        "numbers the rows), notes (by request)"
    )
    wide = WIDE.drop(columns="subsample").assign(extra=WIDE["extra"] * 100, test=WIDE["test"] * 100)
    assert describe(wide, percent=True) == (
        "used task, method, num_test, extra, test; percentages extra, test; no column numbers the subsamples, so arms "
        "are paired by row and methods are not paired"
    )


@pytest.mark.parametrize("column", ["seconds", "notes", "config", "language", "id", "Subsamples", "split", "value"])
@pytest.mark.parametrize("values", [list("abcdefgh"), ["a"] * 8, range(8)])
def test_unknown_columns_are_refused_whatever_their_values(column: str, values: Any) -> None:
    table = LONG.assign(**{column: values})
    with pytest.raises(ResultsError, match=rf"unknown column '{column}' \((?s:.*):\n  --ignore {column}$"):
        tidy(table, "here")
    pd.testing.assert_frame_equal(tidy(table, "here", ignore=[column]), EXPECTED)


def test_the_proposal_is_complete() -> None:
    """The arguments of a refusal are enough, also if several columns have names of their own."""
    table = LONG.rename(columns={"task": "suite", "subsample": "no", "arm": "unlabeled", "score": "f1_weighted"})
    table = table.assign(host="a", seconds=[3.5, 1.25, 4, 2, 8, 9, 7, 5])
    with pytest.raises(ResultsError) as caught:
        tidy(table, "here")
    assert shlex.join(caught.value.arguments) == (
        "--map suite=task --map unlabeled=arm --map no=subsample --map f1_weighted=score --ignore host --ignore seconds"
    )
    mapping, ignored = caught.value.arguments[1:8:2], caught.value.arguments[9::2]
    columns = dict(argument.split("=") for argument in mapping)
    pd.testing.assert_frame_equal(
        tidy(table, "here", columns=columns, ignore=ignored).assign(num_correct=None),
        EXPECTED.assign(num_correct=None),
    )


def test_a_column_that_tells_rows_of_the_same_place_apart_is_proposed_as_their_method() -> None:
    both = pd.concat([LONG.assign(config="x"), LONG.assign(config="y")], ignore_index=True)
    with pytest.raises(ResultsError, match=r"--map config=method --ignore host$"):
        tidy(both.assign(host="a"), "here")


def test_rows_of_arms_without_numbers_are_paired_by_order_only_on_request() -> None:
    table = LONG.drop(columns="subsample")
    with pytest.raises(ResultsError, match=r"2 rows have the same task.* \(rows 1, 5\)(?s:.*)--pair-by-order"):
        tidy(table, "here")
    paired = tidy(table, "here", pair_by_order=True)
    pd.testing.assert_frame_equal(paired.assign(subsample=paired["subsample"] * 2 + 3), EXPECTED)
    single = tidy(table[:4], "here")  # one row for each arm of a method
    assert single["subsample"].tolist() == [0] * 4


def test_rows_of_a_wide_table_are_draws_whose_numbers_do_not_depend_on_their_order() -> None:
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"task": ["x", "y"] * 50, "method": ["a"] * 40 + ["b"] * 60, "extra": 0.5, "test": 0.5})
    table[["extra", "test"]] += generator.normal(0, 0.1, (100, 2)).round(2)
    results = tidy(table, "here")
    pd.testing.assert_frame_equal(tidy(table.sample(frac=1, random_state=1), "here"), results)
    numbers = results.groupby("method")["subsample"].agg(set)
    assert not numbers["a"] & numbers["b"], "nothing says that the methods share draws"
    wide = pair_arms(results).loc["a"].sort_index(level="subsample")
    ranks = np.corrcoef(np.arange(len(wide)), wide["extra"].to_numpy())[0, 1]
    assert abs(ranks) < 0.5, "the first subsamples are not those of the lowest scores"
    ordered = tidy(table, "here", pair_by_order=True)
    assert ordered["subsample"].max() == 29


@pytest.mark.parametrize("values", [["t1", "t1", "t2", "t2"], [-1, -1, 7, 7], [2**60, 2**60, 2**60 + 1, 2**60 + 1]])
def test_draws_that_the_user_names_are_numbered_in_order(values: list[Any]) -> None:
    table = LONG[:4].drop(columns="method").assign(subsample=values).rename(columns={"subsample": "draw"})
    results = tidy(table, "here", columns={"draw": "subsample"})
    assert results["subsample"].tolist() == ([1, 1, 2, 2])


def test_an_index_that_could_distinguish_rows_is_refused() -> None:
    table = LONG.drop(columns="method")
    with pytest.raises(
        ResultsError, match="the index has no name, and its values are not row numbers, but 'a', 'a', 'b'"
    ):
        tidy(table.set_axis(LONG["method"].to_numpy(), axis="index"), "here")
    pd.testing.assert_frame_equal(tidy(pd.concat([LONG[:4], LONG[4:].reset_index(drop=True)]), "here"), EXPECTED)


def test_each_synonym_belongs_to_one_column() -> None:
    names = [normalize(synonym) for column in USER_COLUMNS for synonym in column.synonyms]
    assert len(names) == len(set(names)) <= 40
    assert not set(names) & {normalize(column.name) for column in USER_COLUMNS}


@pytest.mark.parametrize("form", ["csv", "jsonl", "json", "parquet"])
def test_the_standard_input_has_any_format(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    writers: dict[str, Any] = {
        "csv": lambda file: LONG.to_csv(file, index=False),
        "jsonl": lambda file: LONG.to_json(file, orient="records", lines=True),
        "json": lambda file: LONG.to_json(file, orient="records"),
        "parquet": LONG.to_parquet,
    }
    file = io.BytesIO()
    writers[form](file)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(file.getvalue())))
    pd.testing.assert_frame_equal(load_results("-"), EXPECTED)


def test_every_format_of_a_report_has_the_columns_and_the_pairing(tmp_path: Path) -> None:
    LONG.drop(columns="subsample").assign(notes=list("abcdefgh")).to_csv("scores.csv", index=False)
    arguments = ["analyze", "scores.csv", "--analysis", "toy.count", "--ignore", "notes", "--pair-by-order"]
    ran = CliRunner().invoke(app, [*arguments, "--reports", "out"])
    assert ran.exit_code == 0, ran.output
    for name in ("html", "txt", "md", "json"):
        text = (tmp_path / "out" / "scores" / f"report.{name}").read_text("utf-8").replace("\\_", "_")
        text = " ".join(text.split())
        assert "used task, method, num_test, arm, score; ignored notes (by request)" in text
        assert "Rows were paired by their order in the table" in text


@pytest.mark.parametrize("arguments", [["leaderboard", "scores.csv"], ["compare", "scores.csv", "again.csv"]])
def test_commands_for_several_tables_take_the_same_options(arguments: list[str]) -> None:
    table = LONG.rename(columns={"subsample": "no"}).assign(notes=list("abcdefgh"))
    for name in ("scores.csv", "again.csv"):
        table.to_csv(name, index=False)
    ran = CliRunner().invoke(app, [*arguments, "--map", "no=subsample", "--ignore", "notes", "--full"])
    assert ran.exit_code == 0, ran.output
    assert "columns of scores: used task, method, num_test, arm, score; mapped" in " ".join(ran.output.split())


@pytest.mark.slow
def test_tables_as_people_write_them_give_the_verdicts_of_the_canonical_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks" / "reliability"))
    judge = importlib.import_module("results_tables").judge
    outcomes = []

    @settings(
        max_examples=15, derandomize=True, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(user_tables())
    def check(table: UserTable) -> None:
        outcomes.append(judge(table))

    check()
    assert outcomes.count("equal") > 4


def wide(**columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = max(map(len, columns.values()))
    return pd.DataFrame({**columns, "extra": rng.random(size), "test": rng.random(size)})


def long(**columns: Any) -> pd.DataFrame:
    scores = wide(task=["a", "b"] * 3, seed=[0, 0, 1, 1, 2, 2])
    table = scores.melt(id_vars=["task", "seed"], var_name="arm", value_name="score")
    return table.assign(**{name: table["arm"].map(values) for name, values in columns.items()})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (wide(task=["a"] * 4, method=["lsa", "", "bow", ""]), "'method': the cell is empty, but other rows"),
        (wide(task=["a"] * 4, model=["bert", "", "gpt2", None]), "'model': the cell is empty, but other rows"),
        (wide(task=["a", "b", "Macro avg"]), "Macro avg is an average of other tasks"),
        (pd.concat([wide(task=["a", "b"] * 3)] * 2), "each row occurs at least 2 times"),
        (long(metric={"extra": "f1", "test": "acc"}), "column 'metric': acc differs from the first row of its task"),
    ],
)
def test_tables_that_would_change_a_verdict_silently_are_refused(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ResultsError, match=message):
        tidy_table(table, "here", TableOptions())


def test_a_lone_one_among_percentages_is_refused() -> None:
    table = pd.DataFrame({"task": ["a", "b", "c"], "extra": [71.5, 1.0, 80], "test": [70, 70.5, 82]})
    with pytest.raises(ResultsError, match=r"1\.0 is at most 1, but other cells are percentages"):
        tidy_table(table, "here", TableOptions(percent=True))


def test_models_may_be_missing_for_methods_without_one() -> None:
    table = wide(task=["a", "b"] * 2, method=["lsa", "lsa", "tapt", "tapt"], model=["", "", "bert", "bert"])
    assert set(tidy_table(table, "here", TableOptions()).results["model"]) == {"", "bert"}
