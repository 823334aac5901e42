"""Columns of users' tables: recognized, named by the user, harmless, or refused."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
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
from peekbench.results import pair_arms, tidy
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.results.columns import USER_COLUMNS
from peekbench.results.tidying import tidy_table
from peekbench.results.user_columns import normalize

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
        ({"method": "config"}, {"columns": {"config": "method"}}),
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


@pytest.mark.parametrize("cell", ["0.72", "1.0", 1.0])
def test_fractions_are_refused_if_scores_are_percentages(cell: Any) -> None:
    table = pd.DataFrame({"task": "a", "extra": ["71.5", cell], "test": ["71.5", "72"]})
    with pytest.raises(ResultsError, match=f"row 2, column 'extra': {cell} is at most 1, but --percent is given"):
        tidy(table, "mixed", percent=True)
    signed = table.assign(extra=["71.5", "0.72%"])
    assert tidy(signed, "mixed", percent=True)["score"].min() == 0.0072


def test_several_columns_form_a_column_together() -> None:
    table = LONG.assign(seed=[1, 1, 1, 1, 2, 2, 2, 2], fold="f7").drop(columns="subsample")
    mapped = tidy(table, "here", columns={"seed": "subsample", "fold": "subsample"})
    pd.testing.assert_frame_equal(mapped.assign(subsample=mapped["subsample"] * 2 + 3), EXPECTED)
    both = LONG.assign(config=["x", "x", "y", "y"] * 2)
    with pytest.raises(ResultsError, match="'config', 'method' can all mean(?s:.*)--map method=method$"):
        tidy(both, "here", columns={"config": "method"})
    split = tidy(both, "here", columns={"method": "method", "config": "method"})
    assert split["method"].unique().tolist() == ["a, x", "b, y"]


def test_what_was_done_with_each_column_is_described() -> None:
    table = LONG.rename(columns={"subsample": "seed", "method": "config"}).assign(notes=list("stuvwxyz"))
    assert describe(table, columns={"config": "method"}, ignore=["notes"]) == (
        "used task, num_test, arm, score; mapped config=method, seed=subsample; ignored notes (by request)"
    )
    wide = WIDE.drop(columns="subsample").assign(extra=WIDE["extra"] * 100, test=WIDE["test"] * 100)
    assert describe(wide, percent=True) == (
        "used task, method, num_test, extra, test; percentages extra, test; no column numbers the subsamples, so arms "
        "are paired by row and methods are not paired"
    )


@pytest.mark.parametrize("column", ["notes", "Subsamples", "value"])
@pytest.mark.parametrize("values", [list("abcdefgh"), ["a"] * 8, range(8)])
def test_unknown_columns_are_refused_whatever_their_values(column: str, values: Any) -> None:
    table = LONG.assign(**{column: values})
    with pytest.raises(ResultsError, match=rf"unknown column '{column}' \((?s:.*):\n  --ignore {column}$"):
        tidy(table, "here")
    pd.testing.assert_frame_equal(tidy(table, "here", ignore=[column]), EXPECTED)


def test_columns_whose_meaning_is_needed_are_listed_with_a_placeholder() -> None:
    table = LONG.rename(columns={"task": "suite", "subsample": "no"}).assign(host="a")
    with pytest.raises(ResultsError, match=r"no column 'task'(?s:.*)such as task or method") as caught:
        tidy(table, "here")
    assert shlex.join(caught.value.arguments) == "--map suite=MEANING --map no=MEANING --map host=MEANING"
    results = tidy(table, "here", columns={"suite": "task", "no": "subsample"}, ignore=["host"])
    pd.testing.assert_frame_equal(results, EXPECTED)


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
    assert len(names) == len(set(names)) <= 48
    assert not set(names) & {normalize(column.name) for column in USER_COLUMNS}


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


@pytest.mark.parametrize("arguments", [["compare", "scores.csv"], ["compare", "scores.csv", "again.csv"]])
def test_commands_for_several_tables_take_the_same_options(arguments: list[str]) -> None:
    table = LONG.rename(columns={"subsample": "no"}).assign(notes=list("abcdefgh"))
    for name in ("scores.csv", "again.csv"):
        table.to_csv(name, index=False)
    ran = CliRunner().invoke(app, [*arguments, "--map", "no=subsample", "--ignore", "notes", "--full"])
    assert ran.exit_code == 0, ran.output
    assert "columns of scores: used task, method, num_test, arm, score; mapped" in " ".join(ran.output.split())


def read_verdicts(results: pd.DataFrame) -> list[Any]:
    """Return the decisions of a results table with their numbers, in an order that does not depend on names."""
    (summary,) = analyze(results, AnalysisOptions(["summary"])).analyses
    estimates = [(verdict.decision, verdict.estimate) for verdict in summary.verdicts]
    numbers = [
        (decision, *(round(value or 0.0, 9) for value in (found.mean, *found.limits))) for decision, found in estimates
    ]
    return sorted(numbers)


def judge(user_table: UserTable) -> str:
    """Return 'equal' or 'refused'; an equal table has equal verdicts, and the order of rows changes no number."""
    table, options, canonical = user_table.table, user_table.options, user_table.canonical
    try:
        results = tidy(table, "table", **options)
    except ResultsError:
        return "refused"
    if not options.get("pair_by_order"):
        shuffled = tidy(table.sample(frac=1, random_state=1), "table", **options)
        pd.testing.assert_frame_equal(shuffled, results, check_exact=True)
    if results["num_test"].isna().all():  # the user's table lacks the sizes, or has one in a column of unknown meaning
        canonical = canonical.drop(columns="num_test")
    expected = tidy(canonical, "canonical")
    assert results.equals(expected) or read_verdicts(results) == read_verdicts(expected), (options, table.head(12))
    return "equal"


@pytest.mark.slow
def test_tables_as_people_write_them_give_the_verdicts_of_the_canonical_table() -> None:
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
        (long(metric={"extra": "f1", "test": "acc"}), "column 'metric': acc differs from the first row of its task"),
    ],
)
def test_tables_that_would_change_a_verdict_silently_are_refused(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ResultsError, match=message):
        tidy_table(table, "here", TableOptions())


def test_models_may_be_missing_for_methods_without_one() -> None:
    table = wide(task=["a", "b"] * 2, method=["lsa", "lsa", "tapt", "tapt"], model=["", "", "bert", "bert"])
    assert set(tidy_table(table, "here", TableOptions()).results["model"]) == {"", "bert"}
